package policy

import (
	"time"

	"humanqa/domain"
	"humanqa/domain/job"
)

// deadlines are the clocks of a job.
var deadlines = []Policy{
	{
		Kind: "sla",
		Handles: append(endsOfJob(), domain.TypesOf(&job.Created{}, &job.SlotStarted{}, &job.SLAMissed{},
			&job.QuestionAsked{}, &job.AnswerGiven{}, &job.QuestionClosed{})...),
		react: watchSLA,
		issue: Commands.MissSLA,
	},
	{
		Kind: "silent_claim",
		Handles: append(endsOfJob(), domain.TypesOf(
			&job.Claimed{}, &job.SlotStarted{}, &job.ItemChecked{}, &job.FindingAdded{}, &job.FindingEdited{}, &job.FindingWithdrawn{},
			&job.Heartbeat{}, &job.MomentMarked{},
			&job.Released{}, &job.SLAMissed{}, &job.UntestableReported{},
			&job.QuestionAsked{}, &job.AnswerGiven{}, &job.QuestionClosed{},
		)...),
		react: watchSilence,
		issue: Commands.ReleaseSilent,
	},
	{
		Kind:    "question",
		Handles: domain.TypesOf(&job.QuestionAsked{}, &job.AnswerGiven{}, &job.QuestionClosed{}),
		// A question without an answer in time is closed (decisions, "Questions"). The end of a
		// claim closes its question first, so only an answer or a close ends a question.
		react: from(func(r domain.Recorded, e *job.QuestionAsked) []Change { return ofJob(r, e.Until) }),
		issue: Commands.ExpireQuestion,
	},
}

// watchSLA watches how long a job takes (decisions, "SLA"). A session's slot has no clock
// at all until its session starts (decisions, "Slot SLA"). The event that starts the
// clock sets the timer; the job's end clears it. The clock stands while a question is
// open.
func watchSLA(r domain.Recorded) []Change {
	switch e := r.Event.(type) {
	case *job.Created:
		if e.Type.Automatic() || e.SessionID != "" {
			return nil
		}
		return setFirst(Timer{Key: r.StreamID(), AccountID: e.AccountID, DueAt: e.CreatedAt.Add(e.SLA())})
	case *job.SlotStarted:
		return ofJob(r, e.DueAt)
	case *job.SLAMissed:
		if e.Requeued {
			return ofJob(r, e.DueAt)
		}
	case *job.AnswerGiven:
		return ofJob(r, e.DueAt)
	case *job.QuestionClosed:
		return ofJob(r, e.DueAt)
	}
	return cleared(r.StreamID())
}

// watchSilence ends claims without a sign of life for job.SilentAfter. A sign of life
// sets the timer; the claim's end clears it. The start of a slot's session counts as a
// sign of life. The clock stands while a question is open: a firing then does nothing,
// and the question's end sets the timer again. Robots are never silent: they claim only
// jobs that they complete at once, or slots of a session that has not begun.
func watchSilence(r domain.Recorded) []Change {
	var heard time.Time
	switch e := r.Event.(type) {
	case *job.Claimed:
		if job.IsRobot(e.CheckerID) {
			return nil
		}
		heard = e.At
	case *job.SlotStarted:
		heard = e.At
	case *job.ItemChecked:
		heard = e.At
	case *job.FindingAdded:
		heard = e.At
	case *job.FindingEdited:
		heard = e.At
	case *job.FindingWithdrawn:
		heard = e.At
	case *job.Heartbeat:
		heard = e.At
	case *job.MomentMarked: // a moment may be reported later: the report is the sign of life
		heard = e.At
		if r.Meta.Time.After(heard) {
			heard = r.Meta.Time
		}
	case *job.AnswerGiven:
		heard = e.At
	case *job.QuestionClosed:
		heard = e.At
	default:
		return cleared(r.StreamID())
	}
	return ofJob(r, heard.Add(job.SilentAfter))
}

// endsOfJob lists the events after which nothing more happens to a job's test.
func endsOfJob() []string {
	return domain.TypesOf(&job.Completed{}, &job.Cancelled{}, &job.Failed{}, &job.Voided{})
}

// ofJob sets a job's timer. The account is that of the command. A checker's commands name
// none, but no checker ever works in a sandbox.
func ofJob(r domain.Recorded, due time.Time) []Change {
	return set(Timer{Key: r.StreamID(), AccountID: r.Meta.AccountID, DueAt: due})
}
