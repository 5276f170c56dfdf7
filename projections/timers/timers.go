// Package timers is the read model of the policies' timers: the automatic actions and
// their due times.
package timers

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"humanqa/domain"
	"humanqa/domain/account"
	"humanqa/domain/policy"
	"humanqa/eventstore/consumer"
	"humanqa/internal/pgpool"
	"humanqa/projections/readmodel"
)

// Projector keeps the timers that the policies' rules set and clear, and
// how far the clocks of sandboxes are ahead. It only writes them down;
// the scheduler fires them.
type Projector struct {
	rules map[string][]policy.Policy // by the type of the events they react to
}

// NewProjector folds by the rules.
func NewProjector(rules []policy.Policy) Projector {
	p := Projector{rules: make(map[string][]policy.Policy)}
	for _, rule := range rules {
		for _, eventType := range rule.Handles {
			p.rules[eventType] = append(p.rules[eventType], rule)
		}
	}
	return p
}

func (Projector) Name() string { return "timers" }
func (Projector) Version() int { return 6 }

func (Projector) Tables() []consumer.Table {
	return []consumer.Table{{Name: "timers", DDL: timersDDL, Indexes: "REINDEX TABLE {schema}.timers"},
		{Name: "timer_clocks", DDL: timerClocksDDL}}
}

// fire_at is due_at in the service's time: a sandbox whose clock is ahead gets
// there early.
const timersDDL = `
CREATE TABLE {schema}.timers (
    kind       text        NOT NULL,
    key        text        NOT NULL,
    account_id text        NOT NULL,
    due_at     timestamptz NOT NULL,
    wall_clock boolean     NOT NULL,
    sandbox    boolean     NOT NULL,
    fire_at    timestamptz NOT NULL,
    cause_id   text        NOT NULL,
    position   bigint      NOT NULL,
    PRIMARY KEY (kind, key)
) WITH (fillfactor = 50);
CREATE INDEX ON {schema}.timers (fire_at);
CREATE INDEX ON {schema}.timers (account_id) WHERE sandbox AND NOT wall_clock;
INSERT INTO policy.horizons VALUES ('{schema}', '-infinity')
ON CONFLICT (generation) DO UPDATE
SET fire_at = EXCLUDED.fire_at;
`

// Every sandbox has a row, from its first event on.
const timerClocksDDL = `
CREATE TABLE {schema}.timer_clocks (
    account_id    text   PRIMARY KEY,
    ahead_seconds bigint NOT NULL
);
`

func (p Projector) Handles() []string {
	types := domain.TypesOf((*account.Created)(nil), (*account.ClockAdvanced)(nil))
	types = slices.AppendSeq(types, maps.Keys(p.rules))
	slices.Sort(types)
	return slices.Compact(types)
}

// Gather implements consumer.Lazy: no request reads timers right after a write. In one
// batch, the debit and the job of a submission cancel each other out, and no timer is
// written.
func (Projector) Gather() time.Duration { return 250 * time.Millisecond }

type timerID struct{ kind, key string }

type clockRow struct {
	AccountID    string `json:"account_id"`
	AheadSeconds int64  `json:"ahead_seconds"`
}

// The horizon moves back, so that no timer that is set or moved lies before it. Its row
// is locked whether it changes or not. So Forget, which moves it forward, either sees
// these timers, or its move is seen here.
//
// The policies are woken if one of these timers is due soon. They find later timers
// themselves: they look every five seconds, and each look is several queries. So a
// charge, whose timer is due in twenty seconds, wakes no policy.
const backTheHorizon = `
UPDATE policy.horizons h
SET fire_at = least(h.fire_at, w.first)
FROM (
    SELECT min(fire_at) AS first
    FROM written) w
WHERE h.generation = '{schema}'
  AND CASE WHEN w.first < now() + interval '10 seconds' THEN pg_notify('` + timersChannel + `', '') IS NOT NULL ELSE true END`

