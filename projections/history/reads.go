package history

import (
	"context"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"humanqa/domain/job"
	"humanqa/domain/project"
	"humanqa/internal/pgpool"
	"humanqa/projections/readmodel"
)

// Reads reads the sums of a project's tests (decisions, "Counts", "Regressions" and "Open
// failures").
type Reads struct{ db *sqlx.DB }

// NewReads reads through the views in schema readmodel.
func NewReads(db *sqlx.DB) *Reads { return &Reads{db: readmodel.Pool(db)} }

// Project is a project's past. Counts count jobs; PassRate is 0 to 100.
type Project struct {
	ProjectID   string
	ProjectName string
	TotalTests  int // completed ones
	PassCount   int
	FailCount   int
	PassRate    float64
	// AverageHealthScore is the average over the ScoredTests, those with an AI report; 0
	// without any.
	AverageHealthScore float64
	ScoredTests        int
	LatestFailures     []FailedItem // of the latest completed test
	Regressions        []string     // descriptions, passed in the previous test and failed in the latest
	Trend              []TrendTest  // the ten latest, newest first
	Prepared           []PreparedBatch
}

// FailedItem is an item that failed in one test. ID is the item's in that test.
type FailedItem struct {
	JobID           string
	ID              string
	Key             string
	Description     string
	ExpectedOutcome string
	Severity        job.Severity
}

// TrendTest is one completed test. The counts count items. HealthScore is nil
// without an AI report.
type TrendTest struct {
	JobID         string    `json:"job_id"`
	OverallStatus string    `json:"overall_status"` // lower case
	HealthScore   *int      `json:"health_score"`
	PassCount     int       `json:"pass_count"`
	FailCount     int       `json:"fail_count"`
	TestedAt      time.Time `json:"tested_at"`
}

// PreparedBatch has the fixes that one prepare-next queued and no test has taken yet.
type PreparedBatch struct {
	BugIDs       []string
	Descriptions []string
	PreparedAt   time.Time
}

// OpenFailure is an item with fail as its latest result in the project, with its
// lineage. That is the first failure of this run of failures, the number of tests
// since, and the last pass (nil: never).
type OpenFailure struct {
	FailedItem
	FailedAt      time.Time  `json:"failed_at"`
	FirstFailedAt time.Time  `json:"first_failed_at"`
	FailedTests   int        `json:"failed_tests"`
	LastPassedAt  *time.Time `json:"last_passed_at"`
}

// One statement, so that the totals and the trend are of the same moment.
var getHistorySQL = `
SELECT ` + readmodel.Columns[historyProjectRow]("p.") + `, COALESCE((
    SELECT json_agg(t.*)
    FROM (
        SELECT job_id, overall_status, health_score, pass_count, fail_count, tested_at
        FROM readmodel.history_tests
        WHERE account_id = $1
          AND project_id = $2
        ORDER BY n DESC
        LIMIT 10) t), '[]') AS trend
FROM readmodel.history_projects p
WHERE p.account_id = $1
  AND p.project_id = $2`

// A FailedItem has no other names for its columns, since a project's row holds some as JSON.
const openFailuresSQL = `
SELECT job_id AS "JobID", item_id AS "ID", key AS "Key", description AS "Description", expected_outcome AS "ExpectedOutcome",
       severity AS "Severity", failed_at, first_failed_at, failed_tests, last_passed_at
FROM readmodel.history_items
WHERE account_id = $1
  AND project_id = $2
  AND open
ORDER BY failed_in DESC, place
LIMIT $3`

