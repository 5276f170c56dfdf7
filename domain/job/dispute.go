package job

import (
	"slices"
	"strings"
	"time"

	"humanqa/domain"
)

// The bounds of disputes (decisions, "Disputes").
const (
	// DisputeWithin is how long after its report a verdict can be disputed.
	DisputeWithin = 14 * 24 * time.Hour
	// DisputeAnswerWithin is how long the checker may answer.
	DisputeAnswerWithin = 24 * time.Hour
)

// Ruling is an operator's decision on a dispute.
type Ruling string

// The rulings. The last two leave the verdict as it is, and make the test good: once a job.
const (
	Stands     Ruling = "stands"
	Overturned Ruling = "overturned" // the item counts as skipped
	Retested   Ruling = "retest"     // a new test, free
	Refunded   Ruling = "refund"     // the price of the test
)

// Rulings lists them.
func Rulings() []Ruling { return []Ruling{Stands, Overturned, Retested, Refunded} }

// MakesGood says that the ruling gives a new test, or the price.
func (r Ruling) MakesGood() bool { return r == Retested || r == Refunded }

// SkipDisputed is the reason of a skip that was another verdict until it was overturned. No
// checker can give it.
const SkipDisputed = "disputed"

// Disputed says that the account disputes a verdict of the report.
type Disputed struct {
	DisputeID   string     `json:"disputeId"`
	ItemID      string     `json:"itemId"`
	Verdict     ItemStatus `json:"verdict"` // the checker's
	Reason      string     `json:"reason" sealed:"text"`
	AnswerUntil time.Time  `json:"answerUntil"`
	At          time.Time  `json:"at"`
}

// DisputeAnswered is the answer of the checker who tested.
type DisputeAnswered struct {
	DisputeID string    `json:"disputeId"`
	ItemID    string    `json:"itemId"`
	Text      string    `json:"text" sealed:"text"`
	At        time.Time `json:"at"`
}

// DisputeDecided is an operator's decision. The figures are those of the report after it.
type DisputeDecided struct {
	DisputeID     string         `json:"disputeId"`
	ItemID        string         `json:"itemId"`
	Key           string         `json:"key"` // the item's
	Decision      Ruling         `json:"decision"`
	Refund        domain.Credits `json:"refund,omitempty"` // it follows in the ledger
	Before        string         `json:"before"`           // the overall status until then
	OverallStatus string         `json:"overallStatus"`
	PassCount     int            `json:"passCount"`
	FailCount     int            `json:"failCount"`
	SkipCount     int            `json:"skipCount"`
	HealthScore   int            `json:"healthScore"`
	At            time.Time      `json:"at"`
}

// DisputeSettled says that the new test, or the refund, is there.
type DisputeSettled struct {
	DisputeID   string    `json:"disputeId"`
	RetestJobID string    `json:"retestJobId,omitempty"`
	At          time.Time `json:"at"`
}

func (*Disputed) EventType() string        { return "job.disputed" }
func (*DisputeAnswered) EventType() string { return "job.dispute_answered" }
func (*DisputeDecided) EventType() string  { return "job.dispute_decided" }
func (*DisputeSettled) EventType() string  { return "job.dispute_settled" }

// Dispute is a disputed verdict with what followed; nil: it did not happen yet.
type Dispute struct {
	Disputed
	Answered *DisputeAnswered `json:"answered,omitempty"`
	Decided  *DisputeDecided  `json:"decided,omitempty"`
	Settled  *DisputeSettled  `json:"settled,omitempty"`
}

// Decision is empty until there is one.
func (d Dispute) Decision() Ruling {
	if d.Decided == nil {
		return ""
	}
	return d.Decided.Decision
}

// Argue gives the disputes after an event about one of them. It changes a copy.
func Argue(all []Dispute, e domain.Event) []Dispute {
	all = slices.Clone(all)
	if e, is := e.(*Disputed); is {
		return append(all, Dispute{Disputed: *e})
	}
	for i := range all {
		switch e := e.(type) {
		case *DisputeAnswered:
			if e.DisputeID == all[i].DisputeID {
				all[i].Answered = e
			}
		case *DisputeDecided:
			if e.DisputeID == all[i].DisputeID {
				all[i].Decided = e
			}
		case *DisputeSettled:
			if e.DisputeID == all[i].DisputeID {
				all[i].Settled = e
			}
		}
	}
	return all
}

