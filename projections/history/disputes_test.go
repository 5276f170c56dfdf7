package history

import (
	"fmt"
	"slices"
	"testing"

	"humanqa/domain"
	"humanqa/domain/job"
	"humanqa/domain/project"
	"humanqa/internal/testing/modeltest"
	"humanqa/internal/testing/must"
)

// An overturned verdict leaves the project as if the test had skipped the item: for every three
// verdicts on an item, and whichever of them falls, also where the decision comes later than other
// tests.
func TestAnOverturnedVerdictIsAsIfTheItemHadBeenSkipped(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.Run(w.Sup)
	verdicts := []string{"pass", "fail", "skip"}
	tests := func(projectID string, results []string) {
		w.Log.Record(domain.ProjectStream(projectID), &project.Created{AccountID: "acc", Name: "shop", HookHash: projectID, At: modeltest.Noon})
		for n, result := range results {
			id := fmt.Sprint(projectID, "-", n)
			w.Log.Record(domain.JobStream(id), modeltest.Created("acc", func(e *job.Created) { e.ProjectID = projectID }),
				modeltest.Claimed("ann"), modeltest.Results(id, 10*n, "a="+result, "b=pass"))
		}
	}
	type pair struct{ overturned, skipped string }
	var pairs []pair
	for n := range 27 {
		results := []string{verdicts[n/9], verdicts[n/3%3], verdicts[n%3]}
		for fallen := range results {
			p := pair{fmt.Sprintf("o%d-%d", n, fallen), fmt.Sprintf("s%d-%d", n, fallen)}
			pairs = append(pairs, p)
			tests(p.overturned, results)
			id := fmt.Sprint(p.overturned, "-", fallen)
			modeltest.Rule(w.Log, id, id+"-0", job.Overturned)
			skipped := slices.Clone(results)
			skipped[fallen] = "skip"
			tests(p.skipped, skipped)
		}
	}
	w.Reach(w.Sup)
	for _, p := range pairs {
		shown := func(id string) string {
			h, err := w.reads.Project(w.Ctx(), "acc", id)
			must.NoError(t, err)
			open, err := w.reads.OpenFailures(w.Ctx(), "acc", id, 20)
			must.NoError(t, err)
			h.ProjectID = ""
			for i := range h.Trend {
				h.Trend[i].JobID = h.Trend[i].JobID[len(id):]
			}
			for i := range h.LatestFailures {
				h.LatestFailures[i].JobID, h.LatestFailures[i].ID = h.LatestFailures[i].JobID[len(id):], ""
			}
			text := fmt.Sprintf("%+v", h)
			for _, f := range open {
				f.JobID, f.ID = f.JobID[len(id):], ""
				last := "never"
				if f.LastPassedAt != nil {
					last = f.LastPassedAt.UTC().String()
				}
				f.LastPassedAt = nil
				text += fmt.Sprintf("\nopen %+v, since %s, last %s, passed %s", f.FailedItem, f.FirstFailedAt.UTC(), f.FailedAt.UTC(), last)
			}
			again, err := w.reads.PassedAgain(w.Ctx(), "acc", id, []string{"a"}, modeltest.Noon)
			must.NoError(t, err)
			weeks, err := w.reads.Weeks(w.Ctx(), "acc", []string{id}, Monday(modeltest.Noon))
			must.NoError(t, err)
			return text + fmt.Sprintf("\nagain %d, of %d tests %d passed", len(again), weeks[0].Tests, weeks[0].Passed)
		}
		if got, want := shown(p.overturned), shown(p.skipped); got != want {
			t.Errorf("%s:\n%s\nwant, as %s:\n%s", p.overturned, got, p.skipped, want)
		}
	}
	w.Sound(w.Sup, "history")
}
