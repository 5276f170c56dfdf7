package loop_test

import (
	"slices"
	"testing"
	"time"

	"humanqa/domain"
	"humanqa/domain/loop"
	"humanqa/internal/testing/scenario"
)

type decide = scenario.Decide[loop.State]

func given(t *testing.T, events ...domain.Event) *scenario.Given[loop.State] {
	return scenario.New(t, loop.Evolve, events...)
}

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func setting() loop.Setting { return loop.Setting{ProjectName: "Shop", Now: noon} }

func later(d time.Duration) loop.Setting { return loop.Setting{ProjectName: "Shop", Now: noon.Add(d)} }

func started(id string) domain.Event { return startedWith(id, loop.DefaultMaxIterations, noon) }

func startedWith(id string, most int, at time.Time) domain.Event {
	return &loop.Started{SessionID: id, AccountID: "acc", ProjectID: "p", Skill: "fix", MaxIterations: most, At: at}
}

func iterated(id, jobID string, n int) domain.Event { return iteratedAt(id, jobID, n, noon) }

func iteratedAt(id, jobID string, n int, at time.Time) domain.Event {
	return &loop.Iterated{SessionID: id, JobID: jobID, Iteration: n, Credits: 5, At: at}
}

func outcome(id, jobID, overall string, keys ...string) domain.Event {
	if keys == nil {
		keys = []string{}
	}
	return &loop.OutcomeRecorded{
		SessionID: id, JobID: jobID, Overall: overall, ReportID: "r-" + jobID, FailingKeys: keys, At: noon,
	}
}

func lost(id, jobID string) domain.Event {
	return &loop.OutcomeRecorded{SessionID: id, JobID: jobID, FailingKeys: []string{}, Refund: 5, At: noon}
}

func ended(id string, final loop.Status, change ...func(*loop.Ended)) domain.Event {
	e := &loop.Ended{SessionID: id, ProjectID: "p", ProjectName: "Shop", Skill: "fix", FinalStatus: final, At: noon}
	for _, c := range change {
		c(e)
	}
	return e
}

func after(iterations int, spent domain.Credits, report string) func(*loop.Ended) {
	return func(e *loop.Ended) { e.Iterations, e.CreditsSpent, e.FinalReportID = iterations, spent, report }
}

func alert(e *loop.Ended) { e.Alert = true }

func at(when time.Time) func(*loop.Ended) { return func(e *loop.Ended) { e.At = when } }

func join(id, jobID string, n int, s loop.Setting) decide {
	return func(st loop.State) ([]domain.Event, error) {
		return loop.DecideJoin(st, loop.Started{SessionID: id, AccountID: "acc", ProjectID: "p", Skill: "fix"},
			loop.Iterated{JobID: jobID, Iteration: n, Credits: 5}, s)
	}
}

func record(jobID, overall string, keys ...string) decide {
	if keys == nil {
		keys = []string{}
	}
	return func(st loop.State) ([]domain.Event, error) {
		o := loop.OutcomeRecorded{JobID: jobID, Overall: overall, ReportID: "r-" + jobID, FailingKeys: keys}
		return loop.DecideRecordOutcome(st, o, setting())
	}
}

func lose(jobID string) decide {
	return func(st loop.State) ([]domain.Event, error) {
		return loop.DecideRecordOutcome(st, loop.OutcomeRecorded{JobID: jobID, FailingKeys: []string{}, Refund: 5}, setting())
	}
}

func finalize(id string, final loop.Status) decide {
	return func(st loop.State) ([]domain.Event, error) { return loop.DecideFinalize(st, id, final, setting()) }
}

func outOfCredits(unpaid string) decide {
	return func(st loop.State) ([]domain.Event, error) { return loop.DecideOutOfCredits(st, unpaid, setting()) }
}

func abandon(s loop.Setting) decide {
	return func(st loop.State) ([]domain.Event, error) { return loop.DecideAbandon(st, s) }
}

