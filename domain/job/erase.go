package job

import (
	"time"

	"humanqa/domain"
)

// Erased removes the job's texts, pictures and recordings for good, by an operator's
// order (decisions, "Erasure of one subject"). Verdicts, counts, credits and times stay.
// The key of the texts is destroyed after this event.
type Erased struct {
	By     string    `json:"by"` // the operator's name
	Reason string    `json:"reason"`
	At     time.Time `json:"at"`
}

func (*Erased) EventType() string { return "job.erased" }

func errErased() error { return domain.Conflict("the job was erased") }

// DecideErase erases a job that has ended. A repeat changes nothing.
func DecideErase(s State, by, reason string, now time.Time) ([]domain.Event, error) {
	switch {
	case !s.Exists:
		return nil, domain.NotFound("job")
	case !s.ErasedAt.IsZero():
		return nil, nil
	case !s.Status.Ended():
		return nil, domain.Conflict("the job is %s", s.Status).WithHint("end it first")
	}
	if err := domain.OrderOfErasure(by, reason); err != nil {
		return nil, err
	}
	return []domain.Event{&Erased{By: by, Reason: reason, At: now}}, nil
}

// It does not change data that the state shares with events.
func (e *Erased) evolve(s *State) {
	*s = domain.WithoutTexts(*s)
	s.ErasedAt = e.At
	s.Verdicts, s.Findings, s.Moments, s.Recordings = nil, nil, nil, nil
}
