// Package erase ends an account for good: its data key, its evidence, its people
// and its webhooks. The log keeps its history (decisions, "Erasure").
package erase

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
	"humanqa/domain/person"
	"humanqa/domain/project"
	"humanqa/eventstore"
	"humanqa/httpapi/admit"
	"humanqa/httpapi/evidence"
	"humanqa/httpapi/readers"
	"humanqa/internal/backoff"
	"humanqa/internal/blob"
	"humanqa/internal/credential"
	"humanqa/internal/service"
	"humanqa/projections/auditlog"
)

// Erasure is one run over everything that is kept of an account (decisions, "Erasure").
// It finds the account's things in the log, because the read models of a stopped service
// may be behind.
type Erasure struct {
	*service.Core
	account string // its id
	by      string // the operator, for the record
	reason  string
	sandbox bool
	people  *credential.Store
	files   *blob.Bucket
	found   belongings
	Erased  int // things that were left of the account and are gone
}

// New prepares the erasure of an account; by and reason stand in the log.
func New(ctx context.Context, c *service.Core, accountID, by, reason string) (*Erasure, error) {
	people, err := c.Credentials(c.Config.PagesURL())
	if err != nil {
		return nil, err
	}
	files, err := blob.Open(ctx, c.Config.EvidenceURL)
	if err != nil {
		return nil, err
	}
	return &Erasure{Core: c, account: accountID, by: by, reason: reason, people: people, files: files}, nil
}

// eraseRounds bounds how often an erasure looks for things that came in between: a
// request may have been under way when the account ended.
const eraseRounds = 10

// Run ends the account, and goes round until nothing is left.
func (e *Erasure) Run(ctx context.Context) error {
	for range eraseRounds {
		before := e.Erased
		for _, step := range e.Steps() {
			n, err := step(ctx)
			if err != nil {
				return err
			}
			e.Erased += n
		}
		if e.Erased == before {
			at, err := e.Commands.FinishErasure(ctx, e.cause(), e.account)
			e.WaitVisible(ctx, at)
			return err
		}
	}
	return errors.New("new data of the account keep arriving: stop the programs that still use it")
}

// Steps are the parts of a round; each erases the rest of its own things, and gives their
// number. The fact comes first: from then on nothing new begins. Webhooks end before jobs
// do, so that no webhook is sent.
func (e *Erasure) Steps() []func(context.Context) (int, error) {
	return []func(context.Context) (int, error){e.endAccount, e.shredDataKey, e.collectBelongings, e.endWebhooks, e.endJobs, e.eraseJobs,
		e.forgetPeople, e.forgetRows}
}

func (e *Erasure) cause() command.Cause {
	cause := service.OperatorCause(e.account)
	cause.Sandbox = e.sandbox
	return cause
}

func (e *Erasure) endAccount(ctx context.Context) (int, error) {
	at, err := e.Commands.EraseAccount(ctx, e.cause(), e.account, e.by, e.reason)
	if err == nil {
		e.WaitVisible(ctx, at)
	}
	return 0, err
}

// shredDataKey destroys the data key: nothing that was sealed opens any more, no link to
// evidence works, and no upload that is under way is kept.
func (e *Erasure) shredDataKey(ctx context.Context) (int, error) {
	return 0, e.Vault.Shred(ctx, e.account)
}

// belongings are the things of an account in the log, by id; people are those of all
// accounts.
type belongings struct {
	jobs     map[string]bool // true: open
	webhooks map[string]bool // by project; true: there is a URL
	people   map[string]person.State
}

func (e *Erasure) collectBelongings(ctx context.Context) (int, error) {
	e.found = belongings{jobs: map[string]bool{}, webhooks: map[string]bool{}, people: map[string]person.State{}}
	return 0, auditlog.Each(ctx, e.Log, func(raw eventstore.RawEvent) error {
		kind, id, _ := strings.Cut(raw.Stream, "-")
		switch kind + "-" {
		case domain.JobStreams, domain.ProjectStreams, domain.PersonStreams:
		default:
			if raw.Stream != domain.AccountStream(e.account) {
				return nil
			}
		}
		r, err := raw.Decode()
		if err != nil {
			return err
		}
		e.collectEvent(id, r)
		return nil
	})
}

