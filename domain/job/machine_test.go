package job_test

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"humanqa/domain"
	"humanqa/domain/job"
)

// legal lists where each event may lead from where (architecture, section 11,
// invariant 8). The status before the first event is empty.
var legal = map[string]map[job.Status]job.Status{
	"job.created":       {"": job.Pending},
	"job.voided":        {"": job.Voided},
	"job.claimed":       {job.Pending: job.Claimed},
	"job.released":      {job.Claimed: job.Pending},
	"job.item_checked":  {job.Claimed: job.Claimed},
	"job.finding_added": {job.Claimed: job.Claimed},
	"job.completed":     {job.Claimed: job.Completed},
	"job.cancelled":     {job.Pending: job.Cancelled, job.Claimed: job.Cancelled},
}

var ends = []job.Status{job.Completed, job.Cancelled, job.Failed, job.Voided}

// TestNoHistoryTakesAJobOutOfLine sends commands of three checkers, with
// tokens of claims past, present and future, in any order: only legal
// transitions happen, ends absorb, and one claim at a time is obeyed.
func TestNoHistoryTakesAJobOutOfLine(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := &machine{now: t0}
		t.Repeat(map[string]func(*rapid.T){
			"": m.check,
			"create": func(t *rapid.T) {
				c := submission()
				if rapid.IntRange(0, 4).Draw(t, "slot") == 0 {
					c.SessionID = "s1"
				}
				if len(m.history) == 0 || rapid.Bool().Draw(t, "again") {
					m.run(t, "", 0, func(s job.State) ([]domain.Event, error) { return job.DecideCreate(s, c) })
				}
			},
			"void": func(t *rapid.T) {
				if rapid.IntRange(0, 5).Draw(t, "void") == 0 {
					m.run(t, "", 0, void)
				}
			},
			"claim": func(t *rapid.T) {
				checker := drawChecker(t)
				m.run(t, "", 0, func(s job.State) ([]domain.Event, error) { return job.DecideClaim(s, checker, m.now) })
			},
			"check": func(t *rapid.T) {
				checker, token := m.drawClaim(t)
				c := job.Check{CheckerID: checker, Token: token, At: m.now}
				c.ItemID = rapid.SampledFrom([]string{"i1", "i2", "i3"}).Draw(t, "item")
				c.Status = rapid.SampledFrom([]job.ItemStatus{job.ItemPass, job.ItemFail, job.ItemSkip}).Draw(t, "status")
				c.Reason = rapid.SampledFrom([]string{"", "blocked"}).Draw(t, "reason")
				m.run(t, checker, token, func(s job.State) ([]domain.Event, error) { return job.DecideCheckItem(s, c) })
			},
			"finding": func(t *rapid.T) {
				checker, token := m.drawClaim(t)
				id := fmt.Sprintf("f%d", rapid.IntRange(0, 5).Draw(t, "finding"))
				m.run(t, checker, token, func(s job.State) ([]domain.Event, error) {
					return job.DecideAddFinding(s, job.Finding{
						CheckerID: checker, Token: token, Item: job.Item{ID: id, Description: "pay"}, Status: job.ItemFail, At: m.now,
					})
				})
			},
			"release": func(t *rapid.T) {
				checker, token := m.drawClaim(t)
				m.run(t, checker, token, func(s job.State) ([]domain.Event, error) {
					return job.DecideRelease(s, checker, token, m.now)
				})
			},
			"complete": func(t *rapid.T) {
				checker, token := m.drawClaim(t)
				m.run(t, checker, token, func(s job.State) ([]domain.Event, error) {
					return job.DecideComplete(s, job.Completion{CheckerID: checker, Token: token, ReportID: "r1", At: m.now})
				})
			},
			"cancel": func(t *rapid.T) {
				reason := rapid.SampledFrom([]string{job.CancelClient, job.CancelSessionExpired}).Draw(t, "reason")
				m.run(t, "", 0, func(s job.State) ([]domain.Event, error) { return job.DecideCancel(s, reason, m.now) })
			},
		})
	})
}

func drawChecker(t *rapid.T) string {
	return rapid.SampledFrom([]string{"ann", "bob", "cyd"}).Draw(t, "checker")
}

// drawClaim mostly draws the live claim, and now and then one that is not.
func (m *machine) drawClaim(t *rapid.T) (checker string, token int) {
	if m.state.CheckerID != "" && rapid.IntRange(0, 3).Draw(t, "live") > 0 {
		return m.state.CheckerID, m.state.Token
	}
	return drawChecker(t), max(0, m.state.Token-1+rapid.IntRange(0, 2).Draw(t, "token"))
}

type machine struct {
	now     time.Time
	state   job.State
	history []domain.Event
}

// run decides and folds. A checker that is named did the work: then an event
// may only follow under the live claim.
func (m *machine) run(t *rapid.T, checker string, token int, decide func(job.State) ([]domain.Event, error)) {
	m.now = m.now.Add(time.Second)
	before := m.state.Status
	holder, live := m.state.CheckerID, m.state.Token
	events, err := decide(m.state)
	if err != nil {
		var refusal *domain.Error
		if !errors.As(err, &refusal) || len(events) > 0 {
			t.Fatalf("refused with %v and %v", err, events)
		}
		return
	}
	for _, e := range events {
		to, ok := legal[e.EventType()][before]
		if !ok || slices.Contains(ends, before) {
			t.Fatalf("%s happened to a job that is %q", e.EventType(), before)
		}
		if checker != "" && (checker != holder || token != live) {
			t.Fatalf("%s under claim %s/%d while %s/%d is live", e.EventType(), checker, token, holder, live)
		}
		if c, ok := e.(*job.ClaimedBy); ok && c.Token != live+1 {
			t.Fatalf("claim %d follows claim %d", c.Token, live)
		}
		m.state = job.Evolve(m.state, e)
		m.history = append(m.history, e)
		if m.state.Status != to {
			t.Fatalf("%s led from %q to %q", e.EventType(), before, m.state.Status)
		}
		before = to
	}
}

func (m *machine) check(t *rapid.T) {
	s := m.state
	if (s.Status == job.Claimed) != (s.CheckerID != "" && s.Report == nil) {
		t.Fatalf("the job is %s and held by %q", s.Status, s.CheckerID)
	}
	if (s.Status == job.Completed) != (s.Report != nil) {
		t.Fatalf("the job is %s, its report %v", s.Status, s.Report)
	}
	if r := s.Report; r != nil {
		if r.PassCount+r.FailCount+r.SkipCount != len(r.Items) || len(r.Items) < len(s.Items) {
			t.Fatalf("the report counts %d, %d, %d of %d", r.PassCount, r.FailCount, r.SkipCount, len(r.Items))
		}
	}
	keys := map[string]bool{}
	for _, i := range s.ReportItems() {
		if keys[i.Key] {
			t.Fatalf("two items have the key %q", i.Key)
		}
		keys[i.Key] = true
	}
	var again job.State
	for _, e := range m.history {
		again = job.Evolve(again, e)
	}
	if !reflect.DeepEqual(again, s) {
		t.Fatalf("the same events fold into\n%+v, not\n%+v", again, s)
	}
}
