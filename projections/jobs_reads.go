package projections

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jmoiron/sqlx"

	"humanqa/domain"
	"humanqa/domain/job"
)

// Jobs reads jobs and reports. Every method but the queue's is bound to one
// account; another account's job does not exist for it.
type Jobs struct{ db *sqlx.DB }

// Job is a job as its account may see it. Empty strings stand for what was
// never given. Times are UTC, in whole milliseconds.
type Job struct {
	ID              string
	AccountID       string
	ProjectID       string
	Status          job.Status
	Title           string
	URL             string
	Description     string // not in lists
	Feature         string // not in lists
	Type            job.Type
	TypeEcho        string // the spelling that was submitted
	Urgent          bool
	SLAMinutes      int
	Price           domain.Credits
	CreditsUsed     domain.Credits // net of refunds
	Source          string
	ParentID        string
	BatchID         string
	SessionID       string
	Target          job.Target
	GeneratedBy     string // who wrote the checklist; empty: the client
	ReportID        string // empty until there is a report
	OverallStatus   string // empty until there is a report
	CancelReason    string
	RequeueCount    int
	CreatedAt       time.Time
	DueAt           time.Time
	ClaimedAt       *time.Time
	CompletedAt     *time.Time
	CancelledAt     *time.Time
	LastFailedSLAAt *time.Time
	FailedAt        *time.Time
	FailReason      string // sla, untestable, operator
	LoopID          string
	HostedApp       bool
	Sandbox         bool
	AIReport        AIReportState
	Items           []job.ReportItem // with the verdicts so far, findings last; not in lists
}

// AIReportState says how far the analysis of a job is.
type AIReportState string

// The states of an analysis.
const (
	AIReportNone       AIReportState = ""           // the job is not completed
	AIReportGenerating AIReportState = "generating" // completed, the analysis is on its way
	AIReportReady      AIReportState = "completed"
)

// IsFinal says that the job has ended.
func (j Job) IsFinal() bool {
	return j.Status == job.Completed || j.Status == job.Cancelled || j.Status == job.Failed
}

// JobFilter narrows a list; zero fields don't. Since is exclusive.
type JobFilter struct {
	Status    job.Status
	ProjectID string
	Since     *time.Time
	Limit     int
	Offset    int
}

// Report is the finished report of a job.
type Report struct {
	ID            string
	JobID         string
	OverallStatus string
	PassCount     int
	FailCount     int
	SkipCount     int
	Summary       string
	RecordingURL  string
	CheckerRating *int // nil until the client rates
	Items         []job.ReportItem
	CreatedAt     time.Time
}

const getJobSQL = `
SELECT *
FROM readmodel.jobs
WHERE account_id = $1
  AND id = $2`

const getReportSQL = `
SELECT *
FROM readmodel.job_reports
WHERE account_id = $1
  AND job_id = $2`

// The texts and the items are left out: a page of a hundred jobs would read
// megabytes for nothing.
const summariesSQL = `
SELECT id, account_id, project_id, status, title, url, '' AS description, '' AS feature, type, type_echo,
       urgent, sla_minutes, price, refunded, source, parent_id, batch_id, batch_index, session_id, loop_id,
       hosted_app, sandbox, target, generated_by, report_id, overall_status, analysed, cancel_reason,
       fail_reason, requeue_count, created_at, due_at, claimed_at, completed_at, cancelled_at, failed_at,
       last_failed_sla_at, '[]'::jsonb AS items
FROM readmodel.jobs`

// A page shows no more than this; every column costs a hundred values a page.
const listJobsSQL = `
SELECT id, account_id, project_id, status, title, url, type, type_echo, urgent, report_id, overall_status, created_at
FROM readmodel.jobs
WHERE account_id = $1`

// The last condition is implied; it lets the planner use the partial index.
const batchSQL = summariesSQL + `
WHERE account_id = $1
  AND batch_id = $2
  AND batch_id <> ''
ORDER BY batch_index`

