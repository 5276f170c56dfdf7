package job_test

import (
	"slices"
	"testing"

	"humanqa/domain"
	"humanqa/domain/job"
)

func robotClaim(s job.State) ([]domain.Event, error) { return job.DecideRobotClaim(s, minute(5)) }

// play has the robot complete the submission's two items, and find a third.
func play(robot string, changes ...func([]job.ReportItem) []job.ReportItem) decide {
	return func(s job.State) ([]domain.Event, error) {
		items := []job.ReportItem{
			{Item: submission().Items[0], Status: job.ItemPass},
			{Item: submission().Items[1], Status: job.ItemFail, Note: "500"},
			{Item: job.Item{ID: "x", Description: "Pay"}, Status: job.ItemSkip, Reason: "blocked"},
		}
		for _, change := range changes {
			items = change(items)
		}
		return job.DecideRobotComplete(s, job.RobotCompletion{
			Robot: robot, ReportID: "r1", Summary: "played", Items: items, At: minute(5),
		})
	}
}

func played(sessionID string) *job.Completed {
	return &job.Completed{
		ReportID: "r1", OverallStatus: job.OverallFail, PassCount: 1, FailCount: 1, SkipCount: 1, Summary: "played",
		Items: []job.ReportItem{
			{Item: submission().Items[0], Status: job.ItemPass},
			{Item: submission().Items[1], Status: job.ItemFail, Note: "500"},
			{Item: job.Item{ID: "x", Key: "pay-2", Description: "Pay"}, Status: job.ItemSkip, Reason: "blocked"},
		},
		SessionID: sessionID, At: minute(5),
	}
}

func TestARobot(t *testing.T) {
	t.Parallel()
	t.Run("claims and completes a job at once", func(t *testing.T) {
		s := given(t, created(sandbox)).When(play(job.Player)).Events(claimedBy(job.Player, 1), played("")).State()
		if s.Status != job.StatusCompleted || s.CheckerID != job.Player || s.ReportID() != "r1" {
			t.Errorf("the job is %+v", s)
		}
		given(t, created(aiReview)).When(play(job.Reviewer)).Events(claimedBy(job.Reviewer, 1), played(""))
	})
	t.Run("completing again changes nothing", func(t *testing.T) {
		given(t, created(sandbox), claimedBy(job.Player, 1), completed()).When(play(job.Player)).Nothing()
		given(t, created(sandbox), claimedBy(job.Player, 1), completed()).When(play(job.Reviewer)).Conflict("the job is completed")
	})
	t.Run("does only the jobs that are for it", func(t *testing.T) {
		given(t, created()).When(play(job.Player)).Conflict("the job is not a sandbox's")
		given(t, created(sandbox)).When(play(job.Reviewer)).Conflict("the job is no AI review")
		given(t, created(sandbox, aiReview)).When(play(job.Player)).Conflict("an AI review completes by itself")
		given(t, created(sandbox), claimedBy("ann", 1)).When(play(job.Player)).Conflict("the job is claimed")
		given(t, created(sandbox), cancelled()).When(play(job.Player)).Conflict("the job is cancelled")
		given(t).When(play(job.Player)).NotFound("job")
		given(t, voided()).When(play(job.Player)).NotFound("job")
	})
	t.Run("needs the list, unless it brings its own", func(t *testing.T) {
		given(t, created(sandbox, noList)).When(play(job.Player)).Conflict("the checklist is being written")
		given(t, created(aiReview, noList)).When(play(job.Reviewer)).Events(claimedBy(job.Reviewer, 1), played(""))
	})
	t.Run("leaves nothing open", func(t *testing.T) {
		given(t, created(sandbox)).
			When(play(job.Player, func(items []job.ReportItem) []job.ReportItem {
				items[0].Status = job.ItemPending
				return slices.Delete(items, 1, 2)
			})).
			Invalid("items", "items")
	})
	t.Run("takes a slot before its session starts and completes it after", func(t *testing.T) {
		g := given(t, created(sandbox, slot))
		g.When(play(job.Player)).Conflict("the session has not started")
		g = g.When(robotClaim).Events(claimedBy(job.Player, 1))
		g.When(play(job.Player)).Conflict("the session has not started")
		given(t, created(sandbox, slot), claimedBy(job.Player, 1), started()).When(play(job.Player)).Events(played("s1"))
	})
	t.Run("takes nothing but a sandbox's slot", func(t *testing.T) {
		given(t, created(sandbox)).When(robotClaim).Conflict("the job is no slot of a session")
		given(t, created(slot)).When(robotClaim).Conflict("the job is not a sandbox's")
		given(t, created(sandbox, slot), claimedBy("ann", 1)).When(robotClaim).Conflict("the job is claimed")
		given(t, created(sandbox, slot, noList)).When(robotClaim).Conflict("the checklist is being written")
	})
	t.Run("is told from a person by its name", func(t *testing.T) {
		if !job.IsRobot(job.Player) || !job.IsRobot(job.Reviewer) || job.IsRobot("ann") || job.IsRobot("") {
			t.Error("a robot is taken for a person, or a person for a robot")
		}
	})
}

func TestNoCheckerClaimsARobotsJob(t *testing.T) {
	t.Parallel()
	given(t, created(sandbox)).When(claimAs("ann")).Conflict("a sandbox job is not for checkers")
	given(t, created(aiReview)).When(claimAs("ann")).Conflict("an AI review is not for checkers")
}
