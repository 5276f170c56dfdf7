// Package notices makes notices of events, for the people who want e-mail and for the chats
// of projects (internal/mail). A consumer of the log writes each notice in the transaction of
// its checkpoint.
package notices

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jmoiron/sqlx"

	"humanqa/domain"
	"humanqa/domain/account"
	"humanqa/domain/credits"
	"humanqa/domain/job"
	"humanqa/domain/project"
	"humanqa/eventstore/consumer"
	"humanqa/internal/mail"
	"humanqa/webhooks"
)

// Name is the consumer's name among the consumers of the log.
const Name = "mail"

// Subscriber writes notices; eventstore/consumer runs it. It never goes back before its
// checkpoint, so no notice is written twice.
type Subscriber struct {
	db     *sqlx.DB
	about  *webhooks.About
	people bool
}

var (
	_ consumer.Preparer  = (*Subscriber)(nil)
	_ consumer.Announcer = (*Subscriber)(nil)
)

// New prepares a subscriber. log is asked about tests and projects. Without a mail server
// (people is false) it writes for chats alone.
func New(db *sqlx.DB, log domain.Log, people bool) *Subscriber {
	return &Subscriber{db, webhooks.NewAbout(log), people}
}

// Name implements consumer.Consumer.
func (*Subscriber) Name() string { return Name }

// Gather implements consumer.Lazy: a letter waits for minutes.
func (*Subscriber) Gather() time.Duration { return time.Second }

// Announces implements consumer.Announcer.
func (*Subscriber) Announces() {}

// Begin implements consumer.Preparer.
func (*Subscriber) Begin(context.Context) error { return nil }

// Handles implements consumer.Consumer. Of job.created only the test's title is
// remembered.
func (*Subscriber) Handles() []string {
	return domain.TypesOf((*job.Created)(nil), (*job.Completed)(nil), (*job.Failed)(nil), (*job.QuestionAsked)(nil),
		(*credits.Debited)(nil), (*project.WebhookDisabled)(nil), (*project.ChatSet)(nil), (*account.SubmissionsRefused)(nil),
		(*account.ErasureFinished)(nil), (*job.Erased)(nil))
}

// Prepare implements consumer.Preparer.
func (s *Subscriber) Prepare(ctx context.Context, batch []domain.Recorded) (_ consumer.Write, done int, err error) {
	var (
		told     []found
		accounts []string
		erasures []domain.Recorded
		chats    []domain.Recorded
	)
	for _, r := range batch {
		n, tells, failed := s.notice(ctx, r)
		if failed != nil {
			err = fmt.Errorf("%s in %s: %w", r.Type, r.Stream, failed)
			break
		}
		if tells {
			told, accounts = append(told, n), append(accounts, n.AccountID)
		}
		switch r.Event.(type) {
		case *account.ErasureFinished, *job.Erased:
			erasures = append(erasures, r)
		case *project.ChatSet:
			chats = append(chats, r)
		}
		done++
	}
	var list []mail.Notice
	if len(told) > 0 {
		listen, failed := mail.Listeners(ctx, s.db, accounts)
		if failed != nil {
			return nil, 0, failed
		}
		for _, n := range told {
			if !listen[n.AccountID] && len(chats) == 0 {
				continue // nobody wants it, unless one of these chats does
			}
			if n.Project, failed = s.about.Project(ctx, n.projectID); failed != nil {
				return nil, 0, fmt.Errorf("read the name of project %s: %w", n.projectID, failed)
			}
			list = append(list, n.Notice)
		}
	}
	for _, r := range erasures {
		s.about.Forget(r.Stream)
	}
	if len(list) == 0 && len(erasures) == 0 && len(chats) == 0 {
		return nil, done, err
	}
	return func(ctx context.Context, tx *sqlx.Tx) error { return s.write(ctx, tx, chats, list, erasures) }, done, err
}

