package sessions

import (
	"context"
	"fmt"
	"time"

	"github.com/jmoiron/sqlx"

	"humanqa/domain"
	"humanqa/domain/job"
	"humanqa/domain/session"
	"humanqa/internal/pgpool"
	"humanqa/projections/readmodel"
)

// Reads reads multi-checker sessions. Every method is bound to one account.
type Reads struct{ db *sqlx.DB }

// NewReads reads through the views in schema readmodel.
func NewReads(db *sqlx.DB) *Reads { return &Reads{db: readmodel.Pool(db)} }

// Session is a session as its account may see it. Times are UTC, in whole
// milliseconds.
type Session struct {
	ID              string         `json:"id"`
	AccountID       string         `json:"account_id"`
	ProjectID       string         `json:"project_id"`
	Status          session.Status `json:"status"`
	URL             string         `json:"url"`
	Feature         string         `json:"feature"`
	ScenarioBrief   string         `json:"scenario_brief"`
	VoiceEnabled    bool           `json:"voice_enabled"`
	Type            job.Type       `json:"type"`
	TypeEcho        string         `json:"type_echo"`
	ItemCount       int            `json:"item_count"` // of each slot's checklist
	CreditsCharged  domain.Credits `json:"charged"`
	CreditsRefunded domain.Credits `json:"refunded"`   // the amount that came back
	CreditsExpired  domain.Credits `json:"expired"`    // the part of the refunds for lots that had expired
	PassCount       int            `json:"pass_count"` // jobs, once completed
	FailCount       int            `json:"fail_count"`
	CloseReason     string         `json:"close_reason"` // completed, expired, client, operator; empty while open
	ReadyDeadline   time.Time      `json:"ready_deadline"`
	CreatedAt       time.Time      `json:"created_at"`
	StartedAt       *time.Time     `json:"started_at"`
	ClosedAt        *time.Time     `json:"closed_at"`

	Slots readmodel.List[Slot] `json:"slots"`
	Marks readmodel.List[Mark] `json:"marks"` // the oldest first
}

// ReadyCount is how many slots of the lobby are ready; after its close, were ready then.
func (s Session) ReadyCount() (ready int) {
	for _, slot := range s.Slots {
		if slot.ReadyAt != nil {
			ready++
		}
	}
	return ready
}

// Slot is one checker's part of a session.
type Slot struct {
	Slot      int        `json:"slot"`
	RoleLabel string     `json:"roleLabel"`
	JobID     string     `json:"jobId"`
	Target    job.Target `json:"target"`
	Status    string     `json:"status"` // one of the Slot… statuses
	ReadyAt   *time.Time `json:"readyAt"`
	JobStatus job.Status `json:"jobStatus"`
	ReportID  string     `json:"reportId"` // empty until there is a report
}

// GivenBack counts the tests under way that wait for another checker, of all under way.
func (s Session) GivenBack() (back, live int) {
	for _, slot := range s.Slots {
		if slot.Status == SlotActive {
			live++
			if slot.JobStatus == job.StatusPending {
				back++
			}
		}
	}
	return back, live
}

// Mark is a moment that a participant marked.
type Mark struct {
	Slot int       `json:"slot"` // the slot of the checker; 0: a person of the account
	Note string    `json:"note"`
	At   time.Time `json:"at"`
}

// The statuses of a slot. Dropped says that the session started without it; ended says
// that its job has ended.
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
SELECT ` + readmodel.Columns[Session]("") + `
FROM readmodel.sessions
WHERE account_id = $1
  AND id = $2`

var listSessionsSQL = `
SELECT ` + readmodel.Columns[Session]("") + `
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
func (q *Reads) List(ctx context.Context, accountID string, f Filter) ([]Session, int, error) {
	where := f.where(accountID)
	of := where.Args
	query := listSessionsSQL + where.SQL + fmt.Sprintf(orderSessionsSQL, where.Param(f.Limit), where.Param(f.Offset))
	return readmodel.Page[Session](ctx, q.db, "sessions", totalSessionsSQL+where.SQL, query, of, f.Limit, f.Offset)
}

// IDs lists the account's sessions, the newest first; a project narrows them.
func (q *Reads) IDs(ctx context.Context, accountID, projectID string) ([]string, error) {
	where := Filter{ProjectID: projectID}.where(accountID)
	query := "SELECT id FROM readmodel.sessions WHERE account_id = $1" + where.SQL + " ORDER BY created_at DESC, id DESC"
	return pgpool.List[string](ctx, q.db, "the sessions of "+accountID, query, where.Args...)
}

// Session gives one session.
func (q *Reads) Session(ctx context.Context, accountID, id string) (Session, error) {
	return readmodel.Get[Session](ctx, q.db, "session", getSessionSQL, accountID, id)
}
