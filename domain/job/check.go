package job

import (
	"slices"
	"strings"
	"time"

	"humanqa/domain"
)

// MaxFindings bounds what a checker can add outside the list, and with it the
// report.
const MaxFindings = 100

// SkipReasons lists why an item may be skipped (decisions, "Item status").
func SkipReasons() []string {
	return []string{"blocked", "not_applicable", "no_access", "out_of_time"}
}

// Check is the claimant's verdict on an item of the list.
type Check struct {
	CheckerID     string
	Token         int
	ItemID        string
	Status        ItemStatus
	Note          string
	Severity      Severity // empty: the item's own
	Reason        string   // of a skip, one of SkipReasons
	ScreenshotURL string
	At            time.Time
}

// Finding is something the claimant saw outside the list. Item brings its id
// and description; an empty key is derived, an empty severity is major.
type Finding struct {
	CheckerID string
	Token     int
	Item      Item
	Status    ItemStatus // pass or fail
	Note      string
	At        time.Time
}

// Completion ends the claimant's work.
type Completion struct {
	CheckerID    string
	Token        int
	ReportID     string
	Summary      string
	RecordingURL string
	At           time.Time
}

// DecideCheckItem records a verdict; a later one replaces an earlier one, the
// same one is a repeat.
func DecideCheckItem(s State, c Check) ([]domain.Event, error) {
	if err := working(s, c.CheckerID, c.Token); err != nil {
		return nil, err
	}
	if !s.hasItem(c.ItemID) {
		return nil, domain.NotFound("checklist item")
	}
	var wrong []domain.Detail
	switch c.Status {
	case ItemPass, ItemFail:
		if c.Reason != "" {
			wrong = append(wrong, domain.Detail{Path: "reason", Message: "only a skip has a reason"})
		}
	case ItemSkip:
		if !slices.Contains(SkipReasons(), c.Reason) {
			wrong = append(wrong, domain.Detail{
				Path: "reason", Message: "a skip needs one of " + strings.Join(SkipReasons(), ", "),
			})
		}
	default:
		wrong = append(wrong, domain.Detail{Path: "status", Message: "must be pass, fail or skip"})
	}
	if c.Severity != "" && !c.Severity.known() {
		wrong = append(wrong, domain.Detail{Path: "severity", Message: "must be critical, major or minor"})
	}
	if len(wrong) > 0 {
		return nil, domain.Invalid(wrong...)
	}
	v := Verdict{Status: c.Status, Note: c.Note, Severity: c.Severity, Reason: c.Reason, ScreenshotURL: c.ScreenshotURL}
	if old, ok := s.Verdicts[c.ItemID]; ok && old == v {
		return nil, nil
	}
	return []domain.Event{&ItemChecked{
		ItemID: c.ItemID, Status: c.Status, Note: c.Note, Severity: c.Severity,
		Reason: c.Reason, ScreenshotURL: c.ScreenshotURL, At: s.alive(c.At),
	}}, nil
}

// DecideAddFinding adds an item outside the list. The same item id is a
// repeat.
func DecideAddFinding(s State, f Finding) ([]domain.Event, error) {
	if err := working(s, f.CheckerID, f.Token); err != nil {
		return nil, err
	}
	if slices.ContainsFunc(s.Findings, func(i ReportItem) bool { return i.ID == f.Item.ID }) {
		return nil, nil
	}
	var wrong []domain.Detail
	if strings.TrimSpace(f.Item.Description) == "" {
		wrong = append(wrong, domain.Detail{Path: "description", Message: "must not be blank"})
	}
	if f.Status != ItemPass && f.Status != ItemFail {
		wrong = append(wrong, domain.Detail{Path: "status", Message: "must be pass or fail"})
	}
	if f.Item.Severity == "" {
		f.Item.Severity = Major
	} else if !f.Item.Severity.known() {
		wrong = append(wrong, domain.Detail{Path: "severity", Message: "must be critical, major or minor"})
	}
	if len(wrong) > 0 {
		return nil, domain.Invalid(wrong...)
	}
	if len(s.Findings) >= MaxFindings {
		return nil, domain.Conflict("the report has %d findings, the most it holds", MaxFindings).
			WithHint("put the rest into the summary")
	}
	f.Item.Key = s.freeKey(f.Item)
	return []domain.Event{&FindingAdded{Item: f.Item, Status: f.Status, Note: f.Note, At: s.alive(f.At)}}, nil
}

// freeKey is the finding's key, made unlike every other key of the job.
func (s State) freeKey(finding Item) string {
	all := make([]Item, 0, len(s.Items)+len(s.Findings)+1)
	all = append(all, s.Items...)
	for _, f := range s.Findings {
		all = append(all, f.Item)
	}
	keyed := UniqueKeys(append(all, finding))
	return keyed[len(keyed)-1].Key
}

// DecideComplete ends the job with its report. Every item of the list needs a
// verdict. The same claim completing again is a repeat, whatever it says: the
// first report stands.
func DecideComplete(s State, c Completion) ([]domain.Event, error) {
	if s.Status == StatusCompleted && s.CheckerID == c.CheckerID && s.Token == c.Token {
		return nil, nil
	}
	if err := working(s, c.CheckerID, c.Token); err != nil {
		return nil, err
	}
	items := s.ReportItems()
	var unchecked []string
	for _, i := range items {
		if i.Status == ItemPending {
			unchecked = append(unchecked, i.ID)
		}
	}
	if n := len(unchecked); n > 0 {
		return nil, domain.Conflict("unchecked items: %d", n).
			WithHint("check every item of the list, or skip it with a reason").
			With("uncheckedItems", unchecked)
	}
	return []domain.Event{s.complete(c.ReportID, c.Summary, c.RecordingURL, items, c.At)}, nil
}

func (s State) complete(reportID, summary, recordingURL string, items []ReportItem, at time.Time) *Completed {
	done := &Completed{
		ReportID: reportID, Summary: summary, RecordingURL: recordingURL, Items: items,
		OverallStatus: OverallStatus(items), SessionID: s.SessionID, LoopID: s.LoopID, At: at,
	}
	done.PassCount, done.FailCount, done.SkipCount = Counts(items)
	return done
}
