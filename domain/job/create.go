package job

import (
	"slices"
	"time"

	"humanqa/domain"
)

// Created submits a job. Its credits were debited earlier, under the same job id.
type Created struct {
	Submission
	// Items is empty while the checklist is still to be written.
	Items       []Item `json:"items"`
	GeneratedBy string `json:"generatedBy,omitempty"` // author of a checklist that is not the client's
	// Regressions, without ids, open a list that is still to be written; a written
	// list holds them.
	Regressions []Item `json:"regressions,omitempty"`
	// Prepared are the ids of prepared fixes that the list verifies.
	Prepared []string `json:"prepared,omitempty"`
	// Credentials and AccessInstructions are sealed (vault, bound to this
	// stream); only the current claimant ever sees them open.
	Credentials        string    `json:"credentials,omitempty" sealed:"secret"`
	AccessInstructions string    `json:"accessInstructions,omitempty" sealed:"secret"`
	CreatedAt          time.Time `json:"createdAt"`
}

// Voided closes the stream of a job whose creation was lost (see StatusVoided).
type Voided struct {
	AccountID string    `json:"accountId"`
	At        time.Time `json:"at"`
}

// ChecklistWritten adds the list of a job that was submitted without one.
type ChecklistWritten struct {
	Items       []Item    `json:"items"`
	GeneratedBy string    `json:"generatedBy"`
	At          time.Time `json:"at"`
}

// SlotStarted starts the SLA's clock of a session's slot.
type SlotStarted struct {
	DueAt time.Time `json:"dueAt"`
	At    time.Time `json:"at"`
}

func (*Created) EventType() string          { return "job.created" }
func (*Voided) EventType() string           { return "job.voided" }
func (*ChecklistWritten) EventType() string { return "job.checklist_written" }
func (*SlotStarted) EventType() string      { return "job.slot_started" }

func (e *ChecklistWritten) evolve(s *State) {
	s.Items, s.Regressions, s.GeneratedBy = e.Items, nil, e.GeneratedBy
}
func (e *Voided) evolve(s *State) { s.Status, s.AccountID = StatusVoided, e.AccountID }

func (e *Created) evolve(s *State) {
	s.Exists, s.Status = true, StatusPending
	s.Submission = e.Submission
	s.Items, s.Regressions, s.GeneratedBy = e.Items, e.Regressions, e.GeneratedBy
	s.Credentials, s.AccessInstructions = e.Credentials, e.AccessInstructions
	s.CreatedAt, s.DueAt = e.CreatedAt, e.CreatedAt.Add(s.SLA())
}

func (e *SlotStarted) evolve(s *State) {
	s.DueAt, s.StartedAt = e.DueAt, e.At
	s.heard(e.At)
}

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

// DecideWriteChecklist brings the list of a job that was submitted without
// one. A job that has its list, or has ended, needs none.
func DecideWriteChecklist(s State, items []Item, by string, now time.Time) ([]domain.Event, error) {
	switch {
	case !s.Exists:
		return nil, domain.NotFound("job")
	case !s.NeedsChecklist():
		return nil, nil
	case len(items) == 0:
		return nil, domain.InvalidAt("items", "must not be empty")
	}
	return []domain.Event{&ChecklistWritten{Items: items, GeneratedBy: by, At: now}}, nil
}

// NeedsChecklist says that the job waits for its list. An AI review makes its
// own.
func (s State) NeedsChecklist() bool {
	return s.Status == StatusPending && len(s.Items) == 0 && !s.Type.Automatic()
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
