package job_test

import (
	"testing"
	"time"

	"humanqa/domain"
	"humanqa/domain/job"
	"humanqa/internal/testing/scenario"
)

type decide = scenario.Decide[job.State]

var t0 = time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)

func minute(n int) time.Time { return t0.Add(time.Duration(n) * time.Minute) }

func given(t *testing.T, events ...domain.Event) *scenario.Given[job.State] {
	return scenario.New(t, job.Evolve, events...)
}

func submission() job.Created {
	return job.Created{
		Submission: job.Submission{
			AccountID: "acme", ProjectID: "p1", URL: "https://shop.example", Title: "Checkout", Type: job.PaymentFlow,
			SLAMinutes: 30, Price: 5, Source: "api",
		}, CreatedAt: t0,
		Items: []job.Item{
			{ID: "i1", Key: "log-in", Description: "Log in", Severity: job.Critical},
			{ID: "i2", Key: "pay", Description: "Pay", Severity: job.Major},
		},
	}
}

func created(changes ...func(*job.Created)) domain.Event {
	c := submission()
	for _, change := range changes {
		change(&c)
	}
	return &c
}

func aiReview(c *job.Created) { c.Type = job.AIReview }
func slot(c *job.Created)     { c.SessionID = "s1" }
func noList(c *job.Created)   { c.Items = nil }
func sandbox(c *job.Created)  { c.Sandbox = true }
func looped(c *job.Created)   { c.LoopID = "l1" }

func claimedBy(checker string, token int) domain.Event {
	return &job.Claimed{CheckerID: checker, Token: token, DueAt: minute(30), At: minute(5)}
}

func released(token int) domain.Event {
	return &job.Released{Token: token, Reason: "checker", At: minute(10)}
}

func checked(item string, status job.ItemStatus) *job.ItemChecked {
	return &job.ItemChecked{ItemID: item, Status: status, At: minute(6)}
}

func completed() domain.Event {
	return &job.Completed{ReportID: "r1", OverallStatus: "pass", At: minute(20)}
}

func cancelled() domain.Event {
	return &job.Cancelled{Reason: job.CancelClient, Refund: 5, At: minute(3)}
}

func voided() domain.Event { return &job.Voided{AccountID: "acme", At: minute(1)} }

func submit(s job.State) ([]domain.Event, error) { return job.DecideCreate(s, submission(), nil) }

func claimAs(checker string) decide {
	return func(s job.State) ([]domain.Event, error) { return job.DecideClaim(s, checker, minute(5)) }
}

func release(checker string, token int) decide {
	return func(s job.State) ([]domain.Event, error) { return job.DecideRelease(s, checker, token, minute(10)) }
}

func cancel(reason string) decide {
	return func(s job.State) ([]domain.Event, error) { return job.DecideCancel(s, reason, minute(3)) }
}

func void(s job.State) ([]domain.Event, error) { return job.DecideVoid(s, "acme", minute(1)) }

func TestASubmissionMakesAPendingJob(t *testing.T) {
	t.Parallel()
	s := given(t).When(submit).Happens(created()).State()
	if !s.Exists || s.Status != job.StatusPending || s.AccountID != "acme" || s.Price != 5 || len(s.Items) != 2 ||
		!s.CreatedAt.Equal(t0) || s.SLA() != 30*time.Minute || s.ReportID() != "" {
		t.Errorf("the job is %+v", s)
	}
	given(t, created()).When(submit).Conflict("the job exists already")
}

func TestALateSubmissionLosesToItsSettlement(t *testing.T) {
	t.Parallel()
	s := given(t).When(void).Events(voided()).State()
	if s.Exists || s.Status != job.StatusVoided || s.AccountID != "acme" {
		t.Errorf("the job is %+v", s)
	}
	given(t, voided()).When(submit).Conflict("the submission has ended and its charge is refunded")
	given(t, voided()).When(claimAs("ann")).NotFound("job")
	given(t, voided()).When(cancel(job.CancelClient)).NotFound("job")
	given(t, created()).When(void).Conflict("the job exists")
}

func TestClaim(t *testing.T) {
	t.Parallel()
	t.Run("gives a pending job to its checker until the SLA ends, counted from the submission", func(t *testing.T) {
		s := given(t, created()).When(claimAs("ann")).Events(claimedBy("ann", 1)).State()
		if s.Status != job.StatusClaimed || s.CheckerID != "ann" || !s.DueAt.Equal(minute(30)) || !s.ClaimedAt.Equal(minute(5)) {
			t.Errorf("the job is %+v", s)
		}
	})
	t.Run("a second checker is refused", func(t *testing.T) {
		given(t, created(), claimedBy("ann", 1)).When(claimAs("bob")).Conflict("the job is claimed")
	})
	t.Run("the same checker asking again changes nothing", func(t *testing.T) {
		given(t, created(), claimedBy("ann", 1)).When(claimAs("ann")).Nothing()
	})
	t.Run("after a release has a new token, also for the same checker", func(t *testing.T) {
		given(t, created(), claimedBy("ann", 1), released(1)).When(claimAs("ann")).Events(claimedBy("ann", 2))
		given(t, created(), claimedBy("ann", 1), released(1)).When(claimAs("bob")).Events(claimedBy("bob", 2))
	})
	t.Run("is refused at the end", func(t *testing.T) {
		given(t, created(), claimedBy("ann", 1), completed()).When(claimAs("ann")).Conflict("the job is completed")
		given(t, created(), cancelled()).When(claimAs("ann")).Conflict("the job is cancelled")
	})
	t.Run("is not for AI reviews", func(t *testing.T) {
		given(t, created(aiReview)).When(claimAs("ann")).Conflict("an AI review is not for checkers")
	})
	t.Run("needs a job", func(t *testing.T) { given(t).When(claimAs("ann")).NotFound("job") })
}

