package jobs

import (
	"context"
	"fmt"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"humanqa/domain"
	"humanqa/domain/job"
	"humanqa/internal/cursor"
	"humanqa/internal/pgpool"
	"humanqa/projections/readmodel"
)

// Reads reads jobs and reports. Every method but the queue's is bound to one
// account; another account's job does not exist for it.
type Reads struct{ db *sqlx.DB }

// NewReads reads through the views in schema readmodel.
func NewReads(db *sqlx.DB) *Reads { return &Reads{db: readmodel.Pool(db)} }

// Summary is a job in a list.
type Summary struct {
	ID        string     `json:"id"`
	ProjectID string     `json:"project_id"`
	Status    job.Status `json:"status"`
	Title     string     `json:"title"`
	URL       string     `json:"url"`
	Type      job.Type   `json:"type"`
	TypeEcho  string     `json:"type_echo"` // the spelling that was submitted
	Urgent    bool       `json:"urgent"`
	ReportID  string     `json:"report_id"` // empty until there is a report
	CreatedAt time.Time  `json:"created_at"`

	OverallStatus string `json:"overall_status"` // empty until there is a report
	Asks          bool   `json:"asks"`           // a question of its checker is open
}

// Outline is a job without its items: its submission and its progress.
type Outline struct {
	ID string
	job.Submission
	Progress
}

// Key is the job's id.
func (o Outline) Key() string { return o.ID }

// Job is a job as its account may see it.
type Job struct {
	Outline
	Items      []job.ReportItem // with the verdicts so far, findings last
	Recordings []job.Recording  // those that can be played
	Questions  []job.Question   // of its checkers, without secrets; the last one may be open
	Disputes   []job.Dispute    // of the report's verdicts
	Returns    []Return         // ends of claims without a report, in order
}

// OpenQuestion gives the question that waits for its answer.
func (j Job) OpenQuestion() (q job.Question, open bool) {
	if n := len(j.Questions); n > 0 && j.Questions[n-1].Open() {
		return j.Questions[n-1], true
	}
	return job.Question{}, false
}

// Summary is the job as a list shows it.
func (j Job) Summary() Summary {
	s := j.Outline.Summary()
	_, s.Asks = j.OpenQuestion()
	return s
}

// AIReportState says how far the analysis of a job is.
type AIReportState string

// The states of an analysis.
const (
	AIReportNone       AIReportState = ""           // the job is not completed
	AIReportGenerating AIReportState = "generating" // completed, the analysis is on its way
	AIReportReady      AIReportState = "completed"
)

// AIReport says how far the job's analysis is.
func (p Progress) AIReport() AIReportState {
	switch {
	case p.Analysed:
		return AIReportReady
	case p.Status == job.StatusCompleted:
		return AIReportGenerating
	}
	return AIReportNone
}

// IsFinal says that the job has ended.
func (p Progress) IsFinal() bool { return p.Status.Ended() }

// IsFinal says that the job has ended.
func (s Summary) IsFinal() bool { return s.Status.Ended() }

// CreditsUsed is the cost of the job, net of refunds.
func (o Outline) CreditsUsed() domain.Credits { return o.Price - o.Refunded }

// Summary is the job as a list shows it.
func (o Outline) Summary() Summary {
	return Summary{
		ID: o.ID, ProjectID: o.ProjectID, Status: o.Status, Title: o.Title, URL: o.URL,
		Type: o.Type, TypeEcho: o.TypeEcho, Urgent: o.Urgent, ReportID: o.ReportID, CreatedAt: o.CreatedAt,
		OverallStatus: o.OverallStatus,
	}
}

// Filter narrows a list; zero fields don't. Since is exclusive.
type Filter struct {
	Status    job.Status
	ProjectID string
	Since     *time.Time
	Limit     int
	Offset    int
	// After is the place of a job; the page follows it.
	After cursor.Cursor
}

// Report is the finished report of a job.
type Report struct {
	ID            string                         `json:"report_id"`
	JobID         string                         `json:"job_id"`
	OverallStatus string                         `json:"overall_status"`
	PassCount     int                            `json:"pass_count"`
	FailCount     int                            `json:"fail_count"`
	SkipCount     int                            `json:"skip_count"`
	Summary       string                         `json:"summary"`
	RecordingURL  string                         `json:"recording_url"`
	Recordings    readmodel.List[job.Recording]  `json:"recordings"`
	Questions     readmodel.List[job.Question]   `json:"questions"` // without secrets
	Disputes      readmodel.List[job.Dispute]    `json:"disputes"`
	CheckerRating *int                           `json:"checker_rating"` // nil until the client rates
	RatingNote    string                         `json:"checker_note"`   // the client's words beside the rating
	Items         readmodel.List[job.ReportItem] `json:"items"`
	CreatedAt     time.Time                      `json:"created_at"`
}

