package policy

import (
	"context"
	"strings"
	"time"

	"humanqa/domain"
	"humanqa/domain/command"
	"humanqa/domain/job"
	"humanqa/domain/loop"
)

// Loops is what agents' loops ask of the commands.
type Loops interface {
	RecordLoopOutcome(ctx context.Context, cause command.Cause, loopID, jobID string) (domain.Position, error)
	AbandonLoop(ctx context.Context, cause command.Cause, loopID string) (domain.Position, error)
}

// settledAfter bounds the time until the charge of a test without a job is settled
// (Orphans).
const settledAfter = 3 * orphanAfter

// LoopOutcomes tells a loop what became of its tests.
type LoopOutcomes struct{ Loops Loops }

// Kind implements Policy.
func (LoopOutcomes) Kind() string { return "loop_judge" }

// Handles implements Rule.
func (LoopOutcomes) Handles() []string {
	return domain.TypesOf(&loop.Iterated{}, &loop.OutcomeRecorded{}, &job.Completed{}, &job.Cancelled{}, &job.Failed{})
}

// React implements Rule: the end of a loop's test sets the timer, the loop's
// knowledge of it clears it. Until then a timer waits for a test that never
// comes.
func (p LoopOutcomes) React(r domain.Recorded) []Change {
	switch e := r.Event.(type) {
	case *loop.Iterated:
		c := p.changeAfter(r, r.StreamID(), e.JobID, settledAfter)
		c.First = true
		return []Change{c}
	case *loop.OutcomeRecorded:
		return []Change{cleared(p.Kind(), r.StreamID()+"/"+e.JobID)}
	case *job.Completed:
		return p.ended(r, e.LoopID)
	case *job.Cancelled:
		return p.ended(r, e.LoopID)
	case *job.Failed:
		return p.ended(r, e.LoopID)
	}
	return nil
}

func (p LoopOutcomes) ended(r domain.Recorded, loopID string) []Change {
	if loopID == "" {
		return nil
	}
	return []Change{p.changeAfter(r, loopID, r.StreamID(), 0)}
}

func (p LoopOutcomes) changeAfter(r domain.Recorded, loopID, jobID string, after time.Duration) Change {
	return Change{Timer: Timer{
		Kind: p.Kind(), Key: loopID + "/" + jobID, AccountID: r.Meta.AccountID,
		DueAt: r.Meta.Time.Add(after), WallClock: true,
	}}
}

// Fire implements Policy.
func (p LoopOutcomes) Fire(ctx context.Context, t Timer) error {
	loopID, jobID, _ := strings.Cut(t.Key, "/")
	_, err := p.Loops.RecordLoopOutcome(ctx, cause(t), loopID, jobID)
	return err
}

// LoopSilence ends loop sessions without calls of their agent.
type LoopSilence struct{ Loops Loops }

// Kind implements Policy.
func (LoopSilence) Kind() string { return "loop_silence" }

// Handles implements Rule.
func (LoopSilence) Handles() []string { return domain.TypesOf(&loop.Iterated{}, &loop.Ended{}) }

// React implements Rule: every test sets the timer anew, the session's end
// clears it.
func (p LoopSilence) React(r domain.Recorded) []Change {
	if e, ok := r.Event.(*loop.Iterated); ok {
		return []Change{{Timer: Timer{
			Kind: p.Kind(), Key: r.StreamID(), AccountID: r.Meta.AccountID, DueAt: e.At.Add(loop.SilentFor),
		}}}
	}
	return []Change{cleared(p.Kind(), r.StreamID())}
}

// Fire implements Policy.
func (p LoopSilence) Fire(ctx context.Context, t Timer) error {
	_, err := p.Loops.AbandonLoop(ctx, cause(t), t.Key)
	return err
}
