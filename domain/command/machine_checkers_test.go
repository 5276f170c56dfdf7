package command_test

import (
	"fmt"
	"reflect"
	"slices"
	"time"

	"pgregory.net/rapid"

	"humanqa/domain"
	"humanqa/domain/command"
	"humanqa/domain/job"
)

// What the checkers do, and a sandbox's robots.

// pick draws one of the jobs that are such.
func (w *world) pick(t *rapid.T, such func(job.State) bool) string {
	ids := slices.DeleteFunc(slices.Clone(w.jobOrder), func(id string) bool { return !such(w.jobs[id]) })
	if len(ids) == 0 {
		t.Skip("there is no such job")
	}
	return rapid.SampledFrom(ids).Draw(t, "job")
}

func (w *world) claim(t *rapid.T) {
	id := w.pick(t, func(j job.State) bool { return j.Exists && j.Status == job.StatusPending && !j.Sandbox })
	if rapid.IntRange(0, 9).Draw(t, "any") == 0 {
		id = rapid.SampledFrom(w.jobOrder).Draw(t, "any job")
	}
	w.claimAs(t, rapid.SampledFrom(w.checkers).Draw(t, "checker"), id)
}

func (w *world) claimAs(t *rapid.T, checker, id string) {
	w.tell(t, &order{
		name: "claim",
		// A place is reserved before the job is asked.
		refuses: []string{"checker.claim_taken"},
		do: func(s *command.Service) (any, error) { // each attempt is a command of its own
			return s.ClaimJob(ctx(), w.checker(checker), checker, id)
		},
		holds: func(answer any, _ int) string {
			a, j := answer.(command.ClaimedJob), w.jobs[id]
			w.claims = append(w.claims, command.Claim{CheckerID: checker, JobID: id, Token: a.Token})
			switch {
			case j.Status != job.StatusClaimed || j.CheckerID != checker || j.Token != a.Token || !j.DueAt.Equal(a.DueAt):
				return fmt.Sprintf("the job is %s by %s under %d", j.Status, j.CheckerID, j.Token)
			case j.Sandbox || j.Type.Automatic() || len(a.Checklist) == 0:
				return "it is no job for people"
			case j.AccessInstructions != "" && !a.Brief.HasSecrets:
				return "the brief hides that there is a way in"
			}
			return ""
		},
	})
}

// tell is send for what a checker or a robot does: who is not answered asks
// again at once, or never.
func (w *world) tell(t *rapid.T, o *order) (any, bool) {
	answer, ok := w.send(t, o)
	w.orders = w.orders[:len(w.orders)-1]
	return answer, ok
}

// drawClaim draws a live claim, now and then one that was.
func (w *world) drawClaim(t *rapid.T) command.Claim {
	if len(w.claims) == 0 {
		t.Skip("nothing was claimed")
	}
	live := slices.DeleteFunc(slices.Clone(w.claims), func(c command.Claim) bool { return !w.live(c) })
	if len(live) == 0 || rapid.IntRange(0, 4).Draw(t, "stale") == 0 {
		c := rapid.SampledFrom(w.claims).Draw(t, "claim")
		c.Token += rapid.SampledFrom([]int{0, 0, 1, -1}).Draw(t, "token")
		return c
	}
	return rapid.SampledFrom(live).Draw(t, "claim")
}

func (w *world) live(c command.Claim) bool {
	j := w.jobs[c.JobID]
	return j.Status == job.StatusClaimed && j.CheckerID == c.CheckerID && j.Token == c.Token
}

// under sends what only a claimant may do. Without the live claim it changes
// nothing, and is only answered if it repeats what ended that claim.
func (w *world) under(t *rapid.T, claim command.Claim, o *order) (any, bool) {
	live, before, was := w.live(claim), w.seen, w.jobs[claim.JobID]
	answer, ok := w.tell(t, o)
	if live {
		return answer, ok
	}
	repeat := was.Token == claim.Token && (was.CheckerID == claim.CheckerID && was.Status == job.StatusCompleted ||
		was.ReleasedBy == claim.CheckerID && (was.Status == job.StatusPending || was.Status == job.StatusFailed))
	if ok && !repeat {
		t.Fatalf("%s under the stale claim %+v is answered %+v", o.name, claim, answer)
	}
	for _, r := range w.log.All()[before:] {
		if r.Stream == domain.JobStream(claim.JobID) {
			t.Fatalf("%s under the stale claim %+v writes %s", o.name, claim, r.Type)
		}
	}
	return answer, ok
}

