// Package history is the read model of the sums of a project's tests.
package history

import (
	"time"

	"humanqa/domain"
	"humanqa/domain/job"
	"humanqa/domain/project"
	"humanqa/eventstore/consumer"
	"humanqa/projections/readmodel"
)

// Projector keeps the sums of a project's completed tests (decisions, "Counts"). It has
// totals, a row per test, the latest result of every item by its key, and the waiting
// prepared fixes. A query about a project costs the same, however many tests it has. Jobs
// without a project have no rows here.
var Projector = readmodel.New(readmodel.Spec{
	Name: "history", Version: 5,
	Tables: []consumer.Table{
		{Name: "history_projects", DDL: historyProjectsDDL},
		{Name: "history_tests", DDL: historyTestsDDL},
		{Name: "history_weeks", DDL: historyWeeksDDL},
		{Name: "history_items", DDL: historyItemsDDL},
		{Name: "history_jobs", DDL: historyJobsDDL},
		{Name: "history_deploys", DDL: historyDeploysDDL},
	},
	Handles: domain.TypesOf(
		(*project.Created)(nil),
		(*project.SettingsChanged)(nil),
		(*project.RegressionsPrepared)(nil),
		(*project.RegressionsAttached)(nil),
		(*project.DeployReceived)(nil),
		(*job.Created)(nil),
		(*job.Completed)(nil),
		(*job.AIReportReady)(nil),
		(*job.DisputeDecided)(nil),
		(*job.Cancelled)(nil),
		(*job.Failed)(nil),
		(*job.Voided)(nil),
		(*job.Erased)(nil),
	),
	Apply: apply,
})

// failures and regressions are those of the latest test. queue holds the
// prepared fixes that wait or are with a test (project.Fix).
const historyProjectsDDL = `
CREATE TABLE {schema}.history_projects (
    project_id   text PRIMARY KEY,
    account_id   text NOT NULL,
    name         text NOT NULL,
    tests        integer NOT NULL,
    passed       integer NOT NULL,
    failed       integer NOT NULL,
    health_sum   bigint NOT NULL,
    health_tests integer NOT NULL,
    failures     jsonb NOT NULL,
    regressions  jsonb NOT NULL,
    queue        jsonb NOT NULL
) WITH (fillfactor = 50);
`

// n numbers the project's tests in the order in which the log completed them.
const historyTestsDDL = `
CREATE TABLE {schema}.history_tests (
    job_id         text PRIMARY KEY,
    account_id     text NOT NULL,
    project_id     text NOT NULL,
    n              integer NOT NULL,
    overall_status text NOT NULL,
    health_score   integer,
    pass_count     integer NOT NULL,
    fail_count     integer NOT NULL,
    tested_at      timestamptz NOT NULL
);
CREATE UNIQUE INDEX history_by_test ON {schema}.history_tests (account_id, project_id, n DESC);
`

// A week begins on its Monday (UTC).
const historyWeeksDDL = `
CREATE TABLE {schema}.history_weeks (
    account_id text NOT NULL,
    project_id text NOT NULL,
    week       date NOT NULL,
    tests      integer NOT NULL,
    passed     integer NOT NULL,
    PRIMARY KEY (account_id, project_id, week)
);
`

// seen_in and seen_as are the latest test that had the item, and its verdict there, a
// skip too. The other columns are about passes and failures only: a skipped item was not
// tested, so a failure stays open. text_of is the job whose words the texts are.
//
// recent are the item's latest verdicts, and earlier is the item before them, so that a
// verdict can be taken back.
const historyItemsDDL = `
CREATE TABLE {schema}.history_items (
    account_id       text NOT NULL,
    project_id       text NOT NULL,
    key              text NOT NULL,
    seen_in          integer NOT NULL,
    seen_as          text NOT NULL,
    open             boolean NOT NULL,
    job_id           text NOT NULL,
    item_id          text NOT NULL,
    text_of          text NOT NULL,
    description      text NOT NULL,
    expected_outcome text NOT NULL,
    severity         text NOT NULL,
    failed_in        integer NOT NULL,
    place            integer NOT NULL,
    failed_at        timestamptz,
    first_failed_at  timestamptz,
    failed_tests     integer NOT NULL,
    last_passed_at   timestamptz,
    earlier          jsonb NOT NULL,
    recent           jsonb NOT NULL,
    PRIMARY KEY (account_id, project_id, key)
);
CREATE INDEX history_open ON {schema}.history_items (account_id, project_id, failed_in DESC, place) WHERE open;
`

// The jobs of projects that have not ended, also those that took prepared fixes
// along and are still on their way into the log.
const historyJobsDDL = `
CREATE TABLE {schema}.history_jobs (
    job_id     text PRIMARY KEY,
    project_id text NOT NULL
);
`

