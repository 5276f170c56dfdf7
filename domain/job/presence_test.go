package job_test

import (
	"testing"
	"time"

	"humanqa/domain"
	"humanqa/domain/job"
)

func heartbeat(checker string, token int, at time.Time) decide {
	return func(s job.State) ([]domain.Event, error) { return job.DecideHeartbeat(s, checker, token, at) }
}

func beat(token int, at time.Time) *job.Heartbeat { return &job.Heartbeat{Token: token, At: at} }

func releaseSilent(at time.Time) decide {
	return func(s job.State) ([]domain.Event, error) { return job.DecideReleaseSilent(s, at) }
}

func silent(token int, at time.Time) *job.Released {
	return &job.Released{Token: token, Reason: job.ReleaseSilent, At: at}
}

func leave(checker string) decide {
	return func(s job.State) ([]domain.Event, error) { return job.DecideLeave(s, checker, minute(9)) }
}

func TestAHeartbeat(t *testing.T) {
	t.Parallel()
	t.Run("is noted at most once a minute after the last sign of life", func(t *testing.T) {
		// The claim is from minute 5.
		g := given(t, created(), claimedBy("ann", 1))
		g.When(heartbeat("ann", 1, minute(6).Add(-time.Millisecond))).Nothing()
		g.When(heartbeat("ann", 1, minute(6))).Events(beat(1, minute(6)))
		given(t, created(), claimedBy("ann", 1), checked("i1", job.ItemPass)). // at minute 6
											When(heartbeat("ann", 1, minute(6).Add(59*time.Second))).Nothing()
		given(t, created(), claimedBy("ann", 1), found("f1", aTypo)). // at minute 7
										When(heartbeat("ann", 1, minute(7).Add(59*time.Second))).Nothing()
		given(t, created(), claimedBy("ann", 1), beat(1, minute(20))).When(heartbeat("ann", 1, minute(12))).Nothing()
	})
	t.Run("also comes from a slot that waits for its session", func(t *testing.T) {
		given(t, created(slot), claimedBy("ann", 1)).When(heartbeat("ann", 1, minute(7))).Events(beat(1, minute(7)))
	})
}

func TestSilence(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		last  domain.Event
		since time.Time
	}{
		"the claim":   {beat(1, t0), minute(5)}, // a clock that is behind changes nothing
		"a verdict":   {checked("i1", job.ItemPass), minute(6)},
		"a finding":   {found("f1", aTypo), minute(7)},
		"a heartbeat": {beat(1, minute(8)), minute(8)},
	} {
		t.Run("of six minutes after "+name+" ends the claim and keeps the draft", func(t *testing.T) {
			end := c.since.Add(6 * time.Minute)
			g := given(t, created(), claimedBy("ann", 1), c.last)
			draft := len(g.State().ReportItems())
			g.When(releaseSilent(end.Add(-time.Millisecond))).Nothing()
			s := g.When(releaseSilent(end)).Events(silent(1, end)).State()
			if s.Status != job.StatusPending || s.CheckerID != "" || len(s.ReportItems()) != draft || !s.DueAt.Equal(minute(30)) {
				t.Errorf("the job is %+v", s)
			}
		})
	}
	t.Run("fences the claim that ended", func(t *testing.T) {
		given(t, created(), claimedBy("ann", 1), silent(1, minute(11))).
			When(heartbeat("ann", 1, minute(12))).
			Conflict("the claim has ended")
	})
	t.Run("is nobody's but a claimant's", func(t *testing.T) {
		given(t, created()).When(releaseSilent(minute(60))).Nothing()
		given(t, created(), claimedBy("ann", 1), completed()).When(releaseSilent(minute(60))).Nothing()
		given(t, created(slot, sandbox), claimedBy(job.Player, 1)).When(releaseSilent(minute(60))).Nothing()
		given(t).When(releaseSilent(minute(60))).NotFound("job")
	})
	t.Run("starts anew with the session", func(t *testing.T) {
		g := given(t, created(slot), claimedBy("ann", 1), started()) // at minute 10
		g.When(releaseSilent(minute(15))).Nothing()
		g.When(releaseSilent(minute(16))).Events(silent(1, minute(16)))
	})
}

func TestLeavingASessionGivesTheSlotUp(t *testing.T) {
	t.Parallel()
	g := given(t, created(slot), claimedBy("ann", 1)).
		When(leave("ann")).
		Events(&job.Released{Token: 1, Reason: job.ReleaseLeft, At: minute(9)})
	if s := g.State(); s.Status != job.StatusPending || s.CheckerID != "" {
		t.Errorf("the job is %+v", s)
	}
	given(t, created(slot), claimedBy("bob", 1)).When(leave("ann")).Nothing()
	given(t, created(slot)).When(leave("ann")).Nothing()
	given(t).When(leave("ann")).NotFound("job")
}
