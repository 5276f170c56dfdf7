package command_test

import (
	"slices"
	"sync"
	"testing"
	"time"

	"humanqa/domain"
	"humanqa/domain/audit"
	"humanqa/domain/command"
	"humanqa/domain/credits"
	"humanqa/domain/job"
	"humanqa/internal/testing/must"
)

// reported is a completed test of two items, with a dispute of each.
func (s stage) reported(t *testing.T) (jobID string, disputes []string) { return s.reportedIn(t, "") }

// reportedIn is reported, in a project.
func (s stage) reportedIn(t *testing.T, projectID string) (jobID string, disputes []string) {
	t.Helper()
	in := command.SubmitJob{
		Submission: job.Submission{ProjectID: projectID, URL: "https://shop.example", Title: "Shop", Type: job.PaymentFlow, Source: "api"},
		Items:      []command.NewItem{{Description: "Fill the cart", Severity: job.Minor}, {Description: "Pay", Severity: job.Critical}},
	}
	out, err := s.SubmitJob(t.Context(), s.cause(), in)
	must.NoError(t, err)
	s.completed(t, out.JobID)
	for _, i := range s.job(out.JobID).Items {
		d, _, err := s.DisputeVerdict(t.Context(), s.cause(), out.JobID, i.ID, "It does not.")
		must.NoError(t, err)
		disputes = append(disputes, d.DisputeID)
	}
	return out.JobID, disputes
}

// sound expects that the audit finds nothing in the log.
func (s stage) sound(t *testing.T) {
	t.Helper()
	a := audit.New()
	for _, r := range s.log.All() {
		a.See(r)
	}
	if found := a.Findings(time.Now().Add(time.Hour)); len(found) > 0 {
		t.Errorf("the audit finds %v", found)
	}
}

// free are the account's tests that cost nothing.
func (s stage) free() (ids []string) {
	for _, r := range s.log.All() {
		if e, ok := r.Event.(*job.Created); ok && e.Price == 0 {
			ids = append(ids, r.StreamID())
		}
	}
	return ids
}

func (s stage) left(t *testing.T) domain.Credits {
	t.Helper()
	var st credits.State
	for _, r := range s.log.Stream(domain.CreditsStream(s.account)) {
		st = credits.Evolve(st, r.Event)
	}
	must.NoError(t, st.Damage())
	return st.Available(time.Now())
}

func TestADisputeIsRefundedOnceAlsoBehindAClose(t *testing.T) {
	t.Parallel()
	s := setStage(t, 100)
	jobID, disputes := s.reported(t)
	_, err := s.CloseBook(t.Context(), s.cause())
	must.NoError(t, err)
	_, err = s.RuleDispute(t.Context(), s.cause(), jobID, disputes[0], job.Refunded)
	must.NoError(t, err)
	for range 3 { // each is a firing of its own
		_, err = s.SettleDispute(t.Context(), s.cause(), jobID)
		must.NoError(t, err)
	}
	if left := s.left(t); left != 100 {
		t.Errorf("%d credits are left, want 100", left)
	}
	s.sound(t)
	t.Run("whatever is decided on another item", func(t *testing.T) {
		_, err := s.RuleDispute(t.Context(), s.cause(), jobID, disputes[1], job.Retested)
		if !domain.IsKind(err, domain.KindConflict) {
			t.Errorf("it answers %v", err)
		}
		_, err = s.RuleDispute(t.Context(), s.cause(), jobID, disputes[1], job.Overturned)
		must.NoError(t, err)
		_, err = s.SettleDispute(t.Context(), s.cause(), jobID)
		must.NoError(t, err)
		if left, free := s.left(t), s.free(); left != 100 || len(free) > 0 {
			t.Errorf("%d credits are left, and there are the free tests %v", left, free)
		}
	})
}

func TestADecisionThatRacesWithAnotherMakesGoodOnce(t *testing.T) {
	t.Parallel()
	s := setStage(t, 100)
	jobID, disputes := s.reported(t)
	var all sync.WaitGroup
	for n := range 12 {
		service := s.service() // a process of its own
		t.Cleanup(service.Drain)
		all.Go(func() {
			ruling := []job.Ruling{job.Refunded, job.Retested, job.Stands}[n%3]
			_, err := service.RuleDispute(t.Context(), s.cause(), jobID, disputes[n%2], ruling)
			if err != nil && !domain.IsKind(err, domain.KindConflict) {
				t.Errorf("%s: %v", ruling, err)
			}
			if _, err := service.SettleDispute(t.Context(), s.cause(), jobID); err != nil {
				t.Errorf("settle: %v", err)
			}
		})
	}
	all.Wait()
	_, err := s.service().SettleDispute(t.Context(), s.cause(), jobID)
	must.NoError(t, err)
	got := len(s.free())
	if s.left(t) > 95 {
		got++
	}
	want := 0
	if s.job(jobID).MadeGood() != nil {
		want = 1
	}
	if got != want {
		t.Errorf("it is made good %d times, want %d", got, want)
	}
	for _, d := range s.job(jobID).Disputes {
		if d.Decided == nil {
			t.Errorf("the dispute %s has no decision", d.DisputeID)
		}
	}
	s.sound(t)
}