func (w *world) work(t *rapid.T) {
	claim := w.drawClaim(t)
	c := w.checker(claim.CheckerID)
	nothing := func(any, int) string { return "" }
	switch rapid.IntRange(0, 6).Draw(t, "work") {
	case 0, 1:
		item := rapid.SampledFrom([]string{"item-1", "item-2", "item-9"}).Draw(t, "item")
		w.checkItem(t, claim, item, drawVerdict(t))
	case 2:
		w.under(t, claim, &order{name: "find", holds: nothing, do: func(s *command.Service) (any, error) {
			item, _, err := s.AddFinding(ctx(), c, claim, job.Finding{Item: job.Item{Description: "a typo"}, Status: job.ItemFail})
			return item, err
		}})
	case 3:
		w.reveal(t, claim)
	case 4:
		w.under(t, claim, &order{name: "heartbeat", holds: nothing, do: func(s *command.Service) (any, error) {
			due, _, err := s.Heartbeat(ctx(), c, claim)
			return due, err
		}})
	case 5:
		w.under(t, claim, &order{
			name: "release",
			do: func(s *command.Service) (any, error) {
				_, err := s.ReleaseJob(ctx(), c, claim)
				return true, err
			},
			holds: func(any, int) string {
				if w.live(claim) {
					return "the claim lives"
				}
				return ""
			},
		})
	case 6:
		w.untestable(t, claim)
	}
}

// reveal expects that what is shown is in the log.
func (w *world) reveal(t *rapid.T, claim command.Claim) {
	w.under(t, claim, &order{
		name: "reveal",
		do: func(s *command.Service) (any, error) {
			brief, _, err := s.Reveal(ctx(), w.checker(claim.CheckerID), claim)
			return brief, err
		},
		holds: func(answer any, _ int) string {
			brief, j := answer.(command.Brief), w.jobs[claim.JobID]
			switch {
			case j.AccessInstructions != "" && brief.AccessInstructions != "ring twice":
				return "the brief hides how to get in"
			case brief.AccessInstructions != "" && w.live(claim) && !slices.Contains(j.Shown, job.SecretAccess):
				return "the log does not tell what was shown"
			}
			return ""
		},
	})
}

func (w *world) untestable(t *rapid.T, claim command.Claim) {
	c := w.checker(claim.CheckerID)
	w.under(t, claim, &order{
		name: "untestable",
		do: func(s *command.Service) (any, error) {
			status, _, err := s.ReportUntestable(ctx(), c, claim, "down", "")
			return status, err
		},
		holds: func(answer any, _ int) string {
			if status := w.jobs[claim.JobID].Status; status != answer.(job.Status) {
				return fmt.Sprintf("the job is %s", status)
			}
			return ""
		},
	})
}

func drawVerdict(t *rapid.T) job.ItemStatus {
	return rapid.SampledFrom([]job.ItemStatus{job.ItemPass, job.ItemFail}).Draw(t, "verdict")
}

func (w *world) checkItem(t *rapid.T, claim command.Claim, item string, verdict job.ItemStatus) {
	c := w.checker(claim.CheckerID)
	in := command.CheckItem{ItemID: item, Status: verdict}
	w.under(t, claim, &order{
		name: "check",
		do: func(s *command.Service) (any, error) {
			line, _, err := s.CheckItem(ctx(), c, claim, in)
			return line, err
		},
		holds: func(answer any, _ int) string {
			j := w.jobs[claim.JobID]
			if line, _ := j.ReportItem(item); !reflect.DeepEqual(line, answer.(job.ReportItem)) {
				return fmt.Sprintf("the report says %+v", line)
			}
			return ""
		},
	})
}

func (w *world) complete(t *rapid.T) { w.report(t, w.drawClaim(t), drawVerdict(t)) }

// finish has somebody test a job from its beginning to its end, if nothing comes
// in between.
func (w *world) finish(t *rapid.T, id string, verdict job.ItemStatus) {
	if j := w.jobs[id]; j.Sandbox {
		w.playAs(t, tenant{j.AccountID, true}, id, verdict)
		return
	}
	w.claimAs(t, rapid.SampledFrom(w.checkers).Draw(t, "checker"), id)
	if j := w.jobs[id]; j.Status == job.StatusClaimed {
		w.report(t, command.Claim{CheckerID: j.CheckerID, JobID: id, Token: j.Token}, verdict)
	}
}

// iterate is some of an agent's rounds: a test, what became of it, and what the
// agent says it has mended.
func (w *world) iterate(t *rapid.T) {
	a, in := w.drawTenant(t), w.drawTest(t)
	in.Loop = &command.LoopStep{Skill: "fix-it", Iteration: 2, MaxIterations: rapid.SampledFrom([]int{0, 2}).Draw(t, "most")}
	for n := rapid.IntRange(1, 4).Draw(t, "rounds"); n > 0; n-- {
		id := w.test(t, a, in)
		if id == "" {
			return
		}
		w.finish(t, id, rapid.SampledFrom([]job.ItemStatus{job.ItemFail, job.ItemFail, job.ItemFail, job.ItemPass}).Draw(t, "outcome"))
		if rapid.Bool().Draw(t, "mended") {
			w.mend(t, a, w.jobs[id].ProjectID)
		}
		if rapid.Bool().Draw(t, "judged") {
			w.settle(t)
		}
	}
}

// giveUp has two checkers say that a job cannot be tested.
func (w *world) giveUp(t *rapid.T) {
	id := w.pick(t, func(j job.State) bool { return j.Exists && j.Status == job.StatusPending && !j.Sandbox })
	for _, checker := range w.checkers[:2] {
		w.claimAs(t, checker, id)
		w.untestable(t, command.Claim{CheckerID: checker, JobID: id, Token: w.jobs[id].Token})
	}
}

