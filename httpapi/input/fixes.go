package input

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"humanqa/domain/command"
	"humanqa/httpapi/wire"
	"humanqa/projections"
	"humanqa/projections/history"
)

const maxFixes = 50 // in each list

// Fixes reads the two lists; one of them must name something.
func Fixes(o wire.Object) (bugs []string, fixes []command.PreparedFix) {
	const ids, texts = "fixedBugIds", "fixedDescriptions"
	before := o.Problems.Count()
	for i, s := range wire.OrZero(o.Strings(ids, maxFixes, maxItemText)) {
		if !wire.IDPattern.MatchString(s) {
			o.Wrong(fmt.Sprintf("%s[%d]", ids, i), "must be an id")
		}
		bugs = append(bugs, s)
	}
	for i, s := range wire.OrZero(o.Strings(texts, maxFixes, maxItemText)) {
		if strings.TrimSpace(s) == "" {
			o.Wrong(fmt.Sprintf("%s[%d]", texts, i), "must not be blank")
		}
		fixes = append(fixes, command.PreparedFix{Description: strings.TrimSpace(s)})
	}
	if !o.Broken() && len(bugs)+len(fixes) == 0 && o.Problems.Count() == before {
		o.Wrong(ids, "must name a fix, or %s must", texts)
		o.Wrong(texts, "must name a fix, or %s must", ids)
	}
	return bugs, fixes
}

// FailedInLastTest turns ids of items into the fixes to verify. An id that did
// not fail in the project's last test is refused.
func FailedInLastTest(
	ctx context.Context, reads *projections.Reads, accountID, projectID string, bugs []string,
) ([]command.PreparedFix, error) {
	if _, err := reads.Projects.Get(ctx, accountID, projectID); err != nil || len(bugs) == 0 {
		return nil, err
	}
	failed, err := reads.History.LastFailures(ctx, accountID, projectID)
	if err != nil {
		return nil, err
	}
	var p wire.Problems
	var fixes []command.PreparedFix
	for i, id := range bugs {
		at := slices.IndexFunc(failed, func(f history.FailedItem) bool { return f.ID == id })
		if at < 0 {
			p.Add(fmt.Sprintf("fixedBugIds[%d]", i), "did not fail in the project's last test")
			continue
		}
		f := failed[at]
		fixes = append(fixes, command.PreparedFix{
			BugID: f.ID, Key: f.Key, Description: f.Description, ExpectedOutcome: f.ExpectedOutcome, Severity: f.Severity,
		})
	}
	return fixes, p.Err()
}
