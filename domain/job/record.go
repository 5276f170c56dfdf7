package job

import (
	"slices"
	"time"

	"humanqa/domain"
)

// MaxMoments bounds the marked moments of a test.
const MaxMoments = 100

// Recording is a film of the test by its claimant. A moment is as far into the film as
// it is after StartedAt.
type Recording struct {
	ID          string    `json:"id"`
	Token       int       `json:"token"`             // of the claim
	URL         string    `json:"url" sealed:"link"` // as of evidence: its path, without a signature
	ContentType string    `json:"contentType"`
	Size        int64     `json:"size"` // bytes
	StartedAt   time.Time `json:"startedAt"`
	DurationMs  int64     `json:"durationMs,omitempty"` // 0: not known
}

// Moment is a marked moment of the test.
type Moment struct {
	ID    string    `json:"id"`
	Label string    `json:"label,omitempty" sealed:"text"`
	At    time.Time `json:"at"`
}

// RecordingAttached adds a complete recording to the job. It may come after the report,
// and after the claim's end.
type RecordingAttached struct {
	Recording
	At time.Time `json:"at"`
}

// MomentMarked is a moment that the claimant marked in the recording.
type MomentMarked struct {
	Moment
	Token int `json:"token"`
}

func (*RecordingAttached) EventType() string { return "job.recording_attached" }
func (*MomentMarked) EventType() string      { return "job.moment_marked" }

func (e *RecordingAttached) evolve(s *State) { s.Recordings = append(s.Recordings, e.Recording) }

func (e *MomentMarked) evolve(s *State) {
	s.heard(e.At)
	s.Moments = append(s.Moments, e.Moment)
}

// DecideRecord notes that the claimant goes on recording, which is a sign of life. After
// the completion the checker may still send the rest of the recording.
func DecideRecord(s State, checkerID string, token int, now time.Time) ([]domain.Event, error) {
	if s.Status == StatusCompleted && s.CheckerID == checkerID && s.Token == token && s.ErasedAt.IsZero() {
		return nil, nil
	}
	if err := working(s, checkerID, token); err != nil {
		return nil, err
	}
	return DecideHeartbeat(s, checkerID, token, now)
}

// Holds says that the claim is alive.
func (s State) Holds(checkerID string, token int) bool { return fenced(s, checkerID, token) == nil }

// DecideAttachRecording adds a recording to the job in any state. The same recording
// again is a repeat.
func DecideAttachRecording(s State, r Recording, now time.Time) ([]domain.Event, error) {
	if !s.Exists {
		return nil, domain.NotFound("job")
	}
	if !s.ErasedAt.IsZero() {
		return nil, errErased()
	}
	if slices.ContainsFunc(s.Recordings, func(known Recording) bool { return known.ID == r.ID }) {
		return nil, nil
	}
	return []domain.Event{&RecordingAttached{Recording: r, At: now}}, nil
}

// DecideMarkMoment marks the moment m.At for the claimant, which is a sign of life now.
// The moment lies between the claim, or the start of the slot's session, and now. The
// same moment again is a repeat.
func DecideMarkMoment(s State, checkerID string, token int, m Moment, now time.Time) ([]domain.Event, error) {
	if err := working(s, checkerID, token); err != nil {
		return nil, err
	}
	if slices.ContainsFunc(s.Moments, func(known Moment) bool { return known.ID == m.ID }) {
		return nil, nil
	}
	if len(s.Moments) >= MaxMoments {
		return nil, domain.Conflict("%d moments are marked, the most a test holds", MaxMoments).
			WithHint("put the rest into notes")
	}
	m.At = notBefore(notBefore(m.At, s.ClaimedAt), s.StartedAt)
	if m.At.After(now) {
		m.At = now
	}
	marked := &MomentMarked{Moment: m, Token: token}
	if !m.At.Before(now) {
		return []domain.Event{marked}, nil
	}
	heard, err := DecideHeartbeat(s, checkerID, token, now)
	return append(heard, marked), err
}
