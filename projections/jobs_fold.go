package projections

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"humanqa/domain"
	"humanqa/domain/account"
	"humanqa/domain/credits"
	"humanqa/domain/job"
)

// Apply folds the batch per job in memory, so that a job is written once
// however many of its events the batch holds.
func (jobsProjector) Apply(ctx context.Context, tx *sqlx.Tx, schema string, batch []domain.Recorded) error {
	f := jobsFold{
		jobs: map[string]*foldedJob{}, reported: map[string]*reportRow{},
		sandboxed: map[string]bool{}, counts: map[countRow]*countRow{},
	}
	if err := f.load(ctx, tx, schema, batch); err != nil {
		return err
	}
	for _, r := range batch {
		if err := f.fold(r); err != nil {
			return fmt.Errorf("fold %s of %s: %w", r.Type, r.Stream, err)
		}
	}
	return f.write(ctx, tx, schema)
}

// jobsFold is one batch on its way into the tables.
type jobsFold struct {
	jobs      map[string]*foldedJob
	order     []*foldedJob // in order of first appearance: what is written never depends on map order
	reports   []*reportRow
	reported  map[string]*reportRow // those of this batch, by job
	aiReports []aiReportRow
	ratings   []ratingRow // of reports of earlier batches
	sandboxes []sandboxRow
	sandboxed map[string]bool
	counts    map[countRow]*countRow
	tally     []*countRow
}

type foldedJob struct {
	row            jobRow
	items          []job.ReportItem
	isNew, changed bool
}

// jobOf is the job an event is about; empty when it is about none.
func jobOf(r domain.Recorded) string {
	switch e := r.Event.(type) {
	case *credits.Refunded:
		return e.JobID
	case *account.Created:
		return ""
	}
	return strings.TrimPrefix(r.Stream, domain.JobStreams)
}

// load fetches what the batch builds on: the jobs it changes but did not
// create, and which of the creating accounts are sandboxes.
func (f *jobsFold) load(ctx context.Context, tx *sqlx.Tx, schema string, batch []domain.Recorded) error {
	var changed, creators []string
	created, seen := map[string]bool{}, map[string]bool{}
	for _, r := range batch {
		id := jobOf(r)
		switch e := r.Event.(type) {
		case *account.Created:
		case *job.Created:
			created[id] = true
			if !seen[e.AccountID] {
				seen[e.AccountID] = true
				creators = append(creators, e.AccountID)
			}
		default:
			if !created[id] && !seen[id] {
				seen[id] = true
				changed = append(changed, id)
			}
		}
	}
	if len(creators) > 0 {
		var sandboxed []string
		err := tx.SelectContext(ctx, &sandboxed, in(schema, loadSandboxesSQL), pq.Array(creators))
		if err != nil {
			return fmt.Errorf("load sandbox accounts: %w", err)
		}
		for _, id := range sandboxed {
			f.sandboxed[id] = true
		}
	}
	if len(changed) > 0 {
		var rows []jobRow
		if err := tx.SelectContext(ctx, &rows, in(schema, loadJobsSQL), pq.Array(changed)); err != nil {
			return fmt.Errorf("load jobs: %w", err)
		}
		for _, row := range rows {
			j := &foldedJob{row: row}
			if err := json.Unmarshal(row.Items, &j.items); err != nil {
				return fmt.Errorf("decode the items of job %s: %w", row.ID, err)
			}
			f.jobs[row.ID] = j
			f.order = append(f.order, j)
		}
	}
	return nil
}

