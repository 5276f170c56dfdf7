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

// The example counts, and like every read model it equals a fold made anew.
func TestTheExampleCountsVerdictsByTheHour(t *testing.T) {
	t.Parallel()
	w := modeltest.New(t, example.Hours)
	w.Run(w.Sup)
	w.Log.Record(domain.JobStream("j"), modeltest.Created("acc"), modeltest.Claimed("ann"),
		&job.ItemChecked{ItemID: "i1", Status: job.ItemPass}, &job.ItemChecked{ItemID: "i1", Status: job.ItemFail}, &job.ItemChecked{ItemID: "i2", Status: job.ItemFail})
	w.Reach(w.Sup)
	for status, want := range map[job.ItemStatus]int{job.ItemPass: 1, job.ItemFail: 2, job.ItemSkip: 0} {
		hours, err := example.NewReads(w.DB).Verdicts(w.Ctx(), status)
		must.NoError(t, err)
		sum := 0
		for _, n := range hours {
			sum += n
		}
		if sum != want {
			t.Errorf("%s: %v, want %d", status, hours, want)
		}
	}
	w.Sound(w.Sup, "hours")
}
