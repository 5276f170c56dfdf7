package job

import (
	"time"

	"humanqa/domain"
)

// The reasons for which a job is cancelled.
const (
	CancelClient           = "client"
	CancelOperator         = "operator"
	CancelSessionExpired   = "session_expired"
	CancelSessionCancelled = "session_cancelled"
	// CancelSuperseded is the end of a job for an older commit (CommitStatus).
	CancelSuperseded = "superseded"
	// CancelArchived is the end of a job that waited when its project was archived.
	CancelArchived = "project_archived"
)

// Cancelled ends a job without a claim. The refund follows in the ledger; Refund is its
// amount.
type Cancelled struct {
	Reason string         `json:"reason"` // client, operator, session_expired, session_cancelled, superseded, project_archived
	Refund domain.Credits `json:"refund"`
	// RefundExpired is the part of Refund for lots that had expired when the job
	// ended. The refund itself has the last word.
	RefundExpired domain.Credits `json:"refundExpired,omitempty"`
	SessionID     string         `json:"sessionId,omitempty"`
	LoopID        string         `json:"loopId,omitempty"`
	// CommitStatus is as in Completed.
	CommitStatus bool      `json:"commitStatus,omitempty"`
	At           time.Time `json:"at"`
}

func (*Cancelled) EventType() string { return "job.cancelled" }

func (e *Cancelled) evolve(s *State) {
	s.unclaim(StatusCancelled, "")
	s.CancelledAt, s.CancelReason, s.Refund, s.RefundExpired = e.At, e.Reason, e.Refund, e.RefundExpired
}

// DecideCancel ends a job without a claim, with a full refund. Only its session cancels
// a session's slot, also one that is claimed.
func DecideCancel(s State, reason string, now time.Time) ([]domain.Event, error) {
	bySession := reason == CancelSessionExpired || reason == CancelSessionCancelled
	switch {
	case !s.Exists:
		return nil, domain.NotFound("job")
	case s.Status == StatusCancelled:
		return nil, nil
	case s.SessionID != "" && !bySession:
		return nil, domain.Conflict("the job is a slot of a session").WithHint("cancel the session")
	case s.SessionID == "" && bySession:
		return nil, domain.Conflict("the job is no slot of a session")
	case s.Status == StatusClaimed && !bySession:
		return nil, domain.Conflict("the job is claimed").
			WithHint("a checker is testing it; wait for the report")
	case s.Status != StatusPending && s.Status != StatusClaimed:
		return nil, domain.Conflict("the job is %s", s.Status).WithHint("only a pending job can be cancelled")
	}
	return s.leaving(now, &Cancelled{
		Reason: reason, Refund: s.Price, SessionID: s.SessionID, LoopID: s.LoopID, CommitStatus: s.TellsCommit(), At: now,
	}), nil
}