func (e *Disputed) evolve(s *State)        { s.Disputes = Argue(s.Disputes, e) }
func (e *DisputeAnswered) evolve(s *State) { s.Disputes = Argue(s.Disputes, e) }
func (e *DisputeSettled) evolve(s *State)  { s.Disputes = Argue(s.Disputes, e) }

// It does not change data that the state shares with events.
func (e *DisputeDecided) evolve(s *State) {
	s.Disputes = Argue(s.Disputes, e)
	if e.Decision != Overturned {
		return
	}
	report := *s.Report
	report.Items = Overturn(report.Items, e.ItemID)
	report.OverallStatus, report.PassCount, report.FailCount, report.SkipCount = e.OverallStatus, e.PassCount, e.FailCount, e.SkipCount
	s.Report = &report
	if s.AIReport != nil {
		analysis := s.AIReport.Overturned(report.Items)
		s.AIReport = &analysis
	}
}

// Shift is what the decision adds to the number of tests with that overall status.
func (e *DisputeDecided) Shift(status string) (n int) {
	if e.OverallStatus == status {
		n++
	}
	if e.Before == status {
		n--
	}
	return n
}

// Overturn is the report's items without the verdict on one of them, which counts as
// skipped. Its note and its pictures stay. It changes a copy.
func Overturn(items []ReportItem, itemID string) []ReportItem {
	items = slices.Clone(items)
	for i := range items {
		if items[i].ID == itemID {
			items[i].Status, items[i].Reason = ItemSkip, SkipDisputed
		}
	}
	return items
}

// Overturned is the analysis by the report's items after a verdict was overturned. Its
// words stay as they were written.
func (r AIReport) Overturned(items []ReportItem) AIReport {
	r.PassCount, r.FailCount, r.SkipCount = Counts(items)
	r.HealthScore = HealthScore(items)
	r.Bugs = slices.DeleteFunc(slices.Clone(r.Bugs), func(b Bug) bool {
		return slices.ContainsFunc(items, func(i ReportItem) bool { return i.ID == b.ItemID && i.Reason == SkipDisputed })
	})
	return r
}

// dispute gives the first dispute for which that holds; nil: there is none.
func (s State) dispute(holds func(Dispute) bool) *Dispute {
	if at := slices.IndexFunc(s.Disputes, holds); at >= 0 {
		return &s.Disputes[at]
	}
	return nil
}

// Dispute gives a dispute by its id; nil: there is none.
func (s State) Dispute(id string) *Dispute {
	return s.dispute(func(d Dispute) bool { return d.DisputeID == id })
}

// MadeGood gives the dispute that a new test, or the price, makes good; nil: there is none.
func (s State) MadeGood() *Dispute {
	return s.dispute(func(d Dispute) bool { return d.Decision().MakesGood() })
}

// DecideDispute disputes the verdict on an item of the report, once an item. The same id
// again is a repeat.
func DecideDispute(s State, disputeID, itemID, reason string, now time.Time) ([]domain.Event, error) {
	item, reported := s.ReportItem(itemID)
	earlier := s.dispute(func(d Dispute) bool { return d.ItemID == itemID })
	switch {
	case !s.Exists:
		return nil, domain.NotFound("job")
	case s.Dispute(disputeID) != nil:
		return nil, nil
	case !s.ErasedAt.IsZero():
		return nil, errErased()
	case s.Status != StatusCompleted:
		return nil, domain.Conflict("the job is %s", s.Status).WithHint("a verdict can be disputed once there is a report")
	case !reported:
		return nil, domain.InvalidAt("itemId", "is no item of the report")
	case strings.TrimSpace(reason) == "":
		return nil, domain.InvalidAt("reason", "must not be blank")
	case earlier != nil && earlier.Decided == nil:
		return nil, domain.Conflict("the verdict is disputed already").WithHint("an operator decides about it").
			With("disputeId", earlier.DisputeID)
	case earlier != nil:
		return nil, domain.Conflict("a dispute of the verdict was decided: %s", earlier.Decision()).
			WithHint("the decision is final; test the item again if the app has changed")
	case now.After(s.CompletedAt.Add(DisputeWithin)):
		return nil, domain.Conflict("the report is older than 14 days").WithHint("retest the job to have the item tested again")
	}
	return []domain.Event{&Disputed{
		DisputeID: disputeID, ItemID: itemID, Verdict: item.Status, Reason: reason, AnswerUntil: now.Add(DisputeAnswerWithin), At: now,
	}}, nil
}

