package declared_test

import (
	"context"
	"fmt"
	"io"
	"testing"

	"github.com/google/uuid"
	"github.com/jmoiron/sqlx"
	"github.com/sirupsen/logrus"

	"humanqa/domain"
	"humanqa/domain/job"
	"humanqa/eventstore/consumer"
	"humanqa/eventstore/generation"
	"humanqa/internal/testing/eventually"
	"humanqa/internal/testing/logtest"
	"humanqa/internal/testing/modeltest"
	"humanqa/internal/testing/must"
	"humanqa/internal/testing/pgtest"
	"humanqa/projections/declared"
	"humanqa/projections/history"
	"humanqa/projections/jobs"
)

// BenchmarkRebuild builds the declared pass rates from a real log of the lives of 25,000 jobs,
// 100,000 events, and the built-in read models that have the same sums and the same rows.
func BenchmarkRebuild(b *testing.B) {
	const lives = 25_000
	dsn := pgtest.NewDSN(b)
	db := pgtest.NewDB(b, dsn)
	log := logtest.Start(b, dsn)
	for i := range lives {
		end := modeltest.Completed([]string{"pass", "fail"}[i%2])
		end.At = modeltest.Noon.AddDate(0, 0, i/500)
		var events []domain.NewEvent
		for _, e := range []domain.Event{
			modeltest.Created(fmt.Sprint("acc", i%100), func(e *job.Created) { e.ProjectID = fmt.Sprint("p", i%1000) }),
			modeltest.Claimed("ann"), &job.ItemChecked{ItemID: "i1", Status: job.ItemPass, At: end.At}, end,
		} {
			events = append(events, domain.NewEvent{ID: uuid.New(), Event: e, Meta: domain.Metadata{Actor: "key:k", Time: end.At}})
		}
		_, err := log.Append(b.Context(), domain.JobStream(fmt.Sprint("j", i)), domain.NoStream, events)
		must.NoError(b, err)
	}
	quiet := logrus.New()
	quiet.SetOutput(io.Discard)
	f, err := declared.Parse([]byte(example(b, "pass_rates")))
	must.NoError(b, err)
	_, err = declared.Add(b.Context(), db, f)
	must.NoError(b, err)
	for _, name := range []string{"declared", "jobs", "history"} {
		b.Run(name, func(b *testing.B) {
			all, err := declared.Projections(b.Context(), db, log.Feed)
			must.NoError(b, err)
			models := map[string]consumer.Consumer{"declared": all[0], "jobs": jobs.Projector, "history": history.Projector}
			n := 0
			for b.Loop() {
				n++
				build(b, db, consumer.New(db, log.Feed, quiet, models[name]), models[name].Name(), log.Feed.Head())
			}
			b.ReportMetric(4*lives*float64(n)/b.Elapsed().Seconds(), "events/s")
		})
	}
}

// build runs a read model from the beginning of the log to its end, and drops it.
func build(b *testing.B, db *sqlx.DB, s *consumer.Supervisor, name string, head domain.Position) {
	b.Helper()
	ctx, stop := context.WithCancel(b.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	eventually.True(b, "it has seen everything", func() bool {
		list, err := s.Status(b.Context())
		return err == nil && len(list) == 1 && list[0].Position == head
	})
	stop()
	must.NoError(b, <-ended)
	must.NoError(b, generation.Drop(b.Context(), db, name))
}
