// Package retention is the read model of how long evidence is kept: the settings of
// accounts and projects, holds, and the clocks of sandboxes. It only nominates evidence
// that may expire; the log decides (domain/command/retention).
package retention

import (
	"context"
	"time"

	"github.com/jmoiron/sqlx"

	"humanqa/domain"
	"humanqa/domain/account"
	"humanqa/domain/job"
	"humanqa/domain/project"
	"humanqa/domain/retention"
	"humanqa/eventstore/consumer"
	"humanqa/internal/pgpool"
	"humanqa/projections/readmodel"
)

// Projector keeps a row for each account and project with a setting, for each hold, and
// for the clock of each sandbox.
var Projector = readmodel.New(readmodel.Spec{
	Name: "retention", Version: 1,
	Tables: []consumer.Table{
		{Name: "retention_settings", DDL: settingsDDL},
		{Name: "retention_holds", DDL: holdsDDL},
		{Name: "retention_clocks", DDL: clocksDDL},
		{Name: "retention_projects", DDL: projectsDDL},
	},
	Handles: domain.TypesOf(
		(*account.ClockAdvanced)(nil), (*account.RetentionChanged)(nil), (*account.HoldPlaced)(nil), (*account.HoldReleased)(nil),
		(*account.Erased)(nil),
		(*project.Created)(nil), (*project.SettingsChanged)(nil), (*project.HoldPlaced)(nil), (*project.HoldReleased)(nil),
		(*job.HoldPlaced)(nil), (*job.HoldReleased)(nil),
	),
	Apply: readmodel.Each(change),
})

// A setting that was cleared keeps its row. project_id is empty for the account's own.
const settingsDDL = `
CREATE TABLE {schema}.retention_settings (
    account_id      text NOT NULL,
    project_id      text NOT NULL,
    evidence_days   integer,
    recordings_days integer,
    PRIMARY KEY (account_id, project_id)
);
`

// kind is account, project or job. A hold that was released leaves no row.
const holdsDDL = `
CREATE TABLE {schema}.retention_holds (
    kind       text NOT NULL,
    id         text NOT NULL,
    account_id text NOT NULL,
    reason     text NOT NULL,
    operator   boolean NOT NULL,
    placed_by  text NOT NULL, -- an actor
    placed_at  timestamptz NOT NULL,
    PRIMARY KEY (kind, id)
);
CREATE INDEX retention_holds_of_account ON {schema}.retention_holds (account_id, placed_at);
`

const clocksDDL = `
CREATE TABLE {schema}.retention_clocks (
    account_id    text PRIMARY KEY,
    ahead_seconds bigint NOT NULL
);
`

// Of the events handled here, only the first of a project names its account, and no event
// of a job does.
const projectsDDL = `
CREATE TABLE {schema}.retention_projects (
    project_id text PRIMARY KEY,
    account_id text NOT NULL
);
`

const clockSQL = `
INSERT INTO {schema}.retention_clocks (account_id, ahead_seconds)
VALUES ($1, $2)
ON CONFLICT (account_id) DO UPDATE
SET ahead_seconds = EXCLUDED.ahead_seconds`

const settingSQL = `
INSERT INTO {schema}.retention_settings (account_id, project_id, evidence_days, recordings_days)
VALUES ($1, '', $2, $3)
ON CONFLICT (account_id, project_id) DO UPDATE
SET evidence_days = EXCLUDED.evidence_days,
    recordings_days = EXCLUDED.recordings_days`

const projectSQL = `
INSERT INTO {schema}.retention_projects (project_id, account_id)
VALUES ($1, $2)`

// Most projects have no setting, and get no row.
const projectSettingSQL = `
INSERT INTO {schema}.retention_settings AS s (account_id, project_id, evidence_days, recordings_days)
SELECT p.account_id, p.project_id, $2::integer, $3::integer
FROM {schema}.retention_projects p
WHERE p.project_id = $1
  AND ($2::integer IS NOT NULL
    OR $3::integer IS NOT NULL
    OR EXISTS (
        SELECT
        FROM {schema}.retention_settings o
        WHERE o.account_id = p.account_id
          AND o.project_id = p.project_id))
ON CONFLICT (account_id, project_id) DO UPDATE
SET evidence_days = EXCLUDED.evidence_days,
    recordings_days = EXCLUDED.recordings_days`