const setTimersSQL = `
WITH written AS (
    INSERT INTO {schema}.timers
    SELECT t.kind, t.key, t.account_id, t.due_at, t.wall_clock,
        c.account_id IS NOT NULL,
        t.due_at - CASE WHEN t.wall_clock THEN interval '0' ELSE make_interval(secs => coalesce(c.ahead_seconds, 0)) END,
        t.cause_id, t.position
    FROM json_populate_recordset(NULL::{schema}.timers, $1) t
    LEFT JOIN {schema}.timer_clocks c USING (account_id)
    ON CONFLICT (kind, key) DO UPDATE
    SET account_id = EXCLUDED.account_id,
        due_at = EXCLUDED.due_at,
        wall_clock = EXCLUDED.wall_clock,
        sandbox = EXCLUDED.sandbox,
        fire_at = EXCLUDED.fire_at,
        cause_id = EXCLUDED.cause_id,
        position = EXCLUDED.position
    RETURNING fire_at
)` + backTheHorizon

const clearTimersSQL = `
DELETE FROM {schema}.timers t
USING unnest($1::text[], $2::text[]) AS c (kind, key)
WHERE t.kind = c.kind
  AND t.key = c.key`

const moveTimersSQL = `
WITH written AS (
    UPDATE {schema}.timers t
    SET fire_at = t.due_at - make_interval(secs => c.ahead_seconds)
    FROM {schema}.timer_clocks c
    WHERE t.account_id = c.account_id
      AND t.account_id = ANY ($1)
      AND t.sandbox
      AND NOT t.wall_clock
    RETURNING t.fire_at
)` + backTheHorizon

// timersChannel tells the policies that timers were set.
const timersChannel = "humanqa_timers"

// Apply writes only a batch's last change of each timer and clock.
func (p Projector) Apply(ctx context.Context, tx *sqlx.Tx, schema string, batch []domain.Recorded) error {
	advanced, err := setClocks(ctx, tx, schema, batch)
	if err != nil {
		return err
	}
	set, kinds, keys := p.fold(batch)
	if err := readmodel.Run(ctx, tx, schema, readmodel.Write("set timers", setTimersSQL, set)); err != nil {
		return err
	}
	if len(keys) > 0 {
		if err := pgpool.Exec(ctx, tx, "clear timers", consumer.In(schema, clearTimersSQL), pq.Array(kinds), pq.Array(keys)); err != nil {
			return err
		}
	}
	if len(advanced) == 0 {
		return nil
	}
	return pgpool.Exec(ctx, tx, "move timers of sandboxes", consumer.In(schema, moveTimersSQL), pq.Array(advanced))
}

// setClocks writes the sandboxes' clocks down and names the accounts whose
// clock has moved.
func setClocks(ctx context.Context, tx *sqlx.Tx, schema string, batch []domain.Recorded) (advanced []string, err error) {
	ahead := make(map[string]int64)
	for _, r := range batch {
		switch e := r.Event.(type) {
		case *account.Created:
			if e.Sandbox {
				ahead[r.StreamID()] = 0
			}
		case *account.ClockAdvanced:
			ahead[r.StreamID()] = e.OffsetSeconds
			advanced = append(advanced, r.StreamID())
		}
	}
	var rows []clockRow
	for _, id := range slices.Sorted(maps.Keys(ahead)) {
		rows = append(rows, clockRow{AccountID: id, AheadSeconds: ahead[id]})
	}
	return advanced, readmodel.Run(ctx, tx, schema, readmodel.Upsert("timer_clocks", rows, "account_id"))
}

// fold gives the timers that the batch leaves set, and those it leaves cleared.
func (p Projector) fold(batch []domain.Recorded) (set []policy.Timer, kinds, keys []string) {
	type lastChange struct {
		policy.Change
		by domain.Recorded
	}
	last := make(map[timerID]lastChange)
	born := make(map[timerID]bool) // set for the first time in this batch: no row can be there
	var order []timerID
	for _, r := range batch {
		for _, rule := range p.rules[r.Type] {
			for _, c := range rule.React(r) {
				id := timerID{c.Kind, c.Key}
				if _, seen := last[id]; !seen {
					order = append(order, id)
					born[id] = c.First
				}
				last[id] = lastChange{c, r}
			}
		}
	}
	for _, id := range order {
		switch c := last[id]; {
		case !c.Clear:
			c.DueAt, c.CauseID, c.Position = readmodel.Moment(c.DueAt), c.by.ID.String(), int64(c.by.Position.Commit)
			set = append(set, c.Timer)
		case !born[id]:
			kinds, keys = append(kinds, c.Kind), append(keys, c.Key)
		}
	}
	return set, kinds, keys
}