func (e *Erasure) collectEvent(id string, r domain.Recorded) {
	switch event := r.Event.(type) {
	case *account.Created:
		e.sandbox = event.Sandbox
	case *job.Created:
		if event.AccountID == e.account {
			e.found.jobs[id] = true
		}
	case *job.Completed, *job.Cancelled, *job.Failed:
		if e.found.jobs[id] {
			e.found.jobs[id] = false
		}
	case *project.Created:
		if event.AccountID == e.account {
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

func (e *Erasure) endWebhooks(ctx context.Context) (n int, err error) {
	none := ""
	for id, on := range e.found.webhooks {
		if !on {
			continue
		}
		if _, _, err := e.Commands.UpdateProject(ctx, e.cause(), id, command.UpdateProject{WebhookURL: &none}); err != nil {
			return n, fmt.Errorf("end the webhook of project %s: %w", id, err)
		}
		n++
	}
	return n, nil
}

// endJobs gives the credits of untested jobs back to the ledger. It passes over a job
// that has ended meanwhile.
func (e *Erasure) endJobs(ctx context.Context) (n int, err error) {
	for id, open := range e.found.jobs {
		if !open {
			continue
		}
		if _, err := e.Commands.FailJob(ctx, e.cause(), id, job.FailOperator); err != nil && !domain.IsKind(err, domain.KindConflict) {
			return n, fmt.Errorf("end job %s: %w", id, err)
		}
		n++
	}
	return n, nil
}

// eraseJobs takes the texts of every job, each with a fact of its own, so that the read
// models follow as they do for one job.
func (e *Erasure) eraseJobs(ctx context.Context) (n int, err error) {
	var at domain.Position
	for id := range e.found.jobs {
		of, err := e.Commands.ErasingJob(ctx, id)
		if err != nil {
			return n, err
		}
		written, err := e.Commands.EraseJob(ctx, e.cause(), id, e.by, e.reason)
		if err != nil {
			return n, fmt.Errorf("erase job %s: %w", id, err)
		}
		if err := e.Vault.ShredSubject(ctx, domain.JobStream(id), e.account); err != nil {
			return n, err
		}
		if !of.Erased {
			n++
		}
		at = at.Max(written)
	}
	e.WaitVisible(ctx, at)
	return n, nil
}

// forgetPeople takes the account's roles back. A person without another role is disabled
// and forgotten: no sign-in works, and no name is kept.
func (e *Erasure) forgetPeople(ctx context.Context) (n int, err error) {
	for id, who := range e.found.people {
		if !who.BelongsTo(e.account) {
			continue
		}
		own := func(g person.Grant) bool { return g.AccountID == e.account }
		if slices.ContainsFunc(who.Grants, func(g person.Grant) bool { return !own(g) }) {
			for _, g := range who.Grants {
				if !own(g) {
					continue
				}
				if _, err := e.Commands.RevokeRole(ctx, e.cause(), id, g); err != nil {
					return n, fmt.Errorf("take the role of person %s back: %w", id, err)
				}
				n++
			}
			continue
		}
		if !who.Disabled {
			if _, err := e.Commands.DisablePerson(ctx, e.cause(), id, "the account was erased"); err != nil {
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

// untilWritten erases again until no upload and no recording is under way.
func untilWritten(ctx context.Context, of string, eraseFiles func() (underWay int, err error)) error {
	late := time.Now().Add(uploadsEnd)
	for {
		underWay, err := eraseFiles()
		switch {
		case err != nil || underWay == 0:
			return err
		case time.Now().After(late):
			return fmt.Errorf("%d uploads or recordings of the %s are still being written: wait up to 15 minutes", underWay, of)
		}
		if err := backoff.Wait(ctx, lookAgain); err != nil {
			return err
		}
	}
}

// forgetRows waits for uploads and recordings that are under way. After them, nothing of
// the account is in the database or where evidence is kept.
func (e *Erasure) forgetRows(ctx context.Context) (erased int, err error) {
	err = untilWritten(ctx, "account", func() (int, error) {
		answers, err := admit.EraseAnswers(ctx, e.DB, e.account)
		if err != nil {
			return 0, err
		}
		kept, underWay, err := evidence.Erase(ctx, e.DB, e.files, e.account, "")
		erased += answers + kept
		return underWay, err
	})
	if err != nil {
		return 0, err
	}
	named, err := readers.Erase(ctx, e.DB, e.account)
	if err != nil {
		return 0, err
	}
	rows, err := e.people.EraseAccount(ctx, e.account)
	return erased + named + rows, err
}

// Close releases the files that the erasure has opened, which are only read.
func (e *Erasure) Close() { _ = e.files.Close() }
