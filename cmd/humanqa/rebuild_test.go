package main

import (
	"context"
	"flag"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"humanqa/domain"
	"humanqa/eventstore"
	"humanqa/internal/testing/eventually"
	"humanqa/internal/testing/logtest"
	"humanqa/internal/testing/modeltest"
	"humanqa/internal/testing/must"
	"humanqa/internal/testing/pgtest"
)

var rebuildKills = flag.Int("rebuild.kills", 2, "how often TestARebuildOfAllThatIsKilledGoesOn kills")

// What a rebuild of all has done when it is killed stays: the same command goes
// on behind it, and the rows are those that served before. With the race
// detector each kill takes seconds, so there are few; for more:
//
//	go test ./cmd/humanqa -run RebuildOfAllThatIsKilled -args -rebuild.kills 10
func TestARebuildOfAllThatIsKilledGoesOn(t *testing.T) {
	t.Parallel()
	p := newProgram(t, "HUMANQA_ROLES=api,projector,webhooks") // nothing happens by itself
	db := pgtest.NewDB(t, p.dsn())
	db.SetMaxOpenConns(1)
	events := fillLog(t, db)
	s := p.start()
	eventually.True(t, "all have read the log, also those that gather", func() bool {
		var behind int
		must.NoError(t, db.GetContext(t.Context(), &behind, `SELECT count(*) FROM projection_checkpoints
			WHERE status <> 'retired' AND commit_position < (SELECT max(position) FROM eventlog.events)`))
		return behind == 0
	})
	s.stop()
	live := rowSums(t, db)

	seed := rand.Uint64()
	dice := rand.New(rand.NewPCG(seed, 0))
	t.Logf("seed %d", seed)
	var before map[string]built
	goesOn := func() {
		t.Helper()
		after := generations(t, db)
		for schema, was := range before {
			is, there := after[schema]
			if was.State == "building" && (!there || is.At < was.At || is.State != "building" && !is.Serving) {
				t.Errorf("%s stood at %d, and is not gone on with: %+v", schema, was.At, is)
			}
		}
		before = after
	}
	for kills := 0; kills < *rebuildKills; {
		s := p.launchAs(p.command(context.Background(), "projections", "rebuild", "--all"))
		goal := applied(t, db) + dice.Int64N(int64(len(rebuildable())*events / *rebuildKills))
		eventually.True(t, "the rebuild moves", func() bool { return !s.Running() || applied(t, db) >= goal })
		if s.Running() {
			kills++
		} else if s.Err() != nil {
			t.Fatalf("the rebuild failed: %v\n%s", s.Err(), s.Said())
		}
		s.kill()
		// Postgres may still commit what the dead one had sent.
		eventually.True(t, "the connections of the dead one are gone", func() bool {
			var others int
			must.NoError(t, db.GetContext(t.Context(), &others, `SELECT count(*) FROM pg_stat_activity
				WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()`))
			return others == 0
		})
		goesOn()
		// The dead one's leases end fifteen seconds later.
		_, err := db.ExecContext(t.Context(), `UPDATE projection_checkpoints SET lease_until = now() - interval '1 second' WHERE owner IS NOT NULL`)
		must.NoError(t, err)
	}
	p.cli(nil, "projections", "rebuild", "--all")
	goesOn()
	for schema, g := range before {
		if g.State == "building" {
			t.Errorf("%s is being built still", schema)
		}
	}
	p.cli(nil, "projections", "rebuild", "--all", "--dry-run")
	rebuilt := rowSums(t, db)
	for _, sums := range []map[string]string{live, rebuilt} {
		// The commands themselves are in the log: these three grow with them.
		maps.DeleteFunc(sums, func(view, _ string) bool {
			return slices.Contains([]string{"operator_acts", "tree_leaves", "tree_tiles"}, view)
		})
	}
	if !maps.Equal(live, rebuilt) {
		t.Errorf("the rows that were rebuilt are\n%v\nand those that served were\n%v", rebuilt, live)
	}
}

// fillLog writes many lives into the embedded node's table, more than a page of a
// rebuild, before any node has it.
func fillLog(t *testing.T, db *sqlx.DB) (events int) {
	t.Helper()
	log := logtest.New()
	modeltest.Everything(log)
	modeltest.Lives(log, "more", 800)
	all := log.All()
	var (
		revisions         []int64
		ids               []string
		streams, types    []string
		contents, details pq.ByteaArray
	)
	for _, r := range all {
		data, meta, err := eventstore.Encode(domain.NewEvent{ID: r.ID, Event: r.Event, Meta: r.Meta})
		must.NoError(t, err)
		revisions, ids = append(revisions, int64(r.Revision)), append(ids, r.ID.String())
		streams, types = append(streams, r.Stream), append(types, r.Type)
		contents, details = append(contents, data), append(details, meta)
	}
	_, err := db.ExecContext(t.Context(), `
INSERT INTO eventlog.events (position, revision, created, event_id, is_json, stream, type, data, metadata)
SELECT n, revision, 1793000000000000 + n, id, true, stream, type, data, metadata
FROM unnest($1::bigint[], $2::uuid[], $3::text[], $4::text[], $5::bytea[], $6::bytea[])
    WITH ORDINALITY AS e (revision, id, stream, type, data, metadata, n)`,
		pq.Array(revisions), pq.Array(ids), pq.Array(streams), pq.Array(types), contents, details)
	must.NoError(t, err)
	return len(all)
}

type built struct {
	Schema  string `db:"schema_name"`
	State   string `db:"status"`
	Serving bool   `db:"serving"`
	At      int64  `db:"commit_position"`
}

// generations gives those that serve or are being built, by their schemas.
func generations(t *testing.T, db *sqlx.DB) map[string]built {
	t.Helper()
	var rows []built
	err := db.SelectContext(t.Context(), &rows, `SELECT schema_name, status, serving, commit_position FROM projection_checkpoints WHERE status <> 'retired'`)
	must.NoError(t, err)
	out := map[string]built{}
	for _, r := range rows {
		out[r.Schema] = r
	}
	return out
}

// applied is how much was folded so far.
func applied(t *testing.T, db *sqlx.DB) (events int64) {
	t.Helper()
	must.NoError(t, db.GetContext(t.Context(), &events, `SELECT SUM(applied) FROM projection_checkpoints`))
	return events
}

// rowSums is the checksum of what each read model shows.
func rowSums(t *testing.T, db *sqlx.DB) map[string]string {
	t.Helper()
	var views []string
	must.NoError(t, db.SelectContext(t.Context(), &views, `SELECT viewname FROM pg_views WHERE schemaname = 'readmodel'`))
	sums := map[string]string{}
	for _, view := range views {
		var sum string
		must.NoError(t, db.GetContext(t.Context(), &sum, `SELECT COUNT(*) || ' ' || COALESCE(SUM(hashtextextended(r::text, 0)), 0) FROM readmodel.`+view+` r`))
		sums[view] = sum
	}
	return sums
}
