package job

import (
	"time"

	"humanqa/domain"
)

// MaxMoments bounds how many moments of a test can be marked.
const MaxMoments = 100

// Recording is a film of the test, by its claimant. What happened at a time is
// seen that long after StartedAt.
type Recording struct {
	ID          string    `json:"id"`
	Token       int       `json:"token"` // of the claim
	URL         string    `json:"url"`   // as of evidence: its path, without a signature
	ContentType string    `json:"contentType"`
	Size        int64     `json:"size"` // bytes
	StartedAt   time.Time `json:"startedAt"`
	DurationMs  int64     `json:"durationMs,omitempty"` // 0: not known
}

// Moment is one that the claimant marked.
type Moment struct {
	ID    string    `json:"id"`
	Label string    `json:"label,omitempty"`
	At    time.Time `json:"at"`
}

// RecordingAttached says that a recording is whole, and there to be seen. It may
// come after the report, and after the claim's end.
type RecordingAttached struct {
	Recording
	At time.Time `json:"at"`
}

// MomentMarked is the claimant's "look here", in the recording.
type MomentMarked struct {
	Moment
	Token int `json:"token"`
}

// EventType implements domain.Event.
func (*RecordingAttached) EventType() string { return "job.recording_attached" }

// EventType implements domain.Event.
func (*MomentMarked) EventType() string { return "job.moment_marked" }

// DecideRecord notes that the claimant goes on recording, which is a sign of life.
// What they had recorded when they completed the job they may still send.
func DecideRecord(s State, checkerID string, token int, now time.Time) ([]domain.Event, error) {
	if s.Status == StatusCompleted && s.CheckerID == checkerID && s.Token == token {
		return nil, nil
	}
	if err := working(s, checkerID, token); err != nil {
		return nil, err
	}
	return DecideHeartbeat(s, checkerID, token, now)
}

// Holds says that the claim is alive.
func (s State) Holds(checkerID string, token int) bool { return fenced(s, checkerID, token) == nil }

// DecideAttachRecording takes a recording into the job, whatever has become of it.
// The same one again is a repeat.
func DecideAttachRecording(s State, r Recording, now time.Time) ([]domain.Event, error) {
	if !s.Exists {
		return nil, domain.NotFound("job")
	}
	for _, known := range s.Recordings {
		if known.ID == r.ID {
			return nil, nil
		}
	}
	return []domain.Event{&RecordingAttached{Recording: r, At: now}}, nil
}

// DecideMarkMoment marks a moment. The same one again is a repeat.
func DecideMarkMoment(s State, checkerID string, token int, m Moment) ([]domain.Event, error) {
	if err := working(s, checkerID, token); err != nil {
		return nil, err
	}
	for _, known := range s.Moments {
		if known.ID == m.ID {
			return nil, nil
		}
	}
	if len(s.Moments) >= MaxMoments {
		return nil, domain.Conflict("%d moments are marked, the most a test holds", MaxMoments).
			WithHint("put the rest into notes")
	}
	m.At = s.alive(m.At)
	return []domain.Event{&MomentMarked{Moment: m, Token: token}}, nil
}