func TestATestJoins(t *testing.T) {
	t.Parallel()
	t.Run("a session that it starts", func(t *testing.T) {
		given(t).When(join("s1", "j1", 1, setting())).Events(started("s1"), iterated("s1", "j1", 1))
	})
	t.Run("also when the agent has counted on", func(t *testing.T) {
		given(t).When(join("s1", "j4", 4, setting())).Events(started("s1"), iterated("s1", "j4", 4))
	})
	t.Run("the session that runs", func(t *testing.T) {
		given(t, started("s1"), iterated("s1", "j1", 1)).
			When(join("s2", "j2", 2, setting())).Events(iterated("s1", "j2", 2))
	})
	t.Run("a new one when the agent begins again", func(t *testing.T) {
		given(t, started("s1"), iterated("s1", "j1", 1)).
			When(join("s2", "j2", 1, setting())).
			Events(ended("s1", loop.StatusAbandoned, after(1, 5, "")), started("s2"), iterated("s2", "j2", 1))
	})
	t.Run("a new one after a day of silence", func(t *testing.T) {
		day := noon.Add(loop.SilentFor)
		given(t, started("s1"), iterated("s1", "j1", 1)).
			When(join("s2", "j2", 2, later(loop.SilentFor))).
			Events(ended("s1", loop.StatusAbandoned, after(1, 5, ""), at(day)),
				startedWith("s2", loop.DefaultMaxIterations, day), iteratedAt("s2", "j2", 2, day))
	})
	t.Run("a new one after an end", func(t *testing.T) {
		given(t, started("s1"), iterated("s1", "j1", 1), outcome("s1", "j1", "pass"), ended("s1", loop.StatusPassed)).
			When(join("s2", "j2", 2, setting())).Events(started("s2"), iterated("s2", "j2", 2))
	})
	t.Run("once, however often it is sent", func(t *testing.T) {
		given(t, started("s1"), iterated("s1", "j1", 1)).When(join("s2", "j1", 1, setting())).Nothing()
		given(t, started("s1"), iterated("s1", "j1", 1), ended("s1", loop.StatusAbandoned)).
			When(join("s2", "j1", 1, setting())).Nothing()
	})
	t.Run("with the agent's own bound", func(t *testing.T) {
		given(t).When(func(st loop.State) ([]domain.Event, error) {
			return loop.DecideJoin(st, loop.Started{SessionID: "s1", AccountID: "acc", ProjectID: "p", Skill: "fix", MaxIterations: 3},
				loop.Iterated{JobID: "j1", Iteration: 1, Credits: 5}, setting())
		}).Events(startedWith("s1", 3, noon), iterated("s1", "j1", 1))
	})
}

func TestASessionPasses(t *testing.T) {
	t.Parallel()
	given(t, started("s1"), iterated("s1", "j1", 1)).
		When(record("j1", "pass")).
		Events(outcome("s1", "j1", "pass"), ended("s1", loop.StatusPassed, after(1, 5, "r-j1")))
}

// failed is a session in which each test failed with its own keys.
func failed(keys ...[]string) []domain.Event {
	events := []domain.Event{started("s1")}
	for i, k := range keys {
		jobID := string(rune('a' + i))
		events = append(events, iterated("s1", jobID, i+1), outcome("s1", jobID, "fail", k...))
	}
	return events
}

