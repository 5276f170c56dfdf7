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

// SkipReasons lists why an item may be skipped (decisions, section 1).
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

// alive is when the claimant shows a sign of life: never before the one that is
// known, although nodes' clocks differ. The silence is timed from the last one.
func (s State) alive(at time.Time) time.Time {
	if at.Before(s.SignOfLife) {
		return s.SignOfLife
	}
	return at
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
	if s.Status == Completed && s.CheckerID == c.CheckerID && s.Token == c.Token {
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

func (s State) complete(reportID, summary, recordingURL string, items []ReportItem, at time.Time) *CompletedWith {
	done := &CompletedWith{
		ReportID: reportID, Summary: summary, RecordingURL: recordingURL, Items: items,
		OverallStatus: OverallStatus(items), SessionID: s.SessionID, LoopID: s.LoopID, At: at,
	}
	done.PassCount, done.FailCount, done.SkipCount = Counts(items)
	return done
}

// The reasons for which a claim is given up.
const (
	ReleaseChecker = "checker" // the claimant's own wish
	ReleaseSilent  = "silent"  // nothing was heard of them
	ReleaseLeft    = "left"    // they left the session
)

// DecideRelease puts the job back into the queue. The same claim releasing
// again, while nobody else took the job, is a repeat.
func DecideRelease(s State, checkerID string, token int, now time.Time) ([]domain.Event, error) {
	if s.Status == Pending && token > 0 && s.Token == token && s.ReleasedBy == checkerID {
		return nil, nil
	}
	if err := fenced(s, checkerID, token); err != nil {
		return nil, err
	}
	return []domain.Event{&Released{Token: token, Reason: ReleaseChecker, At: now}}, nil
}

// DecideLeave gives up whatever claim the checker holds on a session's slot.
func DecideLeave(s State, checkerID string, now time.Time) ([]domain.Event, error) {
	switch {
	case !s.Exists:
		return nil, domain.NotFound("job")
	case s.Status != Claimed || s.CheckerID != checkerID:
		return nil, nil
	}
	return []domain.Event{&Released{Token: s.Token, Reason: ReleaseLeft, At: now}}, nil
}

// heartbeatEvery is how often a sign of life is worth an event.
const heartbeatEvery = time.Minute

// SilentAfter is how long a claim stands without a sign of life.
const SilentAfter = 6 * time.Minute

// DecideHeartbeat notes that the claimant is still at work. Within a minute of
// the last sign of life there is nothing to note.
func DecideHeartbeat(s State, checkerID string, token int, now time.Time) ([]domain.Event, error) {
	if err := fenced(s, checkerID, token); err != nil {
		return nil, err
	}
	if now.Sub(s.SignOfLife) < heartbeatEvery {
		return nil, nil
	}
	return []domain.Event{&Heartbeat{Token: token, At: now}}, nil
}

// DecideReleaseSilent takes the claim back when nothing was heard of the
// claimant for too long; the verdicts stay as a draft for the next one. Robots
// have nothing to say.
func DecideReleaseSilent(s State, now time.Time) ([]domain.Event, error) {
	switch {
	case !s.Exists:
		return nil, domain.NotFound("job")
	case s.Status != Claimed || IsRobot(s.CheckerID) || now.Sub(s.SignOfLife) < SilentAfter:
		return nil, nil
	}
	return []domain.Event{&Released{Token: s.Token, Reason: ReleaseSilent, At: now}}, nil
}

// working is fenced for what belongs into the report.
func working(s State, checkerID string, token int) error {
	if err := fenced(s, checkerID, token); err != nil {
		return err
	}
	return begun(s)
}