// At most $3 failures of each project are counted.
const standingsSQL = `
SELECT p.project_id, COALESCE(s.author, '') AS author, t.tested_at, COUNT(f.description) AS failures,
       COUNT(*) FILTER (WHERE f.critical) AS critical, COUNT(*) FILTER (WHERE f.fresh) AS fresh,
       COALESCE((array_agg(f.description ORDER BY f.fresh DESC, f.critical DESC, f.failed_in DESC, f.place))[1], '') AS gravest
FROM unnest($2::text[]) WITH ORDINALITY AS p (project_id, n)
LEFT JOIN LATERAL (
    SELECT job_id, tested_at
    FROM readmodel.history_tests
    WHERE account_id = $1
      AND project_id = p.project_id
    ORDER BY n DESC
    LIMIT 1) t ON TRUE
LEFT JOIN LATERAL (
    SELECT author
    FROM readmodel.activity
    WHERE stream = 'job-' || t.job_id
      AND revision = 0
    LIMIT 1) s ON TRUE
LEFT JOIN LATERAL (
    SELECT description, failed_in, place, severity = 'critical' AS critical, first_failed_at > $4 AS fresh
    FROM readmodel.history_items
    WHERE account_id = $1
      AND project_id = p.project_id
      AND open
    ORDER BY failed_in DESC, place
    LIMIT $3) f ON TRUE
GROUP BY p.project_id, p.n, s.author, t.tested_at
ORDER BY critical DESC, failures DESC, p.n`

const lastFailuresSQL = `
SELECT failures
FROM readmodel.history_projects
WHERE account_id = $1
  AND project_id = $2`

// Project gives the history of one project; NotFound for another account's.
func (q *Reads) Project(ctx context.Context, accountID, projectID string) (Project, error) {
	row, err := readmodel.Get[struct {
		historyProjectRow
		Trend readmodel.List[historyTestRow] `json:"trend"`
	}](ctx, q.db, "project", getHistorySQL, accountID, projectID)
	if err != nil {
		return Project{}, err
	}
	return row.open().shown(row.Trend), nil
}

// trendTests is how many tests a trend shows.
const trendTests = 10

// shown gives the history with the project's latest tests, the newest first.
func (p *foldedProject) shown(trend []historyTestRow) Project {
	row := p.row
	h := Project{
		ProjectID: row.ProjectID, ProjectName: row.Name,
		TotalTests: row.Tests, PassCount: row.Passed, FailCount: row.Failed, ScoredTests: row.HealthTests,
		LatestFailures: row.Failures, Regressions: row.Regressions, Prepared: waiting(p.state.Queue),
	}
	if row.Tests > 0 {
		h.PassRate = float64(row.Passed) * 100 / float64(row.Tests)
	}
	if row.HealthTests > 0 {
		h.AverageHealthScore = float64(row.HealthSum) / float64(row.HealthTests)
	}
	for _, t := range trend {
		t.TestedAt = t.TestedAt.UTC()
		h.Trend = append(h.Trend, t.TrendTest)
	}
	return h
}

// waiting gives the fixes that no test has taken, grouped by batch, the oldest batch
// first.
func waiting(queue []project.Fix) []PreparedBatch {
	var batches []PreparedBatch
	last := ""
	for _, fix := range queue {
		if len(fix.JobIDs) > 0 {
			continue
		}
		if fix.BatchID != last { // the queue is in the order of the calls
			last = fix.BatchID
			batches = append(batches, PreparedBatch{BugIDs: []string{}, PreparedAt: readmodel.Moment(fix.PreparedAt)})
		}
		b := &batches[len(batches)-1]
		if fix.BugID != "" {
			b.BugIDs = append(b.BugIDs, fix.BugID)
		}
		b.Descriptions = append(b.Descriptions, fix.Description)
	}
	return batches
}

// OpenFailures gives the project's open failures, the newest first, at most
// limit; NotFound for another account's project.
func (q *Reads) OpenFailures(ctx context.Context, accountID, projectID string, limit int) ([]OpenFailure, error) {
	failures, err := q.Open(ctx, accountID, projectID, limit)
	if err != nil || len(failures) > 0 {
		return failures, err
	}
	_, err = q.LastFailures(ctx, accountID, projectID) // is there a project at all?
	return nil, err
}

const (
	// Lately is the time in which a failure must have begun for its project to have got worse.
	Lately = 7 * 24 * time.Hour
	// FailuresCounted bounds the open failures of a project that pages count.
	FailuresCounted = 100
)

// Standing is the state of a project beside others.
type Standing struct {
	ProjectID string     `json:"project_id"`
	TestedAt  *time.Time `json:"tested_at"` // its latest test; nil: there is none
	Author    string     `json:"author"`    // the actor that submitted that test (activity.Fact)
	Failures  int        `json:"failures"`  // open ones
	Critical  int        `json:"critical"`  // of these
	Fresh     int        `json:"fresh"`     // of these, those that began after the moment
	Gravest   string     `json:"gravest"`   // a description: fresh ones first, then critical ones, then the newest
}

