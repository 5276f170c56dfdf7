package consumer_test

import (
	"errors"
	"testing"

	"humanqa/domain"
	"humanqa/domain/account"
	"humanqa/eventstore/consumer"
	"humanqa/eventstore/generation"
	"humanqa/internal/testing/modeltest"
	"humanqa/internal/testing/must"
)

// poisoned is a world whose read model access has stopped at one event: it may set nothing
// aside.
type poisoned struct {
	*world
	at domain.Position
}

func setupPoisoned(t *testing.T) poisoned {
	t.Helper()
	w := setup(t)
	w.Sup.ChangeLimits(setsNothingAside)
	stream := domain.AccountStream("acc")
	w.Log.Record(stream, &account.Created{Name: "shop"}, modeltest.Issued(1))
	p := poisoned{w, w.Log.Record(stream, modeltest.Issued(1))} // the same hash once more
	w.Log.Record(stream, modeltest.Issued(2))
	w.Run(w.Sup)
	p.stops(1)
	return p
}

func setsNothingAside(l *consumer.Limits) { l.Aside = 0 }

func (p poisoned) stops(attempts int) {
	p.T.Helper()
	p.Eventually("access stops", func() bool {
		f := p.Status("access").Failure
		return f != nil && f.Attempts == attempts
	})
}

func (p poisoned) knows(hash string) bool {
	p.T.Helper()
	_, found, err := p.reads.Access.Key(p.Ctx(), hash)
	must.NoError(p.T, err)
	return found
}

func (p poisoned) skip() {
	p.T.Helper()
	must.NoError(p.T, generation.Skip(p.Ctx(), p.DB, "access", p.at, "ops", "issued twice"))
	p.Reach(p.Sup)
}

func TestAPoisonEventStopsTheLineBehindWhatPrecedesIt(t *testing.T) {
	t.Parallel()
	p := setupPoisoned(t)
	if !p.knows("hash1") || p.knows("hash2") {
		t.Errorf("applied: %v, %v, want what precedes the event and nothing that follows", p.knows("hash1"), p.knows("hash2"))
	}
}

func TestAStoppedLineSaysWhereAndWhy(t *testing.T) {
	t.Parallel()
	p := setupPoisoned(t)
	s := p.Status("access")
	if f := s.Failure; f.Category != generation.CategoryConstraint || f.Position != p.at || f.Detail == "" {
		t.Errorf("got %+v", f)
	}
	if problem := s.Problem(); problem != "projection access stopped at 3/3 (constraint)" {
		t.Errorf("problem: %q", problem)
	}
}

func TestWhoWaitsForAStoppedLineIsToldAtOnce(t *testing.T) {
	t.Parallel()
	p := setupPoisoned(t)
	var stop *consumer.StoppedError
	if err := p.Sup.WaitFor(p.Ctx(), p.Log.Head()); !errors.As(err, &stop) || stop.Name != "access" {
		t.Errorf("got %v", err)
	}
	if err := p.Sup.WaitFor(p.Ctx(), domain.Position{Commit: 2, Prepare: 2}); err != nil {
		t.Errorf("what was applied can still be waited for: %v", err)
	}
}

func TestARetryOfAStoppedLineCounts(t *testing.T) {
	t.Parallel()
	p := setupPoisoned(t)
	must.NoError(t, generation.Retry(p.Ctx(), p.DB, "access"))
	p.stops(2)
	if err := generation.Retry(p.Ctx(), p.DB, "jobs"); err == nil {
		t.Error("a projection that runs was retried")
	}
}

func TestASkipNamesTheEventAndTheReason(t *testing.T) {
	t.Parallel()
	p := setupPoisoned(t)
	if err := generation.Skip(p.Ctx(), p.DB, "access", domain.Position{Commit: 2, Prepare: 2}, "ops", "a guess"); err == nil {
		t.Error("an event was skipped that stopped nothing")
	}
	if err := generation.Skip(p.Ctx(), p.DB, "access", p.at, "ops", ""); err == nil {
		t.Error("an event was skipped for no reason")
	}
	p.skip()
	skips, err := generation.Skips(p.Ctx(), p.DB, "access")
	if err != nil || len(skips) != 1 {
		t.Fatalf("skips: %+v, %v", skips, err)
	}
	if s := skips[0]; s.Position != p.at || s.Who != "ops" || s.Why != "issued twice" || s.Detail == "" || s.At.IsZero() {
		t.Errorf("got %+v", s)
	}
}

func TestTheLineGoesOnBehindASkip(t *testing.T) {
	t.Parallel()
	p := setupPoisoned(t)
	p.skip()
	if !p.knows("hash2") {
		t.Error("what follows the event was not applied")
	}
	if s := p.Status("access"); s.Skipped != 1 || s.Failure != nil || s.State != generation.Live {
		t.Errorf("got %+v", s)
	}
	p.Sound(p.Sup, "access")
	if err := p.Sup.RebuildAll(p.Ctx(), []string{"access"}, nil); err != nil {
		t.Errorf("a rebuild passes over what was skipped: %v", err)
	}
}
