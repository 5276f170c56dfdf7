package erase

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"humanqa/cmd/humanqa/service"
	"humanqa/domain"
	"humanqa/domain/checker"
	"humanqa/domain/job"
	"humanqa/eventstore"
	"humanqa/httpapi/evidence"
)

// Checker is the erasure of one checker (decisions, "Erasure of one subject"): name,
// profile and key, and the further things that Asked names. A run that was cut off is
// continued by the same command.
type Checker struct {
	*Operator
	id      string
	jobs    []string // that they claimed
	needles needles
	Plan    CheckerPlan
}

// CheckerPlan describes an erasure.
type CheckerPlan struct {
	CheckerID   string        `json:"checkerId"`
	PersonID    string        `json:"personId,omitempty"` // who works as the checker
	Texts       int           `json:"texts"`              // name and profile
	Short       int           `json:"shortTexts"`         // of these: too short to be searched for
	Tests       int           `json:"tests"`              // that they claimed
	Made        evidence.Size `json:"made"`               // pictures and recordings
	ErasedAgain bool          `json:"erasedBefore"`
}

// NewChecker looks at a checker before the erasure.
func NewChecker(ctx context.Context, o *Operator, checkerID string) (*Checker, error) {
	st, err := o.Commands.Checker(ctx, checkerID)
	if err != nil {
		return nil, err
	}
	e := &Checker{Operator: o, id: checkerID}
	e.Plan = CheckerPlan{CheckerID: checkerID, PersonID: st.PersonID, ErasedAgain: !st.ErasedAt.IsZero()}
	return e, e.look(ctx)
}

// look reads the checker's texts, of earlier profiles too, and finds their tests: a place is
// reserved for a test before it is claimed.
func (e *Checker) look(ctx context.Context) (err error) {
	texts, reserved := map[string]bool{}, map[string]bool{}
	err = e.Log.ReadRaw(ctx, domain.CheckerStream(e.id), func(raw eventstore.RawEvent) error {
		r, err := raw.Decode()
		switch event := r.Event.(type) {
		case *checker.ClaimTaken:
			for _, r := range event.Held {
				reserved[r.JobID] = true
			}
		case *checker.Created:
			texts[event.Name] = true
		case *checker.Profiled:
			for _, text := range slices.Concat(event.Languages, event.Devices) {
				texts[text] = true
			}
		}
		return err
	})
	if err != nil {
		return err
	}
	for _, id := range slices.Sorted(maps.Keys(reserved)) {
		claimed, err := e.claimed(ctx, id)
		if err != nil {
			return err
		}
		if claimed {
			e.jobs = append(e.jobs, id)
		}
	}
	delete(texts, domain.ErasedText)
	e.needles = newNeedles(texts)
	e.Plan.Texts, e.Plan.Tests, e.Plan.Short = len(texts), len(e.jobs), len(texts)-e.needles.texts
	e.Plan.Made, err = evidence.MadeBy(ctx, e.DB, e.id)
	return err
}

// claimed says that the checker had a claim of the job.
func (e *Checker) claimed(ctx context.Context, jobID string) (claimed bool, err error) {
	err = e.Log.ReadRaw(ctx, domain.JobStream(jobID), func(raw eventstore.RawEvent) error {
		r, err := raw.Decode()
		if event, ok := r.Event.(*job.Claimed); ok && event.CheckerID == e.id {
			claimed = true
		}
		return err
	})
	return claimed, err
}

// Search looks for the checker's texts everywhere, and changes nothing.
func (e *Checker) Search(ctx context.Context) (Searched, error) {
	return e.needles.search(ctx, e.Core, domain.CheckerStream(e.id), ownRows("checker_id", e.id))
}

// Asked says which further things of a checker are erased.
type Asked struct {
	Pictures bool // and recordings that they made
	Tests    bool // all that they had, as by an erasure of each
}

// ErrHeld says that a hold, or a test that has not ended, keeps things that the checker
// made.
var ErrHeld = errors.New("what the checker made is kept by a hold, or by a test that has not ended")

// Run erases the checker and proves it. The fact comes first: from then on their key does not
// work. The tests that they hold come back to the queue by themselves.
func (e *Checker) Run(ctx context.Context, asked Asked) (out Searched, err error) {
	if _, err := e.Commands.EraseChecker(ctx, service.OperatorCause(""), e.id, e.by, e.reason); err != nil {
		return out, err
	}
	at, err := e.Log.Head(ctx)
	if err != nil {
		return out, err
	}
	if err := e.CatchUp(ctx, e.log, at); err != nil {
		return out, err
	}
	if asked.Tests {
		if err := e.eraseTests(ctx); err != nil {
			return out, err
		}
	}
	if asked.Pictures {
		if _, err := (evidence.Expiry{DB: e.DB, Files: e.files, Commands: e.Commands}).EraseMadeBy(ctx, e.id); err != nil {
			return out, err
		}
	}
	if out, err = e.Search(ctx); err != nil || len(out.Left) > 0 {
		return out, err
	}
	if err := e.Vault.ShredSubject(ctx, domain.CheckerStream(e.id), ""); err != nil {
		return out, err
	}
	if e.Plan.Made, err = evidence.MadeBy(ctx, e.DB, e.id); err == nil && asked.Pictures && e.Plan.Made.Files > 0 {
		err = fmt.Errorf("%w: %d pieces", ErrHeld, e.Plan.Made.Files)
	}
	return out, err
}

func (e *Checker) eraseTests(ctx context.Context) error {
	for _, id := range e.jobs {
		j, err := NewJob(ctx, e.Operator, id)
		if err != nil {
			return fmt.Errorf("erase job %s: %w", id, err)
		}
		left, err := j.Run(ctx)
		switch {
		case err != nil:
			return fmt.Errorf("erase job %s: %w", id, err)
		case len(left.Left) > 0:
			return fmt.Errorf("texts of job %s are still in %s", id, Lines(left.Left)[0])
		}
	}
	return nil
}

// ownRows says that a row is the subject's if the column holds its id.
func ownRows(column, id string) owner {
	return func(_ string, row map[string]any) (of string, own bool) { return ownerOf(row), row[column] == id }
}

// ownerOf names the stream that a row of a table belongs to, as far as its columns say.
func ownerOf(row map[string]any) string {
	for column, streams := range map[string]string{
		"job_id": domain.JobStreams, "checker_id": domain.CheckerStreams, "person_id": domain.PersonStreams,
		"project_id": domain.ProjectStreams,
	} {
		if id, _ := row[column].(string); id != "" {
			return streams + id
		}
	}
	return ""
}