// The commit that a job tests, if a deploy named it. A deploy that joined a job of
// another commit changes nothing.
const historyDeploysDDL = `
CREATE TABLE {schema}.history_deploys (
    job_id text PRIMARY KEY,
    commit text NOT NULL
);
`

type historyProjectRow struct {
	ProjectID   string                      `json:"project_id"`
	AccountID   string                      `json:"account_id"`
	Name        string                      `json:"name"`
	Tests       int                         `json:"tests"`
	Passed      int                         `json:"passed"`
	Failed      int                         `json:"failed"`
	HealthSum   int64                       `json:"health_sum"`
	HealthTests int                         `json:"health_tests"`
	Failures    readmodel.List[FailedItem]  `json:"failures"`
	Regressions readmodel.List[string]      `json:"regressions"`
	Queue       readmodel.List[project.Fix] `json:"queue"`
}

type historyTestRow struct {
	TrendTest
	AccountID string `json:"account_id"`
	ProjectID string `json:"project_id"`
	N         int    `json:"n"`

	dirty bool // to be written
}

type historyItemRow struct {
	AccountID       string `json:"account_id"`
	ProjectID       string `json:"project_id"`
	Key             string `json:"key"`
	TextOf          string `json:"text_of"`
	Description     string `json:"description"`
	ExpectedOutcome string `json:"expected_outcome"`
	itemState
	Earlier readmodel.JSON[itemState] `json:"earlier"`
	Recent  readmodel.List[verdict]   `json:"recent"`

	dirty bool // to be written
}

// itemState is the result of an item's verdicts.
type itemState struct {
	SeenIn        int            `json:"seen_in"`
	SeenAs        job.ItemStatus `json:"seen_as"`
	Open          bool           `json:"open"`
	JobID         string         `json:"job_id"`
	ItemID        string         `json:"item_id"`
	Severity      job.Severity   `json:"severity"`
	FailedIn      int            `json:"failed_in"`
	Place         int            `json:"place"`
	FailedAt      *time.Time     `json:"failed_at"`
	FirstFailedAt *time.Time     `json:"first_failed_at"`
	FailedTests   int            `json:"failed_tests"`
	LastPassedAt  *time.Time     `json:"last_passed_at"`
}

type historyWeekRow struct {
	AccountID string `json:"account_id"`
	ProjectID string `json:"project_id"`
	Week      string `json:"week"`
	Tests     int    `json:"tests"`
	Passed    int    `json:"passed"`
}

type historyJobRow struct {
	JobID     string `json:"job_id"`
	ProjectID string `json:"project_id"`
}

var loadHistoryItemsSQL = `
SELECT ` + readmodel.Columns[historyItemRow]("i.") + `
FROM {schema}.history_items i
JOIN unnest($1::text[], $2::text[], $3::text[]) AS w (account_id, project_id, key)
  ON i.account_id = w.account_id
 AND i.project_id = w.project_id
 AND i.key = w.key`

var writeHistoryTestsSQL = readmodel.Insert("history_tests") + `
ON CONFLICT (job_id) DO UPDATE
SET health_score = EXCLUDED.health_score,
    overall_status = EXCLUDED.overall_status,
    pass_count = EXCLUDED.pass_count,
    fail_count = EXCLUDED.fail_count`

const addHistoryWeeksSQL = `
INSERT INTO {schema}.history_weeks AS was
SELECT account_id, project_id, week, SUM(tests), SUM(passed)
FROM json_populate_recordset(NULL::{schema}.history_weeks, $1)
GROUP BY account_id, project_id, week
ON CONFLICT (account_id, project_id, week) DO UPDATE
SET tests = was.tests + EXCLUDED.tests,
    passed = was.passed + EXCLUDED.passed`

// A job that took fixes along is here before it is created.
var insertHistoryJobsSQL = readmodel.Insert("history_jobs") + `
ON CONFLICT (job_id) DO NOTHING`

type historyDeployRow struct {
	JobID  string `json:"job_id"`
	Commit string `json:"commit"`
}

var insertHistoryDeploysSQL = readmodel.Insert("history_deploys") + `
ON CONFLICT (job_id) DO NOTHING`

const eraseHistoryItemsSQL = `
UPDATE {schema}.history_items i
SET description = '` + domain.ErasedText + `',
    expected_outcome = CASE WHEN i.expected_outcome = '' THEN '' ELSE '` + domain.ErasedText + `' END
FROM json_populate_recordset(NULL::{schema}.history_tests, $1) r
WHERE i.account_id = r.account_id
  AND i.project_id = r.project_id
  AND i.text_of = r.job_id`

const deleteHistoryJobsSQL = `
DELETE FROM {schema}.history_jobs
WHERE job_id = ANY($1)`
