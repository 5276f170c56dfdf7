package command_test

import (
	"testing"

	"humanqa/domain"
	"humanqa/domain/command"
	"humanqa/domain/job"
)

// Decisions, "Checker keys": a checker never sees a job of an account they
// belong to. Their word on one is answered as if there were no such job.
func TestACheckersOwnAccountsJobsAreNotFoundWhateverTheySayOfThem(t *testing.T) {
	t.Parallel()
	s := setStage(t, 100)
	id := s.submitted(t)
	held := s.claimed(t, id) // by somebody else: else there is a conflict to tell
	own := s.newChecker(t, s.account)
	stranger := s.newChecker(t)
	calls := map[string]func(command.Cause, command.Claim) error{
		"item": func(cause command.Cause, claim command.Claim) error {
			_, _, err := s.CheckItem(t.Context(), cause, claim, command.CheckItem{ItemID: "item-1", Status: job.ItemPass})
			return err
		},
		"finding": func(cause command.Cause, claim command.Claim) error {
			_, _, err := s.AddFinding(t.Context(), cause, claim, job.Finding{Item: job.Item{Description: "x"}, Status: job.ItemFail})
			return err
		},
		"complete": func(cause command.Cause, claim command.Claim) error {
			_, _, err := s.CompleteJob(t.Context(), cause, claim, command.CompleteJob{})
			return err
		},
		"release": func(cause command.Cause, claim command.Claim) error {
			_, err := s.ReleaseJob(t.Context(), cause, claim)
			return err
		},
		"heartbeat": func(cause command.Cause, claim command.Claim) error {
			_, _, err := s.Heartbeat(t.Context(), cause, claim)
			return err
		},
		"untestable": func(cause command.Cause, claim command.Claim) error {
			_, _, err := s.ReportUntestable(t.Context(), cause, claim, "blocked", "")
			return err
		},
		"evidence": func(cause command.Cause, claim command.Claim) error {
			_, err := s.CollectEvidence(t.Context(), cause, claim)
			return err
		},
	}
	for name, call := range calls {
		t.Run(name, func(t *testing.T) {
			for checker, want := range map[string]domain.Kind{own: domain.KindNotFound, stranger: domain.KindConflict} {
				err := call(s.checkerCause(checker), command.Claim{CheckerID: checker, JobID: id, Token: held.Token})
				wantKind(t, err, want)
			}
		})
	}
	wantTypes(t, s.log, domain.JobStream(id), "job.created", "job.claimed")
}
