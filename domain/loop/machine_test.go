package loop_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"humanqa/domain"
	"humanqa/domain/loop"
)

// history is a loop with a bookkeeping of its own beside it.
type history struct {
	state    loop.State
	now      time.Time
	sessions []string
	jobs     []string
	prices   map[string]domain.Credits
	spent    map[string]domain.Credits // by session, until its end
	counted  map[string]int
	ends     map[string]loop.Status
	outcome  map[string]bool
}

func (h *history) happens(t *rapid.T, decide func(loop.State) ([]domain.Event, error)) {
	events, err := decide(h.state)
	if err != nil {
		if len(events) > 0 {
			t.Fatalf("a refusal came with events: %v", events)
		}
		return
	}
	for _, e := range events {
		h.check(t, e)
		h.state = loop.Evolve(h.state, e)
	}
	again, err := decide(h.state)
	if err != nil || len(again) > 0 {
		t.Fatalf("the repeat is not harmless: %v, %v", again, err)
	}
}

func (h *history) check(t *rapid.T, e domain.Event) {
	running := h.state.Session.ID
	if h.state.Session.Status != loop.StatusRunning {
		running = ""
	}
	switch e := e.(type) {
	case *loop.Started:
		if running != "" || slices.Contains(h.sessions, e.SessionID) {
			t.Fatalf("%s starts while %q runs", e.SessionID, running)
		}
		h.sessions = append(h.sessions, e.SessionID)
	case *loop.Iterated:
		if e.SessionID != running || slices.Contains(h.jobs, e.JobID) {
			t.Fatalf("%s joins %s while %q runs", e.JobID, e.SessionID, running)
		}
		h.jobs = append(h.jobs, e.JobID)
		h.prices[e.JobID] = e.Credits
		h.spent[e.SessionID] += e.Credits
		h.counted[e.SessionID]++
	case *loop.OutcomeRecorded:
		if e.SessionID != running || h.outcome[e.JobID] || e.Refund > h.prices[e.JobID] {
			t.Fatalf("%+v is recorded while %q runs", e, running)
		}
		h.outcome[e.JobID] = true
		h.spent[e.SessionID] -= e.Refund
	case *loop.Ended:
		if e.SessionID != running || h.ends[e.SessionID] != "" {
			t.Fatalf("%s ends while %q runs", e.SessionID, running)
		}
		if e.CreditsSpent != h.spent[e.SessionID] || e.Iterations != h.counted[e.SessionID] || e.CreditsSpent < 0 {
			t.Fatalf("%+v, want %d credits for %d tests", e, h.spent[e.SessionID], h.counted[e.SessionID])
		}
		if bad := e.FinalStatus != loop.StatusPassed && e.FinalStatus != loop.StatusAbandoned; e.Alert != bad {
			t.Fatalf("the end %s alerts: %v", e.FinalStatus, e.Alert)
		}
		h.ends[e.SessionID] = e.FinalStatus
	}
}

// Whatever happens in whatever order: one session at a time, each ends once,
// each test counts once, and what an end says adds up.
func TestNoHistoryTakesALoopOutOfLine(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		h := &history{
			now: noon, prices: map[string]domain.Credits{}, spent: map[string]domain.Credits{}, counted: map[string]int{},
			ends: map[string]loop.Status{}, outcome: map[string]bool{},
		}
		at := func() loop.Setting { return loop.Setting{Now: h.now} }
		job := rapid.SampledFrom([]string{"j1", "j2", "j3", "j4", "j5", "j6", "j7", "j8"})
		t.Repeat(map[string]func(*rapid.T){
			"join": func(t *rapid.T) {
				start := loop.Started{
					SessionID: fmt.Sprint("s", len(h.sessions)), AccountID: "acc", ProjectID: "p", Skill: "fix",
					MaxIterations: rapid.IntRange(0, 4).Draw(t, "max"),
				}
				test := loop.Iterated{JobID: job.Draw(t, "job"), Iteration: rapid.IntRange(1, 3).Draw(t, "iteration"), Credits: 5}
				h.happens(t, func(st loop.State) ([]domain.Event, error) { return loop.DecideJoin(st, start, test, at()) })
			},
			"outcome": func(t *rapid.T) {
				o := loop.OutcomeRecorded{JobID: job.Draw(t, "job"), FailingKeys: []string{}}
				switch o.Overall = rapid.SampledFrom([]string{"", "pass", "fail"}).Draw(t, "overall"); o.Overall {
				case "":
					o.Refund = 5
				case "fail":
					o.ReportID, o.FailingKeys = "r", []string{rapid.SampledFrom([]string{"a", "b"}).Draw(t, "key")}
				default:
					o.ReportID = "r"
				}
				h.happens(t, func(st loop.State) ([]domain.Event, error) { return loop.DecideRecordOutcome(st, o, at()) })
			},
			"finalize": func(t *rapid.T) {
				id := rapid.SampledFrom(append([]string{"nobody's"}, h.sessions...)).Draw(t, "session")
				final := rapid.SampledFrom(loop.Ends()).Draw(t, "final")
				h.happens(t, func(st loop.State) ([]domain.Event, error) { return loop.DecideFinalize(st, id, final, at()) })
			},
			"out of credits": func(t *rapid.T) {
				unpaid := rapid.SampledFrom(append([]string{"no job's"}, slices.Sorted(maps.Keys(h.state.Session.Open))...)).Draw(t, "unpaid")
				h.happens(t, func(st loop.State) ([]domain.Event, error) { return loop.DecideOutOfCredits(st, unpaid, at()) })
			},
			"abandon": func(t *rapid.T) {
				h.happens(t, func(st loop.State) ([]domain.Event, error) { return loop.DecideAbandon(st, at()) })
			},
			"time passes": func(t *rapid.T) {
				h.now = h.now.Add(time.Duration(rapid.IntRange(1, 30).Draw(t, "hours")) * time.Hour)
			},
			"": func(t *rapid.T) {
				if !maps.Equal(h.ends, h.state.Ends) {
					t.Fatalf("the loop knows the ends %v, want %v", h.state.Ends, h.ends)
				}
			},
		})
	})
}