// The account of a hold is that of the command, which places holds in its own account
// only.
const placeHoldSQL = `
INSERT INTO {schema}.retention_holds (kind, id, account_id, reason, operator, placed_by, placed_at)
VALUES ($1, $2, $3, $4, $5, $6, $7)
ON CONFLICT (kind, id) DO UPDATE
SET reason = EXCLUDED.reason,
    operator = EXCLUDED.operator,
    placed_by = EXCLUDED.placed_by,
    placed_at = EXCLUDED.placed_at`

const releaseHoldSQL = `
DELETE FROM {schema}.retention_holds
WHERE kind = $1
  AND id = $2`

// Reasons are texts of people, and are erased with the account.
const eraseSQL = `
UPDATE {schema}.retention_holds
SET reason = ''
WHERE account_id = $1`

// change writes event by event: all of these change rarely.
func change(r domain.Recorded) (query string, args []any) {
	id := r.StreamID()
	placed := func(kind string, p retention.HoldPlaced) (string, []any) {
		return placeHoldSQL, []any{kind, id, r.Meta.AccountID, p.Reason, p.Operator, r.Meta.Actor, readmodel.Moment(p.At)}
	}
	switch e := r.Event.(type) {
	case *account.ClockAdvanced:
		return clockSQL, []any{id, e.OffsetSeconds}
	case *account.RetentionChanged:
		return settingSQL, []any{id, e.EvidenceDays, e.RecordingsDays}
	case *account.Erased:
		return eraseSQL, []any{id}
	case *project.Created:
		return projectSQL, []any{id, e.AccountID}
	case *project.SettingsChanged:
		return projectSettingSQL, []any{id, e.EvidenceDays, e.RecordingsDays}
	case *account.HoldPlaced:
		return placed(retention.OfAccount, e.HoldPlaced)
	case *project.HoldPlaced:
		return placed(retention.OfProject, e.HoldPlaced)
	case *job.HoldPlaced:
		return placed(retention.OfJob, e.HoldPlaced)
	case *account.HoldReleased:
		return releaseHoldSQL, []any{retention.OfAccount, id}
	case *project.HoldReleased:
		return releaseHoldSQL, []any{retention.OfProject, id}
	case *job.HoldReleased:
		return releaseHoldSQL, []any{retention.OfJob, id}
	}
	return "", nil
}

// Reads reads settings and holds. Every method is bound to one account.
type Reads struct{ db *sqlx.DB }

// NewReads reads through the views in schema readmodel.
func NewReads(db *sqlx.DB) *Reads { return &Reads{db: readmodel.Pool(db)} }

// Setting is how long an account or a project keeps evidence.
type Setting struct {
	ProjectID      string `json:"project_id"` // empty: the account's own
	EvidenceDays   *int   `json:"evidence_days"`
	RecordingsDays *int   `json:"recordings_days"`
}

const settingsSQL = `
SELECT project_id, evidence_days, recordings_days
FROM readmodel.retention_settings
WHERE account_id = $1
  AND (evidence_days IS NOT NULL OR recordings_days IS NOT NULL)
ORDER BY project_id`

// Settings lists the account's settings, its own first.
func (q *Reads) Settings(ctx context.Context, accountID string) ([]Setting, error) {
	return pgpool.List[Setting](ctx, q.db, "how long evidence is kept", settingsSQL, accountID)
}

// Hold is a hold that is in place.
type Hold struct {
	Kind     string    `json:"kind"` // account, project, job
	ID       string    `json:"id"`
	Reason   string    `json:"reason"` // written by a client unless Operator
	Operator bool      `json:"operator"`
	PlacedBy string    `json:"placed_by"` // an actor
	PlacedAt time.Time `json:"placed_at"`
}

// maxHolds bounds a list of holds.
const maxHolds = 200

const holdsSQL = `
SELECT kind, id, reason, operator, placed_by, placed_at
FROM readmodel.retention_holds
WHERE account_id = $1
ORDER BY placed_at, kind, id
LIMIT $2`

// Holds lists the account's holds, the oldest first, at most 200.
func (q *Reads) Holds(ctx context.Context, accountID string) ([]Hold, error) {
	return pgpool.List[Hold](ctx, q.db, "holds", holdsSQL, accountID, maxHolds)
}
