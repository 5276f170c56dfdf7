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
	"humanqa/domain/audit"
	"humanqa/domain/credits"
	"humanqa/domain/job"
)

// legal lists where each event may lead from where (ARCHITECTURE.md,
// invariant 8). The status before the first event is empty.
var legal = map[string]map[job.Status]job.Status{
	"job.created":             {"": job.StatusPending},
	"job.voided":              {"": job.StatusVoided},
	"job.checklist_written":   {job.StatusPending: job.StatusPending},
	"job.slot_started":        {job.StatusPending: job.StatusPending, job.StatusClaimed: job.StatusClaimed},
	"job.claimed":             {job.StatusPending: job.StatusClaimed},
	"job.released":            {job.StatusClaimed: job.StatusPending},
	"job.item_checked":        {job.StatusClaimed: job.StatusClaimed},
	"job.finding_added":       {job.StatusClaimed: job.StatusClaimed},
	"job.finding_edited":      {job.StatusClaimed: job.StatusClaimed},
	"job.finding_withdrawn":   {job.StatusClaimed: job.StatusClaimed},
	"job.question_asked":      {job.StatusClaimed: job.StatusClaimed},
	"job.question_answered":   {job.StatusClaimed: job.StatusClaimed},
	"job.question_closed":     {job.StatusClaimed: job.StatusClaimed},
	"job.heartbeat":           {job.StatusClaimed: job.StatusClaimed},
	"job.untestable_reported": {job.StatusClaimed: job.StatusPending},
	"job.failed_sla":          {job.StatusPending: job.StatusPending, job.StatusClaimed: job.StatusPending},
	"job.completed":           {job.StatusClaimed: job.StatusCompleted},
	"job.ai_report_ready":     {job.StatusCompleted: job.StatusCompleted},
	"job.rated":               {job.StatusCompleted: job.StatusCompleted},
	"job.disputed":            {job.StatusCompleted: job.StatusCompleted},
	"job.dispute_answered":    {job.StatusCompleted: job.StatusCompleted},
	"job.dispute_decided":     {job.StatusCompleted: job.StatusCompleted},
	"job.dispute_settled":     {job.StatusCompleted: job.StatusCompleted},
	"job.cancelled":           {job.StatusPending: job.StatusCancelled, job.StatusClaimed: job.StatusCancelled},
	"job.failed":              {job.StatusPending: job.StatusFailed, job.StatusClaimed: job.StatusFailed},
}

var ends = []job.Status{job.StatusCompleted, job.StatusCancelled, job.StatusFailed, job.StatusVoided}

