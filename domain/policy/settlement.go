package policy

import (
	"context"
	"time"

	"humanqa/domain"
	"humanqa/domain/command"
	"humanqa/domain/credits"
	"humanqa/domain/job"
	"humanqa/domain/project"
)

// orphanAfter is how long a debit may wait for its job before it is settled. A submission
// that is still under way then loses to the settlement. The log's own resends give up
// earlier (eventstore), and the refund still comes within a minute.
const orphanAfter = 20 * time.Second

// refundAfter is the time that the command that ended a job has to refund it itself.
const refundAfter = 5 * time.Second

// archivedAfter is longer than a submission takes that asked its project before the archive.
const archivedAfter = time.Minute

// settlement are the policies of the ledger, and of the refunds of an archive.
var settlement = []Policy{
	{
		Kind:    "orphaned_debit",
		Handles: domain.TypesOf(&credits.Debited{}, &job.Created{}, &credits.Refunded{}),
		react:   watchDebit,
		issue:   Commands.VoidJob,
	},
	{
		Kind:    "missing_refund",
		Handles: domain.TypesOf(&job.Cancelled{}, &job.Failed{}, &job.Voided{}, &credits.Refunded{}),
		react:   watchRefund,
		issue: func(c Commands, ctx context.Context, cause command.Cause, jobID string) (domain.Position, error) {
			return c.RefundJob(ctx, cause, jobID, "job_ended")
		},
	},
	{
		Kind:    "archive",
		Handles: domain.TypesOf(&project.Archived{}, &project.Restored{}),
		// An archive is finished (decisions, "Archive").
		react: from(func(r domain.Recorded, _ *project.Archived) []Change {
			return set(after(r, r.StreamID(), archivedAfter))
		}),
		issue: Commands.SettleArchive,
	},
	{
		Kind:    "dispute",
		Handles: domain.TypesOf(&job.DisputeDecided{}, &job.DisputeSettled{}),
		react:   watchDispute,
		issue:   Commands.SettleDispute,
	},
	{
		Kind:    "lot_expiry",
		Handles: domain.TypesOf(&credits.Granted{}, &credits.LotExpired{}),
		react:   watchLot,
		issue: func(c Commands, ctx context.Context, cause command.Cause, _ string) (domain.Position, error) {
			return c.ExpireLots(ctx, cause)
		},
	},
}

// watchDebit settles debits without a job, after a crash between the two appends of a
// submission (invariant 4). A crash has nothing to do with a sandbox's clock. A debit sets
// the timer; its job, or its refund, clears it.
func watchDebit(r domain.Recorded) []Change {
	switch e := r.Event.(type) {
	case *credits.Debited:
		t := after(r, e.JobID, orphanAfter)
		t.AccountID = r.StreamID()
		return setFirst(t)
	case *job.Created:
		return cleared(r.StreamID())
	case *credits.Refunded:
		return cleared(e.JobID)
	}
	return nil
}

// watchRefund makes the refund of an ended job that its own command did not make, because
// of a crash between the job's end and the ledger. An end with a refund sets the timer;
// the refund clears it.
func watchRefund(r domain.Recorded) []Change {
	switch e := r.Event.(type) {
	case *job.Cancelled, *job.Failed:
		return set(after(r, r.StreamID(), refundAfter))
	case *job.Voided:
		t := after(r, r.StreamID(), refundAfter)
		t.AccountID = e.AccountID
		return set(t)
	case *credits.Refunded:
		return cleared(e.JobID)
	}
	return nil
}

// watchDispute has a job made good once an operator has decided so. The decision sets the
// timer; the new test, or the refund, clears it.
func watchDispute(r domain.Recorded) []Change {
	switch e := r.Event.(type) {
	case *job.DisputeDecided:
		if e.Decision.MakesGood() {
			return setFirst(after(r, r.StreamID(), 0))
		}
	case *job.DisputeSettled:
		return cleared(r.StreamID())
	}
	return nil
}

// watchLot records the expiry of a lot when its time comes. A lot that was used up by
// then needs no record. A grant with an expiry sets the timer; the recorded expiry clears
// it.
func watchLot(r domain.Recorded) []Change {
	switch e := r.Event.(type) {
	case *credits.Granted:
		if e.ExpiresAt != nil {
			return setFirst(Timer{Key: e.LotID, DueAt: *e.ExpiresAt, AccountID: r.StreamID()})
		}
	case *credits.LotExpired:
		return cleared(e.LotID)
	}
	return nil
}
