// Package jobs is the read model of jobs: lists, reports, the checkers' queue.
package jobs

import (
	"time"

	"github.com/lib/pq"

	"humanqa/domain"
	"humanqa/domain/account"
	"humanqa/domain/credits"
	"humanqa/domain/job"
	"humanqa/eventstore/consumer"
	"humanqa/projections/readmodel"
)

// Projector keeps a row per job, its report and analysis, and counts by
// account, project and status. Credentials and access instructions stay in the log,
// sealed; they never get here.
type Projector struct{}

func (Projector) Name() string { return "jobs" }
func (Projector) Version() int { return 4 }

func (Projector) Tables() []consumer.Table {
	return []consumer.Table{
		{Name: "jobs", DDL: jobsDDL},
		{Name: "job_reports", DDL: jobReportsDDL},
		{Name: "job_ai_reports", DDL: jobAIReportsDDL},
		{Name: "job_counts", DDL: jobCountsDDL},
		{Name: "job_sandboxes", DDL: jobSandboxesDDL},
	}
}

// in_queue says that human checkers may get the job at all: it has a checklist
// and is neither an AI review nor a sandbox account's. queue_due_at is when the
// SLA ends while nobody holds the job; due_at is the claim's where there is one.
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
    batch_index        integer NOT NULL,
    session_id         text NOT NULL,
    loop_id            text NOT NULL,
    hosted_app         boolean NOT NULL,
    sandbox            boolean NOT NULL,
    target             jsonb NOT NULL,
    generated_by       text NOT NULL,
    in_queue           boolean NOT NULL,
    checker_id         text NOT NULL,
    untestable_by      text[] NOT NULL,
    report_id          text NOT NULL,
    overall_status     text NOT NULL,
    analysed           boolean NOT NULL,
    cancel_reason      text NOT NULL,
    fail_reason        text NOT NULL,
    requeue_count      integer NOT NULL,
    created_at         timestamptz NOT NULL,
    due_at             timestamptz NOT NULL,
    queue_due_at       timestamptz NOT NULL,
    claimed_at         timestamptz,
    completed_at       timestamptz,
    cancelled_at       timestamptz,
    failed_at          timestamptz,
    last_failed_sla_at timestamptz,
    items              jsonb NOT NULL,
    recordings         jsonb NOT NULL
);
CREATE INDEX jobs_by_account ON {schema}.jobs (account_id, created_at DESC, id DESC);
CREATE INDEX jobs_by_status  ON {schema}.jobs (account_id, status, created_at DESC, id DESC);
CREATE INDEX jobs_by_project ON {schema}.jobs (account_id, project_id, created_at DESC, id DESC) WHERE project_id <> '';
CREATE INDEX jobs_by_batch   ON {schema}.jobs (account_id, batch_id, batch_index) WHERE batch_id <> '';
CREATE INDEX jobs_by_checker ON {schema}.jobs (checker_id, completed_at DESC, id DESC) WHERE checker_id <> '';
CREATE INDEX jobs_by_time    ON {schema}.jobs (created_at DESC, id DESC);
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
    recordings     jsonb NOT NULL,
    checker_rating integer,
    checker_note   text NOT NULL,
    items          jsonb NOT NULL,
    created_at     timestamptz NOT NULL
);
`

const jobAIReportsDDL = `
CREATE TABLE {schema}.job_ai_reports (
    job_id     text PRIMARY KEY,
    account_id text NOT NULL,
    report     jsonb NOT NULL
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

// Older submissions don't say that they are a sandbox's; its account does.
const jobSandboxesDDL = `
CREATE TABLE {schema}.job_sandboxes (
    account_id text PRIMARY KEY
);
`

func (Projector) Handles() []string {
	return domain.TypesOf(
		(*account.Created)(nil),
		(*credits.Refunded)(nil),
		(*job.Created)(nil),
		(*job.ChecklistWritten)(nil),
		(*job.Claimed)(nil),
		(*job.Released)(nil),
		(*job.SlotStarted)(nil),
		(*job.SLAMissed)(nil),
		(*job.UntestableReported)(nil),
		(*job.ItemChecked)(nil),
		(*job.FindingAdded)(nil),
		(*job.Completed)(nil),
		(*job.AIReportReady)(nil),
		(*job.Rated)(nil),
		(*job.RecordingAttached)(nil),
		(*job.Cancelled)(nil),
		(*job.Failed)(nil),
	)
}

// submission is a job.Submission by the names of its columns. The two convert
// into each other, so neither can have a field that the other lacks.
type submission struct {
	AccountID   string         `json:"account_id"`
	ProjectID   string         `json:"project_id"`
	URL         string         `json:"url"`
	Title       string         `json:"title"`
	Description string         `json:"description"`
	Feature     string         `json:"feature"`
	Type        job.Type       `json:"type"`
	TypeEcho    string         `json:"type_echo"`
	Urgent      bool           `json:"urgent"`
	SLAMinutes  int            `json:"sla_minutes"`
	Price       domain.Credits `json:"price"`
	Source      string         `json:"source"`
	ParentID    string         `json:"parent_id"`
	BatchID     string         `json:"batch_id"`
	BatchIndex  int            `json:"batch_index"`
	SessionID   string         `json:"session_id"`
	SessionSlot int            `json:"-"` // its session knows
	LoopID      string         `json:"loop_id"`
	HostedApp   bool           `json:"hosted_app"`
	Sandbox     bool           `json:"sandbox"`
	Target      job.Target     `json:"-"` // jobRow has it as a column
}

// Progress is what has become of a job. Empty strings stand for what has not
// happened. Times are UTC, in whole milliseconds.
type Progress struct {
	Status          job.Status     `json:"status"`
	Refunded        domain.Credits `json:"refunded"`
	GeneratedBy     string         `json:"generated_by"` // who wrote the checklist; empty: the client
	ReportID        string         `json:"report_id"`
	OverallStatus   string         `json:"overall_status"`
	Analysed        bool           `json:"analysed"`
	CancelReason    string         `json:"cancel_reason"`
	FailReason      string         `json:"fail_reason"` // sla, untestable, operator
	RequeueCount    int            `json:"requeue_count"`
	CreatedAt       time.Time      `json:"created_at"`
	DueAt           time.Time      `json:"due_at"`
	ClaimedAt       *time.Time     `json:"claimed_at"`
	CompletedAt     *time.Time     `json:"completed_at"`
	CancelledAt     *time.Time     `json:"cancelled_at"`
	FailedAt        *time.Time     `json:"failed_at"`
	LastFailedSLAAt *time.Time     `json:"last_failed_sla_at"`
}

type jobRow struct {
	ID string `json:"id"`
	submission
	Target readmodel.JSON[job.Target] `json:"target"`
	Progress
	InQueue      bool                             `json:"in_queue"`
	CheckerID    string                           `json:"checker_id"`
	UntestableBy pq.StringArray                   `json:"untestable_by"`
	QueueDueAt   time.Time                        `json:"queue_due_at"`
	Items        readmodel.JSON[[]job.ReportItem] `json:"items"`
	Recordings   readmodel.JSON[[]job.Recording]  `json:"recordings"`
}

type reportRow struct {
	JobID         string                           `json:"job_id"`
	AccountID     string                           `json:"account_id"`
	ReportID      string                           `json:"report_id"`
	OverallStatus string                           `json:"overall_status"`
	PassCount     int                              `json:"pass_count"`
	FailCount     int                              `json:"fail_count"`
	SkipCount     int                              `json:"skip_count"`
	Summary       string                           `json:"summary"`
	RecordingURL  string                           `json:"recording_url"`
	Recordings    readmodel.JSON[[]job.Recording]  `json:"recordings"`
	CheckerRating *int                             `json:"checker_rating"`
	CheckerNote   string                           `json:"checker_note"`
	Items         readmodel.JSON[[]job.ReportItem] `json:"items"`
	CreatedAt     time.Time                        `json:"created_at"`
}

type aiReportRow struct {
	JobID     string       `json:"job_id"`
	AccountID string       `json:"account_id"`
	Report    job.AIReport `json:"report"`
}

type ratingRow struct {
	JobID         string `json:"job_id"`
	CheckerRating int    `json:"checker_rating"`
	CheckerNote   string `json:"checker_note"`
}

// recordedRow is what a recording adds to the report of an earlier batch.
type recordedRow struct {
	JobID        string                          `json:"job_id"`
	RecordingURL string                          `json:"recording_url"`
	Recordings   readmodel.JSON[[]job.Recording] `json:"recordings"`
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

var loadJobsSQL = readmodel.Load[jobRow]("jobs", "id")

const loadSandboxesSQL = `
SELECT account_id
FROM {schema}.job_sandboxes
WHERE account_id = ANY($1)`

const updateJobsSQL = `
UPDATE {schema}.jobs j
SET status = r.status,
    refunded = r.refunded,
    generated_by = r.generated_by,
    in_queue = r.in_queue,
    checker_id = r.checker_id,
    untestable_by = r.untestable_by,
    report_id = r.report_id,
    overall_status = r.overall_status,
    analysed = r.analysed,
    cancel_reason = r.cancel_reason,
    fail_reason = r.fail_reason,
    requeue_count = r.requeue_count,
    due_at = r.due_at,
    queue_due_at = r.queue_due_at,
    claimed_at = r.claimed_at,
    completed_at = r.completed_at,
    cancelled_at = r.cancelled_at,
    failed_at = r.failed_at,
    last_failed_sla_at = r.last_failed_sla_at,
    items = r.items,
    recordings = r.recordings
FROM json_populate_recordset(NULL::{schema}.jobs, $1) r
WHERE j.id = r.id`

const rateReportsSQL = `
UPDATE {schema}.job_reports j
SET checker_rating = r.checker_rating,
    checker_note = r.checker_note
FROM json_populate_recordset(NULL::{schema}.job_reports, $1) r
WHERE j.job_id = r.job_id`

// What the checker named when they completed the job stays.
const recordReportsSQL = `
UPDATE {schema}.job_reports j
SET recording_url = CASE j.recording_url WHEN '' THEN r.recording_url ELSE j.recording_url END,
    recordings = r.recordings
FROM json_populate_recordset(NULL::{schema}.job_reports, $1) r
WHERE j.job_id = r.job_id`

var insertSandboxesSQL = readmodel.Insert("job_sandboxes")

var addCountsSQL = readmodel.Insert("job_counts") + `
ON CONFLICT (account_id, project_id, status) DO UPDATE
SET jobs = was.jobs + EXCLUDED.jobs,
    passed = was.passed + EXCLUDED.passed`
