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
		return job.DecideRobotComplete(s, robot, job.Completed{
			ReportID: "r1", Summary: "played", Items: items, At: minute(5),
		})
	}
}

func played(sessionID string) *job.Completed {
	return &job.Completed{
		ReportID: "r1", OverallStatus: job.OverallFail, PassCount: 1, FailCount: 1, SkipCount: 1, Summary: "played",
		Items: []job.ReportItem{
			{Item: submission().Items[0], Status: job.ItemPass},
			{Item: submission().Items[1], Status: job.ItemFail, Note: "500"},
			{Item: job.Item{ID: "x", Key: job.KeyFor("Pay"), Description: "Pay"}, Status: job.ItemSkip, Reason: "blocked"},
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

// robotAsk has the player ask about the submission's first item.
func robotAsk(id string) decide {
	return func(s job.State) ([]domain.Event, error) {
		return job.DecideRobotAsk(s, job.Ask{
			QuestionID: id, ItemID: submission().Items[0].ID, Kind: "code", Text: "The code of " + id + "?", Wait: job.QuestionWait, At: minute(5),
		}, robotScript())
	}
}

func robotScript() job.Script {
	return job.Script{Summary: "played", Items: []job.ReportItem{
		{Item: submission().Items[0], Status: job.ItemPass},
		{Item: submission().Items[1], Status: job.ItemFail, Note: "500"},
		{Item: job.Item{ID: "x", Description: "Pay"}, Status: job.ItemSkip, Reason: "blocked"},
	}}
}

func robotGoesOn(s job.State) ([]domain.Event, error) { return job.DecideRobotGoOn(s, "r1", minute(5)) }

func TestARobotAsks(t *testing.T) {
	t.Parallel()
	script := robotScript()
	asked := &job.QuestionAsked{
		QuestionID: "q", Token: 1, ItemID: submission().Items[0].ID, Kind: "code", Text: "The code of q?", Until: minute(5).Add(job.QuestionWait), At: minute(5), Then: &script,
	}
	answer := func(s job.State) ([]domain.Event, error) {
		return job.DecideAnswer(s, job.AnswerGiven{QuestionID: "q", AnswerID: "a", Text: "12", At: minute(5)})
	}
	waiting := func(t *testing.T) []domain.Event {
		t.Helper()
		return []domain.Event{created(sandbox), claimedBy(job.Player, 1), asked}
	}
	t.Run("and goes on once it has the answer", func(t *testing.T) {
		g := given(t, created(sandbox)).When(robotAsk("q")).Events(claimedBy(job.Player, 1), asked)
		g.When(robotGoesOn).Nothing()
		g.When(robotAsk("q")).Nothing()
		g.When(robotAsk("other")).Conflict("a question is open already")
		g = g.When(answer).Events(&job.AnswerGiven{QuestionID: "q", AnswerID: "a", Text: "12", DueAt: minute(30), At: minute(5), Robot: true})
		s := g.When(robotGoesOn).Events(played("")).State()
		given(t, created(sandbox)).When(robotGoesOn).Nothing()
		if s.Script != nil || s.Status != job.StatusCompleted {
			t.Errorf("the job is %s with %+v", s.Status, s.Script)
		}
	})
	t.Run("and skips the item without one", func(t *testing.T) {
		g := given(t, waiting(t)...)
		g.When(func(s job.State) ([]domain.Event, error) { return job.DecideExpireQuestion(s, asked.Until.Add(-1)) }).Nothing()
		expired, err := job.DecideExpireQuestion(g.State(), asked.Until)
		if err != nil {
			t.Fatal(err)
		}
		events, err := robotGoesOn(given(t, append(waiting(t), expired...)...).State())
		done, _ := events[0].(*job.Completed)
		if err != nil || done.SkipCount != 2 || done.Items[0].Reason != "no_access" || done.Items[1].Note != "500" {
			t.Errorf("the report is %+v, %v", done, err)
		}
	})
	t.Run("and is played on without waiting", func(t *testing.T) {
		events, err := play(job.Player)(given(t, waiting(t)...).State())
		if err != nil {
			t.Fatal(err)
		}
		s := given(t, append(waiting(t), events...)...).State()
		if _, open := s.OpenQuestion(); open || s.Status != job.StatusCompleted || s.Questions[0].Status != job.QuestionClaimEnded {
			t.Errorf("the job is %s, its question %+v", s.Status, s.Questions)
		}
	})
	t.Run("in a sandbox only", func(t *testing.T) {
		given(t, created()).When(robotAsk("q")).Conflict("the job is not a sandbox's")
		given(t, created(sandbox, noList)).When(robotAsk("q")).Conflict("the checklist is being written")
		given(t, created(sandbox, slot)).When(robotAsk("q")).Conflict("the session has not started")
		given(t, created(sandbox), claimedBy(job.Player, 1), completed()).When(robotAsk("q")).Conflict("the job is completed")
	})
}

func TestNoCheckerClaimsARobotsJob(t *testing.T) {
	t.Parallel()
	given(t, created(sandbox)).When(claimAs("ann")).Conflict("a sandbox job is not for checkers")
	given(t, created(aiReview)).When(claimAs("ann")).Conflict("an AI review is not for checkers")
}
