package job_test

import (
	"testing"
	"time"

	"humanqa/domain"
	"humanqa/domain/job"
)

func missSLA(at time.Time) decide {
	return func(s job.State) ([]domain.Event, error) { return job.DecideMissSLA(s, at) }
}

// missed puts the job back for the n-th time, due half an hour later.
func missed(n int, at time.Time) *job.SLAMissed {
	return &job.SLAMissed{RequeueCount: n, Requeued: true, DueAt: at.Add(30 * time.Minute), At: at}
}

func failed(reason string, at time.Time) *job.Failed {
	return &job.Failed{Reason: reason, Refund: 5, At: at}
}

func untestable(checker string, token int) decide {
	return func(s job.State) ([]domain.Event, error) {
		return job.DecideUntestable(s, job.UntestableReported{
			CheckerID: checker, Token: token, Reason: "blocked", Note: "a login wall", At: minute(8),
		})
	}
}

func reported(checker string, token int) *job.UntestableReported {
	return &job.UntestableReported{CheckerID: checker, Token: token, Reason: "blocked", Note: "a login wall", At: minute(8)}
}

func fail(reason string) decide {
	return func(s job.State) ([]domain.Event, error) { return job.DecideFail(s, reason, minute(9)) }
}

func started() *job.SlotStarted { return &job.SlotStarted{DueAt: minute(40), At: minute(10)} }

func TestAMissedSLA(t *testing.T) {
	t.Parallel()
	t.Run("puts a pending job back, counts it, and starts the clock again", func(t *testing.T) {
		s := given(t, created()).When(missSLA(minute(30))).Events(missed(1, minute(30))).State()
		if s.Status != job.StatusPending || s.RequeueCount != 1 || !s.DueAt.Equal(minute(60)) || !s.CreatedAt.Equal(t0) {
			t.Errorf("the job is %+v", s)
		}
	})
	t.Run("ends the claim, keeps its draft and fences its token", func(t *testing.T) {
		g := given(t, created(), claimedBy("ann", 1), checked("i1", job.ItemPass)).
			When(missSLA(minute(31))).
			Events(missed(1, minute(31)))
		s := g.State()
		if s.Status != job.StatusPending || s.CheckerID != "" || !s.ClaimedAt.IsZero() || len(s.Verdicts) != 1 {
			t.Errorf("the job is %+v", s)
		}
		g.When(check()).Conflict("the claim has ended")
		g.When(complete).Conflict("the claim has ended")
		g.When(release("ann", 1)).Conflict("the claim has ended")
		g.When(untestable("ann", 1)).Conflict("the claim has ended")
		claim := &job.Claimed{CheckerID: "ann", Token: 2, DueAt: minute(61), At: minute(5)}
		g.When(claimAs("ann")).Events(claim).When(complete).Conflict("the claim token is stale")
	})
	t.Run("is counted from the last time the job was put back", func(t *testing.T) {
		g := given(t, created(), missed(1, minute(30)))
		g.When(missSLA(minute(60).Add(-time.Millisecond))).Nothing()
		g.When(missSLA(minute(60))).Events(missed(2, minute(60)))
	})
	t.Run("counts once, however long nobody looked", func(t *testing.T) {
		given(t, created()).When(missSLA(minute(600))).Events(missed(1, minute(600)))
	})
	t.Run("for the third time fails the job with a full refund", func(t *testing.T) {
		s := given(t, created(), missed(1, minute(30)), missed(2, minute(60)), claimedBy("ann", 1)).
			When(missSLA(minute(90))).
			Events(&job.SLAMissed{RequeueCount: 2, Refund: 5, At: minute(90)}, failed(job.FailSLA, minute(90))).
			State()
		if s.Status != job.StatusFailed || s.FailReason != job.FailSLA || s.Refund != 5 || s.CheckerID != "" || !s.FailedAt.Equal(minute(90)) {
			t.Errorf("the job is %+v", s)
		}
	})
	t.Run("comes neither before its time nor after the end", func(t *testing.T) {
		given(t, created()).When(missSLA(minute(30).Add(-time.Millisecond))).Nothing()
		given(t, created(), claimedBy("ann", 1), completed()).When(missSLA(minute(90))).Nothing()
		given(t, created(), cancelled()).When(missSLA(minute(90))).Nothing()
		given(t, created(), failed(job.FailOperator, minute(9))).When(missSLA(minute(90))).Nothing()
		given(t).When(missSLA(minute(90))).NotFound("job")
	})
	t.Run("never happens to a slot that waits for its session", func(t *testing.T) {
		given(t, created(slot)).When(missSLA(minute(600))).Nothing()
		given(t, created(slot), claimedBy("ann", 1)).When(missSLA(minute(600))).Nothing()
	})
	t.Run("fails a slot at once, with its refund", func(t *testing.T) {
		given(t, created(slot), claimedBy("ann", 1), started()).When(missSLA(minute(39))).Nothing()
		given(t, created(slot, looped), claimedBy("ann", 1), started()).
			When(missSLA(minute(40))).
			Events(
				&job.SLAMissed{Refund: 5, SessionID: "s1", At: minute(40)},
				&job.Failed{Reason: job.FailSLA, Refund: 5, SessionID: "s1", LoopID: "l1", At: minute(40)},
			)
	})
}