func TestASessionIsStuckOnTheSameBug(t *testing.T) {
	t.Parallel()
	pay, mail := []string{"pay"}, []string{"mail"}
	both := []string{"mail", "pay"}
	third := func(before []domain.Event, keys ...string) *scenario.Then[loop.State] {
		return given(t, append(before, iterated("s1", "z", 9))...).When(record("z", "fail", keys...))
	}
	t.Run("after three reports in a row with the same failing keys", func(t *testing.T) {
		third(failed(pay, pay), "pay").
			Events(outcome("s1", "z", "fail", "pay"), ended("s1", loop.StatusStuckSameBug, after(3, 15, "r-z"), alert))
		third(failed(mail, both, both), "mail", "pay").
			Events(outcome("s1", "z", "fail", "mail", "pay"), ended("s1", loop.StatusStuckSameBug, after(4, 20, "r-z"), alert))
	})
	t.Run("not after two", func(t *testing.T) {
		third(failed(pay), "pay").Events(outcome("s1", "z", "fail", "pay"))
	})
	t.Run("not when another one came in between", func(t *testing.T) {
		third(failed(pay, pay, mail), "pay").Events(outcome("s1", "z", "fail", "pay"))
		third(failed(pay, both), "pay").Events(outcome("s1", "z", "fail", "pay"))
	})
	t.Run("not when nothing failed", func(t *testing.T) {
		before := failed()
		for i, jobID := range []string{"a", "b"} {
			before = append(before, iterated("s1", jobID, i+1), outcome("s1", jobID, "inconclusive"))
		}
		given(t, append(before, iterated("s1", "z", 3))...).
			When(record("z", "inconclusive")).Events(outcome("s1", "z", "inconclusive"))
	})
	t.Run("a test without a report is passed over", func(t *testing.T) {
		third(append(failed(pay, pay), iterated("s1", "l", 3), lost("s1", "l")), "pay").
			Events(outcome("s1", "z", "fail", "pay"), ended("s1", loop.StatusStuckSameBug, after(4, 15, "r-z"), alert))
	})
	t.Run("silently while the project's alerts are snoozed", func(t *testing.T) {
		given(t, append(failed(pay, pay), iterated("s1", "z", 3))...).
			When(func(st loop.State) ([]domain.Event, error) {
				s := setting()
				s.Snoozed = true
				return loop.DecideRecordOutcome(st, loop.OutcomeRecorded{JobID: "z", Overall: "fail", ReportID: "r-z", FailingKeys: pay}, s)
			}).
			Events(outcome("s1", "z", "fail", "pay"), ended("s1", loop.StatusStuckSameBug, after(3, 15, "r-z")))
	})
}

func TestASessionReachesItsCap(t *testing.T) {
	t.Parallel()
	capped := []domain.Event{startedWith("s1", 2, noon), iterated("s1", "a", 1)}
	t.Run("with the last allowed test", func(t *testing.T) {
		given(t, append(capped, outcome("s1", "a", "fail", "pay"), iterated("s1", "b", 2))...).
			When(record("b", "fail", "mail")).
			Events(outcome("s1", "b", "fail", "mail"), ended("s1", loop.StatusMaxIterations, after(2, 10, "r-b"), alert))
	})
	t.Run("unless it passes", func(t *testing.T) {
		given(t, append(capped, outcome("s1", "a", "fail", "pay"), iterated("s1", "b", 2))...).
			When(record("b", "pass")).
			Events(outcome("s1", "b", "pass"), ended("s1", loop.StatusPassed, after(2, 10, "r-b")))
	})
	t.Run("once the outcome of every test is known", func(t *testing.T) {
		given(t, append(capped, iterated("s1", "b", 2))...).
			When(record("a", "fail", "pay")).Events(outcome("s1", "a", "fail", "pay")).
			When(record("b", "pass")).
			Events(outcome("s1", "b", "pass"), ended("s1", loop.StatusPassed, after(2, 10, "r-b")))
	})
	t.Run("also with a test that was given back", func(t *testing.T) {
		given(t, append(capped, outcome("s1", "a", "fail", "pay"), iterated("s1", "b", 2))...).
			When(lose("b")).
			Events(lost("s1", "b"), ended("s1", loop.StatusMaxIterations, after(2, 5, "r-a"), alert))
	})
}

