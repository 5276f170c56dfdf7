package logtest_test

import (
	"context"
	"errors"
	"os"
	"slices"
	"testing"

	"humanqa/domain"
	"humanqa/domain/job"
	"humanqa/eventstore"
	"humanqa/internal/testing/logtest"
	"humanqa/internal/testing/pgtest"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

func TestTheLogInMemoryKeepsTheContract(t *testing.T) {
	t.Parallel()
	logtest.Test(t, logtest.New())
}

// follower is what of a feed is no domain.Log.
type follower interface {
	Next(ctx context.Context, after eventstore.Checkpoint, maxEvents int, types map[string]bool) (eventstore.Page, error)
	Head() domain.Position
}

func TestTheRealLogKeepsTheContract(t *testing.T) {
	t.Parallel()
	log := logtest.Start(t, pgtest.NewDSN(t))
	logtest.Test(t, struct {
		domain.Log
		follower
	}{log.Client, log.Feed})
}

func TestAMemoryFailsAsItIsTold(t *testing.T) {
	t.Parallel()
	cut := errors.New("cut")
	write := func(log *logtest.Memory, stream string) error {
		_, err := log.Append(t.Context(), stream, domain.NoStream, []domain.NewEvent{
			{ID: domain.CommandIDFor(stream), Event: &job.ItemChecked{ItemID: "i1"}},
		})
		return err
	}
	for name, c := range map[string]struct {
		which     logtest.AppendFilter
		persisted bool
		fail      []string // of a-1, a-2, b-1, each once
		kept      int
	}{
		"by the stream":            {which: logtest.To("a-"), fail: []string{"a-1", "a-2"}, kept: 1},
		"by the stream, persisted": {which: logtest.To("a-"), persisted: true, fail: []string{"a-1", "a-2"}, kept: 3},
		"by the type":              {which: logtest.Of("job.item_checked"), fail: []string{"a-1", "a-2", "b-1"}},
		"of another type":          {which: logtest.Of("job.created"), kept: 3},
		"the second":               {which: logtest.Nth(2), fail: []string{"a-2"}, kept: 2},
		"the first":                {which: logtest.Once(logtest.To("")), fail: []string{"a-1"}, kept: 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			log := logtest.New()
			log.Fail(c.which, c.persisted, cut)
			var failed []string
			for _, stream := range []string{"a-1", "a-2", "b-1"} {
				if err := write(log, stream); errors.Is(err, cut) {
					failed = append(failed, stream)
				} else if err != nil {
					t.Error(err)
				}
			}
			if !slices.Equal(failed, c.fail) || len(log.All()) != c.kept {
				t.Errorf("%v failed and %d events are kept, want %v and %d", failed, len(log.All()), c.fail, c.kept)
			}
			log.Heal()
			if err := write(log, "c-1"); err != nil {
				t.Errorf("healed: %v", err)
			}
		})
	}
}

func TestWhatAMemoryHoldsSpoilsAndLoses(t *testing.T) {
	t.Parallel()
	log := logtest.New()
	log.Record("job-1", &job.ItemChecked{ItemID: "i1"}, logtest.Unknown("job.from_the_future"), &job.ItemChecked{ItemID: "i2"})
	start := eventstore.Checkpoint{Start: true}
	page := func(after eventstore.Checkpoint) (eventstore.Page, error) {
		return log.Next(t.Context(), after, 10, nil)
	}

	log.Hold(2)
	if p, err := page(start); err != nil || len(p.Events) != 2 || p.Live || p.Events[1].Event != nil || p.Events[1].Type != "job.from_the_future" {
		t.Errorf("held behind 2: %+v, %v", p, err)
	}
	log.Hold(0)
	log.Spoil(2, true)
	if p, err := page(start); err != nil || len(p.Events) != 1 {
		t.Errorf("before what is spoiled: %+v, %v", p, err)
	}
	var spoiled *eventstore.DecodeError
	if _, err := page(eventstore.At(domain.Position{Commit: 1, Prepare: 1})); !errors.As(err, &spoiled) || spoiled.Position.Commit != 2 {
		t.Errorf("what is spoiled: %v", err)
	}
	log.Spoil(2, false)
	log.Lose(1)
	if p, err := page(start); err != nil || len(p.Events) != 2 || log.Head().Commit != 2 || len(log.Stream("job-1")) != 2 {
		t.Errorf("after the loss: %+v, %v", p, err)
	}
}
