// Package erase ends an account for good: its data key, its evidence, its people
// and its webhooks. The log keeps its history (decisions, "Erasure").
package erase

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sirupsen/logrus"

	"humanqa/cmd/humanqa/service"
	"humanqa/domain"
	"humanqa/domain/command"
	"humanqa/domain/person"
	"humanqa/domain/project"
	"humanqa/eventstore"
	"humanqa/eventstore/consumer"
	"humanqa/httpapi/admit"
	"humanqa/httpapi/evidence"
	"humanqa/httpapi/readers"
	"humanqa/internal/backoff"
	"humanqa/internal/blob"
	"humanqa/internal/credential"
	"humanqa/projections"
)

// Operator erases something of a service. Their name and reason stand in the log.
type Operator struct {
	*service.Core
	log        *logrus.Logger
	by, reason string
	files      blob.Bucket
}

// Open opens the evidence for an operator; by and reason stand in the log.
func Open(ctx context.Context, c *service.Core, log *logrus.Logger, by, reason string) (*Operator, error) {
	files, err := blob.Open(ctx, c.Config.EvidenceURL)
	if err != nil {
		return nil, err
	}
	return &Operator{Core: c, log: log, by: by, reason: reason, files: files}, nil
}

// Close releases the files, which are only read.
func (o *Operator) Close() { _ = o.files.Close() }

// Erasure is one run over everything that is kept of an account (decisions, "Erasure").
type Erasure struct {
	*Operator
	account string // its id
	sandbox bool
	people  *credential.Store
	found   map[string][]string // the ids of the account's things, by the category of their streams
	Erased  int                 // things that were left of the account and are gone
}

// New prepares the erasure of an account.
func New(o *Operator, accountID string) (*Erasure, error) {
	people, err := o.Credentials(o.Config.PagesURL())
	return &Erasure{Operator: o, account: accountID, people: people}, err
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
	return []func(context.Context) (int, error){
		e.endAccount, e.shredDataKey, e.collectBelongings, e.endWebhooks, e.eraseJobs, e.forgetPeople, e.forgetRows,
	}
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
// evidence works, and no upload that is under way is kept. The texts of refused tests have
// a key of their own.
func (e *Erasure) shredDataKey(ctx context.Context) (int, error) {
	return 0, errors.Join(e.Vault.Shred(ctx, e.account), e.Vault.ShredSubject(ctx, domain.AccountStream(e.account), e.account))
}

// collectBelongings finds them by the read models, once these show all of the log. So the
// cost is that of the account. The log decides about each.
func (e *Erasure) collectBelongings(ctx context.Context) (int, error) {
	at, err := e.Log.Head(ctx)
	if err != nil {
		return 0, err
	}
	if err := e.CatchUp(ctx, e.log, at); err != nil {
		return 0, err
	}
	reads := projections.NewReads(e.DB)
	of, err := reads.Access.Account(ctx, e.account)
	if err != nil {
		return 0, err
	}
	e.sandbox = of.Sandbox
	streams, err := e.streams(ctx, reads)
	if err != nil {
		return 0, err
	}
	e.found = map[string][]string{}
	for _, stream := range streams {
		kind, id, _ := strings.Cut(stream, "-")
		e.found[kind+"-"] = append(e.found[kind+"-"], id)
	}
	return 0, nil
}

// streams names the streams that may be the account's: those that the read models know, and
// those that they have set aside and in which the account is named.
func (e *Erasure) streams(ctx context.Context, reads *projections.Reads) (all []string, err error) {
	people, err := reads.People.Ever(ctx, e.account)
	if err != nil {
		return nil, err
	}
	for _, id := range people {
		all = append(all, domain.PersonStream(id))
	}
	own, err := reads.Events.Streams(ctx, e.account)
	if err != nil {
		return nil, err
	}
	all = append(all, own...)
	models, err := consumer.List(ctx, e.DB)
	if err != nil {
		return nil, err
	}
	for _, model := range models {
		for _, aside := range model.SetAside {
			named, err := e.named(ctx, aside.Stream)
			if err != nil {
				return nil, err
			}
			if named && !slices.Contains(all, aside.Stream) {
				all = append(all, aside.Stream)
			}
		}
	}
	return all, nil
}

// named says that an event of the stream has the account's id.
func (e *Erasure) named(ctx context.Context, stream string) (named bool, err error) {
	err = e.Log.ReadRaw(ctx, stream, func(raw eventstore.RawEvent) error {
		named = named || bytes.Contains(raw.Whole(), []byte(e.account))
		return nil
	})
	return named, err
}

func (e *Erasure) endWebhooks(ctx context.Context) (n int, err error) {
	none := ""
	for _, id := range e.found[domain.ProjectStreams] {
		var on bool
		_, _, err := e.Commands.OnProject(ctx, e.cause(), id, func(st project.State, at time.Time) ([]domain.Event, error) {
			on = st.WebhookURL != ""
			return project.DecideUpdate(st, project.UpdateCommand{Changes: project.Changes{WebhookURL: &none}, At: at})
		})
		if err != nil {
			return n, fmt.Errorf("end the webhook of project %s: %w", id, err)
		}
		if on {
			n++
		}
	}
	return n, nil
}

// eraseJobs takes the texts of every job, each with a fact of its own, so that the read
// models follow as they do for one job. A job that has not ended fails first: its credits
// go back to the ledger.
func (e *Erasure) eraseJobs(ctx context.Context) (n int, err error) {
	var at domain.Position
	for _, id := range e.found[domain.JobStreams] {
		of, err := e.Commands.ErasingJob(ctx, id)
		if err != nil {
			return n, fmt.Errorf("erase job %s: %w", id, err)
		}
		if of.AccountID != e.account {
			return n, fmt.Errorf("the read models name job %s, and the log gives it to another account: run humanqa fsck", id)
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
	for _, id := range e.found[domain.PersonStreams] {
		who, err := e.Commands.Person(ctx, id)
		if err != nil {
			return n, err
		}
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
