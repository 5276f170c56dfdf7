package settings

import (
	"time"

	"humanqa/domain"
	"humanqa/domain/account"
	"humanqa/domain/project"
)

// CreateProject opens a project. Events nil: the list was omitted.
type CreateProject = project.Opening

// CreatedProject carries the deploy hook's token, which is shown only here.
type CreatedProject struct {
	ProjectID string
	Name      string
	HookToken string
	Position  domain.Position
}

// RotatedSecret is a webhook's signing secret after a rotation. Secret is shown
// only here; it is empty when a rotation was finished.
type RotatedSecret struct {
	Secret string
	// PreviousUntil is the end of the time in which the previous secret signs too, by the
	// wall's clock; nil: it does not sign.
	PreviousUntil *time.Time
	RotatedAt     *time.Time // nil before the first rotation
	Position      domain.Position
}

// UpdateProject changes the fields that are given.
type UpdateProject struct {
	project.Changes
	Headers *project.Headers // nil leaves them untouched
}

// IssueKey describes a new API key.
type IssueKey struct {
	Name      string // account.MaxKeyName characters at most; may be empty
	Scope     account.Scope
	ProjectID string
	ExpiresAt *time.Time
}

// IssuedKey carries the token, which is shown only here.
type IssuedKey struct {
	KeyID    string
	Token    string
	Position domain.Position
}

// CreatedChecker carries the checker's key, which is shown only here.
type CreatedChecker struct {
	CheckerID string
	Token     string
	Position  domain.Position
}

// AdvancedClock is a sandbox account's time after a move.
type AdvancedClock struct {
	Now      time.Time
	Ahead    time.Duration // of the service's time
	Position domain.Position
}
