package policy_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/google/uuid"

	"humanqa/domain"
	"humanqa/domain/job"
)

// The start of a session is a sign of life in the job's state: a timer that was
// set before would find the claimant heard of, and settle for good.
func TestASessionsStartSetsTheSilenceOfItsSlots(t *testing.T) {
	t.Parallel()
	r := domain.Recorded{
		ID: uuid.New(), Stream: "job-j", Type: "job.slot_started", Event: &job.SlotStarted{At: noon},
		// After a crash it is written late, and never does a clock that differs count.
		Meta: domain.Metadata{AccountID: "acc", Time: noon.Add(time.Minute)},
	}
	if got, want := rule("silent_claim").React(r), set("silent_claim", "j", noon.Add(job.SilentAfter)); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	handled := false
	for _, eventType := range rule("silent_claim").Handles {
		handled = handled || eventType == "job.slot_started"
	}
	if !handled {
		t.Error("the policy is not told of a slot's start")
	}
}
