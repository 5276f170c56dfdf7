package node_test

import (
	"database/sql"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"
	"github.com/google/uuid"

	"humanqa/internal/testing/must"
	"humanqa/internal/testing/pgtest"
)

// BenchmarkAppend compares, in one run and on one Postgres, single-row INSERT …
// COMMIT by n connections with appends of n writers through the official
// client. Each writer appends to its own stream, and begins a new one every
// eight events.
func BenchmarkAppend(b *testing.B) {
	payload := []byte(fmt.Sprintf(`{"text":%q}`, make([]byte, 40)))
	for _, writers := range []int{1, 16, 64, 256} {
		b.Run(fmt.Sprintf("insert/writers=%d", writers), func(b *testing.B) {
			db := pgtest.New(b)
			db.SetMaxOpenConns(writers)
			db.SetMaxIdleConns(writers)
			_, err := db.ExecContext(b.Context(), `CREATE TABLE plain (id bigserial PRIMARY KEY, event_id uuid NOT NULL, stream text NOT NULL, data bytea NOT NULL)`)
			must.NoError(b, err)
			insert, err := db.PrepareContext(b.Context(), `INSERT INTO plain (event_id, stream, data) VALUES ($1, $2, $3)`)
			must.NoError(b, err)
			warm(b, db.DB, writers)
			measure(b, writers, func(w, i int) error {
				_, err := insert.ExecContext(b.Context(), uuid.New(), "job", payload)
				return err
			})
		})
		b.Run(fmt.Sprintf("append/writers=%d", writers), func(b *testing.B) {
			client := connect(b, socketConfig(onSocket(b).Addr()))
			streams := make([]string, writers)
			measure(b, writers, func(w, i int) error {
				var expected esdb.ExpectedRevision = esdb.NoStream{}
				if i%8 == 0 {
					streams[w] = uniqueStream("job")
				} else {
					expected = esdb.Revision(uint64(i%8 - 1))
				}
				e := event()
				e.Data = payload
				_, err := client.AppendToStream(b.Context(), streams[w], esdb.AppendToStreamOptions{ExpectedRevision: expected}, e)
				return err
			})
		})
	}
}

// warm opens all connections before the clock runs.
func warm(b *testing.B, db *sql.DB, n int) {
	b.Helper()
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() {
			if _, err := db.ExecContext(b.Context(), `SELECT pg_sleep(0.2)`); err != nil {
				b.Error(err)
			}
		})
	}
	wg.Wait()
}

// measure shares b.N operations among the writers and reports their rate and
// their latencies.
func measure(b *testing.B, writers int, op func(writer, i int) error) {
	b.Helper()
	var left atomic.Int64
	left.Store(int64(b.N))
	took := make([][]time.Duration, writers)
	b.ResetTimer()
	began := time.Now()
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := 0; left.Add(-1) >= 0; i++ {
				start := time.Now()
				if err := op(w, i); err != nil {
					b.Error(err)
					return
				}
				took[w] = append(took[w], time.Since(start))
			}
		})
	}
	wg.Wait()
	elapsed := time.Since(began)
	b.StopTimer()
	all := slices.Concat(took...)
	if len(all) == 0 {
		return
	}
	slices.Sort(all)
	b.ReportMetric(float64(len(all))/elapsed.Seconds(), "ops/s")
	b.ReportMetric(float64(all[len(all)/2].Microseconds())/1000, "p50-ms")
	b.ReportMetric(float64(all[len(all)*99/100].Microseconds())/1000, "p99-ms")
}
