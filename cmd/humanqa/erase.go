package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"humanqa/domain"
	"humanqa/domain/account"
	"humanqa/domain/command"
	"humanqa/domain/job"
	"humanqa/domain/oversight"
	"humanqa/domain/person"
	"humanqa/domain/project"
	"humanqa/eventstore"
	"humanqa/httpapi"
	"humanqa/internal/blob"
	"humanqa/internal/credential"
	"humanqa/projections/auditlog"
)

type accountEraseCmd struct {
	Account string `required:"" help:"The account's id."`
	By      string `required:"" help:"Who does it: the operator's name, for the record."`
	Reason  string `required:"" help:"Why, for the record."`
}

// Validate is called by kong.
func (c *accountEraseCmd) Validate() error {
	if strings.TrimSpace(c.By) == "" || strings.TrimSpace(c.Reason) == "" {
		return errors.New("--by and --reason must not be blank")
	}
	return nil
}

// Run may be repeated, after a crash too, until it says that nothing is left.
func (c *accountEraseCmd) Run(ctx context.Context, a *app) error {
	return a.withCore(ctx, func(ctx context.Context, core *core) error {
		e, err := core.erasure(ctx, a.cfg, c)
		if err != nil {
			return err
		}
		defer func() { _ = e.files.Close() }() // what it holds open is only read
		_, err = record{By: c.By, Reason: c.Reason}.act(ctx, core, operator(c.Account), command.OperatorAct{
			Act: oversight.EraseAccount, Subject: domain.AccountStream(c.Account), AccountID: c.Account,
		}, func(ctx context.Context, _ command.Cause) (domain.Position, error) {
			return domain.Position{}, e.run(ctx)
		})
		if err != nil {
			return fmt.Errorf("%w: what is left is erased by the same command again", err)
		}
		return a.print(struct {
			AccountID string `json:"accountId"`
			Status    string `json:"status"`
			Erased    int    `json:"erased"`
		}{c.Account, "erased", e.erased},
			"account %s is erased: %d things that were left of it are gone, what it did stays in the log", c.Account, e.erased)
	})
}

// erasure is one run over everything that is kept of an account (decisions,
// "Erasure"). What belongs to it is asked of the log, because the read models of
// a stopped service may be behind.
type erasure struct {
	*core
	of      *accountEraseCmd
	sandbox bool
	people  *credential.Store
	files   *blob.Bucket
	found   belongings
	erased  int
}

func (c *core) erasure(ctx context.Context, cfg Config, of *accountEraseCmd) (*erasure, error) {
	people, err := credential.Open(credential.Config{DB: c.db, Now: time.Now, BaseURL: cfg.pagesURL(), Grants: c.commands.Grants})
	if err != nil {
		return nil, err
	}
	files, err := blob.Open(ctx, cfg.EvidenceURL)
	if err != nil {
		return nil, err
	}
	return &erasure{core: c, of: of, people: people, files: files}, nil
}

// eraseRounds bounds how often an erasure looks for what came in between: a
// request that was under way when the account ended.
const eraseRounds = 10

// run ends the account, and goes round until nothing is left.
func (e *erasure) run(ctx context.Context) error {
	for range eraseRounds {
		before := e.erased
		for _, step := range e.steps() {
			n, err := step(ctx)
			if err != nil {
				return err
			}
			e.erased += n
		}
		if e.erased == before {
			at, err := e.commands.FinishErasure(ctx, e.cause(), e.of.Account)
			e.waitVisible(ctx, at)
			return err
		}
	}
	return errors.New("there is always something more of the account: stop what still works for it")
}

// steps are the parts of a round; each erases again what is left of its own, and
// says how much that was. The fact comes first: from then on nothing new begins.
// Webhooks end before jobs do, so that nobody is told.
func (e *erasure) steps() []func(context.Context) (int, error) {
	return []func(context.Context) (int, error){e.end, e.shred, e.gather, e.endWebhooks, e.endJobs, e.forgetPeople, e.forgetRows}
}

func (e *erasure) cause() command.Cause {
	cause := operator(e.of.Account)
	cause.Sandbox = e.sandbox
	return cause
}

func (e *erasure) end(ctx context.Context) (int, error) {
	at, err := e.commands.EraseAccount(ctx, e.cause(), e.of.Account, e.of.By, e.of.Reason)
	if err == nil {
		e.waitVisible(ctx, at)
	}
	return 0, err
}

// shred destroys the data key: nothing that was sealed opens any more, no link to
// evidence works, and no upload that is under way is kept.
func (e *erasure) shred(ctx context.Context) (int, error) {
	return 0, e.vault.Shred(ctx, e.of.Account)
}

// belongings are what the log knows of an account, by id; of people it knows all.
type belongings struct {
	jobs     map[string]bool // true: open
	webhooks map[string]bool // by project; true: there is a URL
	people   map[string]person.State
}

