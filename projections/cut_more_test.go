package projections

import (
	"fmt"
	"testing"
	"time"

	"humanqa/domain"
	"humanqa/domain/account"
	"humanqa/domain/credits"
	"humanqa/domain/job"
	"humanqa/domain/loop"
	"humanqa/domain/policy"
	"humanqa/domain/project"
	"humanqa/domain/session"
)

// A submission that is slow to take its fixes along, and whose repeat is fast:
// the job has ended when the project writes down that it has them.
func TestFixesThatComeToAnEndedJobDoNotDependOnTheCut(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.log.append(domain.ProjectStream("p1"), &project.Created{AccountID: "acc", Name: "p1", HookHash: "h", At: noon}, prepared("x", "mail", "pay"))
	for i, end := range []domain.Event{&job.CancelledBy{Refund: 5, At: noon}, completed("pass")} {
		id := fmt.Sprint("late", i)
		w.log.append(domain.JobStream(id), created("acc", func(e *job.Created) { e.ProjectID = "p1" }), end)
		w.log.append(domain.ProjectStream("p1"), &project.RegressionsAttached{JobIDs: []string{id}, Items: []string{fmt.Sprint("x", i)}, At: noon})
	}
	w.cutAnyhow(historyProjector{})
}

func TestHowTheLogIsCutDoesNotMatterToWhatHappensByItself(t *testing.T) {
	t.Parallel()
	for _, p := range []Projector{sessionsProjector{}, loopsProjector{}, newTimersProjector(policy.Rules())} {
		t.Run(p.Name(), func(t *testing.T) {
			t.Parallel()
			w := setup(t)
			hours(w.log)
			w.cutAnyhow(p)
		})
	}
}

// hours appends sessions, loops and sandboxes whose clocks move meanwhile.
func hours(m *memoryLog) {
	for i := range 12 {
		acc := fmt.Sprint("acc", i)
		m.append(domain.AccountStream(acc), &account.Created{Name: acc, Sandbox: i%2 == 0})
		over := noon.Add(time.Duration(i) * time.Hour)
		m.append(domain.CreditsStream(acc), &credits.Granted{LotID: "lot" + acc, Amount: 100, ExpiresAt: &over})
		id := fmt.Sprint("s", i)
		gather(m, id, func(e *session.Created) { e.AccountID = acc })
		if i%2 == 0 {
			m.append(domain.AccountStream(acc), &account.ClockAdvanced{AdvanceID: "a", Seconds: 60, OffsetSeconds: 60})
		}
		slot := func(n int) string { return domain.JobStream(fmt.Sprint(id, "-", n)) }
		stream := domain.SessionStream(id)
		m.append(slot(1), claimed("ann"))
		m.append(stream, &session.SlotReady{Slot: 1, CheckerID: "ann", Token: 1, At: noon})
		switch i % 4 {
		case 0:
			m.append(stream, &session.ExpiredBy{At: noon})
			for n := 1; n <= 3; n++ {
				m.append(slot(n), &job.CancelledBy{Refund: 5, SessionID: id, At: noon})
				m.append(domain.CreditsStream(acc), refunded(fmt.Sprint(id, "-", n)))
			}
		case 1:
			m.append(slot(1), &job.Released{Token: 1, Reason: "checker", At: noon})
			m.append(stream, &session.SlotLeft{Slot: 1, CheckerID: "ann", At: noon})
		default:
			m.append(slot(2), claimed("bob"))
			m.append(stream, &session.Started{Ready: []int{1, 2}, Dropped: []int{3}, DueAt: over, At: noon})
			m.append(slot(1), &job.SlotStarted{DueAt: over, At: noon}, &job.Heartbeat{Token: 1, At: over})
			m.append(slot(3), &job.CancelledBy{Refund: 5, SessionID: id, At: noon})
			m.append(slot(2), &job.SlotStarted{DueAt: over, At: noon}, &job.SLAMissed{At: over}, &job.FailedBy{SessionID: id, At: over})
			if i%4 == 2 {
				m.append(slot(1), &job.CompletedWith{ReportID: "r", SessionID: id, OverallStatus: "pass", At: over})
				m.append(stream, &session.CompletedWith{PassCount: 1, At: over})
			}
		}
		loopStream, jobID := domain.LoopStream(fmt.Sprint("l", i%3)), fmt.Sprint("j", i)
		run := fmt.Sprint("run", i/3, "-", i%3)
		m.append(loopStream,
			&loop.Started{SessionID: run, AccountID: acc, ProjectID: "p", Skill: "fix", MaxIterations: 10, At: noon},
			&loop.Iterated{SessionID: run, JobID: jobID, Credits: 5, At: noon})
		m.append(domain.CreditsStream(acc), &credits.Debited{JobID: jobID, Amount: 5})
		m.append(domain.JobStream(jobID), created(acc, func(e *job.Created) { e.LoopID = "l"; e.Items = e.Items[:i%2] }))
		if i%2 == 0 {
			m.append(domain.AccountStream(acc), &account.ClockAdvanced{AdvanceID: "b", Seconds: 3600, OffsetSeconds: 3660})
			m.append(domain.JobStream(jobID), &job.SLAMissed{Requeued: true, RequeueCount: 1, DueAt: over, At: noon})
			m.append(loopStream, &loop.Judged{SessionID: run, JobID: jobID, FailingKeys: []string{"k"}, ReportID: "r", At: noon})
		}
		m.append(loopStream, &loop.Ended{SessionID: run, FinalStatus: loop.Abandoned, At: noon})
	}
}