// write begins with the chats, each of which is told of later events only. Erasures come last:
// the notices of the other events are written then.
func (s *Subscriber) write(ctx context.Context, tx *sqlx.Tx, chats []domain.Recorded, list []mail.Notice,
	erasures []domain.Recorded,
) error {
	for _, r := range chats {
		set, _ := r.Event.(*project.ChatSet)
		reports := mail.Reports(set.Reports)
		if set.Sealed == "" {
			reports = ""
		}
		if err := mail.SetChat(ctx, tx, r.Meta.AccountID, r.StreamID(), reports, r.Meta.Time); err != nil {
			return err
		}
	}
	if err := mail.Add(ctx, tx, list, s.people); err != nil {
		return err
	}
	for _, r := range erasures {
		var err error
		if _, ofJob := r.Event.(*job.Erased); ofJob {
			err = mail.EraseJob(ctx, tx, r.Meta.AccountID, r.StreamID())
		} else {
			err = mail.EraseAccount(ctx, tx, r.StreamID())
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// found is a notice whose project is not looked up yet.
type found struct {
	mail.Notice
	projectID string
}

// notice makes a notice of an event; tells is false if the event needs none.
func (s *Subscriber) notice(ctx context.Context, r domain.Recorded) (n found, tells bool, err error) {
	n.EventID = r.ID
	switch e := r.Event.(type) {
	case *credits.Debited:
		if !e.BecameLow() {
			return found{}, false, nil
		}
		n.Kind, n.Title, n.Path = mail.Credits, "Credits are low", "/dashboard/credits"
		n.Verdict = creditsOf(e.BalanceAfter) + " left"
	case *account.SubmissionsRefused: // one an hour for all of it
		n.EventID = domain.CommandIDFor("refusals", r.Stream, r.Meta.Time.UTC().Format("2006-01-02T15"))
		n.Kind, n.Title, n.Path = mail.Credits, "Tests are refused", "/dashboard"
		n.Verdict = "The overview has their number and the reason"
		for _, c := range e.Counts {
			n.Projects = append(n.Projects, c.ProjectID)
		}
	case *project.WebhookDisabled:
		n.Kind, n.Path = mail.Webhook, "/dashboard/projects/"+r.StreamID()+"/webhook"
		n.Verdict = "Events are held. " + e.Reason
	case *project.ChatSet:
		if e.Ended == "" {
			return found{}, false, nil
		}
		n.Kind, n.Path = mail.Webhook, "/dashboard/projects/"+r.StreamID()+"/chat"
		n.Verdict = "Its address takes nothing any more: " + e.Ended
	case *job.Completed:
		n.Kind, n.Path, n.Failed = mail.Report, "/dashboard/jobs/"+r.StreamID(), e.FailCount > 0
		n.Verdict = verdict(e)
	case *job.Failed:
		n.Kind, n.Path, n.Failed = mail.Report, "/dashboard/jobs/"+r.StreamID(), true
		n.Verdict = "Could not be tested. " + creditsOf(e.Refund) + " refunded"
	case *job.QuestionAsked: // the question's text stays on the page: it may be about a sign-in
		n.Kind, n.Path = mail.Question, "/dashboard/jobs/"+r.StreamID()+"#questions"
		minutes := int(e.Until.Sub(e.At).Round(time.Minute) / time.Minute)
		n.Verdict = fmt.Sprintf("The checker asks, and waits %d minutes for your answer", minutes)
	case *job.Created:
	default:
		return found{}, false, nil
	}
	about, err := s.about.Event(ctx, r)
	if err != nil {
		return found{}, false, err
	}
	if n.Kind == "" {
		return found{}, false, nil
	}
	n.AccountID, n.At = about.AccountID, r.Meta.Time
	switch n.Kind {
	case mail.Report, mail.Question:
		n.Title, n.projectID = about.Title, about.ProjectID
	case mail.Webhook:
		n.Title, n.projectID = "The webhook of "+about.Title+" is disabled", r.StreamID()
		if _, ofChat := r.Event.(*project.ChatSet); ofChat {
			n.Title = "The chat of " + about.Title + " has ended"
		}
	case mail.Credits:
	}
	if n.projectID != "" {
		n.Projects = []string{n.projectID}
	}
	return n, true, nil
}

// verdict is a short summary of a report, which names what failed first: of the client's
// list, for a finding is in the checker's words. Behind the colon are texts that an erasure
// takes away (mail.EraseJob).
func verdict(e *job.Completed) string {
	words := job.Tally(e.PassCount, e.FailCount, e.SkipCount)
	if e.SkipCount > 0 {
		words += fmt.Sprintf(", %d skipped", e.SkipCount)
	}
	first := slices.IndexFunc(e.Items, func(i job.ReportItem) bool { return i.Status == job.ItemFail && !i.IsFinding() })
	if first >= 0 {
		words += ": " + e.Items[first].Description
	}
	return words
}

func creditsOf(n domain.Credits) string {
	if n == 1 {
		return "1 credit"
	}
	return fmt.Sprintf("%d credits", n)
}