const getAIReportSQL = `
SELECT report
FROM readmodel.job_ai_reports
WHERE account_id = $1
  AND job_id = $2`

const orderJobsSQL = `
ORDER BY created_at DESC, id DESC
LIMIT %s
OFFSET %s`

// The total of a list comes from the counts. Only a list that starts at a
// moment has to count rows.
const totalJobsSQL = `
SELECT COALESCE(SUM(jobs), 0)
FROM readmodel.job_counts
WHERE account_id = $1`

const totalJobsSinceSQL = `
SELECT COUNT(*)
FROM readmodel.jobs
WHERE account_id = $1`

// clauses collects conditions and their parameters, the account's first.
type clauses struct {
	sql  string
	args []any
}

func (c *clauses) and(condition string, arg any) {
	c.sql += fmt.Sprintf("\n  AND "+condition, c.param(arg))
}

func (c *clauses) param(arg any) string {
	c.args = append(c.args, arg)
	return fmt.Sprintf("$%d", len(c.args))
}

// where gives the conditions of a list; since is left out for the counts,
// which don't know it.
func (f JobFilter) where(accountID string) *clauses {
	c := &clauses{args: []any{accountID}}
	if f.Status != "" {
		c.and("status = %s", f.Status)
	}
	if f.ProjectID != "" {
		// The second half is implied; it lets the planner use the partial index.
		c.and("project_id = %s AND project_id <> ''", f.ProjectID)
	}
	if f.Since != nil {
		c.and("created_at > %s", *f.Since)
	}
	return c
}

// List gives a page of the account's jobs, the newest first, and how many
// there are on all pages. Of each job it knows what a page shows: the columns
// of listJobsSQL.
func (q *Jobs) List(ctx context.Context, accountID string, f JobFilter) ([]Job, int, error) {
	where := f.where(accountID)
	totalSQL := totalJobsSQL
	if f.Since != nil {
		totalSQL = totalJobsSinceSQL
	}
	var total int
	if err := q.db.GetContext(ctx, &total, totalSQL+where.sql, where.args...); err != nil {
		return nil, 0, fmt.Errorf("count jobs: %w", err)
	}
	query := listJobsSQL + where.sql
	query += fmt.Sprintf(orderJobsSQL, where.param(f.Limit), where.param(f.Offset))
	var rows []jobRow
	if err := q.db.SelectContext(ctx, &rows, query, where.args...); err != nil {
		return nil, 0, fmt.Errorf("list jobs: %w", err)
	}
	jobs, err := jobsOf(rows)
	return jobs, total, err
}

// Job gives one job with its items.
func (q *Jobs) Job(ctx context.Context, accountID, id string) (Job, error) {
	var row jobRow
	switch err := q.db.GetContext(ctx, &row, getJobSQL, accountID, id); {
	case errors.Is(err, sql.ErrNoRows):
		return Job{}, domain.NotFound("job")
	case err != nil:
		return Job{}, fmt.Errorf("read job %s: %w", id, err)
	}
	return row.job()
}

// Report gives the report of a job. A job without one answers not found; who
// must tell that from a job that does not exist reads the job first.
func (q *Jobs) Report(ctx context.Context, accountID, jobID string) (Report, error) {
	var row reportRow
	switch err := q.db.GetContext(ctx, &row, getReportSQL, accountID, jobID); {
	case errors.Is(err, sql.ErrNoRows):
		return Report{}, domain.NotFound("report")
	case err != nil:
		return Report{}, fmt.Errorf("read the report of job %s: %w", jobID, err)
	}
	r := Report{
		ID: row.ReportID, JobID: row.JobID, OverallStatus: row.OverallStatus,
		PassCount: row.PassCount, FailCount: row.FailCount, SkipCount: row.SkipCount,
		Summary: row.Summary, RecordingURL: row.RecordingURL, CheckerRating: row.CheckerRating, CreatedAt: row.CreatedAt.UTC(),
	}
	if err := json.Unmarshal(row.Items, &r.Items); err != nil {
		return Report{}, fmt.Errorf("decode the report of job %s: %w", jobID, err)
	}
	return r, nil
}

