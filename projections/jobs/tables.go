// Package jobs is the read model of jobs: lists, reports, the checkers' queue.
package jobs

import (
	"slices"
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
// sealed; they never get here. Nor does a secret that came with an answer.
var Projector = readmodel.New(readmodel.Spec{
	Name: "jobs", Version: 12,
	Tables: []consumer.Table{
		{Name: "jobs", DDL: jobsDDL, Indexes: jobsIndexes},
		{Name: "job_reports", DDL: jobReportsDDL, View: true},
		{Name: "job_ai_reports", DDL: jobAIReportsDDL, View: true},
		{Name: "job_counts", DDL: jobCountsDDL},
		{Name: "job_sandboxes", DDL: jobSandboxesDDL},
		{Name: "job_words", DDL: jobWordsDDL, Indexes: jobWordsIndexes},
	},
	Handles: domain.TypesOf(
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
		(*job.FindingEdited)(nil),
		(*job.FindingWithdrawn)(nil),
		(*job.Completed)(nil),
		(*job.AIReportReady)(nil),
		(*job.Rated)(nil),
		(*job.Disputed)(nil),
		(*job.DisputeAnswered)(nil),
		(*job.DisputeDecided)(nil),
		(*job.DisputeSettled)(nil),
		(*job.RecordingAttached)(nil),
		(*job.QuestionAsked)(nil),
		(*job.AnswerGiven)(nil),
		(*job.QuestionClosed)(nil),
		(*job.Cancelled)(nil),
		(*job.Failed)(nil),
		(*job.Erased)(nil),
	),
	Apply: apply,
})

// in_queue says that human checkers may get the job: it has a checklist and is neither an
// AI review nor a sandbox account's. queue_due_at is the end of the SLA of a job without
// a claim. due_at is the claim's, if there is one. lobby_until is the end of the lobby
// that a slot waits in; null once its session has started, and for other jobs.
//
// The row of a completed job also holds its report; the items and the recordings are half
// of it. ai_report is the analysis. Columns of a fixed width come first, where no padding
// is needed.
const jobsDDL = `
CREATE TABLE {schema}.jobs (
    price              bigint NOT NULL,
    refunded           bigint NOT NULL,
    created_at         timestamptz NOT NULL,
    due_at             timestamptz NOT NULL,
    queue_due_at       timestamptz NOT NULL,
    lobby_until        timestamptz,
    claimed_at         timestamptz,
    completed_at       timestamptz,
    cancelled_at       timestamptz,
    failed_at          timestamptz,
    last_failed_sla_at timestamptz,
    erased_at          timestamptz,
    sla_minutes        integer NOT NULL,
    batch_index        integer NOT NULL,
    requeue_count      integer NOT NULL,
    report_rating      integer,
    report_pass        smallint NOT NULL,
    report_fail        smallint NOT NULL,
    report_skip        smallint NOT NULL,
    urgent             boolean NOT NULL,
    hosted_app         boolean NOT NULL,
    sandbox            boolean NOT NULL,
    in_queue           boolean NOT NULL,
    analysed           boolean NOT NULL,
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
    source             text NOT NULL,
    parent_id          text NOT NULL,
    batch_id           text NOT NULL,
    batch_name         text NOT NULL,
    session_id         text NOT NULL,
    loop_id            text NOT NULL,
    target             jsonb NOT NULL,
    commit_sha         text NOT NULL,
    branch             text NOT NULL,
    environment        text NOT NULL,
    generated_by       text NOT NULL,
    checker_id         text NOT NULL,
    untestable_by      text[] NOT NULL,
    report_id          text NOT NULL,
    overall_status     text NOT NULL,
    cancel_reason      text NOT NULL,
    fail_reason        text NOT NULL,
    fail_note          text NOT NULL,
    returns            jsonb NOT NULL,
    items              jsonb NOT NULL,
    recordings         jsonb NOT NULL,
    questions          jsonb NOT NULL,
    disputes           jsonb NOT NULL,
    report_summary     text NOT NULL,
    report_url         text NOT NULL,
    report_note        text NOT NULL,
    ai_report          text NOT NULL
);
`

// A build fills the primary key's index in the order of arrival; REINDEX packs it.
const jobsIndexes = `
REINDEX TABLE {schema}.jobs;
CREATE INDEX jobs_by_account ON {schema}.jobs (account_id, created_at DESC, id DESC);
CREATE INDEX jobs_by_status  ON {schema}.jobs (account_id, status, created_at DESC, id DESC);
CREATE INDEX jobs_by_project ON {schema}.jobs (account_id, project_id, created_at DESC, id DESC) WHERE project_id <> '';
CREATE INDEX jobs_by_batch   ON {schema}.jobs (account_id, batch_id, batch_index) WHERE batch_id <> '';
CREATE INDEX jobs_by_checker ON {schema}.jobs (checker_id, completed_at) WHERE checker_id <> '';
CREATE INDEX jobs_by_time    ON {schema}.jobs (created_at, id);
CREATE INDEX jobs_disputed   ON {schema}.jobs (account_id) WHERE disputes <> '[]';
CREATE INDEX jobs_queue      ON {schema}.jobs (` + queueOrder + `) WHERE in_queue AND status = 'pending';
`

const jobReportsDDL = `
CREATE VIEW {schema}.job_reports AS
SELECT id AS job_id, account_id, report_id, overall_status, report_pass::integer AS pass_count, report_fail::integer AS fail_count, report_skip::integer AS skip_count,
       report_summary AS summary, report_url AS recording_url, recordings, questions, disputes, report_rating AS checker_rating,
       report_note AS checker_note, items, completed_at AS created_at
FROM {schema}.jobs
WHERE status = 'completed';
`

const jobAIReportsDDL = `
CREATE VIEW {schema}.job_ai_reports AS
SELECT id AS job_id, account_id, ai_report::jsonb AS report
FROM {schema}.jobs
WHERE analysed;
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

// Older submissions don't say that they are a sandbox's; account.created does.
const jobSandboxesDDL = `
CREATE TABLE {schema}.job_sandboxes (
    account_id text PRIMARY KEY
);
`

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
	BatchName   string         `json:"batch_name"`
	SessionID   string         `json:"session_id"`
	SessionSlot int            `json:"-"` // its session knows
	LoopID      string         `json:"loop_id"`
	HostedApp   bool           `json:"hosted_app"`
	Sandbox     bool           `json:"sandbox"`
	Target      job.Target     `json:"-"` // jobRow has it as a column
	Commit      string         `json:"commit_sha"`
	Branch      string         `json:"branch"`
	Environment string         `json:"environment"`
}

// Progress is the state of a job after its submission. Empty strings stand for facts that
// do not exist yet. Times are UTC, in whole milliseconds.
type Progress struct {
	Status          job.Status     `json:"status"`
	Refunded        domain.Credits `json:"refunded"`
	GeneratedBy     string         `json:"generated_by"` // author of the checklist; empty: the client
	ReportID        string         `json:"report_id"`
	OverallStatus   string         `json:"overall_status"`
	Analysed        bool           `json:"analysed"`
	CancelReason    string         `json:"cancel_reason"`
	FailReason      string         `json:"fail_reason"` // one of job.FailReasons
	FailNote        string         `json:"fail_note"`   // notes of the checkers that could not test it, a line each
	RequeueCount    int            `json:"requeue_count"`
	CreatedAt       time.Time      `json:"created_at"`
	DueAt           time.Time      `json:"due_at"`
	ClaimedAt       *time.Time     `json:"claimed_at"`
	CompletedAt     *time.Time     `json:"completed_at"`
	CancelledAt     *time.Time     `json:"cancelled_at"`
	FailedAt        *time.Time     `json:"failed_at"`
	LastFailedSLAAt *time.Time     `json:"last_failed_sla_at"`
	// ErasedAt is when the job's texts and pictures were erased.
	ErasedAt *time.Time `json:"erased_at"`
}

// Return is the end of a claim without a report. It is never announced, and the checker
// is never named.
type Return struct {
	// Revision is the place of the event in the job's stream.
	Revision uint64    `json:"revision"`
	At       time.Time `json:"at"`
	Why      string    `json:"why"`              // checker, silent, left (job.Released), or ReturnUntestable
	Reason   string    `json:"reason,omitempty"` // the checker's, of a report that the job is untestable
	Note     string    `json:"note,omitempty"`
}

// ReturnUntestable is a report that the job cannot be tested.
const ReturnUntestable = "untestable"

// maxReturns bounds the returns that a row keeps: the oldest releases go first.
const maxReturns = 50

type jobRow struct {
	ID string `json:"id"`
	submission
	Target readmodel.JSON[job.Target] `json:"target"`
	Progress
	InQueue      bool                           `json:"in_queue"`
	CheckerID    string                         `json:"checker_id"`
	UntestableBy pq.StringArray                 `json:"untestable_by"`
	QueueDueAt   time.Time                      `json:"queue_due_at"`
	LobbyUntil   *time.Time                     `json:"lobby_until"`
	Items        readmodel.List[job.ReportItem] `json:"items"`
	Recordings   readmodel.List[job.Recording]  `json:"recordings"`
	Questions    readmodel.List[job.Question]   `json:"questions"`
	Disputes     readmodel.List[job.Dispute]    `json:"disputes"`
	Returns      readmodel.List[Return]         `json:"returns"`
}

// storedRow is a whole row.
type storedRow struct {
	jobRow
	PassCount     int    `json:"report_pass"`
	FailCount     int    `json:"report_fail"`
	SkipCount     int    `json:"report_skip"`
	Summary       string `json:"report_summary"`
	RecordingURL  string `json:"report_url"`
	CheckerRating *int   `json:"report_rating"`
	CheckerNote   string `json:"report_note"`
	AIReport      string `json:"ai_report"`
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

// erasing are the columns of the submission that an erasure changes.
var erasing = []string{"url", "title", "description", "feature", "target", "branch", "environment", "batch_name"}

// changing are the columns that later events of the job change.
var changing = slices.DeleteFunc(readmodel.Names[storedRow](), func(name string) bool {
	return slices.Contains(append(readmodel.Names[submission](), "id", "target", "created_at"), name)
})

var addCountsSQL = readmodel.Insert("job_counts") + `
ON CONFLICT (account_id, project_id, status) DO UPDATE
SET jobs = was.jobs + EXCLUDED.jobs,
    passed = was.passed + EXCLUDED.passed`
