package example_test

import (
	"os"
	"testing"

	"humanqa/docs/example"
	"humanqa/domain"
	"humanqa/domain/job"
	"humanqa/internal/testing/modeltest"
	"humanqa/internal/testing/must"
	"humanqa/internal/testing/pgtest"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

// The example counts. Like every read model it equals a fold made anew, and its batches do
// not matter.
func TestTheExampleCountsVerdictsByTheHour(t *testing.T) {
	t.Parallel()
	w := modeltest.New(t, example.Hours)
	w.Run(w.Sup)
	w.Log.Record(domain.JobStream("j"), modeltest.Created("acc"), modeltest.Claimed("ann"),
		verdict("i1", job.ItemPass), verdict("i1", job.ItemFail), verdict("i2", job.ItemFail))
	w.Reach(w.Sup)
	for status, want := range map[job.ItemStatus]int{job.ItemPass: 1, job.ItemFail: 2, job.ItemSkip: 0} {
		hours, err := example.NewReads(w.DB).Verdicts(w.Ctx(), status)
		must.NoError(t, err)
		if at := modeltest.Noon.Hour(); hours[at] != want {
			t.Errorf("%s: %v, want %d at %d", status, hours, want, at)
		}
	}
	w.Sound(w.Sup, "hours")
	w.CutAnyhow(example.Hours)
}

func verdict(itemID string, status job.ItemStatus) *job.ItemChecked {
	return &job.ItemChecked{ItemID: itemID, Status: status, At: modeltest.Noon}
}