// DecideAnswerDispute is the answer of the checker who tested, once. The same text again is
// a repeat.
func DecideAnswerDispute(s State, checkerID, disputeID, text string, now time.Time) ([]domain.Event, error) {
	d := s.Dispute(disputeID)
	switch {
	case !s.Exists, s.Status != StatusCompleted, s.CheckerID != checkerID:
		return nil, domain.NotFound("job")
	case d == nil:
		return nil, domain.NotFound("dispute")
	case !s.ErasedAt.IsZero():
		return nil, errErased()
	case strings.TrimSpace(text) == "":
		return nil, domain.InvalidAt("text", "must not be blank")
	case d.Answered != nil && d.Answered.Text == text:
		return nil, nil
	case d.Answered != nil:
		return nil, domain.Conflict("the dispute is answered already")
	case d.Decided != nil:
		return nil, domain.Conflict("the dispute was decided: %s", d.Decision())
	case now.After(d.AnswerUntil):
		return nil, domain.Conflict("the dispute could be answered until %s", d.AnswerUntil.UTC().Format(time.RFC3339))
	}
	return []domain.Event{&DisputeAnswered{DisputeID: disputeID, ItemID: d.ItemID, Text: text, At: now}}, nil
}

// DecideRule decides a dispute for good. The same ruling again is a repeat. A job is made
// good once, by a new test or by its price.
func DecideRule(s State, disputeID string, ruling Ruling, now time.Time) ([]domain.Event, error) {
	d, good := s.Dispute(disputeID), s.MadeGood()
	switch {
	case !s.Exists:
		return nil, domain.NotFound("job")
	case d == nil:
		return nil, domain.NotFound("dispute")
	case !slices.Contains(Rulings(), ruling):
		return nil, domain.InvalidAt("decision", "must be one of %q", Rulings())
	case d.Decision() == ruling:
		return nil, nil
	case d.Decided != nil:
		return nil, domain.Conflict("the dispute was decided already: %s", d.Decision())
	case !s.ErasedAt.IsZero():
		return nil, errErased()
	case ruling.MakesGood() && good != nil:
		return nil, domain.Conflict("another dispute of the test was decided: %s", good.Decision()).
			WithHint("a test is made good once; choose %s or %s", Stands, Overturned)
	case ruling == Refunded && s.Price == 0:
		return nil, domain.Conflict("the test was free").WithHint("choose another decision")
	}
	item, _ := s.ReportItem(d.ItemID)
	items := s.Report.Items
	if ruling == Overturned {
		items = Overturn(items, d.ItemID)
	}
	decided := &DisputeDecided{
		DisputeID: d.DisputeID, ItemID: d.ItemID, Key: item.Key, Decision: ruling, Before: s.Report.OverallStatus,
		OverallStatus: OverallStatus(items), HealthScore: HealthScore(items), At: now,
	}
	decided.PassCount, decided.FailCount, decided.SkipCount = Counts(items)
	if ruling == Refunded {
		decided.Refund = s.Price
	}
	return []domain.Event{decided}, nil
}

// DecideSettleDispute notes that a job was made good, by the new test if there is one. A
// repeat changes nothing.
func DecideSettleDispute(s State, retestJobID string, now time.Time) ([]domain.Event, error) {
	d := s.MadeGood()
	if d == nil || d.Settled != nil {
		return nil, nil
	}
	return []domain.Event{&DisputeSettled{DisputeID: d.DisputeID, RetestJobID: retestJobID, At: now}}, nil
}