func TestAnOutcomeCountsOnce(t *testing.T) {
	t.Parallel()
	running := []domain.Event{started("s1"), iterated("s1", "j1", 1), outcome("s1", "j1", "fail", "pay")}
	given(t, running...).When(record("j1", "fail", "pay")).Nothing()
	t.Run("and only in the session that runs", func(t *testing.T) {
		given(t, running...).When(record("j9", "pass")).Nothing()
		given(t, started("s1"), iterated("s1", "j1", 1), ended("s1", loop.StatusAbandoned)).When(record("j1", "pass")).Nothing()
		given(t, started("s1"), iterated("s1", "j1", 1), ended("s1", loop.StatusAbandoned), started("s2"), iterated("s2", "j2", 1)).
			When(record("j1", "pass")).Nothing()
	})
}

func TestASessionRunsOutOfCredits(t *testing.T) {
	t.Parallel()
	given(t, started("s1"), iterated("s1", "j1", 1)).
		When(outOfCredits("j9")).Events(ended("s1", loop.StatusOutOfCredits, after(1, 5, ""), alert))
	t.Run("and leaves out the test that could not be paid", func(t *testing.T) {
		given(t, started("s1"), iterated("s1", "j1", 1), iterated("s1", "j2", 2)).
			When(outOfCredits("j2")).
			Events(lost("s1", "j2"), ended("s1", loop.StatusOutOfCredits, after(2, 5, ""), alert))
	})
	t.Run("if one runs", func(t *testing.T) {
		given(t).When(outOfCredits("j9")).Nothing()
		given(t, started("s1"), iterated("s1", "j1", 1), ended("s1", loop.StatusPassed)).When(outOfCredits("j9")).Nothing()
	})
}

func TestASilentSessionIsAbandoned(t *testing.T) {
	t.Parallel()
	running := []domain.Event{started("s1"), iterated("s1", "j1", 1)}
	given(t, running...).When(abandon(later(loop.SilentFor))).
		Events(ended("s1", loop.StatusAbandoned, after(1, 5, ""), at(noon.Add(loop.SilentFor))))
	given(t, running...).When(abandon(later(loop.SilentFor - time.Millisecond))).Nothing()
	given(t, append(running, iteratedAt("s1", "j2", 2, noon.Add(time.Hour)))...).When(abandon(later(loop.SilentFor))).Nothing()
	given(t).When(abandon(later(loop.SilentFor))).Nothing()
}

func TestAnAgentFinalizesItsSession(t *testing.T) {
	t.Parallel()
	running := []domain.Event{started("s1"), iterated("s1", "j1", 1)}
	for final, alerts := range map[loop.Status]bool{
		loop.StatusPassed: false, loop.StatusAbandoned: false, loop.StatusStuckSameBug: true, loop.StatusOutOfCredits: true, loop.StatusMaxIterations: true,
	} {
		t.Run(string(final), func(t *testing.T) {
			given(t, running...).When(finalize("s1", final)).
				Events(ended("s1", final, after(1, 5, ""), func(e *loop.Ended) { e.Alert = alerts }))
		})
	}
	t.Run("to one end only", func(t *testing.T) {
		over := slices.Concat(running, []domain.Event{ended("s1", loop.StatusPassed)})
		given(t, over...).When(finalize("s1", loop.StatusAbandoned)).Conflict("the loop session has ended: passed")
		t.Run("also once another session runs", func(t *testing.T) {
			next := slices.Concat(over, []domain.Event{started("s2"), iterated("s2", "j2", 1)})
			given(t, next...).When(finalize("s1", loop.StatusPassed)).Nothing()
			given(t, next...).When(finalize("s1", loop.StatusAbandoned)).Conflict("the loop session has ended: passed")
		})
	})
	t.Run("but not to one that is none", func(t *testing.T) {
		given(t, running...).When(finalize("s1", loop.StatusRunning)).Invalid("finalStatus")
		given(t, running...).When(finalize("s1", "done")).Invalid("finalStatus")
	})
	t.Run("and nobody else's", func(t *testing.T) {
		given(t, running...).When(finalize("s9", loop.StatusPassed)).NotFound("loop session")
		given(t).When(finalize("", loop.StatusPassed)).NotFound("loop session")
	})
}