// AIReport gives the analysis of a completed job; NotFound while there is none.
func (q *Jobs) AIReport(ctx context.Context, accountID, jobID string) (job.AIReport, error) {
	var (
		data   []byte
		report job.AIReport
	)
	switch err := q.db.GetContext(ctx, &data, getAIReportSQL, accountID, jobID); {
	case errors.Is(err, sql.ErrNoRows):
		return report, domain.NotFound("AI report")
	case err != nil:
		return report, fmt.Errorf("read the AI report of job %s: %w", jobID, err)
	}
	if err := json.Unmarshal(data, &report); err != nil {
		return report, fmt.Errorf("decode the AI report of job %s: %w", jobID, err)
	}
	return report, nil
}

// Batch gives the jobs of a bulk submission in submitted order; NotFound when
// the account has no such batch.
func (q *Jobs) Batch(ctx context.Context, accountID, batchID string) ([]Job, error) {
	var rows []jobRow
	if err := q.db.SelectContext(ctx, &rows, batchSQL, accountID, batchID); err != nil {
		return nil, fmt.Errorf("read batch %s: %w", batchID, err)
	}
	if len(rows) == 0 {
		return nil, domain.NotFound("batch")
	}
	return jobsOf(rows)
}

func jobsOf(rows []jobRow) ([]Job, error) {
	jobs := make([]Job, len(rows))
	for i := range rows {
		j, err := rows[i].job()
		if err != nil {
			return nil, err
		}
		jobs[i] = j
	}
	return jobs, nil
}

func (r *jobRow) job() (Job, error) {
	utc(&r.CreatedAt, &r.DueAt, r.ClaimedAt, r.CompletedAt, r.CancelledAt, r.FailedAt, r.LastFailedSLAAt)
	j := Job{
		ID: r.ID, AccountID: r.AccountID, ProjectID: r.ProjectID, Status: r.Status,
		Title: r.Title, URL: r.URL, Description: r.Description, Feature: r.Feature,
		Type: r.Type, TypeEcho: r.TypeEcho, Urgent: r.Urgent, SLAMinutes: r.SLAMinutes,
		Price: r.Price, CreditsUsed: r.Price - r.Refunded, Source: r.Source,
		ParentID: r.ParentID, BatchID: r.BatchID, SessionID: r.SessionID, LoopID: r.LoopID,
		HostedApp: r.HostedApp, Sandbox: r.Sandbox, GeneratedBy: r.GeneratedBy,
		ReportID: r.ReportID, OverallStatus: r.OverallStatus, AIReport: r.aiReportState(),
		CancelReason: r.CancelReason, FailReason: r.FailReason, RequeueCount: r.RequeueCount,
		CreatedAt: r.CreatedAt, DueAt: r.DueAt, ClaimedAt: r.ClaimedAt, CompletedAt: r.CompletedAt,
		CancelledAt: r.CancelledAt, FailedAt: r.FailedAt, LastFailedSLAAt: r.LastFailedSLAAt,
	}
	if r.Target == nil {
		return j, nil // of a page
	}
	if err := json.Unmarshal(r.Target, &j.Target); err != nil {
		return Job{}, fmt.Errorf("decode the target of job %s: %w", r.ID, err)
	}
	if err := json.Unmarshal(r.Items, &j.Items); err != nil {
		return Job{}, fmt.Errorf("decode the items of job %s: %w", r.ID, err)
	}
	return j, nil
}

func (r *jobRow) aiReportState() AIReportState {
	switch {
	case r.Analysed:
		return AIReportReady
	case r.Status == job.Completed:
		return AIReportGenerating
	}
	return AIReportNone
}
