package sessions

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jmoiron/sqlx"

	"humanqa/domain"
	"humanqa/domain/job"
	"humanqa/domain/session"
	"humanqa/projections/readmodel"
)

// Reads reads multi-checker sessions. Every method is bound to one account.
type Reads struct{ db *sqlx.DB }

// NewReads reads through the views in schema readmodel.
func NewReads(db *sqlx.DB) *Reads { return &Reads{db: readmodel.Pool(db)} }

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
	ItemCount       int            // of each slot's checklist
	ReadyCount      int            // of the lobby; once it has closed, who was ready then
	CreditsRefunded domain.Credits // what came back
	CreditsExpired  domain.Credits // what of the refunds went into lots that had expired
	CreditsCharged  domain.Credits
	ReadyDeadline   time.Time
	CreatedAt       time.Time
	StartedAt       *time.Time
	ClosedAt        *time.Time
	CloseReason     string // completed, expired, client, operator; empty while open
	PassCount       int    // jobs, once completed
	FailCount       int
	Slots           []Slot
}

// Slot is one checker's place.
type Slot struct {
	Slot      int
	RoleLabel string
	JobID     string
	Target    job.Target
	Status    string // one of the Slot… statuses
	ReadyAt   *time.Time
	JobStatus job.Status
	ReportID  string // empty until there is a report
}

// What becomes of a slot. Dropped says that the session started without it,
// ended that nothing more will come of its job.
const (
	SlotWaiting = "waiting"
	SlotReady   = "ready"
	SlotActive  = "active"
	SlotDropped = "dropped"
	SlotEnded   = "ended"
)

// Filter narrows a list; zero fields don't.
type Filter struct {
	Status    session.Status
	ProjectID string
	Limit     int
	Offset    int
}

var getSessionSQL = `
SELECT ` + readmodel.Columns[sessionRow]("") + `
FROM readmodel.sessions
WHERE account_id = $1
  AND id = $2`

var listSessionsSQL = `
SELECT ` + readmodel.Columns[sessionRow]("") + `
FROM readmodel.sessions
WHERE account_id = $1`

const orderSessionsSQL = `
ORDER BY created_at DESC, id DESC
LIMIT %s
OFFSET %s`

const totalSessionsSQL = `
SELECT COUNT(*)
FROM readmodel.sessions
WHERE account_id = $1`

func (f Filter) where(accountID string) *readmodel.Where {
	c := readmodel.WhereAccount(accountID)
	if f.Status != "" {
		c.And("status = %s", f.Status)
	}
	if f.ProjectID != "" {
		c.And("project_id = %s", f.ProjectID)
	}
	return c
}

// List gives a page of the account's sessions, the newest first, and how many
// there are on all pages.
func (q *Reads) List(ctx context.Context, accountID string, f Filter) (sessions []Session, total int, err error) {
	where := f.where(accountID)
	if err := q.db.GetContext(ctx, &total, totalSessionsSQL+where.SQL, where.Args...); err != nil {
		return nil, 0, fmt.Errorf("count sessions: %w", err)
	}
	query := listSessionsSQL + where.SQL
	query += fmt.Sprintf(orderSessionsSQL, where.Param(f.Limit), where.Param(f.Offset))
	var rows []sessionRow
	if err := q.db.SelectContext(ctx, &rows, query, where.Args...); err != nil {
		return nil, 0, fmt.Errorf("list sessions: %w", err)
	}
	sessions = make([]Session, len(rows))
	for i := range rows {
		if sessions[i], err = rows[i].session(); err != nil {
			return nil, 0, err
		}
	}
	return sessions, total, nil
}

// Session gives one session.
func (q *Reads) Session(ctx context.Context, accountID, id string) (Session, error) {
	var row sessionRow
	switch err := q.db.GetContext(ctx, &row, getSessionSQL, accountID, id); {
	case errors.Is(err, sql.ErrNoRows):
		return Session{}, domain.NotFound("session")
	case err != nil:
		return Session{}, fmt.Errorf("read session %s: %w", id, err)
	}
	return row.session()
}

func (r *sessionRow) session() (Session, error) {
	readmodel.UTC(&r.ReadyDeadline, &r.CreatedAt, r.StartedAt, r.ClosedAt)
	s := Session{
		ID: r.ID, AccountID: r.AccountID, ProjectID: r.ProjectID, Status: r.Status,
		URL: r.URL, Feature: r.Feature, ScenarioBrief: r.ScenarioBrief, VoiceEnabled: r.VoiceEnabled,
		Type: r.Type, TypeEcho: r.TypeEcho, ItemCount: r.ItemCount,
		CreditsRefunded: r.Refunded, CreditsExpired: r.Expired, CreditsCharged: r.Charged, CloseReason: r.CloseReason,
		PassCount: r.PassCount, FailCount: r.FailCount,
		ReadyDeadline: r.ReadyDeadline, CreatedAt: r.CreatedAt, StartedAt: r.StartedAt, ClosedAt: r.ClosedAt,
	}
	var slots []slotRow
	if err := json.Unmarshal(r.Slots, &slots); err != nil {
		return Session{}, fmt.Errorf("decode the slots of session %s: %w", r.ID, err)
	}
	for _, slot := range slots {
		if slot.ReadyAt != nil {
			s.ReadyCount++
		}
		s.Slots = append(s.Slots, Slot(slot))
	}
	return s, nil
}
