package policy

import (
	"context"
	"time"

	"humanqa/domain"
	"humanqa/domain/command"
	"humanqa/domain/job"
)

// Deadlines is what the clocks of a job ask of the commands.
type Deadlines interface {
	MissSLA(ctx context.Context, cause command.Cause, jobID string) (domain.Position, error)
	ReleaseSilent(ctx context.Context, cause command.Cause, jobID string) (domain.Position, error)
	ExpireQuestion(ctx context.Context, cause command.Cause, jobID string) (domain.Position, error)
}

// SLA watches how long a job takes (decisions, "SLA"). A session's slot has no
// clock at all until its session starts (decisions, "Slot SLA").
type SLA struct{ Deadlines Deadlines }

// Kind implements Policy.
func (SLA) Kind() string { return "sla" }

// Handles implements Rule.
func (SLA) Handles() []string {
	return append(endsOfJob(), domain.TypesOf(&job.Created{}, &job.SlotStarted{}, &job.SLAMissed{},
		&job.QuestionAsked{}, &job.AnswerGiven{}, &job.QuestionClosed{})...)
}

// React implements Rule: what starts the clock sets the timer, the job's end
// clears it. The clock stands while a question is open.
func (p SLA) React(r domain.Recorded) []Change {
	switch e := r.Event.(type) {
	case *job.Created:
		if e.Type == job.AIReview || e.SessionID != "" {
			return nil
		}
		due := e.CreatedAt.Add(time.Duration(e.SLAMinutes) * time.Minute)
		return []Change{{First: true, Timer: Timer{Kind: p.Kind(), Key: r.StreamID(), AccountID: e.AccountID, DueAt: due}}}
	case *job.SlotStarted:
		return []Change{ofJob(p.Kind(), r, e.DueAt)}
	case *job.SLAMissed:
		if e.Requeued {
			return []Change{ofJob(p.Kind(), r, e.DueAt)}
		}
	case *job.AnswerGiven:
		return []Change{ofJob(p.Kind(), r, e.DueAt)}
	case *job.QuestionClosed:
		return []Change{ofJob(p.Kind(), r, e.DueAt)}
	}
	return []Change{cleared(p.Kind(), r.StreamID())}
}

// Fire implements Policy.
func (p SLA) Fire(ctx context.Context, t Timer) error {
	_, err := p.Deadlines.MissSLA(ctx, cause(t), t.Key)
	return err
}

// Silence takes claims back that nothing is heard of for job.SilentAfter.
type Silence struct{ Deadlines Deadlines }

// Kind implements Policy.
func (Silence) Kind() string { return "silent_claim" }

// Handles implements Rule.
func (Silence) Handles() []string {
	return append(endsOfJob(), domain.TypesOf(
		&job.Claimed{}, &job.SlotStarted{}, &job.ItemChecked{}, &job.FindingAdded{}, &job.FindingEdited{}, &job.FindingWithdrawn{},
		&job.Heartbeat{}, &job.MomentMarked{},
		&job.Released{}, &job.SLAMissed{}, &job.UntestableReported{},
		&job.QuestionAsked{}, &job.AnswerGiven{}, &job.QuestionClosed{},
	)...)
}

// React implements Rule: a sign of life sets the timer, the claim's end clears it; the
// start of a slot's session counts as one. The clock stands while a question is open: a
// firing then does nothing, and the question's end sets the timer again. Robots claim only jobs that they complete at
// once, or slots of a session that has not begun: they are never silent.
func (p Silence) React(r domain.Recorded) []Change {
	switch e := r.Event.(type) {
	case *job.Claimed:
		if job.IsRobot(e.CheckerID) {
			return nil
		}
		return []Change{ofJob(p.Kind(), r, e.At.Add(job.SilentAfter))}
	case *job.SlotStarted:
		return []Change{ofJob(p.Kind(), r, e.At.Add(job.SilentAfter))}
	case *job.ItemChecked:
		return []Change{ofJob(p.Kind(), r, e.At.Add(job.SilentAfter))}
	case *job.FindingAdded:
		return []Change{ofJob(p.Kind(), r, e.At.Add(job.SilentAfter))}
	case *job.FindingEdited:
		return []Change{ofJob(p.Kind(), r, e.At.Add(job.SilentAfter))}
	case *job.FindingWithdrawn:
		return []Change{ofJob(p.Kind(), r, e.At.Add(job.SilentAfter))}
	case *job.Heartbeat:
		return []Change{ofJob(p.Kind(), r, e.At.Add(job.SilentAfter))}
	case *job.MomentMarked: // which may be told of later: that is the sign of life
		at := e.At
		if r.Meta.Time.After(at) {
			at = r.Meta.Time
		}
		return []Change{ofJob(p.Kind(), r, at.Add(job.SilentAfter))}
	case *job.AnswerGiven:
		return []Change{ofJob(p.Kind(), r, e.At.Add(job.SilentAfter))}
	case *job.QuestionClosed:
		return []Change{ofJob(p.Kind(), r, e.At.Add(job.SilentAfter))}
	}
	return []Change{cleared(p.Kind(), r.StreamID())}
}

// Fire implements Policy.
func (p Silence) Fire(ctx context.Context, t Timer) error {
	_, err := p.Deadlines.ReleaseSilent(ctx, cause(t), t.Key)
	return err
}

// Questions closes a question that nobody answered in time (decisions, "Questions").
type Questions struct{ Deadlines Deadlines }

// Kind implements Policy.
func (Questions) Kind() string { return "question" }

// Handles implements Rule.
func (Questions) Handles() []string {
	return domain.TypesOf(&job.QuestionAsked{}, &job.AnswerGiven{}, &job.QuestionClosed{})
}

// React implements Rule. A claim that ends closes its question first, so no other event
// ends one.
func (p Questions) React(r domain.Recorded) []Change {
	if e, asked := r.Event.(*job.QuestionAsked); asked {
		return []Change{ofJob(p.Kind(), r, e.Until)}
	}
	return []Change{cleared(p.Kind(), r.StreamID())}
}

// Fire implements Policy.
func (p Questions) Fire(ctx context.Context, t Timer) error {
	_, err := p.Deadlines.ExpireQuestion(ctx, cause(t), t.Key)
	return err
}

// endsOfJob lists the events after which nothing more happens to a job's test.
func endsOfJob() []string {
	return domain.TypesOf(&job.Completed{}, &job.Cancelled{}, &job.Failed{}, &job.Voided{})
}

// ofJob sets a job's timer. The account is the one whose command it was: a
// checker's commands name none, but no checker ever works in a sandbox.
func ofJob(kind string, r domain.Recorded, due time.Time) Change {
	return Change{Timer: Timer{Kind: kind, Key: r.StreamID(), AccountID: r.Meta.AccountID, DueAt: due}}
}
