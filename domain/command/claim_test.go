package command_test

import (
	"testing"

	"humanqa/domain"
	"humanqa/domain/command"
	"humanqa/domain/job"
	"humanqa/internal/testing/commandtest"
	"humanqa/internal/testing/must"
)

func TestSixtyFourParallelClaimsOfOneJobGiveItToOneChecker(t *testing.T) {
	t.Parallel()
	b := setup(t, 100)
	id := b.submitted(t)
	var checkers []string
	for range 64 {
		checkers = append(checkers, b.newChecker(t))
	}
	good := together(64, func(i int) error {
		_, err := b.ClaimJob(t.Context(), b.checkerCause(checkers[i]), checkers[i], id)
		return err
	}, func(err error) { wantKind(t, err, domain.KindConflict) })
	if good != 1 {
		t.Errorf("%d claims succeeded, want 1", good)
	}
}

func TestACheckerHoldsOneClaimEvenWhenClaimingManyJobsAtOnce(t *testing.T) {
	t.Parallel()
	b := setup(t, 1000)
	ann := b.newChecker(t)
	var jobs []string
	for range 16 {
		jobs = append(jobs, b.submitted(t))
	}
	services := []*command.Service{b.Service, newService(b.log)} // two nodes
	good := together(len(jobs), func(i int) error {
		_, err := services[i%2].ClaimJob(t.Context(), b.checkerCause(ann), ann, jobs[i])
		return err
	}, func(error) {})
	if good > 1 {
		t.Errorf("%d live claims, want at most 1", good)
	}
}

func TestAClaimOpensTheSecretsForTheClaimantOnly(t *testing.T) {
	t.Parallel()
	b := setup(t, 100)
	ann, bob := b.newChecker(t), b.newChecker(t, b.account)
	j, err := b.SubmitJob(t.Context(), b.cause(), command.SubmitJob{
		Submission:  job.Submission{URL: "https://example.com", Title: "Title", Type: job.Custom, TypeEcho: "Custom", Source: "api"},
		Credentials: &command.Credentials{Username: "u", Password: "p"}, AccessInstructions: "ring twice",
	})
	must.NoError(t, err)
	t.Run("a checker of the same account never sees the job", func(t *testing.T) {
		_, err := b.ClaimJob(t.Context(), b.checkerCause(bob), bob, j.JobID)
		wantKind(t, err, domain.KindNotFound)
	})
	claim, err := b.ClaimJob(t.Context(), b.checkerCause(ann), ann, j.JobID)
	must.NoError(t, err)
	brief, _, err := b.Reveal(t.Context(), b.checkerCause(ann), command.Claim{CheckerID: ann, JobID: j.JobID, Token: claim.Token})
	if err != nil || !opened(brief) {
		t.Errorf("brief: %+v, %v", brief, err)
	}
	t.Run("claiming again answers the same claim", func(t *testing.T) {
		again, err := b.ClaimJob(t.Context(), b.checkerCause(ann), ann, j.JobID)
		if err != nil || again.Token != claim.Token {
			t.Errorf("again: %+v, %v", again, err)
		}
	})
}

func TestAClaimFromStartToReport(t *testing.T) {
	t.Parallel()
	b := setup(t, 100)
	ann := b.newChecker(t)
	id := b.submitted(t)
	claimed, err := b.ClaimJob(t.Context(), b.checkerCause(ann), ann, id)
	must.NoError(t, err)
	claim := command.Claim{CheckerID: ann, JobID: id, Token: claimed.Token}

	_, _, err = b.CompleteJob(t.Context(), b.checkerCause(ann), claim, command.CompleteJob{Summary: "done"})
	wantKind(t, err, domain.KindConflict) // an item is unchecked

	item, _, err := b.CheckItem(t.Context(), b.checkerCause(ann), claim, command.CheckItem{
		ItemID: claimed.Checklist[0].ID, Status: job.ItemFail, Note: "broken", Severity: job.Critical,
	})
	if err != nil || item.Status != job.ItemFail || item.Severity != job.Critical || item.Description != "loads" {
		t.Fatalf("item: %+v, %v", item, err)
	}
	found, _, err := b.AddFinding(t.Context(), b.checkerCause(ann), claim, job.Finding{
		Item: job.Item{Description: "typo", Severity: job.Minor}, Status: job.ItemFail,
	})
	if err != nil || found.ID == "" || found.Key == "" {
		t.Fatalf("finding: %+v, %v", found, err)
	}
	stale := claim
	stale.Token++
	_, _, err = b.CompleteJob(t.Context(), b.checkerCause(ann), stale, command.CompleteJob{Summary: "done"})
	wantKind(t, err, domain.KindConflict)

	c := b.checkerCause(ann)
	report, _, err := b.CompleteJob(t.Context(), c, claim, command.CompleteJob{Summary: "done"})
	if err != nil || report.FailCount != 2 || report.OverallStatus != "fail" {
		t.Fatalf("report: %+v, %v", report, err)
	}
	again, _, err := b.CompleteJob(t.Context(), c, claim, command.CompleteJob{Summary: "done"})
	if err != nil || again.ReportID != report.ReportID {
		t.Errorf("repeat: %+v, %v", again, err)
	}

	t.Run("and the checker may claim the next job", func(t *testing.T) {
		next := b.submitted(t)
		if _, err := b.ClaimJob(t.Context(), b.checkerCause(ann), ann, next); err != nil {
			t.Error(err)
		}
	})
}

// Another process repeats a submission, later and with another list: it must go
// on from the job that is in the log, not from the one it would have written.
func TestARepeatInAnotherProcessGoesByWhatTheLogHolds(t *testing.T) {
	t.Parallel()
	b := setup(t, 100)
	ann, cause := b.newChecker(t), b.cause()
	submit := func(items ...command.NewItem) (*command.Service, command.SubmittedJob) {
		t.Helper()
		s := serviceWith(b.log, &scriptedAI{instant: true, items: items}, commandtest.NoReads{})
		t.Cleanup(s.Drain)
		j, err := s.SubmitJob(t.Context(), cause, command.SubmitJob{
			Submission: job.Submission{URL: "https://example.com", Title: "Title", Type: job.GeneralQA, Source: "api"}, Wait: true,
		})
		must.NoError(t, err)
		return s, j
	}
	_, first := submit(command.NewItem{Description: "the cart", Severity: job.Major})
	other, again := submit(
		command.NewItem{Description: "the till", Severity: job.Minor}, command.NewItem{Description: "the exit", Severity: job.Minor})
	if again != first {
		t.Errorf("the repeat is answered with %+v, the first was %+v", again, first)
	}
	claim, err := other.ClaimJob(t.Context(), b.checkerCause(ann), ann, first.JobID)
	if err != nil || len(claim.Checklist) != 1 || claim.Checklist[0].Description != "the cart" {
		t.Errorf("the checker gets %+v, %v", claim.Checklist, err)
	}
	if due := b.job(first.JobID).DueAt; !claim.DueAt.Equal(due) {
		t.Errorf("due at %s, in the log at %s", claim.DueAt, due)
	}
}
