package audit

import (
	"slices"

	"humanqa/domain"
	"humanqa/domain/job"
)

// refundable says that the job ended without a report.
func (j *life) refundable() bool {
	return j.status == job.StatusCancelled || j.status == job.StatusFailed
}

// transition checks an event of an existing job and applies it.
func (a *Audit) transition(r domain.Recorded, j *life) {
	if _, failed := r.Event.(*job.Failed); j.failing && !failed {
		a.find(8, r.Stream, "%s where job.failed was next", r.Type)
	}
	switch e := r.Event.(type) {
	case *job.Claimed, *job.Released, *job.UntestableReported, *job.SLAMissed:
		a.checkClaim(r, j)
	case *job.ItemChecked, *job.FindingAdded, *job.FindingEdited, *job.FindingWithdrawn, *job.Heartbeat, *job.MomentMarked,
		*job.QuestionAsked:
		a.work(r, j)
	case *job.SecretShown:
		a.legal(r, j, job.StatusClaimed)
		a.under(r, j, e.Claim)
		a.by(r, j)
	case *job.AnswerGiven:
		a.conclude(r, j, e.QuestionID)
	case *job.QuestionClosed:
		a.conclude(r, j, e.QuestionID)
		j.skipping = e.Reason == job.QuestionUnanswered
	case *job.ChecklistWritten:
		a.legal(r, j, job.StatusPending)
		if !j.noList || len(e.Items) == 0 {
			a.find(8, r.Stream, "%d items are written onto the list of a job", len(e.Items))
		}
		j.noList = false
	case *job.SlotStarted:
		a.legal(r, j, job.StatusPending, job.StatusClaimed)
		if !j.waiting {
			a.find(8, r.Stream, "starts without waiting for a session")
		}
		j.waiting = false
	case *job.Completed:
		a.legal(r, j, job.StatusClaimed)
		a.begun(r, j)
		j.status = job.StatusCompleted
	case *job.AIReportReady:
		a.legal(r, j, job.StatusCompleted)
		if j.told {
			a.find(8, r.Stream, "is analysed again")
		}
		j.told = true
	case *job.Rated, *job.Disputed, *job.DisputeAnswered, *job.DisputeDecided, *job.DisputeSettled:
		a.legal(r, j, job.StatusCompleted)
		a.makeGood(r, j)
	case *job.Cancelled:
		a.cancel(r, j, e)
	case *job.Failed:
		a.legal(r, j, job.StatusPending, job.StatusClaimed)
		a.refundIs(r, j, e.Refund)
		j.status, j.checker, j.failing, j.endedAt = job.StatusFailed, "", false, r.Meta.Time
	case *job.RecordingAttached, *job.CommitStatusRequested, *job.CommitStatusSet, *job.CommitStatusAbandoned,
		*job.EvidenceExpired, *job.HoldPlaced, *job.HoldReleased, *job.Erased:
		// No invariant of the job's states is about them.
	case nil: // of a newer binary
	default:
		a.find(8, r.Stream, "the audit has no rule for %s", r.Type)
	}
}

// makeGood notes what a decision on a dispute owes: once a job.
func (a *Audit) makeGood(r domain.Recorded, j *life) {
	e, decided := r.Event.(*job.DisputeDecided)
	if !decided || !e.Decision.MakesGood() {
		return
	}
	if !j.madeGood.IsZero() {
		a.find(3, r.Stream, "is made good twice")
	}
	j.madeGood, j.owed = r.Meta.Time, e.Refund
}

