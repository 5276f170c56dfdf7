package projections

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"humanqa/domain"
	"humanqa/domain/account"
	"humanqa/domain/credits"
	"humanqa/domain/job"
)

// fold applies one event. A job that has no row is passed over: an operator
// skipped its job.created, or it never came (a refund of a voided submission).
func (f *jobsFold) fold(r domain.Recorded) error {
	switch e := r.Event.(type) {
	case *account.Created:
		if e.Sandbox {
			id := strings.TrimPrefix(r.Stream, domain.AccountStreams)
			f.sandboxed[id] = true
			f.sandboxes = append(f.sandboxes, sandboxRow{AccountID: id})
		}
		return nil
	case *job.Created:
		return f.create(jobOf(r), e)
	}
	j := f.jobs[jobOf(r)]
	if j == nil {
		return nil
	}
	j.changed = true
	switch e := r.Event.(type) {
	case *job.ClaimedBy:
		f.move(j, job.Claimed)
		j.row.CheckerID, j.row.ClaimedAt, j.row.DueAt = e.CheckerID, momentPtr(e.At), moment(e.DueAt)
	case *job.Released:
		f.move(j, job.Pending)
		j.row.CheckerID, j.row.ClaimedAt, j.row.DueAt = "", nil, j.firstDueAt()
	case *job.ItemChecked:
		return j.check(e)
	case *job.FindingAdded:
		j.items = append(j.items, job.ReportItem{Item: e.Item, Status: e.Status, Note: e.Note})
	case *job.CompletedWith:
		return f.complete(j, e)
	case *job.CancelledBy:
		f.move(j, job.Cancelled)
		j.row.CancelReason, j.row.CancelledAt, j.row.Refunded = e.Reason, momentPtr(e.At), e.Refund
	case *credits.Refunded:
		j.row.Refunded = e.Amount
	}
	return nil
}

func (f *jobsFold) create(id string, e *job.Created) error {
	if f.jobs[id] != nil {
		return fmt.Errorf("job %s was created before", id)
	}
	target, err := json.Marshal(e.Target)
	if err != nil {
		return fmt.Errorf("encode the target: %w", err)
	}
	j := &foldedJob{isNew: true, changed: true, items: []job.ReportItem{}}
	for _, item := range e.Items {
		j.items = append(j.items, job.ReportItem{Item: item, Status: job.ItemPending})
	}
	j.row = jobRow{
		ID: id, AccountID: e.AccountID, ProjectID: e.ProjectID,
		Title: e.Title, URL: e.URL, Description: e.Description, Feature: e.Feature,
		Type: e.Type, TypeEcho: e.TypeEcho, Urgent: e.Urgent, SLAMinutes: e.SLAMinutes, Price: e.Price,
		Source: e.Source, ParentID: e.ParentID, BatchID: e.BatchID, SessionID: e.SessionID,
		Target: target, GeneratedBy: e.GeneratedBy,
		InQueue:   e.Type != job.AIReview && !f.sandboxed[e.AccountID],
		CreatedAt: moment(e.CreatedAt),
	}
	j.row.DueAt = j.firstDueAt()
	f.jobs[id] = j
	f.order = append(f.order, j)
	f.move(j, job.Pending)
	return nil
}

func (f *jobsFold) complete(j *foldedJob, e *job.CompletedWith) error {
	items := e.Items
	if items == nil {
		items = []job.ReportItem{}
	}
	data, err := json.Marshal(items)
	if err != nil {
		return fmt.Errorf("encode the report's items: %w", err)
	}
	f.move(j, job.Completed)
	j.items = items
	j.row.ReportID, j.row.OverallStatus, j.row.CompletedAt = e.ReportID, e.OverallStatus, momentPtr(e.At)
	if e.OverallStatus == "pass" {
		f.count(j, job.Completed).Passed++
	}
	f.reports = append(f.reports, reportRow{
		JobID: j.row.ID, AccountID: j.row.AccountID, ReportID: e.ReportID, OverallStatus: e.OverallStatus,
		PassCount: e.PassCount, FailCount: e.FailCount, SkipCount: e.SkipCount,
		Summary: e.Summary, RecordingURL: e.RecordingURL, Items: data, CreatedAt: moment(e.At),
	})
	return nil
}

// check puts a verdict on an item of the list; a later one replaces an earlier
// one.
func (j *foldedJob) check(e *job.ItemChecked) error {
	i := slices.IndexFunc(j.items, func(item job.ReportItem) bool { return item.ID == e.ItemID })
	if i < 0 {
		return fmt.Errorf("the job has no item %s", e.ItemID)
	}
	item := &j.items[i]
	item.Status, item.Note, item.Reason, item.ScreenshotURL = e.Status, e.Note, e.Reason, e.ScreenshotURL
	if e.Severity != "" {
		item.Severity = e.Severity
	}
	return nil
}

// firstDueAt is when the SLA of an unclaimed job ends.
func (j *foldedJob) firstDueAt() time.Time {
	return j.row.CreatedAt.Add(time.Duration(j.row.SLAMinutes) * time.Minute)
}

// move changes the status and both counts.
func (f *jobsFold) move(j *foldedJob, to job.Status) {
	if j.row.Status != "" {
		f.count(j, j.row.Status).Jobs--
	}
	j.row.Status = to
	f.count(j, to).Jobs++
}

// count is what the batch adds to the count of the job's account, project and
// the status.
func (f *jobsFold) count(j *foldedJob, status job.Status) *countRow {
	key := countRow{AccountID: j.row.AccountID, ProjectID: j.row.ProjectID, Status: status}
	c := f.counts[key]
	if c == nil {
		sum := key
		c = &sum
		f.counts[key] = c
		f.tally = append(f.tally, c)
	}
	return c
}