func TestAFreeRetestCostsNothingInAnyWay(t *testing.T) {
	t.Parallel()
	s := setStage(t, 5) // the first test takes all
	jobID, disputes := s.reported(t)
	_, err := s.RuleDispute(t.Context(), s.cause(), jobID, disputes[0], job.Retested)
	must.NoError(t, err)
	if d := s.job(jobID).Dispute(disputes[0]); d.Settled != nil {
		t.Errorf("before the new test is there, the dispute is %+v", d)
	}
	for range 2 {
		_, err = s.SettleDispute(t.Context(), s.cause(), jobID)
		must.NoError(t, err)
	}
	free := s.free()
	settled := s.job(jobID).Dispute(disputes[0]).Settled
	if len(free) != 1 || settled == nil || settled.RetestJobID != free[0] {
		t.Fatalf("the free tests are %v, and the dispute is settled by %+v", free, settled)
	}
	retest := s.job(free[0])
	if retest.ParentID != jobID || retest.Source != "retest" || len(retest.Items) != 2 || s.left(t) != 0 {
		t.Errorf("the retest is %+v, and %d credits are left", retest.Submission, s.left(t))
	}
	s.sound(t)
	t.Run("a cancellation refunds nothing, and it does not come again", func(t *testing.T) {
		out, err := s.CancelJob(t.Context(), s.cause(), free[0], "client")
		if err != nil || out.CreditsRefunded != 0 || s.left(t) != 0 {
			t.Errorf("it refunds %+v, %v, and %d credits are left", out, err, s.left(t))
		}
		_, err = s.SettleDispute(t.Context(), s.cause(), jobID)
		must.NoError(t, err)
		if again := s.free(); !slices.Equal(again, free) {
			t.Errorf("the free tests are %v", again)
		}
		s.sound(t)
	})
	t.Run("a retest of it has its price", func(t *testing.T) {
		if _, err := s.Retest(t.Context(), s.cause(), free[0]); !domain.IsKind(err, domain.KindPayment) {
			t.Errorf("it answers %v", err)
		}
	})
}

func TestAnArchivedProjectTakesNoFreeRetest(t *testing.T) {
	t.Parallel()
	s := setStage(t, 100)
	project := s.project(t, 60)
	jobID, disputes := s.reportedIn(t, project)
	_, _, err := s.ArchiveProject(t.Context(), s.cause(), project, true, command.CancelledAtOnce)
	must.NoError(t, err)
	_, err = s.RuleDispute(t.Context(), s.cause(), jobID, disputes[0], job.Retested)
	wantKind(t, err, domain.KindConflict)
	_, err = s.RuleDispute(t.Context(), s.cause(), jobID, disputes[0], job.Refunded)
	must.NoError(t, err)
}

// Each write fails, once persisted and once not. The next firing finds what is there. So it does
// where the policy has given up the free test meanwhile.
func TestAFreeRetestThatIsCutOffAnywhereComesOnce(t *testing.T) {
	t.Parallel()
	for at := range 6 {
		for _, giveUp := range []bool{false, true} {
			s := setStage(t, 100)
			jobID, disputes := s.reported(t)
			_, err := s.RuleDispute(t.Context(), s.cause(), jobID, disputes[0], job.Retested)
			must.NoError(t, err)
			appends := 0
			s.log.Fail(func(string, []domain.NewEvent) bool { appends++; return appends == at/2+1 }, at%2 == 1, errCut)
			_, err = s.SettleDispute(t.Context(), s.cause(), jobID)
			wantKind(t, err, domain.KindUnavailable)
			s.log.Heal()
			if id := domain.DeriveID(domain.CommandIDFor("dispute", jobID), "job").String(); giveUp && at > 0 && !s.job(id).Exists {
				s.giveUp(t, id)
			}
			_, err = s.service().SettleDispute(t.Context(), s.cause(), jobID)
			must.NoError(t, err)
			settled := s.job(jobID).Dispute(disputes[0]).Settled
			if free := s.free(); len(free) != 1 || settled == nil || settled.RetestJobID != free[0] {
				t.Errorf("cut off at write %d, the free tests are %v, and the dispute is settled by %+v", at, free, settled)
			}
			s.sound(t)
		}
	}
}

func TestAnErasedJobGetsItsRefundButNoNewTest(t *testing.T) {
	t.Parallel()
	for _, ruling := range []job.Ruling{job.Retested, job.Refunded} {
		s := setStage(t, 100)
		jobID, disputes := s.reported(t)
		_, err := s.RuleDispute(t.Context(), s.cause(), jobID, disputes[0], ruling)
		must.NoError(t, err)
		_, err = s.EraseJob(t.Context(), s.cause(), jobID, "op", "asked")
		must.NoError(t, err)
		_, err = s.SettleDispute(t.Context(), s.cause(), jobID)
		if refused := ruling == job.Retested; refused != domain.IsKind(err, domain.KindConflict) {
			t.Errorf("%s of an erased job: %v", ruling, err)
		}
		settled := s.job(jobID).Dispute(disputes[0]).Settled
		if back := s.left(t) == 100; back != (ruling == job.Refunded) || len(s.free()) > 0 || back != (settled != nil) {
			t.Errorf("%s of an erased job: %d credits, the free tests %v, settled %+v", ruling, s.left(t), s.free(), settled)
		}
		s.sound(t)
	}
}

func TestOnlyTheCheckerWhoTestedAnswersADispute(t *testing.T) {
	t.Parallel()
	s := setStage(t, 100)
	jobID, disputes := s.reported(t)
	other := s.newChecker(t)
	_, _, err := s.AnswerDispute(t.Context(), s.checkerCause(other), command.Claim{CheckerID: other, JobID: jobID}, disputes[0], "No.")
	if !domain.IsKind(err, domain.KindNotFound) {
		t.Errorf("another checker gets %v", err)
	}
	mine := s.job(jobID).CheckerID
	d, _, err := s.AnswerDispute(t.Context(), s.checkerCause(mine), command.Claim{CheckerID: mine, JobID: jobID}, disputes[0], "It did.")
	if err != nil || d.Answered == nil || d.Answered.Text != "It did." {
		t.Errorf("the answer is %+v, %v", d, err)
	}
}
