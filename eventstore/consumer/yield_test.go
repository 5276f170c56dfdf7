package consumer_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"humanqa/domain"
	"humanqa/domain/job"
	"humanqa/eventstore"
	"humanqa/eventstore/consumer"
	"humanqa/internal/testing/logtest"
	"humanqa/internal/testing/modeltest"
	"humanqa/internal/testing/must"
	"humanqa/projections/events"
	"humanqa/projections/jobs"
)

// older is the log as an older binary reads it: the event at a place has a version of its
// type that it does not know.
type older struct {
	*logtest.Memory
	at domain.Position
}

func (o older) cut(page eventstore.Page, err error) (eventstore.Page, error) {
	for i, e := range page.Events {
		switch {
		case e.Position != o.at:
		case i > 0:
			return eventstore.Page{Events: page.Events[:i], Next: page.Events[i-1].Position}, nil
		default:
			e.Event, e.Meta = nil, domain.Metadata{}
			return eventstore.Page{}, &eventstore.DecodeError{
				Recorded: e, Version: 2, Err: fmt.Errorf("schema version 2: %w", domain.ErrNewer),
			}
		}
	}
	return page, err
}

func (o older) Next(ctx context.Context, after eventstore.Checkpoint, n int, types map[string]bool) (eventstore.Page, error) {
	return o.cut(o.Memory.Next(ctx, after, n, types))
}

func (o older) Load(ctx context.Context, stream string, from uint64, each func(domain.Recorded) error) error {
	return o.Memory.Load(ctx, stream, from, func(r domain.Recorded) error {
		if r.Position == o.at {
			return fmt.Errorf("load %s: %w", stream, domain.ErrNewer)
		}
		return each(r)
	})
}

// The feed's line would stop in an older process at an event that a newer one has written.
// It leaves the line to that one, with no failure for an operator to resume; a read model
// that needs no order goes on without the stream.
func TestALineThatNeedsANewerBinaryIsLeftToIt(t *testing.T) {
	t.Parallel()
	w := setup(t, events.Projector{}, jobs.Projector)
	w.Log.Record(domain.JobStream("a"), modeltest.Created("acc"))
	newer := w.Log.Record(domain.JobStream("a"), &job.Cancelled{})
	w.Log.Record(domain.JobStream("b"), modeltest.Created("acc"))
	old := w.Service(older{w.Log, newer}, events.Projector{}, jobs.Projector)
	w.Sup = old // of whom Status tells
	w.Run(old)
	w.Eventually("the line is left to a newer version", func() bool { return w.Status("events").Newer == newer })
	s := w.Status("events")
	if s.Failure != nil || s.Problem() != "" || !strings.Contains(strings.Join(s.Notes(), "\n"), "newer version") {
		t.Errorf("got %+v, %q, notes %q", s, s.Problem(), s.Notes())
	}
	w.Eventually("the jobs go on without the stream", func() bool {
		return w.Count("SELECT count(*) FROM readmodel.jobs WHERE id = 'b'") == 1 && len(w.Status("jobs").SetAside) == 1
	})
	if n := w.Count("SELECT count(*) FROM readmodel.account_events"); n != 1 {
		t.Errorf("the feed has %d events before the newer version runs", n)
	}

	w.Run(w.Service(w.Log, events.Projector{}, jobs.Projector))
	w.Eventually("the newer version goes on", func() bool { return w.Count("SELECT count(*) FROM readmodel.account_events") == 3 })
	w.Eventually("the older one has nothing to tell", func() bool { return len(w.Status("events").Notes()) == 0 })
}

// Rows of a newer version are no problem of an older process that reads them.
func TestAnOlderProcessSaysThatANewerOneKeepsTheRows(t *testing.T) {
	t.Parallel()
	w := setup(t, events.Projector{})
	w.Log.Record(domain.JobStream("a"), modeltest.Created("acc"))
	w.Run(w.Sup)
	w.Reach(w.Sup)
	w.Exec("UPDATE projection_checkpoints SET version = version + 1")
	s := w.Status("events")
	if s.Problem() != "" || !strings.Contains(strings.Join(s.Notes(), "\n"), fmt.Sprintf("this one knows version %d", s.Code)) {
		t.Errorf("%q, %q", s.Problem(), s.Notes())
	}
}

// stranger is the log as an older binary reads it: the events of a stream have a type that
// it does not know.
type stranger struct {
	*logtest.Memory
	of string
}

func (s stranger) hide(page eventstore.Page, err error) (eventstore.Page, error) {
	page.Events = slices.Clone(page.Events)
	for i := range page.Events {
		page.Events[i] = s.hidden(page.Events[i])
	}
	return page, err
}

func (s stranger) hidden(e domain.Recorded) domain.Recorded {
	if e.Stream == s.of {
		e.Event, e.Meta, e.Type = nil, domain.Metadata{}, "job.called_off"
	}
	return e
}

func (s stranger) Next(ctx context.Context, after eventstore.Checkpoint, n int, types map[string]bool) (eventstore.Page, error) {
	return s.hide(s.Memory.Next(ctx, after, n, types))
}

func (s stranger) Load(ctx context.Context, stream string, from uint64, each func(domain.Recorded) error) error {
	return s.Memory.Load(ctx, stream, from, func(r domain.Recorded) error { return each(s.hidden(r)) })
}

// An older process never passes over an event that a newer one announces: what was sent
// cannot be built anew. The stream waits for the newer one, and the others go on.
func TestAnEventOfAnUnknownTypeWaitsForTheBinaryThatAnnouncesIt(t *testing.T) {
	t.Parallel()
	announce := func(name string) func(*grouped) consumer.Consumer {
		return func(c *grouped) consumer.Consumer { return &announcer{name: name, c: c} }
	}
	c := newGrouped(t, asTheyAre, announce("announcer"), announce("crier"))
	c.Exec("CREATE TABLE announced (who text, stream text, PRIMARY KEY (who, stream))")
	told := func() (streams []string) {
		must.NoError(t, c.DB.SelectContext(c.Ctx(), &streams, "SELECT stream FROM announced WHERE who = 'announcer' ORDER BY stream"))
		return streams
	}
	begin := func(id string) domain.Position { return c.Log.Record(domain.JobStream(id), modeltest.Created("acc")) }
	old := c.Service(stranger{c.Log, domain.JobStream("b")}, announce("announcer")(c), announce("crier")(c))
	old.ChangeLimits(func(l *consumer.Limits) { l.Again = 10 * time.Millisecond })
	c.Log.Record("weather-1", logtest.Unknown("weather.changed")) // of no family that is announced
	begin("a")
	stop := c.Run(old)
	c.Eventually("they share a transaction", func() bool {
		c.reach(begin(uuid.NewString()), "announcer", "crier")
		return c.together("announcer", "crier")
	})
	begin("b")
	c.reach(begin("c"), "announcer", "crier")
	c.Eventually("it was tried again", func() bool {
		aside := c.Status("announcer").SetAside
		return len(aside) == 1 && aside[0].Stream == "job-b" && aside[0].Attempts > 2
	})
	stop()
	if got := told(); !slices.Contains(got, "job-a") || slices.Contains(got, "job-b") || !slices.Contains(got, "job-c") {
		t.Errorf("the older one has told %v", got)
	}
	c.Run(c.Sup)
	c.Eventually("the newer one tells", func() bool { return slices.Contains(told(), "job-b") })
}
