package job_test

import (
	"fmt"
	"testing"
	"time"

	"humanqa/domain"
	"humanqa/domain/job"
)

// A mark that waited in the browser bears the time of the press, within the claim.
func TestAMarkBearsTheTimeOfThePress(t *testing.T) {
	t.Parallel()
	for press, want := range map[time.Time]time.Time{minute(8): minute(8), minute(0): minute(5), minute(99): minute(30)} {
		marked := []domain.Event{&job.MomentMarked{Moment: job.Moment{ID: "m", At: want}, Token: 1}}
		if want.Before(minute(30)) { // the mark is no sign of life of now
			marked = append([]domain.Event{&job.Heartbeat{Token: 1, At: minute(30)}}, marked...)
		}
		s := given(t, created(), claimedBy("ann", 1)).
			When(func(s job.State) ([]domain.Event, error) {
				return job.DecideMarkMoment(s, "ann", 1, job.Moment{ID: "m", At: press}, minute(30))
			}).
			Events(marked...).
			State()
		if !s.SignOfLife.Equal(minute(30)) {
			t.Errorf("the claimant was heard of at %s", s.SignOfLife)
		}
	}
}

func record(checker string, token int) decide {
	return func(s job.State) ([]domain.Event, error) { return job.DecideRecord(s, checker, token, minute(9)) }
}

func film(id string) job.Recording {
	return job.Recording{ID: id, Token: 1, URL: "/v1/evidence/" + id, ContentType: "video/webm", Size: 9, StartedAt: minute(6), DurationMs: 60_000}
}

func attach(id string) decide {
	return func(s job.State) ([]domain.Event, error) { return job.DecideAttachRecording(s, film(id), minute(22)) }
}

func attached(id string) domain.Event {
	return &job.RecordingAttached{Recording: film(id), At: minute(22)}
}

func mark(token int, id string) decide {
	return func(s job.State) ([]domain.Event, error) {
		return job.DecideMarkMoment(s, "ann", token, job.Moment{ID: id, Label: "here", At: minute(7)}, minute(7))
	}
}

func marked(id string) domain.Event {
	return &job.MomentMarked{Moment: job.Moment{ID: id, Label: "here", At: minute(7)}, Token: 1}
}

func TestARecordingGoesOnUnderItsClaimAndAfterItsReport(t *testing.T) {
	t.Parallel()
	given(t, created(), claimedBy("ann", 1)).When(record("ann", 1)).Events(&job.Heartbeat{Token: 1, At: minute(9)})
	given(t, created(), claimedBy("ann", 1), completed()).When(record("ann", 1)).Nothing()
	given(t, created(), claimedBy("ann", 1)).When(record("bob", 1)).Conflict("the job is claimed by another checker")
	given(t, created(), claimedBy("ann", 2)).When(record("ann", 1)).Conflict("the claim token is stale")
	given(t, created(), claimedBy("ann", 1), released(1)).When(record("ann", 1)).Conflict("the claim has ended")
	given(t, created(), claimedBy("ann", 1), completed()).When(record("bob", 1)).Conflict("the job is completed")
	given(t, created(slot), claimedBy("ann", 1)).When(record("ann", 1)).Conflict("the session has not started")
	given(t).When(record("ann", 1)).NotFound("job")
}

func TestARecordingIsAttachedOnceWhateverHasBecomeOfTheJob(t *testing.T) {
	t.Parallel()
	given(t, created(), claimedBy("ann", 1), completed()).When(attach("a")).Events(attached("a"))
	given(t, created(), claimedBy("ann", 1), released(1)).When(attach("a")).Events(attached("a"))
	given(t, created(), claimedBy("ann", 1), attached("a")).When(attach("a")).Nothing()
	given(t, created(), claimedBy("ann", 1), attached("a")).When(attach("b")).Events(attached("b"))
	given(t, voided()).When(attach("a")).NotFound("job")
}

func TestMomentsAreMarkedUnderTheClaim(t *testing.T) {
	t.Parallel()
	given(t, created(), claimedBy("ann", 1)).When(mark(1, "a")).Events(marked("a"))
	given(t, created(), claimedBy("ann", 1), marked("a")).When(mark(1, "a")).Nothing()
	given(t, created(), claimedBy("ann", 2)).When(mark(1, "a")).Conflict("the claim token is stale")
	full := []domain.Event{created(), claimedBy("ann", 1)}
	for n := range job.MaxMoments {
		full = append(full, marked(fmt.Sprint(n)))
	}
	given(t, full...).When(mark(1, "a")).Conflict("100 moments are marked, the most a test holds")
}

// What a checker made of an item's severity goes with their verdict, in the draft
// as in what follows the log.
func TestASeverityGoesWithItsVerdict(t *testing.T) {
	t.Parallel()
	failed := checked("i2", job.ItemFail)
	failed.Severity = job.Critical
	own := func(status job.ItemStatus) *job.ItemChecked {
		e := checked("i2", status)
		e.Severity = job.Major
		return e
	}
	said := func(status job.ItemStatus, severity job.Severity) decide {
		return check(verdict(status, ""), func(c *job.Check) { c.ItemID, c.Severity = "i2", severity })
	}
	given(t, created(), claimedBy("ann", 1), failed).When(said(job.ItemPending, job.Critical)).Events(own(job.ItemPending))
	given(t, created(), claimedBy("ann", 1), failed, own(job.ItemPending)).When(said(job.ItemPending, "")).Nothing()
	given(t, created(), claimedBy("ann", 1), failed).When(said(job.ItemPass, "")).Events(own(job.ItemPass))
	given(t, created(), claimedBy("ann", 1)).When(said(job.ItemFail, "")).Events(checked("i2", job.ItemFail))
}