func (e *erasure) gather(ctx context.Context) (int, error) {
	e.found = belongings{jobs: map[string]bool{}, webhooks: map[string]bool{}, people: map[string]person.State{}}
	return 0, auditlog.Each(ctx, e.log, func(raw eventstore.RawEvent) error {
		kind, id, _ := strings.Cut(raw.Stream, "-")
		switch kind + "-" {
		case domain.JobStreams, domain.ProjectStreams, domain.PersonStreams:
		default:
			if raw.Stream != domain.AccountStream(e.of.Account) {
				return nil
			}
		}
		r, err := raw.Decode()
		if err != nil {
			return err
		}
		e.see(id, r)
		return nil
	})
}

func (e *erasure) see(id string, r domain.Recorded) {
	switch event := r.Event.(type) {
	case *account.Created:
		e.sandbox = event.Sandbox
	case *job.Created:
		if event.AccountID == e.of.Account {
			e.found.jobs[id] = true
		}
	case *job.Completed, *job.Cancelled, *job.Failed:
		if e.found.jobs[id] {
			e.found.jobs[id] = false
		}
	case *project.Created:
		if event.AccountID == e.of.Account {
			e.found.webhooks[id] = false
		}
	case *project.WebhookSet, *project.WebhookCleared:
		if _, own := e.found.webhooks[id]; own {
			_, e.found.webhooks[id] = event.(*project.WebhookSet)
		}
	case *person.Invited, *person.Joined, *person.RoleGranted, *person.RoleRevoked, *person.Disabled:
		e.found.people[id] = person.Evolve(e.found.people[id], r.Event)
	}
}

func (e *erasure) endWebhooks(ctx context.Context) (n int, err error) {
	none := ""
	for id, on := range e.found.webhooks {
		if !on {
			continue
		}
		if _, _, err := e.commands.UpdateProject(ctx, e.cause(), id, command.UpdateProject{WebhookURL: &none}); err != nil {
			return n, fmt.Errorf("end the webhook of project %s: %w", id, err)
		}
		n++
	}
	return n, nil
}

// endJobs gives what was not tested back to the ledger. One that ends by itself
// meanwhile has ended.
func (e *erasure) endJobs(ctx context.Context) (n int, err error) {
	for id, open := range e.found.jobs {
		if !open {
			continue
		}
		if _, err := e.commands.FailJob(ctx, e.cause(), id, job.FailOperator); err != nil && !domain.IsKind(err, domain.KindConflict) {
			return n, fmt.Errorf("end job %s: %w", id, err)
		}
		n++
	}
	return n, nil
}

// forgetPeople takes the account's roles back. Whoever has no other is disabled
// and forgotten: nobody can sign in as them, and nothing says what they were
// called.
func (e *erasure) forgetPeople(ctx context.Context) (n int, err error) {
	for id, who := range e.found.people {
		if !who.BelongsTo(e.of.Account) {
			continue
		}
		own := func(g person.Grant) bool { return g.AccountID == e.of.Account }
		if slices.ContainsFunc(who.Grants, func(g person.Grant) bool { return !own(g) }) {
			for _, g := range who.Grants {
				if !own(g) {
					continue
				}
				if _, err := e.commands.RevokeRole(ctx, e.cause(), id, g); err != nil {
					return n, fmt.Errorf("take the role of person %s back: %w", id, err)
				}
				n++
			}
			continue
		}
		if !who.Disabled {
			if _, err := e.commands.DisablePerson(ctx, e.cause(), id, "the account was erased"); err != nil {
				return n, fmt.Errorf("disable person %s: %w", id, err)
			}
			n++
		}
		if err := e.people.Erase(ctx, id); err != nil {
			return n, err
		}
	}
	return n, nil
}

const (
	// uploadsEnd is how long an erasure waits for uploads that are under way: longer
	// than one that broke off counts as such.
	uploadsEnd = 90 * time.Second
	// lookAgain is how often it looks.
	lookAgain = 250 * time.Millisecond
)

// forgetRows waits for what is still written: behind it, nothing of the account is
// in the database or where evidence is kept.
func (e *erasure) forgetRows(ctx context.Context) (erased int, err error) {
	late := time.Now().Add(uploadsEnd)
	for {
		kept, underWay, err := httpapi.Erase(ctx, e.db, e.files, e.of.Account)
		if err != nil {
			return 0, err
		}
		erased += kept
		switch {
		case underWay == 0:
			rows, err := e.people.EraseAccount(ctx, e.of.Account)
			return erased + rows, err
		case time.Now().After(late):
			return 0, fmt.Errorf("%d uploads or recordings of the account are still being written: wait up to 15 minutes", underWay)
		}
		select {
		case <-time.After(lookAgain):
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
}