var getJobSQL = `
SELECT ` + readmodel.Columns[jobRow]("") + `
FROM readmodel.jobs
WHERE account_id = $1
  AND id = $2`

var getReportSQL = `
SELECT ` + readmodel.Columns[Report]("") + `
FROM readmodel.job_reports
WHERE account_id = $1
  AND job_id = $2`

// The texts and the items are left out: they are megabytes that no list shows.
var outlinesSQL = `
SELECT ` + readmodel.ColumnsBut[jobRow](map[string]string{
	"description": "''", "feature": "''", "items": "'[]'::jsonb", "recordings": "'[]'::jsonb", "questions": "'[]'::jsonb",
	"disputes": "'[]'::jsonb", "returns": "'[]'::jsonb",
}) + `
FROM readmodel.jobs
WHERE account_id = $1`

// The last condition is implied; it lets the planner use the partial index.
var batchSQL = outlinesSQL + `
  AND batch_id = $2
  AND batch_id <> ''
ORDER BY batch_index`

var chosenSQL = outlinesSQL + `
  AND id = ANY($2)
ORDER BY created_at DESC, id DESC`

// A page shows only these columns; every column costs a hundred values a page.
const listJobsSQL = `
SELECT id, project_id, status, title, url, type, type_echo, urgent, report_id, created_at, overall_status,
       COALESCE(` + asksSQL + `, false) AS asks
FROM readmodel.jobs
WHERE account_id = $1`

// asksSQL says that the last question of a job is open; null: it has none.
const asksSQL = `questions -> -1 ->> 'status' = 'open'`

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

const countAskingSQL = "SELECT COUNT(*)" + fromAskingSQL

const fromAskingSQL = `
FROM readmodel.jobs
WHERE account_id = $1
  AND status = 'claimed'
  AND ` + asksSQL

var askingSQL = `
SELECT ` + readmodel.Columns[jobRow]("") + fromAskingSQL + `
ORDER BY (questions -> -1 ->> 'until')::timestamptz, id
LIMIT $2`

// Where gives the conditions of a list.
func (f Filter) Where(accountID string) *readmodel.Where {
	c := readmodel.WhereAccount(accountID)
	if f.Status != "" {
		c.And("status = %s", f.Status)
	}
	if f.ProjectID != "" {
		// The second half is implied; it lets the planner use the partial index.
		c.And("project_id = %s AND project_id <> ''", f.ProjectID)
	}
	if f.Since != nil {
		c.And("created_at > %s", *f.Since)
	}
	return c
}

// List gives a page of the account's jobs, the newest first, and how many
// there are on all pages.
func (q *Reads) List(ctx context.Context, accountID string, f Filter) (page []Summary, total int, err error) {
	where := f.Where(accountID)
	totalSQL := totalJobsSQL
	if f.Since != nil {
		totalSQL = totalJobsSinceSQL
	}
	if total, err = readmodel.Get[int](ctx, q.db, "the number of jobs", totalSQL+where.SQL, where.Args...); err != nil {
		return nil, 0, err
	}
	query := f.page(where)
	page, err = pgpool.List[Summary](ctx, q.db, "jobs", query, where.Args...)
	return page, total, err
}

// page is the statement that reads a page.
func (f Filter) page(where *readmodel.Where) string {
	query := listJobsSQL + where.SQL
	if !f.After.IsBeginning() {
		query += fmt.Sprintf("\n  AND (created_at, id) < (%s, %s)", where.Param(f.After.At), where.Param(f.After.ID))
	}
	return query + fmt.Sprintf(orderJobsSQL, where.Param(f.Limit), where.Param(f.Offset))
}

// Job gives one job with its items.
func (q *Reads) Job(ctx context.Context, accountID, id string) (Job, error) {
	row, err := readmodel.Get[jobRow](ctx, q.db, "job", getJobSQL, accountID, id)
	if err != nil {
		return Job{}, err
	}
	return row.whole(), nil
}

