package job

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"humanqa/domain"
)

// MaxFindings bounds the findings that a checker can add outside the list, and with them
// the report.
const MaxFindings = 100

// SkipReasons lists why an item may be skipped (decisions, "Item status").
func SkipReasons() []string {
	return []string{"blocked", "not_applicable", "no_access", "out_of_time"}
}

// MaxScreenshots bounds the pictures of an item.
const MaxScreenshots = 10

// ItemChecked is the claimant's verdict on an item of the list. A later verdict
// replaces an earlier one. Severity is empty unless the checker overrode it.
type ItemChecked struct {
	ItemID        string     `json:"itemId"`
	Status        ItemStatus `json:"status"`
	Note          string     `json:"note,omitempty" sealed:"text"`
	Severity      Severity   `json:"severity,omitempty"`
	Reason        string     `json:"reason,omitempty"` // of a skip: blocked, not_applicable, no_access, out_of_time
	ScreenshotURL string     `json:"screenshotUrl,omitempty" sealed:"link"`
	// MoreScreenshotURLs are the pictures beside the first.
	MoreScreenshotURLs []string  `json:"moreScreenshotUrls,omitempty" sealed:"link"`
	At                 time.Time `json:"at"`
}

// FindingAdded is a finding outside the list: an item with its verdict.
type FindingAdded struct {
	Item   Item       `json:"item"`
	Status ItemStatus `json:"status"`
	Note   string     `json:"note,omitempty" sealed:"text"`
	At     time.Time  `json:"at"`
}

// FindingEdited replaces what a finding says. Its id stays.
type FindingEdited struct {
	Item   Item       `json:"item"`
	Status ItemStatus `json:"status"`
	Note   string     `json:"note,omitempty" sealed:"text"`
	At     time.Time  `json:"at"`
}

// FindingWithdrawn takes a finding out of the draft.
type FindingWithdrawn struct {
	FindingID string    `json:"findingId"`
	At        time.Time `json:"at"`
}

func (*ItemChecked) EventType() string      { return "job.item_checked" }
func (*FindingAdded) EventType() string     { return "job.finding_added" }
func (*FindingEdited) EventType() string    { return "job.finding_edited" }
func (*FindingWithdrawn) EventType() string { return "job.finding_withdrawn" }

func (e *ItemChecked) evolve(s *State) {
	s.heard(e.At)
	if s.Verdicts == nil {
		s.Verdicts = make(map[string]Verdict, len(s.Items))
	}
	s.Verdicts[e.ItemID] = Verdict{
		Status: e.Status, Note: e.Note, Severity: e.Severity,
		Reason: e.Reason, ScreenshotURL: e.ScreenshotURL, More: e.MoreScreenshotURLs,
	}
}

func (e *FindingAdded) evolve(s *State) {
	s.heard(e.At)
	s.Findings = append(s.Findings, ReportItem{Item: e.Item, Status: e.Status, Note: e.Note})
}

func (e *FindingEdited) evolve(s *State) {
	s.heard(e.At)
	if i := s.finding(e.Item.ID); i >= 0 {
		s.Findings[i] = ReportItem{Item: e.Item, Status: e.Status, Note: e.Note}
	}
}

func (e *FindingWithdrawn) evolve(s *State) {
	s.heard(e.At)
	if i := s.finding(e.FindingID); i >= 0 {
		s.Findings = slices.Delete(s.Findings, i, i+1)
	}
	s.Withdrawn = append(s.Withdrawn, e.FindingID)
}

// Check is the claimant's verdict on an item of the list. ItemPending is no verdict: it
// takes a verdict back, or leaves a note before a verdict.
type Check struct {
	CheckerID   string
	Token       int
	ItemID      string
	Status      ItemStatus
	Note        string
	Severity    Severity // empty: the item's own
	Reason      string   // of a skip, one of SkipReasons
	Screenshots []string
	// KeepScreenshots leaves the item's pictures as they are.
	KeepScreenshots bool
	At              time.Time
}

