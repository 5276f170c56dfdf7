package projections_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"humanqa/domain"
	"humanqa/domain/job"
	"humanqa/domain/loop"
	"humanqa/domain/project"
	"humanqa/eventstore/consumer"
	"humanqa/internal/testing/logtest"
	"humanqa/internal/testing/modeltest"
	"humanqa/internal/testing/must"
	"humanqa/projections"
	"humanqa/projections/events"
	"humanqa/projections/history"
	"humanqa/projections/jobs"
)

// Every read model is in it: its rows are those of the log, not of its batches.
func TestHowTheLogIsCutDoesNotMatter(t *testing.T) {
	t.Parallel()
	log := logtest.New()
	modeltest.Hours(log)
	modeltest.Everything(log)
	modeltest.Rest(log)
	modeltest.Refusals(log)
	for _, c := range projections.All() {
		p, ok := c.(consumer.Projector)
		if !ok {
			continue
		}
		t.Run(p.Name(), func(t *testing.T) {
			t.Parallel()
			w := modeltest.New(t)
			w.Log = log
			w.CutAnyhow(p)
		})
	}
}

func TestWhatWasFoldedLiveIsWhatARebuildMakes(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.Run(w.Sup)
	modeltest.Everything(w.Log)
	for _, p := range []consumer.Projector{jobs.Projector, history.Projector, events.Projector{}} {
		w.Eventually(p.Name()+" has seen everything", func() bool { return w.Status(p.Name()).Position == w.Log.Head() })
		live := w.Status(p.Name()).Schema
		was := indexesOf(w.World, live)
		must.NoError(t, w.Sup.RebuildAll(w.Ctx(), []string{p.Name()}, nil))
		rebuilt := w.Status(p.Name()).Schema
		w.Equal(p, live, rebuilt)
		if is := indexesOf(w.World, rebuilt); len(is) < len(p.Tables())/2 || !slices.Equal(is, was) {
			t.Errorf("%s has the indexes\n%s\nafter a rebuild, before it had\n%s", p.Name(), strings.Join(is, "\n"), strings.Join(was, "\n"))
		}
	}
}

// indexesOf are a generation's, without its name.
func indexesOf(w *modeltest.World, schema string) (indexes []string) {
	w.T.Helper()
	const query = `SELECT replace(indexdef, $1 || '.', '') FROM pg_indexes WHERE schemaname = $1 ORDER BY 1`
	must.NoError(w.T, w.DB.SelectContext(w.Ctx(), &indexes, query, schema))
	return indexes
}

// A submission that is slow to take its fixes along, and whose repeat is fast:
// the job has ended when the project writes down that it has them.
func TestFixesThatComeToAnEndedJobDoNotDependOnTheCut(t *testing.T) {
	t.Parallel()
	w := modeltest.New(t)
	w.Log.Record(domain.ProjectStream("p1"), &project.Created{AccountID: "acc", Name: "p1", HookHash: "h", At: modeltest.Noon}, modeltest.Prepared("x", "mail", "pay"))
	for i, end := range []domain.Event{&job.Cancelled{Refund: 5, At: modeltest.Noon}, modeltest.Completed("pass")} {
		id := fmt.Sprint("late", i)
		w.Log.Record(domain.JobStream(id), modeltest.Created("acc", func(e *job.Created) { e.ProjectID = "p1" }), end)
		w.Log.Record(domain.ProjectStream("p1"),
			&project.RegressionsAttached{JobIDs: []string{id}, Items: []string{fmt.Sprint("x", i)}, At: modeltest.Noon},
			&project.DeployReceived{Keys: []string{"commit:c1"}, JobID: id, At: modeltest.Noon},
			&project.DeployReceived{Keys: []string{"commit:c2"}, JobID: id, At: modeltest.Noon})
	}
	w.CutAnyhow(history.Projector)
}

// Its events are told of under the stream, which begins with the first session.
func TestALoopsStreamIsOneHoweverOftenItBeginsAnew(t *testing.T) {
	t.Parallel()
	w := modeltest.New(t)
	for _, id := range []string{"x", "y", "z"} {
		w.Log.Record(domain.LoopStream("l1"),
			&loop.Started{SessionID: id, AccountID: "acc", ProjectID: "p1", At: modeltest.Noon},
			&loop.Ended{SessionID: id, FinalStatus: loop.StatusOutOfCredits, Alert: true, At: modeltest.Noon})
	}
	w.CutAnyhow(events.Projector{})
	if n := w.Count(`SELECT COUNT(*) FROM cut1.account_events JOIN cut1.event_streams USING (stream)`); n != 3 {
		t.Errorf("%d of 3 events have a stream", n)
	}
}
