package policy

import (
	"context"
	"strings"

	"humanqa/domain"
	"humanqa/domain/command"
	"humanqa/domain/job"
	"humanqa/domain/loop"
)

// settledAfter bounds the time until the charge of a test without a job is settled
// (watchDebit).
const settledAfter = 3 * orphanAfter

// loops follow the loops of agents.
var loops = []Policy{
	{
		Kind:    "loop_judge",
		Handles: domain.TypesOf(&loop.Iterated{}, &loop.OutcomeRecorded{}, &job.Completed{}, &job.Cancelled{}, &job.Failed{}),
		react:   watchLoopTest,
		issue: func(c Commands, ctx context.Context, cause command.Cause, key string) (domain.Position, error) {
			loopID, jobID, _ := strings.Cut(key, "/")
			return c.RecordLoopOutcome(ctx, cause, loopID, jobID)
		},
	},
	{
		Kind:    "loop_silence",
		Handles: domain.TypesOf(&loop.Iterated{}, &loop.Ended{}),
		// A loop session without calls of its agent ends. Every test sets the timer anew; the
		// session's end clears it.
		react: from(func(r domain.Recorded, e *loop.Iterated) []Change {
			return set(Timer{Key: r.StreamID(), AccountID: r.Meta.AccountID, DueAt: e.At.Add(loop.SilentFor)})
		}),
		issue: Commands.AbandonLoop,
	},
}

// watchLoopTest tells a loop the outcomes of its tests. The end of a loop's test sets the
// timer; the outcome in the loop clears it. The join of a test sets it, too, in case the
// job never comes.
func watchLoopTest(r domain.Recorded) []Change {
	switch e := r.Event.(type) {
	case *loop.Iterated:
		return setFirst(after(r, r.StreamID()+"/"+e.JobID, settledAfter))
	case *loop.OutcomeRecorded:
		return cleared(r.StreamID() + "/" + e.JobID)
	}
	_, loopID, _ := endOf(r.Event)
	if loopID == "" {
		return nil
	}
	return set(after(r, loopID+"/"+r.StreamID(), 0))
}