func TestUntestable(t *testing.T) {
	t.Parallel()
	t.Run("from one checker puts the job back and keeps the draft", func(t *testing.T) {
		s := given(t, created(), claimedBy("ann", 1), checked("i1", job.ItemPass)).
			When(untestable("ann", 1)).
			Events(reported("ann", 1)).
			State()
		if s.Status != job.StatusPending || s.CheckerID != "" || len(s.Verdicts) != 1 || !s.DueAt.Equal(minute(30)) {
			t.Errorf("the job is %+v", s)
		}
	})
	t.Run("keeps the job away from who said so", func(t *testing.T) {
		e := given(t, created(), claimedBy("ann", 1), reported("ann", 1)).
			When(claimAs("ann")).
			Conflict("you reported the job as untestable")
		if e.Hint != "claim another job" {
			t.Errorf("the hint is %q", e.Hint)
		}
		given(t, created(), claimedBy("ann", 1), reported("ann", 1)).When(claimAs("bob")).Events(claimedBy("bob", 2))
	})
	t.Run("from a second checker fails the job with a full refund", func(t *testing.T) {
		s := given(t, created(slot, looped), claimedBy("ann", 1), reported("ann", 1), claimedBy("bob", 2)).
			When(untestable("bob", 2)).
			Events(
				reported("bob", 2),
				&job.Failed{Reason: job.FailUntestable, Note: "blocked: a login wall\nblocked: a login wall", Refund: 5, SessionID: "s1", LoopID: "l1", At: minute(8)},
			).State()
		if s.Status != job.StatusFailed || s.FailReason != job.FailUntestable || s.Refund != 5 {
			t.Errorf("the job is %+v", s)
		}
	})
	t.Run("from one checker never counts twice", func(t *testing.T) {
		// No decision leads here; an old log might.
		given(t, created(), claimedBy("ann", 1), reported("ann", 1), claimedBy("ann", 2)).
			When(untestable("ann", 2)).
			Events(reported("ann", 2))
	})
	t.Run("is only the claimant's word", func(t *testing.T) {
		given(t, created()).When(untestable("ann", 0)).Conflict("the claim has ended")
		given(t, created(), claimedBy("bob", 1)).When(untestable("ann", 1)).Conflict("the job is claimed by another checker")
		given(t, created(), claimedBy("ann", 2)).When(untestable("ann", 1)).Conflict("the claim token is stale")
		given(t, created(), claimedBy("ann", 1), completed()).When(untestable("ann", 1)).Conflict("the job is completed")
		given(t).When(untestable("ann", 1)).NotFound("job")
	})
	t.Run("says why", func(t *testing.T) {
		given(t, created(), claimedBy("ann", 1)).When(func(s job.State) ([]domain.Event, error) {
			return job.DecideUntestable(s, job.UntestableReported{CheckerID: "ann", Token: 1, Reason: " ", At: minute(8)})
		}).Invalid("reason")
	})
}

func TestTheOperatorFailsAJob(t *testing.T) {
	t.Parallel()
	for _, reason := range []string{job.FailUntestable, job.FailOperator} {
		given(t, created()).When(fail(reason)).Events(failed(reason, minute(9)))
		given(t, created(), claimedBy("ann", 1), reported("ann", 1)).When(fail(reason)).
			Events(&job.Failed{Reason: reason, Note: "blocked: a login wall", Refund: 5, At: minute(9)})
		given(t, created(slot), claimedBy("ann", 1)).When(fail(reason)).
			Events(&job.Failed{Reason: reason, Refund: 5, SessionID: "s1", At: minute(9)}).
			When(check()).
			Conflict("the job is failed")
	}
	given(t, created(), failed(job.FailSLA, minute(90))).When(fail(job.FailOperator)).Nothing()
	given(t, created(), cancelled()).When(fail(job.FailOperator)).Conflict("the job is cancelled")
	given(t, created(), claimedBy("ann", 1), completed()).When(fail(job.FailOperator)).Conflict("the job is completed")
	given(t, created()).When(fail(job.FailSLA)).Invalid("reason")
	given(t).When(fail(job.FailOperator)).NotFound("job")
}

func TestNothingLeadsOutOfAFailure(t *testing.T) {
	t.Parallel()
	for name, d := range map[string]decide{
		"claim": claimAs("ann"), "cancel": cancel(job.CancelClient), "check": check(), "complete": complete,
		"release": release("ann", 1), "heartbeat": heartbeat("ann", 1, minute(50)), "rate": rate(5, ""), "analyse": analyse,
	} {
		t.Run(name, func(t *testing.T) {
			given(t, created(), claimedBy("ann", 1), failed(job.FailOperator, minute(9))).When(d).Conflict("the job is failed")
		})
	}
}
