package auditlog_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jmoiron/sqlx"

	"humanqa/domain"
	"humanqa/domain/job"
	"humanqa/eventstore"
	"humanqa/internal/pgpool"
	"humanqa/internal/testing/modeltest"
	"humanqa/internal/testing/must"
	"humanqa/internal/testing/pgtest"
	"humanqa/projections/auditlog"
)

var benchEvents = flag.Int("audit.events", 20_000, "how long a log BenchmarkAudit takes")

// BenchmarkAudit grows the tree of a whole log that is there already, signs it,
// proves events and reads it all again, and appends batches of 500 to it. Beside
// the time it tells what the processors worked, in here and in Postgres, which a
// machine with other work changes less:
//
//	go test ./projections/auditlog -run - -bench Audit -benchtime 1x -timeout 1h -args -audit.events 1000000
func BenchmarkAudit(b *testing.B) {
	n := *benchEvents
	dsn := pgtest.NewDSN(b)
	data, meta, err := eventstore.Encode(domain.NewEvent{
		Event: modeltest.Created("acc", func(e *job.Created) { e.Description += fmt.Sprintf("%600d", 0) }),
		Meta:  domain.Metadata{CommandID: uuid.New(), Actor: "key:k", Time: modeltest.Noon},
	})
	must.NoError(b, err)
	_, err = pgtest.NewDB(b, dsn).ExecContext(b.Context(), `
INSERT INTO eventlog.events (position, revision, created, event_id, is_json, stream, type, data, metadata)
SELECT i, (i - 1) % 8, 1793000000000000 + i, gen_random_uuid(), true, 'job-' || (i - 1) / 8, 'job.created', $2, $3
FROM generate_series(1, $1::bigint) i`, n, data, meta)
	must.NoError(b, err)
	// Each is told at once, too: a long log takes minutes.
	report := func(n float64, unit string) {
		b.Logf("%g %s", n, unit)
		b.ReportMetric(n, unit)
	}
	for b.Loop() { // once: -benchtime 1x
		most := watchHeap(b)
		w := setupOn(b, dsn)
		began, worked := time.Now(), worker(b, w.db)
		must.NoError(b, w.sup.Prepare(w.ctx()))
		for size := int64(0); size < int64(n); time.Sleep(5 * time.Millisecond) {
			if size, err = auditlog.NewTree(w.db).Size(b.Context()); err != nil {
				b.Fatal(err)
			}
		}
		w.stop()
		signed, _, err := w.signer.Sign(b.Context())
		must.NoError(b, err)
		report(time.Since(began).Seconds(), "s/checkpoint-of-all")
		here, there := worked()
		report(here.Seconds(), "cpu-s/checkpoint-of-all")
		report(there.Seconds(), "postgres-cpu-s/checkpoint-of-all")

		// What autovacuum does behind the writer, within a minute.
		var schema string
		must.NoError(b, w.db.Get(&schema, `SELECT schema_name FROM projection_checkpoints WHERE name = $1 AND serving`, auditlog.Name))
		_, err = w.db.Exec(`VACUUM ANALYZE ` + schema + `.tree_leaves, ` + schema + `.tree_tiles`)
		must.NoError(b, err)
		began = time.Now()
		const proofs = 100
		for i := range proofs {
			id := uuid.MustParse(w.event(int64(i*n/proofs + 1)).ID)
			_, err := auditlog.Prove(b.Context(), auditlog.NewTree(w.db), id, signed)
			must.NoError(b, err)
		}
		report(time.Since(began).Seconds()*1000/proofs, "ms/proof")

		began = time.Now()
		if check, found := w.check(signed); told(found) != "" || check.Events() != int64(n) {
			b.Fatal(told(found))
		}
		report(time.Since(began).Seconds(), "s/verify")

		batch := make([]domain.Recorded, 500)
		for i := range batch {
			batch[i] = eventstore.RawEvent{
				ID: uuid.New(), Stream: "job-new", Revision: uint64(i), Type: "job.created", Created: time.Unix(0, 0).UTC(), Data: data, Meta: meta,
			}.Recorded()
		}
		const batches = 1000
		began, worked = time.Now(), worker(b, w.db)
		for range batches {
			err := pgpool.InTxSet(b.Context(), w.db, "SET LOCAL synchronous_commit = off", func(tx *sqlx.Tx) error {
				return auditlog.Projector{}.Apply(b.Context(), tx, schema, batch)
			})
			must.NoError(b, err)
		}
		report(time.Since(began).Seconds()*1000/batches, "ms/500-events")
		here, there = worked()
		report(here.Seconds()*1000/batches, "cpu-ms/500-events")
		report(there.Seconds()*1000/batches, "postgres-cpu-ms/500-events")
		report(float64(most())/(1<<20), "MB-heap")
	}
}

// watchHeap gives the most memory that Go had until it is asked.
func watchHeap(b *testing.B) func() uint64 {
	b.Helper()
	end, most := make(chan struct{}), make(chan uint64)
	go func() {
		var largest uint64
		for {
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			largest = max(largest, m.Sys)
			select {
			case <-end:
				most <- largest
				return
			case <-time.After(100 * time.Millisecond):
			}
		}
	}()
	return func() uint64 { close(end); return <-most }
}

// worker gives what the processors work from now on: in this process, and in
// Postgres for the connections that stay (nothing where there is no /proc).
func worker(b *testing.B, db *sqlx.DB) func() (here, postgres time.Duration) {
	b.Helper()
	sum := func() (here, postgres time.Duration) {
		var self syscall.Rusage
		must.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &self))
		here = time.Duration(self.Utime.Nano() + self.Stime.Nano())
		var pids []int
		must.NoError(b, db.Select(&pids, `SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend'`))
		for _, pid := range pids {
			text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
			if err != nil {
				continue
			}
			// proc(5): the fields behind the command's name, from the state on.
			fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
			for _, ticks := range fields[11:13] { // utime and stime
				n, err := strconv.Atoi(ticks)
				must.NoError(b, err)
				postgres += time.Duration(n) * (time.Second / 100)
			}
		}
		return here, postgres
	}
	hereBefore, postgresBefore := sum()
	return func() (here, postgres time.Duration) {
		here, postgres = sum()
		return here - hereBefore, postgres - postgresBefore
	}
}
