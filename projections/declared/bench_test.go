package declared_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jmoiron/sqlx"
	"github.com/sirupsen/logrus"
	"golang.org/x/sync/errgroup"

	"humanqa/domain"
	"humanqa/domain/job"
	"humanqa/eventstore"
	"humanqa/eventstore/consumer"
	"humanqa/eventstore/generation"
	"humanqa/internal/pgpool"
	"humanqa/internal/testing/eventually"
	"humanqa/internal/testing/logtest"
	"humanqa/internal/testing/modeltest"
	"humanqa/internal/testing/must"
	"humanqa/internal/testing/pgtest"
	"humanqa/projections"
	"humanqa/projections/declared"
	"humanqa/projections/history"
	"humanqa/projections/jobs"
)

var benchEvents = flag.Int("declared.events", 100_000, "how long a log BenchmarkRebuild and BenchmarkLag take")

const (
	eventsOfLife = 4
	// longest is how long a read model may take for the whole log.
	longest = 30 * time.Minute
)

// bench is a real log of the lives of jobs, and a database with the declared pass rates.
type bench struct {
	*testing.B

	db    *sqlx.DB
	log   logtest.Real
	quiet logrus.FieldLogger
	lives int
}

func setupBench(b *testing.B) bench {
	b.Helper()
	dsn := pgtest.NewDSN(b)
	quiet := logrus.New()
	quiet.SetOutput(io.Discard)
	w := bench{B: b, db: pgtest.NewDB(b, dsn), quiet: quiet, lives: *benchEvents / eventsOfLife}
	must.NoError(b, pgpool.InTx(b.Context(), w.db, w.write))
	w.log = logtest.Start(b, dsn)
	f, err := declared.Parse([]byte(example(b, "pass_rates")))
	must.NoError(b, err)
	_, err = declared.Add(b.Context(), w.db, f)
	must.NoError(b, err)
	return w
}

const writeSQL = `
COPY eventlog.events (position, revision, created, event_id, is_json, stream, type, data, metadata)
FROM STDIN`

// write writes the log as its node would have, which starts behind it. Appends take many times as
// long.
func (w bench) write(tx *sqlx.Tx) error {
	in, err := tx.PrepareContext(w.Context(), writeSQL)
	if err != nil {
		return err
	}
	for i := range w.lives {
		stream, events := life(i)
		for revision, e := range events {
			data, meta, err := eventstore.Encode(e)
			if err != nil {
				return err
			}
			position := eventsOfLife*i + revision + 1
			if _, err := in.ExecContext(w.Context(), position, revision, e.Meta.Time.UnixMicro(), e.ID.String(), true, stream,
				e.Event.EventType(), data, meta); err != nil {
				return err
			}
		}
	}
	_, err = in.ExecContext(w.Context())
	return errors.Join(err, in.Close())
}

// life gives the stream of the job with a number, and its events.
func life(i int) (stream string, events []domain.NewEvent) {
	end := modeltest.Completed([]string{"pass", "fail"}[i%2])
	end.At = modeltest.Noon.AddDate(0, 0, i/500)
	for _, e := range []domain.Event{
		modeltest.Created(fmt.Sprint("acc", i%100), func(e *job.Created) { e.ProjectID = fmt.Sprint("p", i%1000) }),
		modeltest.Claimed("ann"), &job.ItemChecked{ItemID: "i1", Status: job.ItemPass, At: end.At}, end,
	} {
		events = append(events, domain.NewEvent{ID: uuid.New(), Event: e, Meta: domain.Metadata{Actor: "key:k", Time: end.At}})
	}
	return domain.JobStream(fmt.Sprint("j", i)), events
}

// head is the log's end.
func (w bench) head() domain.Position {
	w.Helper()
	head, err := w.log.Head(w.Context())
	must.NoError(w, err)
	return head
}

// reaches waits until the serving rows of a read model show a position.
func (w bench) reaches(name string, at domain.Position) {
	w.Helper()
	eventually.Within(w, longest, func() error {
		serving, err := generation.Serving(w.Context(), w.db, name)
		if err == nil && !generation.Reached(serving.Checkpoint(), at) {
			err = fmt.Errorf("%s is at %s of %s", name, serving.Checkpoint().Position, at)
		}
		return err
	})
}

// runs runs a part until stop is called.
func (w bench) runs(run func(context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(w.Context())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx) }()
	return func() {
		w.Helper()
		cancel()
		must.NoError(w, <-ended)
	}
}

