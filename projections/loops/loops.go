// Package loops is the read model of the sessions of agents' loops.
package loops

import (
	"context"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"humanqa/domain"
	"humanqa/domain/loop"
	"humanqa/eventstore/consumer"
	"humanqa/internal/pgpool"
	"humanqa/projections/readmodel"
)

// Projector keeps the sessions of agents' loops.
var Projector = readmodel.New(readmodel.Spec{
	Name: "loops", Version: 2,
	Tables:  []consumer.Table{{Name: "loop_sessions", DDL: loopSessionsDDL}},
	Handles: domain.TypesIn(loop.Specs()),
	Apply:   apply,
})

const loopSessionsDDL = `
CREATE TABLE {schema}.loop_sessions (
    id              text        PRIMARY KEY,
    loop_id         text        NOT NULL,
    account_id      text        NOT NULL,
    project_id      text        NOT NULL,
    skill           text        NOT NULL,
    status          text        NOT NULL,
    iterations      integer     NOT NULL,
    max_iterations  integer     NOT NULL,
    credits_spent   bigint      NOT NULL,
    final_report_id text        NOT NULL,
    failing_keys    text[]      NOT NULL,
    job_ids         text[]      NOT NULL,
    started_at      timestamptz NOT NULL,
    last_seen_at    timestamptz NOT NULL,
    ended_at        timestamptz
) WITH (fillfactor = 70);
CREATE INDEX loop_sessions_by_project ON {schema}.loop_sessions (account_id, project_id, started_at DESC, id);
`

// apply folds the batch per session in memory: each is written once. It skips a session
// without a row (an operator skipped its beginning).
func apply(ctx context.Context, tx *sqlx.Tx, schema string, batch []domain.Recorded) error {
	var known []string
	for _, r := range batch {
		if _, starts := r.Event.(*loop.Started); !starts {
			known = append(known, loopSessionOf(r.Event))
		}
	}
	loaded, err := readmodel.Load[Session](ctx, tx, schema, "loop_sessions", "id", known)
	if err != nil {
		return err
	}
	rows := make(map[string]*Session, len(loaded))
	var order []*Session
	for i := range loaded {
		rows[loaded[i].ID] = &loaded[i]
		order = append(order, &loaded[i])
	}
	for _, r := range batch {
		if e, ok := r.Event.(*loop.Started); ok {
			row := startedLoop(r.StreamID(), e)
			rows[e.SessionID] = row
			order = append(order, row)
			continue
		}
		if row := rows[loopSessionOf(r.Event)]; row != nil {
			row.fold(r.Event)
		}
	}
	return readmodel.Run(ctx, tx, schema, readmodel.Upsert("loop_sessions", order, "id"))
}

func loopSessionOf(e domain.Event) string {
	switch e := e.(type) {
	case *loop.Iterated:
		return e.SessionID
	case *loop.OutcomeRecorded:
		return e.SessionID
	case *loop.Ended:
		return e.SessionID
	}
	return ""
}

func startedLoop(loopID string, e *loop.Started) *Session {
	return &Session{
		ID: e.SessionID, LoopID: loopID, AccountID: e.AccountID, ProjectID: e.ProjectID, Skill: e.Skill,
		Status: loop.StatusRunning, MaxIterations: e.MaxIterations,
		FailingKeys: pq.StringArray{}, JobIDs: pq.StringArray{},
		StartedAt: readmodel.Moment(e.At), LastSeenAt: readmodel.Moment(e.At),
	}
}

func (r *Session) fold(e domain.Event) {
	switch e := e.(type) {
	case *loop.Iterated:
		r.Iterations++
		r.CreditsSpent += e.Credits
		r.JobIDs = append(r.JobIDs, e.JobID)
		r.LastSeenAt = readmodel.Moment(e.At)
	case *loop.OutcomeRecorded:
		r.CreditsSpent -= e.Refund
		if e.ReportID != "" {
			r.FinalReportID, r.FailingKeys = e.ReportID, append(pq.StringArray{}, e.FailingKeys...)
		}
	case *loop.Ended:
		r.Status, r.EndedAt = e.FinalStatus, readmodel.MomentPtr(e.At)
	}
}

// Reads reads agent loop sessions.
type Reads struct{ db *sqlx.DB }

// NewReads reads through the views in schema readmodel.
func NewReads(db *sqlx.DB) *Reads { return &Reads{db: readmodel.Pool(db)} }

// Session is one run of an agent on a project. LoopID names its stream.
type Session struct {
	ID            string         `json:"id"`
	LoopID        string         `json:"loop_id"`
	AccountID     string         `json:"account_id"`
	ProjectID     string         `json:"project_id"`
	Skill         string         `json:"skill"`
	Status        loop.Status    `json:"status"`
	Iterations    int            `json:"iterations"`
	MaxIterations int            `json:"max_iterations"`
	CreditsSpent  domain.Credits `json:"credits_spent"`
	FinalReportID string         `json:"final_report_id"`
	FailingKeys   pq.StringArray `json:"failing_keys"` // of the latest report
	JobIDs        pq.StringArray `json:"job_ids"`      // in order
	StartedAt     time.Time      `json:"started_at"`
	LastSeenAt    time.Time      `json:"last_seen_at"`
	EndedAt       *time.Time     `json:"ended_at"`
}

var loopSessionSQL = `
SELECT ` + readmodel.Columns[Session]("") + `
FROM readmodel.loop_sessions
WHERE account_id = $1
  AND id = $2`

// Session gives one loop session.
func (q *Reads) Session(ctx context.Context, accountID, id string) (Session, error) {
	return readmodel.Get[Session](ctx, q.db, "loop session", loopSessionSQL, accountID, id)
}

var projectSessionsSQL = `
SELECT ` + readmodel.Columns[Session]("") + `
FROM readmodel.loop_sessions
WHERE account_id = $1
  AND project_id = $2
  AND ($3 = '' OR $3 = ANY(job_ids))
ORDER BY started_at DESC, id
LIMIT $4`

// OfProject gives the project's loop sessions, the newest first, at most limit.
func (q *Reads) OfProject(ctx context.Context, accountID, projectID string, limit int) ([]Session, error) {
	return pgpool.List[Session](ctx, q.db, "the loop sessions of project "+projectID, projectSessionsSQL, accountID, projectID, "", limit)
}

// OfJob gives the loop session of the project's job; found is false without one.
func (q *Reads) OfJob(ctx context.Context, accountID, projectID, jobID string) (s Session, found bool, err error) {
	return pgpool.Find[Session](ctx, q.db, "the loop session of job "+jobID, projectSessionsSQL, accountID, projectID, jobID, 1)
}
