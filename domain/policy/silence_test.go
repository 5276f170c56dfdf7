package policy_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/google/uuid"

	"humanqa/domain"
	"humanqa/domain/job"
	"humanqa/domain/policy"
)

// The start of a session is a sign of life in the job's state: a timer that was
// set before would find the claimant heard of, and settle for good.
func TestASessionsStartSetsTheSilenceOfItsSlots(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ started, written, due time.Time }{
		"written at once":           {noon, noon, noon.Add(6 * time.Minute)},
		"written after a crash":     {noon, noon.Add(time.Minute), noon.Add(7 * time.Minute)},
		"by a clock that is behind": {noon, noon.Add(-time.Second), noon.Add(6 * time.Minute)},
	} {
		t.Run(name, func(t *testing.T) {
			r := domain.Recorded{
				ID: uuid.New(), Stream: "job-j", Type: "job.slot_started", Event: &job.SlotStarted{At: c.started},
				Meta: domain.Metadata{AccountID: "acc", Time: c.written},
			}
			if got := (policy.Silence{}).React(r); !reflect.DeepEqual(got, set("silent_claim", "j", c.due)) {
				t.Errorf("got %+v, want a timer at %v", got, c.due)
			}
		})
	}
	handled := false
	for _, eventType := range (policy.Silence{}).Handles() {
		handled = handled || eventType == "job.slot_started"
	}
	if !handled {
		t.Error("the policy is not told of a slot's start")
	}
}
