package job

import (
	"slices"
	"time"

	"humanqa/domain"
)

// Every decision returns the events to write, none for a harmless repeat, or the refusal.
// The caller has checked the right to see the job. The decisions about a claim are in
// claim.go, those about the work under it in check.go.

// The reasons for which a job is cancelled.
const (
	CancelClient           = "client"
	CancelOperator         = "operator"
	CancelSessionExpired   = "session_expired"
	CancelSessionCancelled = "session_cancelled"
	// CancelSuperseded is the end of a job for an older commit (CommitStatus).
	CancelSuperseded = "superseded"
)

// DecideCreate submits the job, with a commit status if one is asked for (tell). A stream
// that was voided stays closed: the job's charge was given back.
func DecideCreate(s State, c Created, tell *CommitStatusRequested) ([]domain.Event, error) {
	switch {
	case s.Status == StatusVoided:
		return nil, domain.Conflict("the submission has ended and its charge is refunded").
			WithHint("submit the job again")
	case s.Exists:
		return nil, domain.Conflict("the job exists already")
	case tell != nil:
		return []domain.Event{&c, tell}, nil
	}
	return []domain.Event{&c}, nil
}

// DecideVoid closes the stream of a job that never came, so that a late
// job.created loses. A job that did come is left alone.
func DecideVoid(s State, accountID string, now time.Time) ([]domain.Event, error) {
	switch {
	case s.Status == StatusVoided:
		return nil, nil
	case s.Exists:
		return nil, domain.Conflict("the job exists")
	}
	return []domain.Event{&Voided{AccountID: accountID, At: now}}, nil
}

func errNoList() error {
	return domain.Conflict("the checklist is being written").WithHint("try again in a moment")
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

// DecideWriteChecklist brings the list of a job that was submitted without
// one. A job that has its list, or has ended, needs none.
func DecideWriteChecklist(s State, items []Item, by string, now time.Time) ([]domain.Event, error) {
	switch {
	case !s.Exists:
		return nil, domain.NotFound("job")
	case !s.NeedsChecklist():
		return nil, nil
	case len(items) == 0:
		return nil, domain.Invalid(domain.Detail{Path: "items", Message: "must not be empty"})
	}
	return []domain.Event{&ChecklistWritten{Items: items, GeneratedBy: by, At: now}}, nil
}

// NeedsChecklist says that the job waits for its list. An AI review makes its
// own.
func (s State) NeedsChecklist() bool {
	return s.Status == StatusPending && len(s.Items) == 0 && s.Type != AIReview
}

// DecideStartSlot starts the SLA's clock of a slot with its session. A slot
// that has ended, or has started, is left alone. The start is a sign of life.
func DecideStartSlot(s State, dueAt, now time.Time) ([]domain.Event, error) {
	switch {
	case !s.Exists:
		return nil, domain.NotFound("job")
	case s.SessionID == "":
		return nil, domain.Conflict("the job is no slot of a session")
	case !s.Waiting() || s.Status != StatusPending && s.Status != StatusClaimed:
		return nil, nil
	}
	return []domain.Event{&SlotStarted{DueAt: dueAt, At: s.alive(now)}}, nil
}

// hasItem says whether the id names an item of the submitted list.
func (s State) hasItem(id string) bool {
	return slices.ContainsFunc(s.Items, func(i Item) bool { return i.ID == id })
}