// TestNoHistoryTakesAJobOutOfLine sends every command there is, of three
// checkers and the robots, with tokens of claims past, present and future, in
// any order, while the clock jumps. Only legal transitions happen, ends absorb,
// one claim at a time is obeyed, and after every step the audit finds the job
// and its account's ledger sound (ARCHITECTURE.md, invariants 1 to 4, 7 and
// 8).
func TestNoHistoryTakesAJobOutOfLine(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := newMachine(t)
		t.Repeat(map[string]func(*rapid.T){
			"": m.check,
			"jump": func(t *rapid.T) {
				m.now = m.now.Add(time.Duration(rapid.IntRange(-1, 40).Draw(t, "minutes")) * time.Minute)
			},
			"create": func(t *rapid.T) {
				c := drawSubmission(t, m.now)
				if len(m.history) == 0 || rapid.Bool().Draw(t, "again") {
					m.run(t, "", 0, func(s job.State) ([]domain.Event, error) { return job.DecideCreate(s, c, nil) })
				}
			},
			"void": func(t *rapid.T) {
				if rapid.IntRange(0, 20).Draw(t, "void") == 0 {
					m.run(t, "", 0, void)
				}
			},
			"list": m.by(func(s job.State, _ *rapid.T) ([]domain.Event, error) { return writeList(submission().Items...)(s) }),
			"start": m.by(func(s job.State, _ *rapid.T) ([]domain.Event, error) {
				return job.DecideStartSlot(s, m.now.Add(s.SLA()), m.now)
			}),
			"sla":      m.by(func(s job.State, _ *rapid.T) ([]domain.Event, error) { return job.DecideMissSLA(s, m.now) }),
			"silence":  m.by(func(s job.State, _ *rapid.T) ([]domain.Event, error) { return job.DecideReleaseSilent(s, m.now) }),
			"analysis": m.by(func(s job.State, _ *rapid.T) ([]domain.Event, error) { return analyse(s) }),
			"rate": m.by(func(s job.State, t *rapid.T) ([]domain.Event, error) {
				return job.DecideRate(s, rapid.IntRange(0, 6).Draw(t, "rating"), "", m.now)
			}),
			"fail": m.by(func(s job.State, t *rapid.T) ([]domain.Event, error) {
				if rapid.IntRange(0, 5).Draw(t, "fail") > 0 {
					return nil, nil // else few jobs get to their other ends
				}
				return job.DecideFail(s, rapid.SampledFrom([]string{job.FailOperator, job.FailUntestable}).Draw(t, "reason"), m.now)
			}),
			"cancel": m.by(func(s job.State, t *rapid.T) ([]domain.Event, error) {
				if rapid.IntRange(0, 5).Draw(t, "cancel") > 0 {
					return nil, nil
				}
				return job.DecideCancel(s, rapid.SampledFrom([]string{
					job.CancelClient, job.CancelOperator, job.CancelSessionExpired, job.CancelSessionCancelled,
				}).Draw(t, "reason"), m.now)
			}),
			"leave": m.by(func(s job.State, t *rapid.T) ([]domain.Event, error) {
				return job.DecideLeave(s, drawChecker(t), m.now)
			}),
			"claim": m.by(func(s job.State, t *rapid.T) ([]domain.Event, error) {
				return job.DecideClaim(s, drawChecker(t), m.now)
			}),
			"robot claims": m.by(func(s job.State, _ *rapid.T) ([]domain.Event, error) { return job.DecideRobotClaim(s, m.now) }),
			"robot completes": m.by(func(s job.State, t *rapid.T) ([]domain.Event, error) {
				return play(rapid.SampledFrom([]string{job.Player, job.Reviewer}).Draw(t, "robot"))(s)
			}),
			"check": m.claimant(m.checkItem),
			"ask": m.claimant(func(t *rapid.T, checker string, token int) decide {
				return func(s job.State) ([]domain.Event, error) {
					return job.DecideAsk(s, job.Ask{
						CheckerID: checker, Token: token, QuestionID: fmt.Sprint("q", len(m.history)), Kind: "other", Text: "What now?",
						ItemID: rapid.SampledFrom([]string{"", "i1", "i3"}).Draw(t, "asked"), Wait: job.QuestionWait, At: m.now,
					})
				}
			}),
			"answer": m.by(func(s job.State, _ *rapid.T) ([]domain.Event, error) {
				q, _ := s.OpenQuestion()
				return job.DecideAnswer(s, job.AnswerGiven{QuestionID: q.ID, AnswerID: fmt.Sprint("a", len(m.history)), Text: "This.", At: m.now})
			}),
			"dispute": m.by(func(s job.State, t *rapid.T) ([]domain.Event, error) {
				return job.DecideDispute(s, fmt.Sprint("d", len(m.history)), rapid.SampledFrom([]string{"i1", "i2"}).Draw(t, "of"), "No.", m.now)
			}),
			"answer a dispute": m.by(func(s job.State, t *rapid.T) ([]domain.Event, error) {
				return job.DecideAnswerDispute(s, drawChecker(t), m.drawDispute(t), "Yes.", m.now)
			}),
			"decide a dispute": m.by(func(s job.State, t *rapid.T) ([]domain.Event, error) {
				return job.DecideRule(s, m.drawDispute(t), rapid.SampledFrom(job.Rulings()).Draw(t, "ruling"), m.now)
			}),
			"settle a dispute": m.by(func(s job.State, _ *rapid.T) ([]domain.Event, error) {
				return job.DecideSettleDispute(s, "retest", m.now)
			}),
			"no answer":  m.by(func(s job.State, _ *rapid.T) ([]domain.Event, error) { return job.DecideExpireQuestion(s, m.now) }),
			"finding":    m.claimant(m.addFinding),
			"edit":       m.claimant(m.editFinding),
			"withdraw":   m.claimant(m.withdrawFinding),
			"release":    m.claimant(func(t *rapid.T, checker string, token int) decide { return release(checker, token) }),
			"heartbeat":  m.claimant(func(t *rapid.T, checker string, token int) decide { return heartbeat(checker, token, m.now) }),
			"untestable": m.claimant(func(t *rapid.T, checker string, token int) decide { return untestable(checker, token) }),
			"complete":   m.claimant(func(t *rapid.T, checker string, token int) decide { return completeAs(checker, token) }),
		})
	})
}