// BenchmarkRebuild builds the declared pass rates from the log, and the built-in read models
// that have the same sums and the same rows:
//
//	go test ./projections/declared -run - -bench Rebuild -benchtime 1x -timeout 1h -args -declared.events 1000000
func BenchmarkRebuild(b *testing.B) {
	w := setupBench(b)
	for _, name := range []string{"declared", "jobs", "history"} {
		b.Run(name, func(b *testing.B) {
			all, err := declared.Projections(b.Context(), w.db, w.log.Feed)
			must.NoError(b, err)
			model := map[string]consumer.Consumer{"declared": all[0], "jobs": jobs.Projector, "history": history.Projector}[name]
			w := w
			w.B = b
			n := 0
			for b.Loop() {
				n++
				stop := w.runs(consumer.New(w.db, w.log.Feed, w.quiet, model).Run)
				w.reaches(model.Name(), w.head())
				stop()
				must.NoError(b, generation.Drop(b.Context(), w.db, model.Name()))
			}
			b.ReportMetric(float64(eventsOfLife*w.lives*n)/b.Elapsed().Seconds(), "events/s")
		})
	}
}

const (
	lagRounds = 3
	lagJobs   = 250 // of a round
	lagEvery  = 20 * time.Millisecond
)

// BenchmarkLag appends jobs at a steady rate, and tells how long after each the built-in read
// models show it. It does so without the declared pass rates, beside them, and while they, or a
// built-in read model, are built anew from the whole log. The rounds of the four alternate:
//
//	go test ./projections/declared -run - -bench Lag -benchtime 1x -timeout 1h -args -declared.events 1000000
func BenchmarkLag(b *testing.B) {
	w := setupBench(b)
	w.db.SetMaxOpenConns(48) // as a service has, whose declared projections share a third
	builtIn := consumer.New(w.db, w.log.Feed, w.quiet, projections.All()...)
	defer w.runs(builtIn.Run)()
	must.NoError(b, builtIn.WaitFor(b.Context(), w.head()))

	all, err := declared.Projections(b.Context(), w.db, w.log.Feed)
	must.NoError(b, err)
	follow := func() (stop func()) {
		stop = w.runs(declared.NewKeeper(w.db, w.log.Feed, w.quiet).Run)
		w.reaches(all[0].Name(), w.head())
		return stop
	}
	sides := []struct {
		name  string
		begin func() (stop func())
		took  []time.Duration
	}{
		{name: "alone", begin: func() func() { return func() {} }},
		{name: "beside", begin: follow},
		{name: "rebuilding", begin: func() func() {
			keeper := follow()
			rebuilds := w.rebuilds(all[0])
			return func() { rebuilds(); keeper() }
		}},
		{name: "rebuilding-history", begin: func() func() { return w.rebuilds(history.Projector) }},
	}
	next := w.lives
	for b.Loop() {
		for range lagRounds {
			for i := range sides {
				stop := sides[i].begin()
				sides[i].took = append(sides[i].took, w.lags(builtIn, next)...)
				next += lagJobs
				stop()
			}
		}
	}
	for _, s := range sides {
		slices.Sort(s.took)
		b.ReportMetric(millis(s.took[len(s.took)/2]), s.name+"-p50-ms")
		b.ReportMetric(millis(s.took[len(s.took)*99/100]), s.name+"-p99-ms")
	}
}

func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// lags appends jobs from a number on. It gives, for each, the time from the answer of the append
// until the read models show it.
func (w bench) lags(builtIn *consumer.Supervisor, from int) []time.Duration {
	w.Helper()
	took := make([]time.Duration, lagJobs)
	pace := time.NewTicker(lagEvery)
	defer pace.Stop()
	var waiting errgroup.Group
	for i := range took {
		<-pace.C
		waiting.Go(func() error {
			stream, events := life(from + i)
			written, err := w.log.Append(w.Context(), stream, domain.NoStream, events)
			if err != nil {
				return err
			}
			appended := time.Now()
			err = builtIn.WaitFor(w.Context(), written.Position)
			took[i] = time.Since(appended)
			return err
		})
	}
	must.NoError(w, waiting.Wait())
	return took
}

// rebuilds builds a read model anew, again and again until stop is called. stop waits for the end
// of the last rebuild.
func (w bench) rebuilds(model consumer.Consumer) (stop func()) {
	operator := consumer.New(w.db, w.log.Feed, w.quiet, model)
	return w.runs(func(ctx context.Context) (err error) {
		for err == nil && ctx.Err() == nil {
			err = operator.RebuildAll(w.Context(), []string{model.Name()}, nil)
		}
		return err
	})
}
