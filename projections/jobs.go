package projections

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"humanqa/domain"
	"humanqa/domain/account"
	"humanqa/domain/credits"
	"humanqa/domain/job"
)

// jobsProjector keeps a row per job, its report, and counts by account,
// project and status. Credentials and access instructions stay in the log,
// sealed; they never get here.
type jobsProjector struct{}

func (jobsProjector) Name() string { return "jobs" }
func (jobsProjector) Version() int { return 1 }

func (jobsProjector) Tables() []Table {
	return []Table{
		{Name: "jobs", DDL: jobsDDL},
		{Name: "job_reports", DDL: jobReportsDDL},
		{Name: "job_counts", DDL: jobCountsDDL},
		{Name: "job_sandboxes", DDL: jobSandboxesDDL},
	}
}

// in_queue says that human checkers may get the job at all: it is neither an
// AI review nor a sandbox account's.
const jobsDDL = `
CREATE TABLE {schema}.jobs (
    id                 text PRIMARY KEY,
    account_id         text NOT NULL,
    project_id         text NOT NULL,
    status             text NOT NULL,
    title              text NOT NULL,
    url                text NOT NULL,
    description        text NOT NULL,
    feature            text NOT NULL,
    type               text NOT NULL,
    type_echo          text NOT NULL,
    urgent             boolean NOT NULL,
    sla_minutes        integer NOT NULL,
    price              bigint NOT NULL,
    refunded           bigint NOT NULL,
    source             text NOT NULL,
    parent_id          text NOT NULL,
    batch_id           text NOT NULL,
    session_id         text NOT NULL,
    target             jsonb NOT NULL,
    generated_by       text NOT NULL,
    in_queue           boolean NOT NULL,
    checker_id         text NOT NULL,
    report_id          text NOT NULL,
    overall_status     text NOT NULL,
    cancel_reason      text NOT NULL,
    requeue_count      integer NOT NULL,
    created_at         timestamptz NOT NULL,
    due_at             timestamptz NOT NULL,
    claimed_at         timestamptz,
    completed_at       timestamptz,
    cancelled_at       timestamptz,
    last_failed_sla_at timestamptz,
    items              jsonb NOT NULL
);
CREATE INDEX jobs_by_account ON {schema}.jobs (account_id, created_at DESC, id DESC);
CREATE INDEX jobs_by_status  ON {schema}.jobs (account_id, status, created_at DESC, id DESC);
CREATE INDEX jobs_by_project ON {schema}.jobs (account_id, project_id, created_at DESC, id DESC) WHERE project_id <> '';
CREATE INDEX jobs_queue      ON {schema}.jobs (urgent DESC, created_at, id) WHERE in_queue AND status = 'pending';
`

const jobReportsDDL = `
CREATE TABLE {schema}.job_reports (
    job_id         text PRIMARY KEY,
    account_id     text NOT NULL,
    report_id      text NOT NULL,
    overall_status text NOT NULL,
    pass_count     integer NOT NULL,
    fail_count     integer NOT NULL,
    skip_count     integer NOT NULL,
    summary        text NOT NULL,
    recording_url  text NOT NULL,
    items          jsonb NOT NULL,
    created_at     timestamptz NOT NULL
);
`

// A row stays when its count falls to zero: whether it exists must not depend
// on how the log was cut into batches.
const jobCountsDDL = `
CREATE TABLE {schema}.job_counts (
    account_id text NOT NULL,
    project_id text NOT NULL,
    status     text NOT NULL,
    jobs       bigint NOT NULL,
    passed     bigint NOT NULL,
    PRIMARY KEY (account_id, project_id, status)
) WITH (fillfactor = 50);
`

const jobSandboxesDDL = `
CREATE TABLE {schema}.job_sandboxes (
    account_id text PRIMARY KEY
);
`

func (jobsProjector) Handles() []string {
	return []string{
		(*account.Created)(nil).EventType(),
		(*credits.Refunded)(nil).EventType(),
		(*job.Created)(nil).EventType(),
		(*job.ClaimedBy)(nil).EventType(),
		(*job.Released)(nil).EventType(),
		(*job.ItemChecked)(nil).EventType(),
		(*job.FindingAdded)(nil).EventType(),
		(*job.CompletedWith)(nil).EventType(),
		(*job.CancelledBy)(nil).EventType(),
	}
}