func drawSubmission(t *rapid.T, now time.Time) job.Created {
	c := submission()
	c.CreatedAt = now
	if rapid.IntRange(0, 3).Draw(t, "list") == 0 {
		noList(&c)
	}
	if rapid.Bool().Draw(t, "looped") {
		looped(&c)
	}
	switch rapid.IntRange(0, 7).Draw(t, "kind") {
	case 0, 1:
		slot(&c)
	case 2:
		aiReview(&c)
	case 3:
		sandbox(&c)
	case 4:
		slot(&c)
		sandbox(&c)
	}
	return c
}

func drawChecker(t *rapid.T) string {
	return rapid.SampledFrom([]string{"ann", "bob", "cyd"}).Draw(t, "checker")
}

type machine struct {
	now     time.Time
	state   job.State
	history []domain.Event

	ledger    credits.State
	audit     *audit.Audit
	revisions map[string]uint64
	next      uint64
}

func newMachine(t *rapid.T) *machine {
	m := &machine{now: t0, audit: audit.New(), revisions: map[string]uint64{}}
	m.pay(t, func() ([]domain.Event, error) { return credits.DecideGrant(m.ledger, "lot", 20, nil, "", m.now) })
	return m
}

// by runs a decision that no claim is needed for.
func (m *machine) by(decide func(job.State, *rapid.T) ([]domain.Event, error)) func(*rapid.T) {
	return func(t *rapid.T) {
		m.run(t, "", 0, func(s job.State) ([]domain.Event, error) { return decide(s, t) })
	}
}

// claimant runs a decision of a claim: mostly the live one, and now and then
// one that is not.
func (m *machine) claimant(work func(t *rapid.T, checker string, token int) decide) func(*rapid.T) {
	return func(t *rapid.T) {
		checker, token := m.state.CheckerID, m.state.Token
		if checker == "" || rapid.IntRange(0, 3).Draw(t, "live") == 0 {
			checker, token = drawChecker(t), max(0, token-1+rapid.IntRange(0, 2).Draw(t, "token"))
		}
		m.run(t, checker, token, work(t, checker, token))
	}
}

func (m *machine) checkItem(t *rapid.T, checker string, token int) decide {
	c := job.Check{CheckerID: checker, Token: token, At: m.now}
	c.ItemID = rapid.SampledFrom([]string{"i1", "i2", "i3"}).Draw(t, "item")
	c.Status = rapid.SampledFrom([]job.ItemStatus{job.ItemPass, job.ItemFail, job.ItemSkip}).Draw(t, "status")
	if c.Status == job.ItemSkip {
		c.Reason = rapid.SampledFrom([]string{"", "blocked"}).Draw(t, "reason")
	}
	return func(s job.State) ([]domain.Event, error) { return job.DecideCheckItem(s, c) }
}

func (m *machine) drawDispute(t *rapid.T) string {
	if len(m.state.Disputes) == 0 {
		return "none"
	}
	return rapid.SampledFrom(m.state.Disputes).Draw(t, "dispute").DisputeID
}

func drawFinding(t *rapid.T) string {
	return fmt.Sprintf("f%d", rapid.IntRange(0, 5).Draw(t, "finding"))
}

