package consumer_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"humanqa/eventstore/consumer"
	"humanqa/eventstore/generation"
	"humanqa/internal/testing/modeltest"
	"humanqa/internal/testing/must"
	"humanqa/projections/access"
	"humanqa/projections/loops"
)

// A read model that a release, or its owner, gave up keeps nothing from serving, and can
// be removed once no process runs it.
func TestAReadModelThatNoBinaryRunsIsANoteAndCanBeDropped(t *testing.T) {
	t.Parallel()
	w := setup(t, loops.Projector, access.Projector)
	w.Sup.ChangeLimits(func(l *consumer.Limits) { l.Lease = time.Hour }) // it runs, however slow the machine is
	modeltest.Lives(w.Log, "a", 3)
	stop := w.Run(w.Sup)
	w.Reach(w.Sup)
	next := w.Service(w.Log, access.Projector)
	of := func(name string) (found *consumer.Status) {
		list, err := next.Status(w.Ctx())
		must.NoError(t, err)
		for i, s := range list {
			if s.Name == name {
				found = &list[i]
			}
		}
		return found
	}
	s := of("loops")
	s.Stalled, s.Failure = time.Hour, &generation.Failure{Category: generation.CategoryData}
	if notes := s.Notes(); s.Problem() != "" || len(notes) != 1 || !strings.Contains(notes[0], "`humanqa projections drop loops` removes it") {
		t.Errorf("problem %q, notes %q", s.Problem(), notes)
	}

	if err := generation.Drop(w.Ctx(), w.DB, "loops"); !errors.Is(err, generation.ErrRuns) {
		t.Errorf("it runs: %v", err)
	}
	stop()
	w.Exec("CREATE VIEW mine AS SELECT count(*) FROM readmodel.loop_sessions")
	if err := generation.Drop(w.Ctx(), w.DB, "loops"); err == nil || !strings.Contains(err.Error(), "view mine depends on view readmodel.loop_sessions") {
		t.Errorf("a view stands on it: %v", err)
	}
	w.Exec("DROP VIEW mine")
	w.Exec("INSERT INTO projection_skips (name, commit_position, prepare_position, detail, who, why) VALUES ('loops', 1, 1, '', 'x', 'x')")
	must.NoError(t, generation.RequestRebuild(w.Ctx(), w.DB, "loops"))
	must.NoError(t, generation.Drop(w.Ctx(), w.DB, "loops"))
	if s := of("loops"); s != nil {
		t.Errorf("it is there: %+v", s)
	}
	if n := w.Count(`SELECT (SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'loops%') + (SELECT count(*) FROM pg_views WHERE schemaname = 'readmodel' AND viewname LIKE 'loop%')
		+ (SELECT count(*) FROM projection_skips) + (SELECT count(*) FROM projection_rebuilds)`); n != 0 {
		t.Errorf("%d things are left of it", n)
	}
	if err := generation.Drop(w.Ctx(), w.DB, "loops"); err == nil {
		t.Error("nothing was dropped")
	}
	if s := of("access"); s == nil || !s.Serving || s.Foreign {
		t.Errorf("the others: %+v", s)
	}
}