// Asking gives the account's jobs with an open question, the one that ends first in front,
// and how many there are.
func (q *Reads) Asking(ctx context.Context, accountID string, limit int) (page []Job, total int, err error) {
	rows, total, err := readmodel.Page[jobRow](ctx, q.db, "open questions", countAskingSQL, askingSQL, []any{accountID}, limit)
	for i := range rows {
		page = append(page, rows[i].whole())
	}
	return page, total, err
}

// CountAsking counts the account's jobs with an open question.
func (q *Reads) CountAsking(ctx context.Context, accountID string) (int, error) {
	return readmodel.Get[int](ctx, q.db, "the number of open questions", countAskingSQL, accountID)
}

// Report gives the report of a job. A job without one answers not found. A caller that
// must distinguish this from a missing job reads the job first.
func (q *Reads) Report(ctx context.Context, accountID, jobID string) (Report, error) {
	return readmodel.Get[Report](ctx, q.db, "report", getReportSQL, accountID, jobID)
}

// report is the report of a completed job.
func (r *storedRow) report() Report {
	return Report{
		ID: r.ReportID, JobID: r.ID, OverallStatus: r.OverallStatus,
		PassCount: r.PassCount, FailCount: r.FailCount, SkipCount: r.SkipCount,
		Summary: r.Summary, RecordingURL: r.RecordingURL, Recordings: r.Recordings, Questions: r.Questions, Disputes: r.Disputes,
		CheckerRating: r.CheckerRating, RatingNote: r.CheckerNote, Items: r.Items,
		CreatedAt: r.CompletedAt.UTC(),
	}
}

// AIReport gives the analysis of a completed job; NotFound while there is none.
func (q *Reads) AIReport(ctx context.Context, accountID, jobID string) (job.AIReport, error) {
	report, err := readmodel.Get[readmodel.JSON[job.AIReport]](ctx, q.db, "AI report", getAIReportSQL, accountID, jobID)
	return report.V, err
}

// Batch gives the jobs of a bulk submission in submitted order, without their
// texts; NotFound when the account has no such batch.
func (q *Reads) Batch(ctx context.Context, accountID, batchID string) ([]Outline, error) {
	rows, err := pgpool.List[jobRow](ctx, q.db, "batch "+batchID, batchSQL, accountID, batchID)
	switch {
	case err != nil:
		return nil, err
	case len(rows) == 0:
		return nil, domain.NotFound("batch")
	}
	return outlines(rows), nil
}

// Chosen gives those of the account's jobs, the newest first, without their texts.
func (q *Reads) Chosen(ctx context.Context, accountID string, ids []string) ([]Outline, error) {
	rows, err := pgpool.List[jobRow](ctx, q.db, "chosen jobs of "+accountID, chosenSQL, accountID, pq.StringArray(ids))
	return outlines(rows), err
}

func outlines(rows []jobRow) []Outline {
	list := make([]Outline, len(rows))
	for i := range rows {
		list[i] = rows[i].outline()
	}
	return list
}

// BatchSummary is a bulk submission in a list, or, in a list of a day, the tests of a project
// that no bulk submission has. Rest ended without a verdict.
type BatchSummary struct {
	ID         string         `json:"batch_id"`
	Name       string         `json:"batch_name"` // empty: it has none
	ProjectID  string         `json:"project_id"`
	FirstTitle string         `json:"first_title"`
	Jobs       int            `json:"jobs"`
	Pass       int            `json:"pass"`
	Fail       int            `json:"fail"`
	Open       int            `json:"open"`
	Rest       int            `json:"rest"`
	Used       domain.Credits `json:"used"` // net of refunds
	CreatedAt  time.Time      `json:"created_at"`
}

const sumsSQL = `
       (ARRAY_AGG(batch_name ORDER BY batch_index))[1] AS batch_name,
       (ARRAY_AGG(title ORDER BY batch_index))[1] AS first_title,
       COUNT(*) AS jobs,
       COUNT(*) FILTER (WHERE overall_status = 'pass') AS pass,
       COUNT(*) FILTER (WHERE overall_status = 'fail') AS fail,
       COUNT(*) FILTER (WHERE status IN ('pending', 'claimed')) AS open,
       COUNT(*) FILTER (WHERE status NOT IN ('pending', 'claimed') AND overall_status NOT IN ('pass', 'fail')) AS rest,
       SUM(price - refunded)::bigint AS used,
       MIN(created_at) AS created_at
FROM readmodel.jobs
WHERE account_id = $1`