// Standings gives the account's projects, the one with most critical failures first. At most
// limit failures of each are counted. Those that began after since are fresh.
func (q *Reads) Standings(ctx context.Context, accountID string, projectIDs []string, since time.Time, limit int) ([]Standing, error) {
	return pgpool.List[Standing](ctx, q.db, "the open failures of projects", standingsSQL, accountID, pq.Array(projectIDs), limit, since)
}

const weeksSQL = `
SELECT project_id, (week - $3::date) / 7 AS n, tests, passed
FROM readmodel.history_weeks
WHERE account_id = $1
  AND project_id = ANY($2)
  AND week >= $3::date
ORDER BY project_id, week`

// Week is a week of a project's tests. N counts the weeks, from 0.
type Week struct {
	ProjectID string `json:"project_id"`
	N         int    `json:"n"`
	Tests     int    `json:"tests"`
	Passed    int    `json:"passed"`
}

// Weeks sums the tests of projects by weeks from a Monday on, the oldest first.
func (q *Reads) Weeks(ctx context.Context, accountID string, projectIDs []string, first time.Time) ([]Week, error) {
	return pgpool.List[Week](ctx, q.db, "the weeks of projects", weeksSQL, accountID, pq.Array(projectIDs), first.Format(time.DateOnly))
}

const passedAgainSQL = `
SELECT i.key, i.last_passed_at
FROM readmodel.history_items i
WHERE i.account_id = $1
  AND i.project_id = $2
  AND i.key = ANY($3)
  AND NOT i.open
  AND i.last_passed_at > $4`

// PassedAgain is an item's latest pass.
type PassedAgain struct {
	Key string    `json:"key"`
	At  time.Time `json:"last_passed_at"`
}

// PassedAgain gives those of the keys whose items have passed after the moment, and do not
// fail now.
func (q *Reads) PassedAgain(ctx context.Context, accountID, projectID string, keys []string, after time.Time) ([]PassedAgain, error) {
	return pgpool.List[PassedAgain](ctx, q.db, "what passes again", passedAgainSQL, accountID, projectID, pq.Array(keys), after)
}

const newestTestSQL = `
SELECT job_id
FROM readmodel.history_tests
WHERE account_id = $1
  AND project_id = $2
ORDER BY n DESC
LIMIT 1`

// NewestTest is the project's latest completed job.
func (q *Reads) NewestTest(ctx context.Context, accountID, projectID string) (jobID string, err error) {
	found, err := pgpool.List[string](ctx, q.db, "the newest test", newestTestSQL, accountID, projectID)
	return strings.Join(found, ""), err
}

const knownKeysSQL = `
SELECT key, description
FROM readmodel.history_items
WHERE account_id = $1
  AND project_id = $2
  AND key = ANY($3)`

// KnownKeys picks those of the keys that items of the project's tests had, each with its
// latest description.
func (q *Reads) KnownKeys(ctx context.Context, accountID, projectID string, keys []string) (map[string]string, error) {
	rows, err := pgpool.List[struct {
		Key         string `json:"key"`
		Description string `json:"description"`
	}](ctx, q.db, "the known keys of project "+projectID, knownKeysSQL, accountID, projectID, pq.Array(keys))
	known := make(map[string]string, len(rows))
	for _, row := range rows {
		known[row.Key] = row.Description
	}
	return known, err
}

// Open is OpenFailures for a project that need not exist: it then has none.
func (q *Reads) Open(ctx context.Context, accountID, projectID string, limit int) ([]OpenFailure, error) {
	return pgpool.List[OpenFailure](ctx, q.db, "the open failures of project "+projectID, openFailuresSQL, accountID, projectID, limit)
}

// LastFailures gives the failed items of the project's latest completed test.
func (q *Reads) LastFailures(ctx context.Context, accountID, projectID string) ([]FailedItem, error) {
	return readmodel.Get[readmodel.List[FailedItem]](ctx, q.db, "project", lastFailuresSQL, accountID, projectID)
}