func (m *machine) addFinding(t *rapid.T, checker string, token int) decide {
	f := job.Finding{
		CheckerID: checker, Token: token, Status: job.ItemFail, At: m.now, Item: job.Item{ID: drawFinding(t), Description: "pay"},
	}
	return func(s job.State) ([]domain.Event, error) { return job.DecideAddFinding(s, f) }
}

func (m *machine) editFinding(t *rapid.T, checker string, token int) decide {
	f := job.Finding{
		CheckerID: checker, Token: token, Status: job.ItemPass, At: m.now, Item: job.Item{ID: drawFinding(t), Description: "pay later"},
	}
	return func(s job.State) ([]domain.Event, error) { return job.DecideEditFinding(s, f) }
}

func (m *machine) withdrawFinding(t *rapid.T, checker string, token int) decide {
	id := drawFinding(t)
	return func(s job.State) ([]domain.Event, error) {
		return job.DecideWithdrawFinding(s, checker, token, id, m.now)
	}
}

// run decides, charges, folds and refunds. A checker that is named did the
// work: then an event may only follow under the live claim.
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
		if !ok || slices.Contains(ends, before) && to != before {
			t.Fatalf("%s happened to a job that is %q", e.EventType(), before)
		}
		if checker != "" && (checker != holder || token != live) {
			t.Fatalf("%s under claim %s/%d while %s/%d is live", e.EventType(), checker, token, holder, live)
		}
		if c, ok := e.(*job.Created); ok {
			m.pay(t, func() ([]domain.Event, error) {
				return credits.DecideDebits(m.ledger, []credits.Charge{{JobID: "1", Amount: c.Price}}, m.now)
			})
		}
		if d, ok := e.(*job.DisputeDecided); ok && d.Refund > 0 {
			m.pay(t, func() ([]domain.Event, error) {
				return credits.DecideGrant(m.ledger, credits.DisputeLot("1"), d.Refund, nil, "dispute", m.now)
			})
		}
		m.state = job.Evolve(m.state, e)
		m.history = append(m.history, e)
		m.see("job-1", "checker:"+holder, e)
		if m.state.Status != to {
			t.Fatalf("%s led from %q to %q", e.EventType(), before, m.state.Status)
		}
		before = to
	}
	if len(events) > 0 && m.state.Refund > 0 {
		m.pay(t, func() ([]domain.Event, error) { return credits.DecideRefund(m.ledger, "1", "", m.now) })
	}
}

// pay does the ledger's part.
func (m *machine) pay(t *rapid.T, decide func() ([]domain.Event, error)) {
	events, err := decide()
	if err != nil {
		t.Fatalf("the ledger refuses: %v", err)
	}
	for _, e := range events {
		m.ledger = credits.Evolve(m.ledger, e)
		m.see("credits-acme", "operator", e)
	}
}

// see shows the audit the next event of the log.
func (m *machine) see(stream, actor string, e domain.Event) {
	m.audit.See(domain.Recorded{
		Stream: stream, Revision: m.revisions[stream], Type: e.EventType(), Event: e,
		Position: domain.Position{Commit: m.next, Prepare: m.next}, Meta: domain.Metadata{Actor: actor, Time: m.now},
	})
	m.next++
	m.revisions[stream]++
}

func (m *machine) check(t *rapid.T) {
	s := m.state
	if findings := m.audit.Findings(m.now.Add(time.Hour)); len(findings) > 0 {
		t.Fatalf("the audit finds %v", findings)
	}
	if (s.Status == job.StatusClaimed) != (s.CheckerID != "" && s.Report == nil) {
		t.Fatalf("the job is %s and held by %q", s.Status, s.CheckerID)
	}
	if (s.Status == job.StatusCompleted) != (s.Report != nil) || s.Report == nil && (s.AIReport != nil || s.Rating != nil) {
		t.Fatalf("the job is %s, its report %v, %v, %v", s.Status, s.Report, s.AIReport, s.Rating)
	}
	if s.Exists && s.DueAt.Before(s.CreatedAt.Add(s.SLA())) && s.StartedAt.IsZero() {
		t.Fatalf("the SLA of %s ends %s after %s", s.SLA(), s.DueAt, s.CreatedAt)
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