// report checks the whole list and completes the job.
func (w *world) report(t *rapid.T, claim command.Claim, verdict job.ItemStatus) {
	for _, item := range w.jobs[claim.JobID].Items {
		w.checkItem(t, claim, item.ID, verdict)
	}
	c := w.checker(claim.CheckerID)
	w.under(t, claim, &order{
		name: "complete",
		do: func(s *command.Service) (any, error) {
			report, _, err := s.CompleteJob(ctx(), c, claim, command.CompleteJob{Summary: "done"})
			return report.ReportID, err
		},
		holds: func(answer any, _ int) string {
			if j := w.jobs[claim.JobID]; j.Status != job.StatusCompleted || j.ReportID() != answer {
				return fmt.Sprintf("the job is %s with report %s", j.Status, j.ReportID())
			}
			return ""
		},
	})
}

func (w *world) advance(t *rapid.T) {
	a := w.drawTenant(t)
	c := w.client(a)
	by := rapid.SampledFrom([]time.Duration{time.Minute, 16 * time.Minute, time.Hour, 25 * time.Hour}).Draw(t, "by")
	before := w.ahead[a.id]
	w.send(t, &order{
		name: "advance the clock", once: true,
		do: func(s *command.Service) (any, error) { return s.AdvanceClock(ctx(), c, by) },
		holds: func(answer any, _ int) string {
			if ahead := answer.(command.AdvancedClock).Ahead; !a.sandbox || ahead < before+by || ahead > w.ahead[a.id] {
				return fmt.Sprintf("the account is %s ahead, and was %s", w.ahead[a.id], before)
			}
			return ""
		},
	})
}

// play has the robot complete a job.
func (w *world) play(t *rapid.T) {
	id := w.pick(t, func(j job.State) bool { return j.Exists && j.Sandbox })
	if rapid.IntRange(0, 9).Draw(t, "any") == 0 {
		id = rapid.SampledFrom(w.jobOrder).Draw(t, "any job")
	}
	w.playAs(t, w.drawTenant(t), id, drawVerdict(t))
}

// robotAsks has the robot ask about a job. It goes on by a timer.
func (w *world) robotAsks(t *rapid.T) {
	id := w.pick(t, func(j job.State) bool { return j.Exists && j.Sandbox && !j.Status.Ended() })
	a, in := w.drawTenant(t), command.PlayQuestion{Kind: "other", Text: "Is this meant?"}
	var results []command.PlayResult
	if items := w.jobs[id].Items; len(items) > 0 {
		results = []command.PlayResult{{Item: items[0].ID, Status: drawVerdict(t)}}
		if rapid.Bool().Draw(t, "about an item") {
			in.Item = items[0].ID
		}
	}
	c := w.client(a)
	w.send(t, &order{
		name: "robot asks", once: true,
		do: func(s *command.Service) (any, error) {
			q, _, err := s.AskInPlay(ctx(), c, id, in, results, "played")
			return q.ID, err // a repeat gives the same question, as it is by then
		},
		holds: func(answer any, _ int) string {
			j := w.jobs[id]
			if j.AccountID != a.id || !j.Sandbox || !slices.ContainsFunc(j.Questions, func(q job.Question) bool { return q.ID == answer }) {
				return fmt.Sprintf("the job is %s with %+v", j.Status, j.Questions)
			}
			return ""
		},
	})
}

// answer answers an open question.
func (w *world) answer(t *rapid.T) {
	id := w.pick(t, func(j job.State) bool { _, open := j.OpenQuestion(); return open })
	a := w.drawTenant(t)
	c := w.client(a)
	question := "none"
	if n := len(w.jobs[id].Questions); n > 0 {
		question = w.jobs[id].Questions[n-1].ID
	}
	w.send(t, &order{
		name: "answer", once: true,
		do: func(s *command.Service) (any, error) {
			q, _, err := s.AnswerQuestion(ctx(), c, id, command.AnswerQuestion{QuestionID: question, Text: "It is."})
			return q, err
		},
		holds: func(any, int) string {
			j := w.jobs[id]
			if _, open := j.OpenQuestion(); open || j.AccountID != a.id {
				return fmt.Sprintf("the job is %s with %+v", j.Status, j.Questions)
			}
			return ""
		},
	})
}

func (w *world) playAs(t *rapid.T, a tenant, id string, verdict job.ItemStatus) {
	var results []command.PlayResult
	if items := w.jobs[id].Items; len(items) > 0 {
		results = []command.PlayResult{{Item: items[0].ID, Status: verdict}}
	}
	c := w.client(a)
	w.send(t, &order{
		name: "play", once: true,
		do: func(s *command.Service) (any, error) {
			report, _, err := s.PlayJob(ctx(), c, id, results, "played")
			return report, err
		},
		holds: func(answer any, _ int) string {
			j := w.jobs[id]
			if j.AccountID != a.id || !j.Sandbox || j.ReportID() != answer.(job.Completed).ReportID {
				return fmt.Sprintf("the job is %s with report %s", j.Status, j.ReportID())
			}
			return ""
		},
	})
}
