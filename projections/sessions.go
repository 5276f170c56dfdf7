package projections

import (
	"context"
	"time"

	"github.com/jmoiron/sqlx"

	"humanqa/domain"
	"humanqa/domain/job"
	"humanqa/domain/session"
)

// Sessions reads multi-checker sessions.
type Sessions struct{ db *sqlx.DB }

// Session is a session as its account may see it.
type Session struct {
	ID              string
	AccountID       string
	ProjectID       string
	Status          session.Status
	URL             string
	Feature         string
	ScenarioBrief   string
	VoiceEnabled    bool
	Type            job.Type
	TypeEcho        string
	ItemCount       int
	ReadyCount      int
	CreditsRefunded domain.Credits
	CreditsCharged  domain.Credits
	ReadyDeadline   time.Time
	CreatedAt       time.Time
	StartedAt       *time.Time
	ClosedAt        *time.Time
	CloseReason     string // completed, expired, client, operator; empty while open
	PassCount       int    // jobs, once completed
	FailCount       int
	Slots           []SessionSlot
}

// SessionSlot is one checker's place.
type SessionSlot struct {
	Slot      int
	RoleLabel string
	JobID     string
	Target    job.Target
	Status    string // waiting, ready, active, dropped, ended
	ReadyAt   *time.Time
	JobStatus job.Status
	ReportID  string
}

// SessionFilter narrows a list; zero fields don't.
type SessionFilter struct {
	Status    session.Status
	ProjectID string
	Limit     int
	Offset    int
}

// List gives a page of the account's sessions, the newest first, and how many
// there are in all.
func (q *Sessions) List(ctx context.Context, accountID string, f SessionFilter) (sessions []Session, total int, err error) {
	panic("not built yet")
}

// Session gives one session.
func (q *Sessions) Session(ctx context.Context, accountID, id string) (Session, error) {
	panic("not built yet")
}
