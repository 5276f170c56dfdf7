// Package sessions is the read model of sessions and their slots.
package sessions

import (
	"context"
	"fmt"
	"strings"

	"github.com/jmoiron/sqlx"

	"humanqa/domain"
	"humanqa/domain/credits"
	"humanqa/domain/job"
	"humanqa/domain/session"
	"humanqa/eventstore/consumer"
	"humanqa/projections/readmodel"
)

// Projector keeps a row per session with its slots, since a session is always read
// whole. session_jobs leads from a slot's job to its session. Most of a job's events
// don't name it.
var Projector = readmodel.New(readmodel.Spec{
	Name: "sessions", Version: 4,
	Tables: []consumer.Table{
		{Name: "sessions", DDL: sessionsDDL},
		{Name: "session_jobs", DDL: sessionJobsDDL},
	},
	Handles: domain.TypesOf(
		(*session.Created)(nil),
		(*session.SlotReady)(nil),
		(*session.SlotLeft)(nil),
		(*session.Started)(nil),
		(*session.Marked)(nil),
		(*session.Completed)(nil),
		(*session.Expired)(nil),
		(*session.Cancelled)(nil),
		(*job.Claimed)(nil),
		(*job.Released)(nil),
		(*job.SLAMissed)(nil),
		(*job.UntestableReported)(nil),
		(*job.Completed)(nil),
		(*job.DisputeDecided)(nil),
		(*job.Failed)(nil),
		(*job.Cancelled)(nil),
		(*job.Voided)(nil),
		(*credits.Refunded)(nil),
	),
	Apply: apply,
})

const sessionsDDL = `
CREATE TABLE {schema}.sessions (
    id             text PRIMARY KEY,
    account_id     text NOT NULL,
    project_id     text NOT NULL,
    status         text NOT NULL,
    url            text NOT NULL,
    feature        text NOT NULL,
    scenario_brief text NOT NULL,
    voice_enabled  boolean NOT NULL,
    type           text NOT NULL,
    type_echo      text NOT NULL,
    item_count     integer NOT NULL,
    charged        bigint NOT NULL,
    refunded       bigint NOT NULL, -- what came back
    expired        bigint NOT NULL, -- what of the refunds went into lots that had expired
    pass_count     integer NOT NULL,
    fail_count     integer NOT NULL,
    close_reason   text NOT NULL,
    ready_deadline timestamptz NOT NULL,
    created_at     timestamptz NOT NULL,
    started_at     timestamptz,
    closed_at      timestamptz,
    slots          jsonb NOT NULL,
    marks          jsonb NOT NULL
);
CREATE INDEX sessions_by_account ON {schema}.sessions (account_id, created_at DESC, id DESC);
CREATE INDEX sessions_by_status  ON {schema}.sessions (account_id, status, created_at DESC, id DESC);
CREATE INDEX sessions_by_project ON {schema}.sessions (account_id, project_id, created_at DESC, id DESC);
`

const sessionJobsDDL = `
CREATE TABLE {schema}.session_jobs (
    job_id     text PRIMARY KEY,
    session_id text NOT NULL
);
CREATE INDEX session_jobs_by_session ON {schema}.session_jobs (session_id);
`

type sessionJobRow struct {
	JobID     string `json:"job_id"`
	SessionID string `json:"session_id"`
}

// apply folds the batch per session in memory, so that a session is written
// once however many of its events the batch holds.
func apply(ctx context.Context, tx *sqlx.Tx, schema string, batch []domain.Recorded) error {
	f := sessionsFold{sessions: map[string]*foldedSession{}, ofJob: map[string]string{}}
	if err := f.load(ctx, tx, schema, batch); err != nil {
		return err
	}
	for _, r := range batch {
		if err := f.fold(r); err != nil {
			return fmt.Errorf("fold %s of %s: %w", r.Type, r.Stream, err)
		}
	}
	return f.write(ctx, tx, schema)
}

// Fold is the read model's state of a session at an earlier end of the log, without a
// table. It is the same fold over the events of the session, its slots' jobs and their
// refunds. NotFound without its creation among them.
func Fold(id string, events []domain.Recorded) (Session, error) {
	f := sessionsFold{sessions: map[string]*foldedSession{}, ofJob: map[string]string{}}
	for _, r := range events {
		if err := f.fold(r); err != nil {
			return Session{}, fmt.Errorf("fold %s of %s: %w", r.Type, r.Stream, err)
		}
	}
	s := f.sessions[id]
	if s == nil {
		return Session{}, domain.NotFound("session")
	}
	return s.row, nil
}

// sessionsFold is one batch on its way into the tables.
type sessionsFold struct {
	sessions map[string]*foldedSession
	order    []*foldedSession // in order of first appearance: what is written never depends on map order
	ofJob    map[string]string
	jobs     []sessionJobRow
}

type foldedSession struct {
	row            Session
	isNew, changed bool
}

// sessionOf is the session whose stream the event stands in; empty for those
// of jobs and ledgers.
func sessionOf(r domain.Recorded) string {
	id, found := strings.CutPrefix(r.Stream, domain.SessionStreams)
	if !found {
		return ""
	}
	return id
}

// load fetches the sessions that the batch changes but did not create.
func (f *sessionsFold) load(ctx context.Context, tx *sqlx.Tx, schema string, batch []domain.Recorded) error {
	var jobs, ids []string
	for _, r := range batch {
		if id := sessionOf(r); id != "" {
			ids = append(ids, id)
		} else {
			jobs = append(jobs, readmodel.JobOf(r))
		}
	}
	links, err := readmodel.Load[sessionJobRow](ctx, tx, schema, "session_jobs", "job_id", jobs)
	if err != nil {
		return err
	}
	for _, l := range links {
		f.ofJob[l.JobID] = l.SessionID
		ids = append(ids, l.SessionID)
	}
	rows, err := readmodel.Load[Session](ctx, tx, schema, "sessions", "id", ids)
	if err != nil {
		return err
	}
	for _, row := range rows {
		s := &foldedSession{row: row}
		f.sessions[row.ID] = s
		f.order = append(f.order, s)
	}
	return nil
}

// write puts the folded batch into the tables, a statement per table.
func (f *sessionsFold) write(ctx context.Context, tx *sqlx.Tx, schema string) error {
	var inserts, updates []Session
	for _, s := range f.order {
		if !s.changed {
			continue
		}
		if s.isNew {
			inserts = append(inserts, s.row)
		} else {
			updates = append(updates, s.row)
		}
	}
	return readmodel.Run(ctx, tx, schema,
		readmodel.Append("sessions", inserts),
		readmodel.Append("session_jobs", f.jobs),
		readmodel.Update("sessions", "id", updates, "status", "refunded", "expired", "pass_count", "fail_count", "close_reason",
			"started_at", "closed_at", "slots", "marks"),
	)
}
