package job_test

import (
	"testing"

	"humanqa/domain"
	"humanqa/domain/job"
)

func writeList(items ...job.Item) decide {
	return func(s job.State) ([]domain.Event, error) {
		return job.DecideWriteChecklist(s, items, "rules", minute(2))
	}
}

func written() *job.ChecklistWritten {
	return &job.ChecklistWritten{Items: submission().Items, GeneratedBy: "rules", At: minute(2)}
}

func start(s job.State) ([]domain.Event, error) {
	return job.DecideStartSlot(s, minute(40), minute(10))
}

func TestAChecklistThatComesLater(t *testing.T) {
	t.Parallel()
	t.Run("opens the job to checkers", func(t *testing.T) {
		regressions := func(c *job.Created) { c.Regressions = []job.Item{{Key: "pay", Origin: job.OpenFailure}} }
		g := given(t, created(noList, regressions))
		e := g.When(claimAs("ann")).Conflict("the checklist is being written")
		if e.Hint != "try again in a moment" {
			t.Errorf("the hint is %q", e.Hint)
		}
		if s := g.State(); !s.NeedsChecklist() || len(s.Regressions) != 1 {
			t.Errorf("the job is %+v", s)
		}
		g = g.When(writeList(submission().Items...)).Events(written())
		if s := g.State(); s.NeedsChecklist() || len(s.Items) != 2 || s.GeneratedBy != "rules" || len(s.Regressions) != 0 {
			t.Errorf("the job is %+v", s)
		}
		g.When(claimAs("ann")).Events(claimedBy("ann", 1))
	})
	t.Run("is not written twice, nor onto a list that was submitted", func(t *testing.T) {
		given(t, created(noList), written()).When(writeList(job.Item{ID: "i9"})).Nothing()
		given(t, created()).When(writeList(job.Item{ID: "i9"})).Nothing()
	})
	t.Run("is not needed after the end, nor by an AI review", func(t *testing.T) {
		given(t, created(noList), cancelled()).When(writeList(submission().Items...)).Nothing()
		given(t, created(noList, aiReview)).When(writeList(submission().Items...)).Nothing()
	})
	t.Run("is never empty", func(t *testing.T) { given(t, created(noList)).When(writeList()).Invalid("items") })
	t.Run("needs a job", func(t *testing.T) { given(t).When(writeList(submission().Items...)).NotFound("job") })
}

func TestASlot(t *testing.T) {
	t.Parallel()
	t.Run("takes no work before its session starts", func(t *testing.T) {
		for name, d := range map[string]decide{"check": check(), "finding": finding(), "complete": complete} {
			e := given(t, created(slot), claimedBy("ann", 1)).When(d).Conflict("the session has not started")
			if e.Hint == "" {
				t.Errorf("%s: the refusal names no next step", name)
			}
		}
		given(t, created(slot), claimedBy("ann", 1)).When(release("ann", 1)).Events(released(1))
	})
	t.Run("starts its clock with its session", func(t *testing.T) {
		g := given(t, created(slot), claimedBy("ann", 1))
		if s := g.State(); !s.Waiting() || !s.DueAt.Equal(minute(30)) {
			t.Errorf("the job is %+v", s)
		}
		g = g.When(start).Events(started())
		if s := g.State(); s.Waiting() || !s.DueAt.Equal(minute(40)) || !s.StartedAt.Equal(minute(10)) || s.Status != job.StatusClaimed {
			t.Errorf("the job is %+v", s)
		}
		after := func(c *job.Check) { c.At = minute(11) }
		g.When(check(after)).Events(&job.ItemChecked{ItemID: "i1", Status: job.ItemPass, At: minute(11)})
	})
	t.Run("can be claimed after the start, until the session's end", func(t *testing.T) {
		given(t, created(slot), started()).
			When(claimAs("ann")).
			Events(&job.Claimed{CheckerID: "ann", Token: 1, DueAt: minute(40), At: minute(5)})
	})
	t.Run("that has ended is not started, a plain job neither", func(t *testing.T) {
		given(t, created(slot), &job.Cancelled{Reason: job.CancelSessionExpired}).When(start).Nothing()
		given(t, created(slot), failed(job.FailOperator, minute(9))).When(start).Nothing()
		given(t, created()).When(start).Conflict("the job is no slot of a session")
		given(t).When(start).NotFound("job")
	})
}

func TestAnEndNamesItsSessionAndItsLoop(t *testing.T) {
	t.Parallel()
	g := given(t, created(slot, looped), claimedBy("ann", 1), started(), checked("i1", job.ItemPass), checked("i2", job.ItemPass))
	g = g.When(complete).Happens(&job.Completed{
		ReportID: "r1", OverallStatus: job.OverallPass, PassCount: 2, Summary: "fine", RecordingURL: "https://v.example/1",
		Items: []job.ReportItem{
			{Item: submission().Items[0], Status: job.ItemPass},
			{Item: submission().Items[1], Status: job.ItemPass},
		},
		SessionID: "s1", LoopID: "l1", At: minute(20),
	})
	g.When(complete).Nothing()
	given(t, created(looped)).When(cancel(job.CancelClient)).
		Events(&job.Cancelled{Reason: job.CancelClient, Refund: 5, LoopID: "l1", At: minute(3)})
}
