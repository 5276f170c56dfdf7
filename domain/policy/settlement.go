package policy

import (
	"context"
	"strings"
	"time"

	"humanqa/domain"
	"humanqa/domain/command"
	"humanqa/domain/credits"
	"humanqa/domain/job"
)

// orphanAfter is how long a debit may wait for its job before it is settled. A
// submission that is still under way then loses to the settlement; the log's
// own resends give up before (eventstore), and the refund still comes within
// a minute.
const orphanAfter = 20 * time.Second

// refundAfter is how long the command that ended a job has to refund it
// itself.
const refundAfter = 5 * time.Second

// Money is what the settlement asks of the commands.
type Money interface {
	VoidJob(ctx context.Context, cause command.Cause, jobID string) (domain.Position, error)
	RefundJob(ctx context.Context, cause command.Cause, jobID, reason string) (domain.Position, error)
}

// Orphans settles debits whose job never came: a crash between the two
// appends of a submission (invariant 4).
type Orphans struct{ Money Money }

// Kind implements Policy.
func (Orphans) Kind() string { return "orphaned_debit" }

// Handles implements Rule.
func (Orphans) Handles() []string {
	return typesOf(&credits.Debited{}, &job.Created{}, &credits.Refunded{})
}

// React implements Rule: a debit sets the timer; its job, or its refund,
// clears it.
func (o Orphans) React(r domain.Recorded) []Change {
	switch e := r.Event.(type) {
	case *credits.Debited:
		return []Change{{First: true, Timer: Timer{
			Kind: o.Kind(), Key: e.JobID, DueAt: r.Meta.Time.Add(orphanAfter),
			AccountID: strings.TrimPrefix(r.Stream, domain.CreditsStreams),
		}}}
	case *job.Created:
		return []Change{cleared(o.Kind(), strings.TrimPrefix(r.Stream, domain.JobStreams))}
	case *credits.Refunded:
		return []Change{cleared(o.Kind(), e.JobID)}
	}
	return nil
}

// Fire implements Policy.
func (o Orphans) Fire(ctx context.Context, t Timer) error {
	_, err := o.Money.VoidJob(ctx, cause(t), t.Key)
	return err
}

// Refunds repeats the refund of an ended job that its own command did not get
// to: a crash between the job's end and the ledger.
type Refunds struct{ Money Money }

// Kind implements Policy.
func (Refunds) Kind() string { return "missing_refund" }

// Handles implements Rule.
func (Refunds) Handles() []string {
	return typesOf(&job.CancelledBy{}, &job.VoidedOrphan{}, &credits.Refunded{})
}

// React implements Rule: an end that is owed a refund sets the timer; the
// refund clears it.
func (p Refunds) React(r domain.Recorded) []Change {
	jobID := strings.TrimPrefix(r.Stream, domain.JobStreams)
	switch e := r.Event.(type) {
	case *job.CancelledBy:
		return []Change{p.owed(r, jobID, r.Meta.AccountID)}
	case *job.VoidedOrphan:
		return []Change{p.owed(r, jobID, e.AccountID)}
	case *credits.Refunded:
		return []Change{cleared(p.Kind(), e.JobID)}
	}
	return nil
}

// Fire implements Policy.
func (p Refunds) Fire(ctx context.Context, t Timer) error {
	_, err := p.Money.RefundJob(ctx, cause(t), t.Key, "job_ended")
	return err
}

func (p Refunds) owed(r domain.Recorded, jobID, accountID string) Change {
	return Change{Timer: Timer{Kind: p.Kind(), Key: jobID, AccountID: accountID, DueAt: r.Meta.Time.Add(refundAfter)}}
}

func cleared(kind, key string) Change {
	return Change{Timer: Timer{Kind: kind, Key: key}, Clear: true}
}

func cause(t Timer) command.Cause {
	return command.Cause{CommandID: commandID(t), Actor: actor(t.Kind), AccountID: t.AccountID}
}

func typesOf(events ...domain.Event) []string {
	types := make([]string, len(events))
	for i, e := range events {
		types[i] = e.EventType()
	}
	return types
}
