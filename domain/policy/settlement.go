package policy

import (
	"context"
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

// Money is what the ledger's policies ask of the commands.
type Money interface {
	VoidJob(ctx context.Context, cause command.Cause, jobID string) (domain.Position, error)
	RefundJob(ctx context.Context, cause command.Cause, jobID, reason string) (domain.Position, error)
	ExpireLots(ctx context.Context, cause command.Cause) (domain.Position, error)
}

// Orphans settles debits without a job, after a crash between the two appends of a
// submission (invariant 4). A crash has nothing to do with a sandbox's clock.
type Orphans struct{ Money Money }

// Kind implements Policy.
func (Orphans) Kind() string { return "orphaned_debit" }

// Handles implements Rule.
func (Orphans) Handles() []string {
	return domain.TypesOf(&credits.Debited{}, &job.Created{}, &credits.Refunded{})
}

// React implements Rule: a debit sets the timer; its job, or its refund,
// clears it.
func (o Orphans) React(r domain.Recorded) []Change {
	switch e := r.Event.(type) {
	case *credits.Debited:
		return []Change{{First: true, Timer: Timer{
			Kind: o.Kind(), Key: e.JobID, DueAt: r.Meta.Time.Add(orphanAfter), WallClock: true,
			AccountID: r.StreamID(),
		}}}
	case *job.Created:
		return []Change{cleared(o.Kind(), r.StreamID())}
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
	return domain.TypesOf(&job.Cancelled{}, &job.Failed{}, &job.Voided{}, &credits.Refunded{})
}

// React implements Rule: an end that is owed a refund sets the timer; the
// refund clears it.
func (p Refunds) React(r domain.Recorded) []Change {
	switch e := r.Event.(type) {
	case *job.Cancelled, *job.Failed:
		return []Change{p.owed(r, r.Meta.AccountID)}
	case *job.Voided:
		return []Change{p.owed(r, e.AccountID)}
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

func (p Refunds) owed(r domain.Recorded, accountID string) Change {
	return Change{Timer: Timer{
		Kind: p.Kind(), Key: r.StreamID(), AccountID: accountID,
		DueAt: r.Meta.Time.Add(refundAfter), WallClock: true,
	}}
}

// LotExpiry takes what is left in a lot out of the account when its time comes.
// A lot that was used up by then leaves nothing to record.
type LotExpiry struct{ Money Money }

// Kind implements Policy.
func (LotExpiry) Kind() string { return "lot_expiry" }

// Handles implements Rule.
func (LotExpiry) Handles() []string { return domain.TypesOf(&credits.Granted{}, &credits.LotExpired{}) }

// React implements Rule: a grant that ends sets the timer; its recorded end
// clears it.
func (p LotExpiry) React(r domain.Recorded) []Change {
	switch e := r.Event.(type) {
	case *credits.Granted:
		if e.ExpiresAt == nil {
			return nil
		}
		return []Change{{First: true, Timer: Timer{
			Kind: p.Kind(), Key: e.LotID, DueAt: *e.ExpiresAt,
			AccountID: r.StreamID(),
		}}}
	case *credits.LotExpired:
		return []Change{cleared(p.Kind(), e.LotID)}
	}
	return nil
}

// Fire implements Policy.
func (p LotExpiry) Fire(ctx context.Context, t Timer) error {
	_, err := p.Money.ExpireLots(ctx, cause(t))
	return err
}
