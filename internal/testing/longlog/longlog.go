// Package longlog writes long logs: finished jobs with their ledgers, as the commands
// would have written them, but without a command for each.
package longlog

import (
	"context"
	"math"
	"time"

	"github.com/google/uuid"

	"humanqa/domain"
	"humanqa/domain/credits"
	"humanqa/domain/job"
)

// Price is the price of each job, in credits.
const Price = 5

// Log is the log that is written: *eventstore.Client.
type Log interface {
	Append(ctx context.Context, stream string, at domain.ExpectedRevision, events []domain.NewEvent) (domain.AppendResult, error)
	LoadTail(ctx context.Context, stream, eventType string, most int) (events []domain.Recorded, ok bool, err error)
}

// Life is a job whose app was found to work.
type Life struct {
	AccountID, ProjectID string
	Sandbox              bool
	Ended                time.Time
	Picture              string // a reference to evidence; empty: none was made
}

func (l Life) checker() string {
	if l.Sandbox {
		return job.Player // no person tests in a sandbox
	}
	return "ann"
}

// Write writes the life to the job's stream.
func (l Life) Write(ctx context.Context, log Log, jobID string) error {
	return appendAs(ctx, log, domain.JobStream(jobID), domain.NoStream, "checker:"+l.checker(), l.AccountID, l.Events())
}

// Events gives the life's five events.
func (l Life) Events() []domain.Event {
	at := l.Ended.UTC()
	item := job.ReportItem{
		Item: job.Item{
			ID: "item-1", Key: "voucher-lowers-total", Description: "The voucher lowers the total", Severity: job.Major,
		},
		Status: job.ItemPass, ScreenshotURL: l.Picture,
	}
	return []domain.Event{
		&job.Created{
			Submission: job.Submission{
				AccountID: l.AccountID, ProjectID: l.ProjectID, Sandbox: l.Sandbox,
				URL: "https://shop.example.com/checkout", Title: "Checkout with a voucher",
				Description: "Put two things into the cart, use the voucher, pay by invoice.",
				Type:        job.PaymentFlow, TypeEcho: "Payment Flow", SLAMinutes: 60, Price: Price, Source: "api",
			},
			Items: []job.Item{item.Item}, CreatedAt: at,
		},
		&job.Claimed{CheckerID: l.checker(), Token: 1, DueAt: at.Add(time.Hour), At: at},
		&job.ItemChecked{ItemID: item.ID, Status: job.ItemPass, ScreenshotURL: l.Picture, At: at},
		&job.Completed{ReportID: uuid.NewString(), OverallStatus: "pass", PassCount: 1, Summary: "The voucher works.",
			Items: []job.ReportItem{item}, At: at},
		&job.AIReportReady{AIReport: job.AIReport{ID: uuid.NewString(), ExecutiveSummary: "All is well.", HealthScore: 100, PassCount: 1,
			GeneratedBy: "rules", At: at}},
	}
}

func appendAs(
	ctx context.Context, log Log, stream string, at domain.ExpectedRevision, actor, accountID string, events []domain.Event,
) error {
	batch := make([]domain.NewEvent, len(events))
	for i, e := range events {
		batch[i] = domain.NewEvent{ID: uuid.New(), Event: e, Meta: domain.Metadata{
			CommandID: uuid.New(), CorrelationID: uuid.NewString(), Actor: actor, AccountID: accountID, Time: time.Now().UTC(),
		}}
	}
	_, err := log.Append(ctx, stream, at, batch)
	return err
}

// Ledger writes an account's ledger as the commands do.
type Ledger struct {
	Log     Log
	Account string
	// CloseEvery is the number of events after which the book is closed; 0: never.
	CloseEvery int
	// Running says that no job ends, so no close leaves a debit behind.
	Running bool
	// Debits are the jobs that were charged.
	Debits int

	state credits.State
	next  domain.ExpectedRevision
}

// plenty is more than a log can spend.
const plenty = 1_000_000_000

// NewLedger begins a ledger that has no events yet. If it has some, call Reload first.
func NewLedger(log Log, accountID string, closeEvery int) *Ledger {
	return &Ledger{Log: log, Account: accountID, CloseEvery: closeEvery, next: domain.NoStream}
}

// Reload continues behind the events that others wrote.
func (l *Ledger) Reload(ctx context.Context) error {
	stream := domain.CreditsStream(l.Account)
	events, _, err := l.Log.LoadTail(ctx, stream, (*credits.Closed)(nil).EventType(), math.MaxInt)
	if err != nil {
		return err
	}
	l.state = credits.State{}
	for _, r := range events {
		l.state = credits.Evolve(l.state, r.Event)
		l.next = domain.ExpectedRevision(r.Revision)
	}
	return nil
}

func (l *Ledger) write(ctx context.Context, events []domain.Event, err error) error {
	if err != nil || len(events) == 0 {
		return err
	}
	if err := appendAs(ctx, l.Log, domain.CreditsStream(l.Account), l.next, "operator", l.Account, events); err != nil {
		return err
	}
	for _, e := range events {
		l.state = credits.Evolve(l.state, e)
	}
	l.next += domain.ExpectedRevision(len(events))
	return nil
}

// Charge debits jobs that will be completed. It closes a full book first: the jobs that
// were charged before have ended by now.
func (l *Ledger) Charge(ctx context.Context, jobIDs []string) error {
	now := time.Now().UTC()
	if l.next == domain.NoStream {
		events, err := credits.DecideGrant(l.state, uuid.NewString(), plenty, nil, "bench", now)
		if err := l.write(ctx, events, err); err != nil {
			return err
		}
	}
	if err := l.closeBook(ctx, now); err != nil {
		return err
	}
	charges := make([]credits.Charge, len(jobIDs))
	for i, id := range jobIDs {
		charges[i] = credits.Charge{JobID: id, Amount: Price, AskedAt: now, KnownTo: l.state.Book().Closes}
	}
	events, err := credits.DecideDebits(l.state, charges, now)
	if err := l.write(ctx, events, err); err != nil {
		return err
	}
	l.Debits += len(jobIDs)
	return nil
}

// closeBook closes a full book.
func (l *Ledger) closeBook(ctx context.Context, now time.Time) error {
	if l.CloseEvery == 0 || !l.state.Full(l.CloseEvery) {
		return nil
	}
	settled := map[string]credits.Settled{}
	if !l.Running {
		_, open := l.state.Unsettled()
		for _, id := range open {
			settled[id] = credits.Settled{Completed: true}
		}
	}
	events, err := credits.DecideClose(l.state, settled, now)
	return l.write(ctx, events, err)
}

// Grow charges jobs, batch at once, until there are as many debits.
func (l *Ledger) Grow(ctx context.Context, debits, batch int) error {
	for l.Debits < debits {
		ids := make([]string, min(batch, debits-l.Debits))
		for i := range ids {
			ids[i] = uuid.NewString()
		}
		if err := l.Charge(ctx, ids); err != nil {
			return err
		}
	}
	return nil
}
