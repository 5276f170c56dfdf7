package history

import (
	"slices"
	"time"

	"humanqa/domain/job"
)

// recentVerdicts bounds the verdicts of an item that can be taken back. An older one that is
// overturned changes its test and the sums, and leaves the item as it is.
const recentVerdicts = 8

// verdict is that of one test on an item. The last three are of failures only.
type verdict struct {
	N        int            `json:"n"`
	As       job.ItemStatus `json:"as"`
	At       time.Time      `json:"at"`
	JobID    string         `json:"jobId,omitempty"`
	ItemID   string         `json:"itemId,omitempty"`
	Severity job.Severity   `json:"severity,omitempty"`
	Place    int            `json:"place,omitempty"`
}

// see records the verdict of a test on an item. regressed says that the item failed, and
// the test before had passed it. No two items of a report share a key.
func (f *historyFold) see(test *historyTestRow, place int, i job.ReportItem) (regressed bool) {
	at := itemAt{test.ProjectID, i.Key}
	row := f.items[at]
	if row == nil {
		row = &historyItemRow{AccountID: test.AccountID, ProjectID: test.ProjectID, Key: i.Key}
		f.items[at] = row
	}
	v := verdict{N: test.N, As: i.Status, At: test.TestedAt}
	if i.Status == job.ItemFail {
		v.JobID, v.ItemID, v.Severity, v.Place = test.JobID, i.ID, i.Severity, place
		row.TextOf, row.Description, row.ExpectedOutcome = test.JobID, i.Description, i.ExpectedOutcome
	}
	f.rewriteItem(row)
	row.Recent = append(row.Recent, v)
	if len(row.Recent) > recentVerdicts {
		row.Earlier.V.see(row.Recent[0])
		row.Recent = row.Recent[1:]
	}
	row.see(v)
	return row.regressed(test.N)
}

func (f *historyFold) rewriteItem(row *historyItemRow) {
	if !row.dirty {
		row.dirty = true
		f.seen = append(f.seen, row)
	}
}

func (s *itemState) see(v verdict) {
	s.SeenIn, s.SeenAs = v.N, v.As
	switch v.As {
	case job.ItemPass:
		s.Open, s.LastPassedAt = false, &v.At
	case job.ItemFail:
		if !s.Open {
			s.Open, s.FirstFailedAt, s.FailedTests = true, &v.At, 0
		}
		s.FailedTests++
		s.JobID, s.ItemID, s.Severity = v.JobID, v.ItemID, v.Severity
		s.FailedIn, s.Place, s.FailedAt = v.N, v.Place, &v.At
	case job.ItemSkip, job.ItemPending: // no verdict
	}
}

// regressed says that the item failed in the test n, and the test before had passed it.
func (r *historyItemRow) regressed(n int) bool {
	last := len(r.Recent) - 1
	return last > 0 && r.Recent[last].N == n && r.Recent[last].As == job.ItemFail &&
		r.Recent[last-1].N == n-1 && r.Recent[last-1].As == job.ItemPass
}

// overturn takes the verdict of the test n back, as if it had skipped the item.
func (r *historyItemRow) overturn(n int) {
	r.Recent = slices.Clone(r.Recent)
	r.itemState = r.Earlier.V
	for i := range r.Recent {
		if r.Recent[i].N == n {
			r.Recent[i] = verdict{N: n, As: job.ItemSkip, At: r.Recent[i].At}
		}
		r.see(r.Recent[i])
	}
}

// rule adds the decision on a dispute of a completed test. An overturned verdict counts no
// more: not in the sums, and neither as a failure nor as a pass of its item.
func (f *historyFold) rule(jobID string, e *job.DisputeDecided) {
	test := f.tests[jobID]
	if test == nil || f.projects[test.ProjectID] == nil || e.Decision != job.Overturned {
		return
	}
	p := f.projects[test.ProjectID]
	f.touch(p)
	f.rewrite(test)
	p.row.Passed += e.Shift(job.OverallPass)
	p.row.Failed += e.Shift(job.OverallFail)
	f.count(test, 0, e.Shift(job.OverallPass))
	test.OverallStatus, test.PassCount, test.FailCount = e.OverallStatus, e.PassCount, e.FailCount
	if test.HealthScore != nil {
		p.row.HealthSum += int64(e.HealthScore - *test.HealthScore)
		test.HealthScore = &e.HealthScore
	}
	if test.N == p.row.Tests { // the failures are the latest test's
		p.row.Failures = slices.DeleteFunc(slices.Clone(p.row.Failures), func(i FailedItem) bool { return i.ID == e.ItemID })
	}
	row := f.items[itemAt{test.ProjectID, e.Key}]
	if row == nil { // see Past.Verdicts
		return
	}
	regressed := row.regressed(p.row.Tests)
	row.overturn(test.N)
	f.rewriteItem(row)
	if at := slices.Index(p.row.Regressions, row.Description); regressed && !row.regressed(p.row.Tests) && at >= 0 {
		p.row.Regressions = slices.Delete(slices.Clone(p.row.Regressions), at, at+1)
	}
}
