package command_test

import (
	"reflect"
	"testing"

	"humanqa/domain"
	"humanqa/domain/command"
	"humanqa/domain/job"
	"humanqa/internal/testing/must"
)

func TestARetestClonesWhatWasSubmitted(t *testing.T) {
	t.Parallel()
	s := setStage(t, 100)
	in := command.SubmitJob{
		Submission: job.Submission{
			ProjectID: s.project(t, 15), URL: "https://shop.example", Title: "Shop", Description: "Buy",
			Feature: "Cart", Type: job.PaymentFlow, TypeEcho: "Payment Flow", Urgent: true, SLAMinutes: 30,
			Target: job.Target{Device: "iPhone", Network: "3G"}, Source: "bulk",
		},
		Items: []command.NewItem{
			{Key: "cart", Description: "Fill the cart", ExpectedOutcome: "It is full", Severity: job.Minor},
			{Description: "Pay", Severity: job.Critical},
		},
		Credentials:        &command.Credentials{Username: "u", Password: "p", Notes: "n"},
		AccessInstructions: "ring twice",
	}
	batch, err := s.SubmitBulk(t.Context(), s.cause(), []command.SubmitJob{in})
	must.NoError(t, err)
	parent := batch.JobIDs[0]
	s.completed(t, parent)

	cause := s.cause()
	got, err := s.Retest(t.Context(), cause, parent)
	want := command.SubmittedJob{
		JobID: got.JobID, Status: job.StatusPending, EstimatedMinutes: 15, CreditsDeducted: 10, CreditsRemaining: 80,
		ChecklistItemCount: 2, Position: got.Position,
	}
	if err != nil || got != want || got.JobID == parent {
		t.Fatalf("retest: %+v, %v; want %+v", got, err, want)
	}
	original := s.log.Stream(domain.JobStream(parent))[0].Event.(*job.Created)
	clone := *s.log.Stream(domain.JobStream(got.JobID))[0].Event.(*job.Created)
	wanted := *original
	wanted.Source, wanted.ParentID, wanted.BatchID, wanted.CreatedAt = "retest", parent, "", clone.CreatedAt
	wanted.Credentials, wanted.AccessInstructions = clone.Credentials, clone.AccessInstructions
	if !reflect.DeepEqual(clone, wanted) {
		t.Errorf("the clone is %+v\nwanted       %+v", clone, wanted)
	}
	t.Run("with its secrets sealed for the new job, for the claimant to open", func(t *testing.T) {
		if clone.Credentials == original.Credentials || clone.AccessInstructions == original.AccessInstructions {
			t.Error("the secrets are the old job's")
		}
		ann := s.newChecker(t)
		claim, err := s.ClaimJob(t.Context(), s.checkerCause(ann), ann, got.JobID)
		must.NoError(t, err)
		brief, _, err := s.Reveal(t.Context(), s.checkerCause(ann), command.Claim{CheckerID: ann, JobID: got.JobID, Token: claim.Token})
		if err != nil || !opened(brief) || *brief.Credentials != *in.Credentials {
			t.Errorf("the brief is %+v, %v", brief, err)
		}
	})
	t.Run("once a command", func(t *testing.T) {
		s.nothing(t, func() {
			if again, err := s.Retest(t.Context(), cause, parent); err != nil || again.JobID != got.JobID {
				t.Errorf("again: %+v, %v", again, err)
			}
		})
	})
	t.Run("and a retest of the retest has it as its parent", func(t *testing.T) {
		next, err := s.Retest(t.Context(), s.cause(), got.JobID)
		if err != nil || s.job(next.JobID).ParentID != got.JobID {
			t.Errorf("the parent is %q, %v", s.job(next.JobID).ParentID, err)
		}
	})
}

func TestARetestWritesTheListAnewOnlyWhereThereIsNone(t *testing.T) {
	t.Parallel()
	s := setStage(t, 100)
	s.ai.set(func(a *scriptedAI) { a.instant = false })
	j, err := s.SubmitJob(t.Context(), s.cause(), plain())
	must.NoError(t, err)
	pending, err := s.Retest(t.Context(), s.cause(), j.JobID)
	if err != nil || pending.ChecklistItemCount != 0 {
		t.Fatalf("retest of a pending job: %+v, %v", pending, err)
	}
	_, err = s.WriteChecklist(t.Context(), s.cause(), j.JobID)
	must.NoError(t, err)
	written, err := s.Retest(t.Context(), s.cause(), j.JobID)
	if err != nil || written.ChecklistItemCount != 1 || s.job(written.JobID).GeneratedBy != "test" {
		t.Errorf("retest: %+v by %q, %v", written, s.job(written.JobID).GeneratedBy, err)
	}
}

func TestARetestIsTheAccountsAndIsPaidFor(t *testing.T) {
	t.Parallel()
	s, other := setStage(t, 5), setup(t, 100)
	id, foreign := s.submitted(t), other.submitted(t)
	s.nothing(t, func() {
		for _, id := range []string{foreign, "nobody's"} {
			_, err := s.Retest(t.Context(), s.cause(), id)
			wantKind(t, err, domain.KindNotFound)
		}
		_, err := s.Retest(t.Context(), s.cause(), id)
		wantKind(t, err, domain.KindPayment)
	})
	t.Run("also when it stands in the same log", func(t *testing.T) {
		stranger := s.cause()
		stranger.AccountID = "somebody-else"
		_, err := s.Retest(t.Context(), stranger, id)
		wantKind(t, err, domain.KindNotFound)
	})
}
