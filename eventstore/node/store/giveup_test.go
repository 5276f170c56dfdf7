package store

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/sirupsen/logrus"

	"humanqa/internal/testing/eventually"
	"humanqa/internal/testing/must"
	"humanqa/internal/testing/pgtest"
)

func quiet() logrus.FieldLogger {
	log := logrus.New()
	log.SetOutput(io.Discard)
	return log
}

func appendTo(ctx context.Context, stream string) *Write {
	w := NewWrite(ctx, OpAppend, stream, ExpectAny)
	w.Propose(Proposed{ID: uuid.New(), Type: "t"})
	return w
}

func TestAWriteThatWaitsForAGroupInFlightIsNotWrittenOnceItsClientHasGivenUp(t *testing.T) {
	t.Parallel()
	dsn := pgtest.NewDSN(t)
	db := pgtest.NewDB(t, dsn)
	s, err := Open(t.Context(), dsn, "", MinConnections, quiet(), prometheus.NewRegistry())
	must.NoError(t, err)
	t.Cleanup(s.Close)
	hold, err := db.BeginTxx(t.Context(), nil)
	must.NoError(t, err)
	// A row that is not committed, where the group's first event wants to stand.
	_, err = hold.ExecContext(t.Context(), `INSERT INTO eventlog.events VALUES (1, 0, 0, gen_random_uuid(), false, 'held', 'x', '', '')`)
	must.NoError(t, err)

	inFlight := appendTo(t.Context(), "s")
	must.NoError(t, s.Enqueue(inFlight))
	eventually.True(t, "the group is in flight", func() bool {
		var waits int
		must.NoError(t, db.GetContext(t.Context(), &waits, `SELECT count(*) FROM pg_stat_activity
			WHERE datname = current_database() AND wait_event = 'transactionid'`))
		return waits == 1
	})
	impatient, giveUp := context.WithCancel(t.Context())
	defer giveUp()
	before, given, behind := appendTo(t.Context(), "s"), appendTo(impatient, "s"), appendTo(t.Context(), "s")
	for _, w := range []*Write{before, given, behind} {
		must.NoError(t, s.Enqueue(w))
		eventually.True(t, "the write is taken off the queue", func() bool { return len(s.writer.queue) == 0 })
	}
	giveUp()
	must.NoError(t, hold.Rollback())
	for i, w := range []*Write{inFlight, before, behind} {
		out, err := s.Await(w)
		if err != nil || out.Kind != Written || out.Revision != int64(i) || out.Position != int64(i+1) {
			t.Errorf("write %d: got %+v, %v", i, out, err)
		}
	}
	if out := <-given.done; !errors.Is(out.err, context.Canceled) {
		t.Errorf("the write that was given up: got %+v", out)
	}
	var written int
	must.NoError(t, db.GetContext(t.Context(), &written, `SELECT count(*) FROM eventlog.events WHERE stream = 's'`))
	if written != 3 {
		t.Errorf("%d events are written, want 3", written)
	}
}

func TestAReadEndsWhenPostgresIsSilent(t *testing.T) {
	t.Parallel()
	dsn := pgtest.NewDSN(t)
	db := pgtest.NewDB(t, dsn)
	s, err := Open(t.Context(), dsn, "", MinConnections, quiet(), prometheus.NewRegistry())
	must.NoError(t, err)
	t.Cleanup(s.Close)
	hold, err := db.BeginTxx(t.Context(), nil)
	must.NoError(t, err)
	_, err = hold.ExecContext(t.Context(), `LOCK TABLE eventlog.events IN ACCESS EXCLUSIVE MODE`)
	must.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), eventually.Patience)
	defer cancel()
	if _, err := s.ReadAll(ctx, false, 0, 1, 1); err == nil || ctx.Err() != nil {
		t.Errorf("got %v, and the context ended with %v", err, ctx.Err())
	}
	must.NoError(t, hold.Rollback())
}

func TestAWriteThatWasAnsweredIsNotLostWhenTheStoreCloses(t *testing.T) {
	t.Parallel()
	s := &Store{writer: &writer{done: make(chan struct{})}}
	close(s.writer.done)
	for range 64 { // a select would take either
		w := appendTo(t.Context(), "s")
		w.done <- Outcome{Kind: Written, Position: 1}
		if out, err := s.Await(w); err != nil || out.Position != 1 {
			t.Fatalf("got %+v, %v", out, err)
		}
	}
}

func TestAWriteThatWasAnsweredIsToldThoughItsContextHasEnded(t *testing.T) {
	t.Parallel()
	s := &Store{writer: &writer{done: make(chan struct{})}}
	ended, end := context.WithCancel(t.Context())
	end()
	for range 64 { // a select would take either
		w := appendTo(ended, "s")
		w.done <- Outcome{Kind: failed, err: errUnsent}
		if _, err := s.Await(w); !errors.Is(err, errUnsent) {
			t.Fatalf("got %v", err)
		}
	}
}

func TestWhatWasNotSentIsToldAsNotWritten(t *testing.T) {
	t.Parallel()
	w := &writer{queue: make(chan *Write, 1), stop: make(chan struct{}), refusal: ErrUnavailable}
	waiting := appendTo(t.Context(), "s")
	w.queue <- waiting
	w.refuseFor(time.Millisecond)
	var refused *RefusedError
	if out := <-waiting.done; !errors.As(out.err, &refused) || refused.RetryAfter <= 0 {
		t.Errorf("got %v", out.err)
	}
}
