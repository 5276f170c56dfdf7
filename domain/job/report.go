package job

import (
	"fmt"
	"strings"
)

// The values of a report's overallStatus.
const (
	OverallPass         = "pass"
	OverallFail         = "fail"
	OverallInconclusive = "inconclusive"
)

// ReportItem is one line of the report.
type ReportItem struct {
	Item
	Status        ItemStatus `json:"status"`
	Note          string     `json:"note,omitempty" sealed:"text"`
	Reason        string     `json:"reason,omitempty"`
	ScreenshotURL string     `json:"screenshotUrl,omitempty" sealed:"link"`
	// MoreScreenshotURLs are the pictures beside the first.
	MoreScreenshotURLs []string `json:"moreScreenshotUrls,omitempty" sealed:"link"`
}

// IsFinding says that the checker found it beside the list.
func (i ReportItem) IsFinding() bool { return strings.HasPrefix(i.ID, "finding") }

// Screenshots are all pictures of the item, in the order of their arrival.
func (i ReportItem) Screenshots() []string { return screenshots(i.ScreenshotURL, i.MoreScreenshotURLs) }

func screenshots(first string, more []string) []string {
	if first == "" {
		return nil
	}
	return append([]string{first}, more...)
}

// ReportItems is the report as it stands: the list in its order, an unchecked
// item as pending, then the findings in theirs.
func (s State) ReportItems() []ReportItem {
	if s.Report != nil {
		return s.Report.Items
	}
	items := make([]ReportItem, 0, len(s.Items)+len(s.Findings))
	for _, i := range s.Items {
		items = append(items, s.reportItem(i))
	}
	return append(items, s.Findings...)
}

// ReportItem gives one line of the report by its item's id.
func (s State) ReportItem(itemID string) (ReportItem, bool) {
	for _, i := range s.ReportItems() {
		if i.ID == itemID {
			return i, true
		}
	}
	return ReportItem{}, false
}

func (s State) reportItem(i Item) ReportItem {
	v, ok := s.Verdicts[i.ID]
	if !ok {
		return ReportItem{Item: i, Status: ItemPending}
	}
	if v.Severity != "" {
		i.Severity = v.Severity
	}
	return ReportItem{Item: i, Status: v.Status, Note: v.Note, Reason: v.Reason, ScreenshotURL: v.ScreenshotURL, MoreScreenshotURLs: v.More}
}

// Counts counts the verdicts.
func Counts(items []ReportItem) (pass, fail, skip int) {
	for _, i := range items {
		switch i.Status {
		case ItemPass:
			pass++
		case ItemFail:
			fail++
		case ItemSkip:
			skip++
		case ItemPending:
		}
	}
	return pass, fail, skip
}

// OverallStatus is fail if any item failed, else pass if any passed, else
// inconclusive (decisions, "overallStatus").
func OverallStatus(items []ReportItem) string {
	switch pass, fail, _ := Counts(items); {
	case fail > 0:
		return OverallFail
	case pass > 0:
		return OverallPass
	}
	return OverallInconclusive
}

// AnswersKey is the key of the item of a review that checks whether the page answers.
const AnswersKey = "review-answers"

// HealthScore is 100 less 25 for each critical, 10 for each major and 3 for
// each minor item that failed, and never below 0 (decisions, "healthScore").
//
// A page that gave a review no good answer has no health: 0.
func HealthScore(items []ReportItem) int {
	score := 100
	for _, i := range items {
		if i.Status != ItemFail {
			continue
		}
		if i.Key == AnswersKey {
			return 0
		}
		switch i.Severity {
		case Critical:
			score -= 25
		case Major:
			score -= 10
		case Minor:
			score -= 3
		}
	}
	return max(0, score)
}

// Tally is a report in a few words, such as "3 of 11 failed"; empty without items.
func Tally(pass, fail, skip int) string {
	switch all := pass + fail + skip; {
	case fail > 0:
		return fmt.Sprintf("%d of %d failed", fail, all)
	case all > 0:
		return fmt.Sprintf("%d of %d passed", pass, all)
	}
	return ""
}
