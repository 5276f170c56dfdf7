package projections

import (
	"context"
	"time"

	"github.com/jmoiron/sqlx"

	"humanqa/domain/command"
	"humanqa/domain/job"
)

// History reads what a project's tests add up to (decisions, section 4).
type History struct{ db *sqlx.DB }

// ProjectHistory is a project's past. Counts count jobs; PassRate is 0 to 100.
type ProjectHistory struct {
	ProjectID   string
	ProjectName string
	TotalTests  int // completed ones
	PassCount   int
	FailCount   int
	PassRate    float64
	// AverageHealthScore is nil until a test has an AI report.
	AverageHealthScore *float64
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
	JobID         string
	OverallStatus string // lower case
	HealthScore   *int
	PassCount     int
	FailCount     int
	TestedAt      time.Time
}

// PreparedBatch is what one prepare-next queued and no test has taken yet.
type PreparedBatch struct {
	BugIDs       []string
	Descriptions []string
	PreparedAt   time.Time
}

// OpenFailure is an item whose latest result in the project is fail, with its
// lineage: when it first failed in this row of failures, in how many tests
// since, and when it last passed (nil: never).
type OpenFailure struct {
	FailedItem
	FailedAt      time.Time
	FirstFailedAt time.Time
	FailedTests   int
	LastPassedAt  *time.Time
}

// Project gives the history of one project; NotFound for another account's.
func (q *History) Project(ctx context.Context, accountID, projectID string) (ProjectHistory, error) {
	panic("not built yet")
}

// OpenFailures gives the project's open failures, the newest first, at most
// limit.
func (q *History) OpenFailures(ctx context.Context, accountID, projectID string, limit int) ([]OpenFailure, error) {
	panic("not built yet")
}

// LastFailures gives the failed items of the project's latest completed test.
func (q *History) LastFailures(ctx context.Context, accountID, projectID string) ([]FailedItem, error) {
	panic("not built yet")
}

// Nominations implements command.Nominations over the read models.
type Nominations struct{ *Reads }

var _ command.Nominations = Nominations{}

// ProjectForHost implements command.Nominations.
func (n Nominations) ProjectForHost(ctx context.Context, accountID, host string) (string, bool, error) {
	panic("not built yet")
}

// OpenFailures implements command.Nominations.
func (n Nominations) OpenFailures(ctx context.Context, accountID, projectID string, limit int) ([]command.Regression, error) {
	panic("not built yet")
}

// Tested implements command.Nominations.
func (n Nominations) Tested(ctx context.Context, accountID, projectID string) (bool, error) {
	panic("not built yet")
}