const batchesSQL = `
SELECT batch_id,` + sumsSQL + `
  AND batch_id <> ''
GROUP BY batch_id
ORDER BY MIN(created_at) DESC, batch_id DESC
LIMIT $2
OFFSET $3`

const countBatchesSQL = `
SELECT COUNT(DISTINCT batch_id)
FROM readmodel.jobs
WHERE account_id = $1
  AND batch_id <> ''`

const daySQL = `
SELECT batch_id, CASE WHEN batch_id = '' THEN project_id ELSE '' END AS project_id,` + sumsSQL + `
  AND created_at >= $2
GROUP BY 1, 2
ORDER BY fail DESC, created_at DESC, batch_id, project_id
LIMIT $3`

const countDaySQL = `
SELECT COUNT(DISTINCT (batch_id, CASE WHEN batch_id = '' THEN project_id END))
FROM readmodel.jobs
WHERE account_id = $1
  AND created_at >= $2`

// Since sums the account's tests that were submitted from a moment on, by bulk submission, else
// by project, those with most failures first. It says how many groups there are.
func (q *Reads) Since(ctx context.Context, accountID string, since time.Time, limit int) ([]BatchSummary, int, error) {
	return readmodel.Page[BatchSummary](ctx, q.db, "the tests since a moment", countDaySQL, daySQL, []any{accountID, since}, limit)
}

// Batches lists an account's bulk submissions, the newest first, and says how
// many there are.
func (q *Reads) Batches(ctx context.Context, accountID string, limit, offset int) ([]BatchSummary, int, error) {
	return readmodel.Page[BatchSummary](ctx, q.db, "batches of "+accountID, countBatchesSQL, batchesSQL, []any{accountID}, limit, offset)
}

func (r *jobRow) whole() Job {
	return Job{
		Outline: r.outline(), Items: r.Items, Recordings: r.Recordings, Questions: r.Questions, Disputes: r.Disputes,
		Returns: r.Returns,
	}
}

func (r *jobRow) outline() Outline {
	o := Outline{ID: r.ID, Submission: job.Submission(r.submission), Progress: r.Progress}
	o.Target = r.Target.V
	return o
}

const testedSQL = `
SELECT EXISTS (
    SELECT 1
    FROM readmodel.job_counts
    WHERE account_id = $1
      AND project_id = $2
      AND jobs > 0)`

// Tested says whether the project has had a job.
func (q *Reads) Tested(ctx context.Context, accountID, projectID string) (bool, error) {
	return readmodel.Get[bool](ctx, q.db, "whether project "+projectID+" was tested", testedSQL, accountID, projectID)
}

const endedSQL = `
SELECT id
FROM readmodel.jobs
WHERE account_id = $1
  AND id = ANY($2)
  AND status NOT IN ('pending', 'claimed')`

// Ended picks those of the account's jobs that have ended.
func (q *Reads) Ended(ctx context.Context, accountID string, ids []string) ([]string, error) {
	return pgpool.List[string](ctx, q.db, "the ended jobs of "+accountID, endedSQL, accountID, pq.StringArray(ids))
}

const titlesSQL = `
SELECT id, title
FROM readmodel.jobs
WHERE account_id = $1
  AND id = ANY($2)`

// Titles gives the titles of those of the account's jobs, by their id.
func (q *Reads) Titles(ctx context.Context, accountID string, ids []string) (map[string]string, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	rows, err := pgpool.List[Summary](ctx, q.db, "titles of jobs", titlesSQL, accountID, pq.StringArray(ids))
	titles := make(map[string]string, len(rows))
	for _, row := range rows {
		titles[row.ID] = row.Title
	}
	return titles, err
}

const firstURLSQL = `
SELECT url
FROM readmodel.jobs
WHERE account_id = $1
  AND project_id = $2
  AND project_id <> ''
ORDER BY created_at, id
LIMIT 1`

// FirstURL is the address of a project's first test; empty while it has none.
func (q *Reads) FirstURL(ctx context.Context, accountID, projectID string) (string, error) {
	url, _, err := pgpool.Find[string](ctx, q.db, "the first address of project "+projectID, firstURLSQL, accountID, projectID)
	return url, err
}
