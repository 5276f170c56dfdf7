package project

import (
	"time"

	"humanqa/domain"
)

// Archived puts the project away: it takes no test until it is restored. Its tests that wait
// are cancelled; those that a checker has taken go on.
type Archived struct{ Ordered }

// Restored brings an archived project back.
type Restored struct{ Ordered }

// Ordered is an order by the person UserID or the API key KeyID.
type Ordered struct {
	At     time.Time `json:"at"`
	UserID *string   `json:"userId"`
	KeyID  string    `json:"keyId,omitempty"`
}

func (*Archived) EventType() string { return "project.archived" }
func (*Restored) EventType() string { return "project.restored" }

// DecideArchive archives the project, or restores it; a repeat changes nothing.
func DecideArchive(s State, archive bool, by Ordered) ([]domain.Event, error) {
	switch {
	case !s.Exists:
		return nil, domain.NotFound("project")
	case archive == (s.ArchivedAt != nil):
		return nil, nil
	case archive:
		return []domain.Event{&Archived{by}}, nil
	}
	return []domain.Event{&Restored{by}}, nil
}

// TakesTests refuses tests of an archived project.
func (s State) TakesTests() error {
	if s.ArchivedAt == nil {
		return nil
	}
	return domain.Conflict("the project is archived").WithHint("restore it, or submit the test to another project")
}