func TestRelease(t *testing.T) {
	t.Parallel()
	t.Run("puts the job back and keeps the draft", func(t *testing.T) {
		finding := &job.FindingAdded{Item: job.Item{ID: "f1", Key: "typo"}, Status: job.ItemFail, At: minute(7)}
		s := given(t, created(), claimedBy("ann", 1), checked("i1", job.ItemPass), finding).
			When(release("ann", 1)).
			Events(released(1)).
			State()
		if s.Status != job.StatusPending || s.CheckerID != "" || !s.ClaimedAt.IsZero() || !s.DueAt.Equal(minute(30)) || !s.CreatedAt.Equal(t0) {
			t.Errorf("the job is %+v", s)
		}
		if s.Verdicts["i1"].Status != job.ItemPass || len(s.Findings) != 1 {
			t.Errorf("the draft is %v, %v", s.Verdicts, s.Findings)
		}
	})
	t.Run("is only the claimant's", func(t *testing.T) {
		given(t, created(), claimedBy("ann", 1)).When(release("bob", 1)).Conflict("the job is claimed by another checker")
		given(t, created(), claimedBy("ann", 2)).When(release("ann", 1)).Conflict("the claim token is stale")
	})
	t.Run("of a job that nobody holds is refused", func(t *testing.T) {
		given(t, created()).When(release("ann", 0)).Conflict("the claim has ended")
		given(t, created()).When(release("", 0)).Conflict("the claim has ended")
		given(t, created(), claimedBy("ann", 1), released(1)).When(release("bob", 1)).Conflict("the claim has ended")
	})
	t.Run("of an earlier claim does not end the next one", func(t *testing.T) {
		given(t, created(), claimedBy("ann", 1), released(1), claimedBy("bob", 2)).
			When(release("ann", 1)).
			Conflict("the job is claimed by another checker")
	})
}

func TestCancel(t *testing.T) {
	t.Parallel()
	t.Run("gives a pending job's whole price back", func(t *testing.T) {
		s := given(t, created()).When(cancel(job.CancelClient)).Events(cancelled()).State()
		if s.Status != job.StatusCancelled || s.Refund != 5 || s.CancelReason != job.CancelClient || !s.CancelledAt.Equal(minute(3)) {
			t.Errorf("the job is %+v", s)
		}
	})
	t.Run("again changes nothing, whatever the reason", func(t *testing.T) {
		given(t, created(), cancelled()).When(cancel(job.CancelOperator)).Nothing()
		given(t, created(slot), cancelled()).When(cancel(job.CancelClient)).Nothing()
	})
	t.Run("comes too late once a checker holds the job or it ended", func(t *testing.T) {
		e := given(t, created(), claimedBy("ann", 1)).When(cancel(job.CancelClient)).Conflict("the job is claimed")
		if e.Hint == "" {
			t.Error("the refusal names no next step")
		}
		given(t, created(), claimedBy("ann", 1), completed()).
			When(cancel(job.CancelClient)).
			Conflict("the job is completed")
	})
	t.Run("of a released job is possible again", func(t *testing.T) {
		given(t, created(), claimedBy("ann", 1), released(1)).When(cancel(job.CancelClient)).Events(cancelled())
	})
	t.Run("of a session's slot is the session's", func(t *testing.T) {
		for _, reason := range []string{job.CancelClient, job.CancelOperator} {
			e := given(t, created(slot)).When(cancel(reason)).Conflict("the job is a slot of a session")
			if e.Hint != "cancel the session" {
				t.Errorf("the hint is %q", e.Hint)
			}
		}
		for _, reason := range []string{job.CancelSessionExpired, job.CancelSessionCancelled} {
			given(t, created(slot)).When(cancel(reason)).
				Events(&job.Cancelled{Reason: reason, Refund: 5, SessionID: "s1", At: minute(3)})
			given(t, created(slot), claimedBy("ann", 1)).When(cancel(reason)).
				Events(&job.Cancelled{Reason: reason, Refund: 5, SessionID: "s1", At: minute(3)})
			given(t, created()).When(cancel(reason)).Conflict("the job is no slot of a session")
		}
	})
	t.Run("needs a job", func(t *testing.T) { given(t).When(cancel(job.CancelClient)).NotFound("job") })
}
