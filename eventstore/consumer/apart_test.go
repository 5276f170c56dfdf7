package consumer_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"humanqa/domain"
	"humanqa/eventstore/consumer"
	"humanqa/internal/testing/modeltest"
	"humanqa/internal/testing/must"
	"humanqa/internal/testing/pgtest"
	"humanqa/projections/jobs"
)

// apart is a world whose consumers run in one process, and whose reads wait in
// another, api.
type apart struct {
	*world
	api *consumer.Supervisor
}

// setupApart has workers that would store what they pass over after an hour.
func setupApart(t *testing.T, change ...func(*consumer.Limits)) apart {
	t.Helper()
	w := setup(t, manyModels()...)
	w.Sup.ChangeLimits(func(l *consumer.Limits) { l.Store, l.Lease = time.Hour, time.Hour })
	for _, one := range change {
		w.Sup.ChangeLimits(one)
	}
	a := apart{w, w.Service(w.Log, manyModels()...)}
	w.Run(w.Sup)
	w.Eventually("all are live", func() bool {
		return w.Count("SELECT count(*) FROM projection_checkpoints WHERE status = 'live'") == len(manyModels())
	})
	return a
}

// follows has the API's process follow the log.
func (a apart) follows() {
	a.T.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	dsn, from := pgtest.DSN(a.T, a.DB), a.Log.Head()
	go func() { ended <- a.api.Follow(ctx, dsn, from) }()
	a.T.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			a.T.Error(err)
		}
	})
}

func TestAProcessApartWaitsOnlyForReadModelsThatHaveSomethingToDo(t *testing.T) {
	t.Parallel()
	a := setupApart(t)
	a.follows()
	for i, n := range []string{"j1", "j2", "j3"} {
		at := a.Log.Record(domain.JobStream(n), modeltest.Created("acc")) // nothing for access, people …
		must.NoError(t, a.api.WaitFor(a.Ctx(), at))
		if _, total, err := a.reads.Jobs.List(a.Ctx(), "acc", jobs.Filter{Limit: 1}); err != nil || total != i+1 {
			t.Errorf("after job %d a reader met %d, %v", i+1, total, err)
		}
	}
	if n := a.Count("SELECT count(*) FROM projection_checkpoints WHERE name = 'people' AND commit_position >= 1"); n != 0 {
		t.Error("the test shows nothing: people has stored its checkpoint")
	}
}

func TestAProcessApartThatDoesNotFollowTheLogWaitsForEveryCheckpoint(t *testing.T) {
	t.Parallel()
	a := setupApart(t)
	at := a.Log.Record(domain.JobStream("j1"), modeltest.Created("acc"))
	ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer cancel()
	if err := a.api.WaitFor(ctx, at); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "people") {
		t.Errorf("got %v, want the read models that only pass the event to be named", err)
	}
}

// What the log held before it was followed may be for anybody.
func TestAProcessApartWaitsForAllOfWhatWasThereBeforeIt(t *testing.T) {
	t.Parallel()
	w := setup(t)
	at := w.Log.Record(domain.JobStream("j1"), modeltest.Created("acc"))
	a := apart{world: w, api: w.Sup}
	a.follows()
	ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer cancel()
	if err := w.Sup.WaitFor(ctx, at); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("nobody runs, but who waited got %v", err)
	}
}

func TestAProcessApartIsToldOfAStoppedLine(t *testing.T) {
	t.Parallel()
	a := setupApart(t, setsNothingAside)
	a.follows()
	stream := domain.AccountStream("acc")
	a.Log.Record(stream, modeltest.Issued(1))
	poison := a.Log.Record(stream, modeltest.Issued(1))
	var stop *consumer.StoppedError
	if err := a.api.WaitFor(a.Ctx(), poison); !errors.As(err, &stop) || stop.Name != "access" {
		t.Errorf("got %v", err)
	}
}
