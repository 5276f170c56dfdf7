package projections

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"humanqa/domain"
	"humanqa/domain/policy"
)

// timersProjector keeps the timers that the policies' rules set and clear. It
// only writes them down; policy.Run fires them.
type timersProjector struct{ rules []policy.Rule }

func (timersProjector) Name() string { return "timers" }
func (timersProjector) Version() int { return 1 }

func (timersProjector) Tables() []Table { return []Table{{Name: "timers", DDL: timersDDL}} }

const timersDDL = `
CREATE TABLE {schema}.timers (
    kind       text        NOT NULL,
    key        text        NOT NULL,
    account_id text        NOT NULL,
    due_at     timestamptz NOT NULL,
    PRIMARY KEY (kind, key)
) WITH (fillfactor = 50);
CREATE INDEX ON {schema}.timers (due_at);
`

func (p timersProjector) Handles() []string {
	var types []string
	for _, rule := range p.rules {
		types = append(types, rule.Handles()...)
	}
	slices.Sort(types)
	return slices.Compact(types)
}

// Patience implements Patient: no timer is due within seconds, and most are
// cleared before. Gathered, the debit and the job of a submission cancel each
// other out and nothing is written.
func (timersProjector) Patience() time.Duration { return 250 * time.Millisecond }

type timerID struct{ kind, key string }

// timerRow is a timer to set.
type timerRow struct {
	Kind      string    `json:"kind"`
	Key       string    `json:"key"`
	AccountID string    `json:"account_id"`
	DueAt     time.Time `json:"due_at"`
}

const setTimersSQL = `
INSERT INTO {schema}.timers
SELECT *
FROM json_populate_recordset(NULL::{schema}.timers, $1)
ON CONFLICT (kind, key) DO UPDATE
SET account_id = EXCLUDED.account_id,
    due_at = EXCLUDED.due_at`

const clearTimersSQL = `
DELETE FROM {schema}.timers t
USING unnest($1::text[], $2::text[]) AS c (kind, key)
WHERE t.kind = c.kind
  AND t.key = c.key`

// Apply keeps only a batch's last word on each timer.
func (p timersProjector) Apply(ctx context.Context, tx *sqlx.Tx, schema string, batch []domain.Recorded) error {
	last := make(map[timerID]policy.Change)
	born := make(map[timerID]bool) // set for the first time in this batch: no row can be there
	var order []timerID
	for _, r := range batch {
		for _, rule := range p.rules {
			for _, c := range rule.React(r) {
				id := timerID{c.Kind, c.Key}
				if _, seen := last[id]; !seen {
					order = append(order, id)
					born[id] = c.First
				}
				last[id] = c
			}
		}
	}
	var set []timerRow
	var kinds, keys []string
	for _, id := range order {
		switch c := last[id]; {
		case !c.Clear:
			set = append(set, timerRow{Kind: c.Kind, Key: c.Key, AccountID: c.AccountID, DueAt: moment(c.DueAt)})
		case !born[id]:
			kinds, keys = append(kinds, c.Kind), append(keys, c.Key)
		}
	}
	if err := writeRows(ctx, tx, schema, setTimersSQL, set); err != nil {
		return fmt.Errorf("set timers: %w", err)
	}
	if len(keys) == 0 {
		return nil
	}
	if _, err := tx.ExecContext(ctx, in(schema, clearTimersSQL), pq.Array(kinds), pq.Array(keys)); err != nil {
		return fmt.Errorf("clear timers: %w", err)
	}
	return nil
}

// Timers hands due timers to the policies (policy.Timers).
type Timers struct{ db *sqlx.DB }

// NewTimers reads the timers through their view.
func NewTimers(db *sqlx.DB) *Timers { return &Timers{db: mapped(db)} }

// A lease that is taken by somebody else in the same moment is not returned:
// the conflict's WHERE sees it. Postgres' clock decides what is due.
const takeDueTimersSQL = `
WITH due AS (
    SELECT t.kind, t.key, t.account_id, t.due_at
    FROM readmodel.timers t
    LEFT JOIN policy.leases l USING (kind, key)
    WHERE t.kind = ANY ($1)
      AND t.due_at <= now()
      AND (l.until IS NULL OR l.until < now())
    ORDER BY t.due_at
    LIMIT $2
), taken AS (
    INSERT INTO policy.leases AS l (kind, key, until)
    SELECT kind, key, now() + make_interval(secs => $3)
    FROM due
    ORDER BY kind, key
    ON CONFLICT (kind, key) DO UPDATE
    SET until = EXCLUDED.until,
        attempts = l.attempts + 1
    WHERE l.until < now()
    RETURNING kind, key
)
SELECT due.kind, due.key, due.account_id, due.due_at
FROM due
JOIN taken USING (kind, key)`

// TakeDue implements policy.Timers.
func (t *Timers) TakeDue(ctx context.Context, kinds []string, limit int, lease time.Duration) ([]policy.Timer, error) {
	var rows []timerRow
	if err := t.db.SelectContext(ctx, &rows, takeDueTimersSQL, pq.Array(kinds), limit, lease.Seconds()); err != nil {
		return nil, fmt.Errorf("take due timers: %w", err)
	}
	due := make([]policy.Timer, len(rows))
	for i, r := range rows {
		utc(&r.DueAt)
		due[i] = policy.Timer{Kind: r.Kind, Key: r.Key, AccountID: r.AccountID, DueAt: r.DueAt}
	}
	return due, nil
}

const noteTimerFailureSQL = `
UPDATE policy.leases
SET last_error = left($3, 1000)
WHERE kind = $1
  AND key = $2`

// Failed implements policy.Timers.
func (t *Timers) Failed(ctx context.Context, timer policy.Timer, cause error) error {
	if _, err := t.db.ExecContext(ctx, noteTimerFailureSQL, timer.Kind, timer.Key, cause.Error()); err != nil {
		return fmt.Errorf("note a timer's failure: %w", err)
	}
	return nil
}

const forgetTimerLeasesSQL = `
DELETE FROM policy.leases l
WHERE until < now() - interval '1 hour'
  AND NOT EXISTS (
    SELECT 1
    FROM readmodel.timers t
    WHERE t.kind = l.kind
      AND t.key = l.key)`

// Forget implements policy.Timers.
func (t *Timers) Forget(ctx context.Context) error {
	if _, err := t.db.ExecContext(ctx, forgetTimerLeasesSQL); err != nil {
		return fmt.Errorf("forget ended leases of timers: %w", err)
	}
	return nil
}
