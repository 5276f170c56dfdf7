package erase

import (
	"context"

	"humanqa/cmd/humanqa/service"
	"humanqa/domain"
	"humanqa/domain/person"
	"humanqa/internal/credential"
	"humanqa/internal/pgpool"
)

// Person is the erasure of one person (decisions, "Erasure of one subject"): their roles, name,
// proofs, mails and drafts, and the checker that they work as. The log has none of their
// words: it names people by id.
type Person struct {
	*Operator
	id      string
	now     person.State
	store   *credential.Store
	needles needles
	Checker *Checker // nil: they do not test
	Plan    PersonPlan
}

// PersonPlan describes an erasure.
type PersonPlan struct {
	PersonID string         `json:"personId"`
	Roles    []person.Grant `json:"roles"` // that end
	Texts    int            `json:"texts"` // name, sign-in name, address
	Short    int            `json:"shortTexts"`
	Checker  *CheckerPlan   `json:"checker,omitempty"`
}

// NewPerson looks at a person before the erasure.
func NewPerson(ctx context.Context, o *Operator, personID string) (*Person, error) {
	now, err := o.Commands.Person(ctx, personID)
	if err != nil {
		return nil, err
	}
	store, err := o.Credentials(o.Config.PagesURL())
	if err != nil {
		return nil, err
	}
	p := &Person{Operator: o, id: personID, now: now, store: store}
	p.Plan = PersonPlan{PersonID: personID, Roles: now.Grants}
	if err := p.look(ctx); err != nil {
		return nil, err
	}
	if id := now.CheckerID(); id != "" {
		if p.Checker, err = NewChecker(ctx, o, id); err != nil {
			return nil, err
		}
		p.Plan.Checker = &p.Checker.Plan
	}
	return p, nil
}

const addressSQL = `
SELECT address
FROM mail.people
WHERE person_id = $1
  AND address <> ''`

func (p *Person) look(ctx context.Context) error {
	texts, err := pgpool.Set(ctx, p.DB, "the address of person "+p.id, addressSQL, p.id)
	if err != nil {
		return err
	}
	names, err := p.store.Names(ctx, p.id)
	if err != nil {
		return err
	}
	if known, ok := names[p.id]; ok {
		texts[known.Name] = known.Name != ""
		if known.Login != nil {
			texts[*known.Login] = true
		}
	}
	delete(texts, "")
	p.needles = newNeedles(texts)
	p.Plan.Texts, p.Plan.Short = len(texts), len(texts)-p.needles.texts
	return nil
}

// Search looks for the person's texts everywhere, and changes nothing.
func (p *Person) Search(ctx context.Context) (Searched, error) {
	return p.needles.search(ctx, p.Core, domain.PersonStream(p.id), ownRows("person_id", p.id))
}

// Run erases the person and proves it. The rights go first: nothing is added from then on.
func (p *Person) Run(ctx context.Context, asked Asked) (out Searched, err error) {
	if !p.now.Disabled {
		at, err := p.Commands.DisablePerson(ctx, service.OperatorCause(""), p.id, "erased by an operator")
		if err != nil {
			return out, err
		}
		p.WaitVisible(ctx, at)
	}
	if p.Checker != nil {
		of, err := p.Checker.Run(ctx, asked)
		if err != nil || len(of.Left) > 0 {
			return of, err
		}
	}
	if err := p.store.Erase(ctx, p.id); err != nil {
		return out, err
	}
	return p.Search(ctx)
}