// Show adds a picture to an item of the list, or takes one away. The item's verdict and
// note stay.
type Show struct {
	CheckerID  string
	Token      int
	ItemID     string
	Screenshot string
	Remove     bool
	At         time.Time
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

// DecideShow changes an item's pictures. To add a present picture, or to remove a missing
// one, is a repeat.
func DecideShow(s State, p Show) ([]domain.Event, error) {
	v := s.Verdicts[p.ItemID]
	v.Status = cmp.Or(v.Status, ItemPending)
	shown := screenshots(v.ScreenshotURL, v.More)
	switch at := slices.Index(shown, p.Screenshot); {
	case p.Remove && at >= 0:
		shown = slices.Delete(shown, at, at+1)
	case !p.Remove && at < 0:
		shown = append(shown, p.Screenshot)
	}
	return DecideCheckItem(s, Check{
		CheckerID: p.CheckerID, Token: p.Token, ItemID: p.ItemID, Status: v.Status, Note: v.Note, Severity: v.Severity,
		Reason: v.Reason, Screenshots: shown, At: p.At,
	})
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
	var wrong domain.Wrong
	switch c.Status {
	case ItemPass, ItemFail, ItemPending:
		wrong.AddIf(c.Reason != "", "reason", "only a skip has a reason")
	case ItemSkip:
		wrong.AddIf(!slices.Contains(SkipReasons(), c.Reason), "reason", "a skip needs one of %s", strings.Join(SkipReasons(), ", "))
	default:
		wrong.Add("status", "must be pass, fail, skip or pending")
	}
	wrong.AddIf(c.Severity != "" && !c.Severity.known(), "severity", "must be critical, major or minor")
	wrong.AddIf(len(c.Screenshots) > MaxScreenshots, "screenshotUrls", "must have at most %d entries", MaxScreenshots)
	if err := wrong.Refusal(); err != nil {
		return nil, err
	}
	old := s.Verdicts[c.ItemID]
	old.Status = cmp.Or(old.Status, ItemPending)
	v := Verdict{Status: c.Status, Note: c.Note, Severity: c.Severity, Reason: c.Reason}
	if c.Status == ItemPending {
		v.Severity = "" // only a verdict has a severity
	}
	if v.Severity == "" && old.Severity != "" {
		v.Severity = s.ownSeverity(c.ItemID) // set explicitly, or the severity of the last verdict would stay
	}
	switch {
	case c.KeepScreenshots:
		v.ScreenshotURL, v.More = old.ScreenshotURL, old.More
	case len(c.Screenshots) > 1:
		v.ScreenshotURL, v.More = c.Screenshots[0], slices.Clone(c.Screenshots[1:])
	case len(c.Screenshots) == 1:
		v.ScreenshotURL = c.Screenshots[0]
	}
	if v.equal(old) {
		return nil, nil
	}
	return []domain.Event{&ItemChecked{
		ItemID: c.ItemID, Status: v.Status, Note: v.Note, Severity: v.Severity,
		Reason: v.Reason, ScreenshotURL: v.ScreenshotURL, MoreScreenshotURLs: v.More, At: s.alive(c.At),
	}}, nil
}

// ownSeverity is the item's severity in the list.
func (s State) ownSeverity(itemID string) Severity {
	return s.Items[slices.IndexFunc(s.Items, func(i Item) bool { return i.ID == itemID })].Severity
}

func (v Verdict) equal(o Verdict) bool {
	return v.Status == o.Status && v.Note == o.Note && v.Severity == o.Severity && v.Reason == o.Reason &&
		v.ScreenshotURL == o.ScreenshotURL && slices.Equal(v.More, o.More)
}

// DecideAddFinding adds an item outside the list. The same item id is a repeat, even if
// the finding was withdrawn since.
func DecideAddFinding(s State, f Finding) ([]domain.Event, error) {
	if err := working(s, f.CheckerID, f.Token); err != nil {
		return nil, err
	}
	if s.finding(f.Item.ID) >= 0 || slices.Contains(s.Withdrawn, f.Item.ID) {
		return nil, nil
	}
	if err := f.check(); err != nil {
		return nil, err
	}
	if len(s.Findings) >= MaxFindings {
		return nil, domain.Conflict("the report has %d findings, the most it holds", MaxFindings).
			WithHint("put the rest into the summary")
	}
	f.Item.Key = s.freeKey(f.Item)
	return []domain.Event{&FindingAdded{Item: f.Item, Status: f.Status, Note: f.Note, At: s.alive(f.At)}}, nil
}

// DecideEditFinding replaces the content of a finding. Without a key the finding keeps
// its key, unless that derived from a description that changes. An edit that changes
// nothing is a repeat.
func DecideEditFinding(s State, f Finding) ([]domain.Event, error) {
	if err := working(s, f.CheckerID, f.Token); err != nil {
		return nil, err
	}
	i := s.finding(f.Item.ID)
	if i < 0 {
		return nil, domain.NotFound("finding")
	}
	if err := f.check(); err != nil {
		return nil, err
	}
	old := s.Findings[i]
	derived := KeyFor(old.Description)
	ownKey := old.Key != derived && !strings.HasPrefix(old.Key, derived+"-")
	switch {
	case f.Item.Key == old.Key, f.Item.Key == "" && (ownKey || f.Item.Description == old.Description):
		f.Item.Key = old.Key
	default:
		f.Item.Key = s.freeKey(f.Item)
	}
	if f.Item == old.Item && f.Status == old.Status && f.Note == old.Note {
		return nil, nil
	}
	return []domain.Event{&FindingEdited{Item: f.Item, Status: f.Status, Note: f.Note, At: s.alive(f.At)}}, nil
}

// DecideWithdrawFinding withdraws a finding. A second withdrawal is a repeat.
func DecideWithdrawFinding(s State, checkerID string, token int, findingID string, at time.Time) ([]domain.Event, error) {
	if err := working(s, checkerID, token); err != nil {
		return nil, err
	}
	switch {
	case slices.Contains(s.Withdrawn, findingID):
		return nil, nil
	case s.finding(findingID) < 0:
		return nil, domain.NotFound("finding")
	}
	return []domain.Event{&FindingWithdrawn{FindingID: findingID, At: s.alive(at)}}, nil
}

// check refuses a finding without content, and fills in its severity.
func (f *Finding) check() error {
	var wrong domain.Wrong
	wrong.AddIf(strings.TrimSpace(f.Item.Description) == "", "description", "must not be blank")
	wrong.AddIf(f.Status != ItemPass && f.Status != ItemFail, "status", "must be pass or fail")
	f.Item.Severity = cmp.Or(f.Item.Severity, Major)
	wrong.AddIf(!f.Item.Severity.known(), "severity", "must be critical, major or minor")
	return wrong.Refusal()
}

// freeKey is the finding's key, made unique in the job.
func (s State) freeKey(finding Item) string {
	all := make([]Item, 0, len(s.Items)+len(s.Findings)+1)
	all = append(all, s.Items...)
	for _, f := range s.Findings {
		if f.ID != finding.ID {
			all = append(all, f.Item)
		}
	}
	keyed := UniqueKeys(append(all, finding))
	return keyed[len(keyed)-1].Key
}