// write puts the folded batch into the tables, a statement per table.
func (f *jobsFold) write(ctx context.Context, tx *sqlx.Tx, schema string) error {
	var inserts, updates []jobRow
	for _, j := range f.order {
		if !j.changed {
			continue
		}
		items, err := json.Marshal(j.items)
		if err != nil {
			return fmt.Errorf("encode the items of job %s: %w", j.row.ID, err)
		}
		j.row.Items = items
		if j.isNew {
			inserts = append(inserts, j.row)
		} else {
			updates = append(updates, j.row)
		}
	}
	if err := writeRows(ctx, tx, schema, insertSandboxesSQL, f.sandboxes); err != nil {
		return fmt.Errorf("insert sandbox accounts: %w", err)
	}
	if err := writeRows(ctx, tx, schema, insertJobsSQL, inserts); err != nil {
		return fmt.Errorf("insert jobs: %w", err)
	}
	if err := writeRows(ctx, tx, schema, updateJobsSQL, updates); err != nil {
		return fmt.Errorf("update jobs: %w", err)
	}
	if err := writeRows(ctx, tx, schema, insertReportsSQL, f.reports); err != nil {
		return fmt.Errorf("insert reports: %w", err)
	}
	if err := writeRows(ctx, tx, schema, insertAIReportsSQL, f.aiReports); err != nil {
		return fmt.Errorf("insert AI reports: %w", err)
	}
	if err := writeRows(ctx, tx, schema, rateReportsSQL, f.ratings); err != nil {
		return fmt.Errorf("rate reports: %w", err)
	}
	if err := writeRows(ctx, tx, schema, addCountsSQL, f.tally); err != nil {
		return fmt.Errorf("add to the counts: %w", err)
	}
	return nil
}

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
	case *job.ChecklistWritten:
		j.list(e.Items, e.GeneratedBy)
	case *job.ClaimedBy:
		f.move(j, job.Claimed)
		j.row.CheckerID, j.row.ClaimedAt, j.row.DueAt = e.CheckerID, momentPtr(e.At), moment(e.DueAt)
	case *job.Released:
		f.requeue(j)
	case *job.SlotStarted:
		j.row.DueAt, j.row.QueueDueAt = moment(e.DueAt), moment(e.DueAt)
	case *job.SLAMissed:
		j.row.RequeueCount, j.row.LastFailedSLAAt = e.RequeueCount, momentPtr(e.At)
		if e.Requeued {
			j.row.QueueDueAt = moment(e.DueAt)
		}
		f.requeue(j) // where the job is not queued again, job.failed is the next event
	case *job.UntestableReported:
		j.row.UntestableBy = append(j.row.UntestableBy, e.CheckerID)
		f.requeue(j)
	case *job.ItemChecked:
		return j.check(e)
	case *job.FindingAdded:
		j.items = append(j.items, job.ReportItem{Item: e.Item, Status: e.Status, Note: e.Note})
	case *job.CompletedWith:
		return f.complete(j, e)
	case *job.AIReportReady:
		return f.analyse(j, e)
	case *job.Rated:
		f.rate(j, e)
	case *job.CancelledBy:
		f.move(j, job.Cancelled)
		j.row.CancelReason, j.row.CancelledAt, j.row.Refunded = e.Reason, momentPtr(e.At), e.Refund
	case *job.FailedBy:
		f.move(j, job.Failed)
		j.row.FailReason, j.row.FailedAt, j.row.Refunded = e.Reason, momentPtr(e.At), e.Refund
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
	due := moment(e.CreatedAt).Add(time.Duration(e.SLAMinutes) * time.Minute)
	j := &foldedJob{isNew: true, changed: true, items: []job.ReportItem{}}
	j.row = jobRow{
		ID: id, AccountID: e.AccountID, ProjectID: e.ProjectID,
		Title: e.Title, URL: e.URL, Description: e.Description, Feature: e.Feature,
		Type: e.Type, TypeEcho: e.TypeEcho, Urgent: e.Urgent, SLAMinutes: e.SLAMinutes, Price: e.Price,
		Source: e.Source, ParentID: e.ParentID, BatchID: e.BatchID, BatchIndex: e.BatchIndex,
		SessionID: e.SessionID, LoopID: e.LoopID, HostedApp: e.HostedApp,
		Sandbox: e.Sandbox || f.sandboxed[e.AccountID],
		Target:  target, UntestableBy: pq.StringArray{},
		CreatedAt: moment(e.CreatedAt), DueAt: due, QueueDueAt: due,
	}
	j.list(e.Items, e.GeneratedBy)
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
	report := &reportRow{
		JobID: j.row.ID, AccountID: j.row.AccountID, ReportID: e.ReportID, OverallStatus: e.OverallStatus,
		PassCount: e.PassCount, FailCount: e.FailCount, SkipCount: e.SkipCount,
		Summary: e.Summary, RecordingURL: e.RecordingURL, Items: data, CreatedAt: moment(e.At),
	}
	f.reports, f.reported[j.row.ID] = append(f.reports, report), report
	return nil
}

func (f *jobsFold) analyse(j *foldedJob, e *job.AIReportReady) error {
	report, err := json.Marshal(e.AIReport)
	if err != nil {
		return fmt.Errorf("encode the AI report: %w", err)
	}
	j.row.Analysed = true
	f.aiReports = append(f.aiReports, aiReportRow{JobID: j.row.ID, AccountID: j.row.AccountID, Report: report})
	return nil
}

// rate keeps the client's last word on the report.
func (f *jobsFold) rate(j *foldedJob, e *job.Rated) {
	if report := f.reported[j.row.ID]; report != nil {
		report.CheckerRating = &e.Rating
		return
	}
	f.ratings = slices.DeleteFunc(f.ratings, func(r ratingRow) bool { return r.JobID == j.row.ID })
	f.ratings = append(f.ratings, ratingRow{JobID: j.row.ID, CheckerRating: e.Rating})
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

// list gives the job its checklist. Only with one is there something to claim.
func (j *foldedJob) list(items []job.Item, by string) {
	for _, item := range items {
		j.items = append(j.items, job.ReportItem{Item: item, Status: job.ItemPending})
	}
	j.row.GeneratedBy = by
	j.row.InQueue = len(j.items) > 0 && j.row.Type != job.AIReview && !j.row.Sandbox
}

// requeue ends the claim, if there is one.
func (f *jobsFold) requeue(j *foldedJob) {
	f.move(j, job.Pending)
	j.row.CheckerID, j.row.ClaimedAt, j.row.DueAt = "", nil, j.row.QueueDueAt
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
