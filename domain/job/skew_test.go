package job_test

import (
	"testing"
	"time"

	"humanqa/domain"
	"humanqa/domain/job"
)

// The timer of a claim's silence runs from the last event: one that a node
// whose clock is behind has written must not bring it forward, or it fires
// before the silence is long enough, finds nothing to do and settles.
func TestASignOfLifeIsNeverEarlierThanTheOneBefore(t *testing.T) {
	t.Parallel()
	behind := minute(20).Add(-time.Second)
	g := given(t, created(), claimedBy("ann", 1), beat(1, minute(20)))
	g.When(func(s job.State) ([]domain.Event, error) {
		return job.DecideCheckItem(s, job.Check{CheckerID: "ann", Token: 1, ItemID: "i1", Status: job.ItemPass, At: behind})
	}).Events(&job.ItemChecked{ItemID: "i1", Status: job.ItemPass, At: minute(20)})
	g.When(func(s job.State) ([]domain.Event, error) {
		return job.DecideAddFinding(s, job.Finding{
			CheckerID: "ann", Token: 1, Item: job.Item{ID: "f", Key: "k", Description: "d", Severity: job.Minor},
			Status: job.ItemFail, At: behind,
		})
	}).Events(&job.FindingAdded{
		Item: job.Item{ID: "f", Key: "k", Description: "d", Severity: job.Minor}, Status: job.ItemFail, At: minute(20),
	})
}

// Also the start of a session may be written late, or by such a node.
func TestASlotsStartIsNoEarlierSignOfLifeThanTheOneBefore(t *testing.T) {
	t.Parallel()
	given(t, created(slot), claimedBy("ann", 1), beat(1, minute(20))).
		When(func(s job.State) ([]domain.Event, error) { return job.DecideStartSlot(s, minute(40), minute(10)) }).
		Events(&job.SlotStarted{DueAt: minute(40), At: minute(20)})
}