// checkClaim checks the events that begin and end claims (invariant 7).
func (a *Audit) checkClaim(r domain.Recorded, j *life) {
	switch e := r.Event.(type) {
	case *job.Claimed:
		a.legal(r, j, job.StatusPending)
		if e.Token != j.token+1 {
			a.find(7, r.Stream, "claim token %d follows %d", e.Token, j.token)
		}
		if j.robots != job.IsRobot(e.CheckerID) {
			a.find(7, r.Stream, "is claimed by %s, which it is not for", e.CheckerID)
		}
		if j.noList {
			a.find(8, r.Stream, "is claimed without a list")
		}
		j.status, j.checker, j.token = job.StatusClaimed, e.CheckerID, e.Token
		return
	case *job.Released:
		a.legal(r, j, job.StatusClaimed)
		a.under(r, j, e.Token)
	case *job.UntestableReported:
		a.legal(r, j, job.StatusClaimed)
		a.under(r, j, e.Token)
		a.by(r, j)
	case *job.SLAMissed:
		a.legal(r, j, job.StatusPending, job.StatusClaimed)
		a.begun(r, j)
		again, last := j.requeues, j.slot || j.requeues == job.MaxSLAMisses-1
		if !last {
			again++
		}
		if e.Requeued == last || e.RequeueCount != again {
			a.find(8, r.Stream, "misses its SLA and is put back for the %d. time (%t) after %d", e.RequeueCount, e.Requeued, j.requeues)
		}
		j.requeues, j.failing = e.RequeueCount, !e.Requeued
	}
	j.status, j.checker = job.StatusPending, ""
}

// work checks the events that only the claimant may cause.
func (a *Audit) work(r domain.Recorded, j *life) {
	a.legal(r, j, job.StatusClaimed)
	skipped, isCheck := r.Event.(*job.ItemChecked)
	_, asks := r.Event.(*job.QuestionAsked)
	if robotAsks := asks && j.checker == job.Player; !robotAsks && (!j.skipping || !isCheck || skipped.Status != job.ItemSkip) {
		a.by(r, j) // a robot's question carries the actor of its account
	}
	j.skipping = false
	switch e := r.Event.(type) {
	case *job.QuestionAsked:
		a.under(r, j, e.Token)
		if j.question != "" {
			a.find(8, r.Stream, "question %s while %s is open", e.QuestionID, j.question)
		}
		j.question = e.QuestionID
	case *job.Heartbeat:
		a.under(r, j, e.Token)
		return
	case *job.MomentMarked:
		a.under(r, j, e.Token)
	}
	a.begun(r, j)
}

// conclude checks the end of a question.
func (a *Audit) conclude(r domain.Recorded, j *life, id string) {
	a.legal(r, j, job.StatusClaimed)
	if j.question != id {
		a.find(8, r.Stream, "%s of question %s while %q is open", r.Type, id, j.question)
	}
	j.question = ""
}

// cancel checks a cancellation: only the end of its session cancels a claimed job.
func (a *Audit) cancel(r domain.Recorded, j *life, e *job.Cancelled) {
	if j.slot {
		a.legal(r, j, job.StatusPending, job.StatusClaimed)
	} else {
		a.legal(r, j, job.StatusPending)
	}
	if bySession := e.Reason == job.CancelSessionExpired || e.Reason == job.CancelSessionCancelled; bySession != j.slot {
		a.find(8, r.Stream, "is cancelled by %q", e.Reason)
	}
	a.refundIs(r, j, e.Refund)
	j.status, j.checker, j.endedAt = job.StatusCancelled, "", r.Meta.Time
}

func (a *Audit) legal(r domain.Recorded, j *life, from ...job.Status) {
	if !slices.Contains(from, j.status) {
		a.find(8, r.Stream, "%s while %s", r.Type, j.status)
	}
}

func (a *Audit) begun(r domain.Recorded, j *life) {
	if j.waiting {
		a.find(8, r.Stream, "%s before the session started", r.Type)
	}
}

func (a *Audit) under(r domain.Recorded, j *life, token int) {
	if token != j.token {
		a.find(7, r.Stream, "%s under token %d, the claim's is %d", r.Type, token, j.token)
	}
}

// by checks that the actor is the claim's checker: by the checker's key, or a person who
// works as this checker.
func (a *Audit) by(r domain.Recorded, j *life) {
	if actor := "checker:" + j.checker; r.Meta.Actor != actor && !slices.Contains(a.people[r.Meta.Actor], j.checker) {
		a.find(7, r.Stream, "%s by %s, the claim is %s's", r.Type, r.Meta.Actor, actor)
	}
}

func (a *Audit) refundIs(r domain.Recorded, j *life, refund domain.Credits) {
	if refund != j.price {
		a.find(3, r.Stream, "%s promises %d of %d credits back", r.Type, refund, j.price)
	}
}