type jobRow struct {
	ID              string          `json:"id"`
	AccountID       string          `json:"account_id"`
	ProjectID       string          `json:"project_id"`
	Status          job.Status      `json:"status"`
	Title           string          `json:"title"`
	URL             string          `json:"url"`
	Description     string          `json:"description"`
	Feature         string          `json:"feature"`
	Type            job.Type        `json:"type"`
	TypeEcho        string          `json:"type_echo"`
	Urgent          bool            `json:"urgent"`
	SLAMinutes      int             `json:"sla_minutes"`
	Price           domain.Credits  `json:"price"`
	Refunded        domain.Credits  `json:"refunded"`
	Source          string          `json:"source"`
	ParentID        string          `json:"parent_id"`
	BatchID         string          `json:"batch_id"`
	SessionID       string          `json:"session_id"`
	Target          json.RawMessage `json:"target"`
	GeneratedBy     string          `json:"generated_by"`
	InQueue         bool            `json:"in_queue"`
	CheckerID       string          `json:"checker_id"`
	ReportID        string          `json:"report_id"`
	OverallStatus   string          `json:"overall_status"`
	CancelReason    string          `json:"cancel_reason"`
	RequeueCount    int             `json:"requeue_count"`
	CreatedAt       time.Time       `json:"created_at"`
	DueAt           time.Time       `json:"due_at"`
	ClaimedAt       *time.Time      `json:"claimed_at"`
	CompletedAt     *time.Time      `json:"completed_at"`
	CancelledAt     *time.Time      `json:"cancelled_at"`
	LastFailedSLAAt *time.Time      `json:"last_failed_sla_at"`
	Items           json.RawMessage `json:"items"`
}

type reportRow struct {
	JobID         string          `json:"job_id"`
	AccountID     string          `json:"account_id"`
	ReportID      string          `json:"report_id"`
	OverallStatus string          `json:"overall_status"`
	PassCount     int             `json:"pass_count"`
	FailCount     int             `json:"fail_count"`
	SkipCount     int             `json:"skip_count"`
	Summary       string          `json:"summary"`
	RecordingURL  string          `json:"recording_url"`
	Items         json.RawMessage `json:"items"`
	CreatedAt     time.Time       `json:"created_at"`
}

type countRow struct {
	AccountID string     `json:"account_id"`
	ProjectID string     `json:"project_id"`
	Status    job.Status `json:"status"`
	Jobs      int64      `json:"jobs"`
	Passed    int64      `json:"passed"`
}

type sandboxRow struct {
	AccountID string `json:"account_id"`
}

const loadJobsSQL = `
SELECT *
FROM {schema}.jobs
WHERE id = ANY($1)`

const loadSandboxesSQL = `
SELECT account_id
FROM {schema}.job_sandboxes
WHERE account_id = ANY($1)`

const insertJobsSQL = `
INSERT INTO {schema}.jobs
SELECT *
FROM json_populate_recordset(NULL::{schema}.jobs, $1)`

const updateJobsSQL = `
UPDATE {schema}.jobs j
SET status = r.status,
    refunded = r.refunded,
    checker_id = r.checker_id,
    report_id = r.report_id,
    overall_status = r.overall_status,
    cancel_reason = r.cancel_reason,
    requeue_count = r.requeue_count,
    due_at = r.due_at,
    claimed_at = r.claimed_at,
    completed_at = r.completed_at,
    cancelled_at = r.cancelled_at,
    last_failed_sla_at = r.last_failed_sla_at,
    items = r.items
FROM json_populate_recordset(NULL::{schema}.jobs, $1) r
WHERE j.id = r.id`

const insertReportsSQL = `
INSERT INTO {schema}.job_reports
SELECT *
FROM json_populate_recordset(NULL::{schema}.job_reports, $1)`

const insertSandboxesSQL = `
INSERT INTO {schema}.job_sandboxes
SELECT *
FROM json_populate_recordset(NULL::{schema}.job_sandboxes, $1)`

const addCountsSQL = `
INSERT INTO {schema}.job_counts AS c
SELECT *
FROM json_populate_recordset(NULL::{schema}.job_counts, $1)
ON CONFLICT (account_id, project_id, status) DO UPDATE
SET jobs = c.jobs + EXCLUDED.jobs,
    passed = c.passed + EXCLUDED.passed`

// Apply folds the batch per job in memory, so that a job is written once
// however many of its events the batch holds.
func (jobsProjector) Apply(ctx context.Context, tx *sqlx.Tx, schema string, batch []domain.Recorded) error {
	f := jobsFold{jobs: map[string]*foldedJob{}, counts: map[countRow]*countRow{}}
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
	reports   []reportRow
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
	f.sandboxed = map[string]bool{}
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
	if err := writeRows(ctx, tx, schema, addCountsSQL, f.tally); err != nil {
		return fmt.Errorf("add to the counts: %w", err)
	}
	return nil
}
