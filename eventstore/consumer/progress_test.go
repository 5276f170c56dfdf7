package consumer

import (
	"context"
	"testing"

	"humanqa/domain"
	"humanqa/eventstore"
	"humanqa/internal/testing/eventually"
)

// named is a projector of which only the name matters.
type named struct {
	Projector
	name string
}

func (n named) Name() string      { return n.name }
func (n named) Handles() []string { return nil }

// What a crash of Postgres took back is waited for once more.
func TestARunnerThatStartsBehindTakesPromisesBack(t *testing.T) {
	t.Parallel()
	position := func(n uint64) domain.Position { return domain.Position{Commit: n, Prepare: n} }
	a := newProgressTracker(nil, []Consumer{named{name: "jobs"}})
	a.addLocalRunner("jobs", eventstore.At(position(10)))
	a.removeLocalRunner("jobs")
	a.addLocalRunner("jobs", eventstore.At(position(5)))
	ctx, cancel := context.WithTimeout(context.Background(), eventually.Patience)
	defer cancel()
	waited := make(chan error, 1)
	w := a.registerWaiter(position(7), isPrompt)
	if w == nil {
		t.Fatal("position 7 is taken for granted")
	}
	go func() { waited <- a.waitFor(ctx, position(7)) }()
	a.noteProgress("jobs", eventstore.At(position(6)))
	select {
	case err := <-w.done:
		t.Fatalf("woken too early: %v", err)
	default:
	}
	a.noteProgress("jobs", eventstore.At(position(8)))
	if err := <-waited; err != nil {
		t.Error(err)
	}
	if err := <-w.done; err != nil {
		t.Error(err)
	}
}
