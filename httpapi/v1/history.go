package v1

import (
	"net/http"
	"strings"

	"humanqa/domain/job"
	"humanqa/httpapi/wire"
	"humanqa/projections/history"
)

// historyBody is a project's past (specification, "Project history"): totals
// and passRate (0 to 100) count jobs, the trend counts items.
type historyBody struct {
	ProjectID           string          `json:"projectId"`
	ProjectName         string          `json:"projectName"`
	TotalTests          int             `json:"totalTests"`
	PassCount           int             `json:"passCount"`
	FailCount           int             `json:"failCount"`
	CompletedCount      int             `json:"completedCount"` // the jobs that the rate covers; a rate of none is 0
	PassRate            float64         `json:"passRate"`
	AverageHealthScore  float64         `json:"averageHealthScore"`
	ScoredTests         int             `json:"scoredTests"` // the tests that the average covers; an average of none is 0
	LatestFailures      []latestFailure `json:"latestFailures"`
	Regressions         []string        `json:"regressions"`
	Trend               []trendTest     `json:"trend"` // newest first
	PreparedRegressions []preparedBatch `json:"preparedRegressions"`
	AsOf                *string         `json:"asOf,omitempty"`
}

type latestFailure struct {
	ID          string `json:"id"`
	Description string `json:"description"`
	Severity    string `json:"severity"` // capitalised, here alone
	Key         string `json:"key"`
	JobID       string `json:"jobId"`
}

type trendTest struct {
	JobID         string         `json:"jobId"`
	OverallStatus string         `json:"overallStatus"` // in upper case, here alone
	HealthScore   *int           `json:"healthScore"`
	PassCount     int            `json:"passCount"`
	FailCount     int            `json:"failCount"`
	TestedAt      wire.Timestamp `json:"testedAt"`
}

type preparedBatch struct {
	BugIDs       []string       `json:"bugIds"`
	Descriptions []string       `json:"descriptions"`
	PreparedAt   wire.Timestamp `json:"preparedAt"`
}

// projectHistory is GET /v1/projects/:id/history.
func (a *Handlers) projectHistory(r *wire.Request) (wire.Answer, error) {
	id, at, err := a.ownProjectThen(r)
	if err != nil {
		return wire.Answer{}, err
	}
	h, err := a.historyThen(r, id, at)
	body := historyOf(h)
	body.AsOf = at.then()
	return wire.ReplyUnless(err, http.StatusOK, body)
}

// historyThen is the project's history at the moment of ?asOf=.
func (a *Handlers) historyThen(r *wire.Request, id string, at *asked) (history.Project, error) {
	h, err := a.Reads.History.Project(r.Context(), r.Caller.AccountID, id)
	if err != nil || at == nil {
		return h, err // another account's project is not found at any moment
	}
	h, err = a.past.History(r.Context(), r.Caller.AccountID, id, at.Until)
	return h, at.orNotThen("project", err)
}

func historyOf(h history.Project) historyBody {
	return historyBody{
		ProjectID: h.ProjectID, ProjectName: h.ProjectName,
		TotalTests: h.TotalTests, PassCount: h.PassCount, FailCount: h.FailCount,
		CompletedCount: h.TotalTests, PassRate: h.PassRate, AverageHealthScore: h.AverageHealthScore, ScoredTests: h.ScoredTests,
		Regressions: append([]string{}, h.Regressions...),
		LatestFailures: wire.List(h.LatestFailures, func(f history.FailedItem) latestFailure {
			return latestFailure{
				ID: f.ID, Description: f.Description, Key: f.Key, JobID: f.JobID, Severity: capitalised(string(f.Severity)),
			}
		}),
		Trend: wire.List(h.Trend, func(t history.TrendTest) trendTest {
			return trendTest{
				JobID: t.JobID, OverallStatus: strings.ToUpper(t.OverallStatus), HealthScore: t.HealthScore,
				PassCount: t.PassCount, FailCount: t.FailCount, TestedAt: wire.Timestamp(t.TestedAt),
			}
		}),
		PreparedRegressions: wire.List(h.Prepared, func(b history.PreparedBatch) preparedBatch {
			return preparedBatch{BugIDs: b.BugIDs, Descriptions: b.Descriptions, PreparedAt: wire.Timestamp(b.PreparedAt)}
		}),
	}
}

func capitalised(word string) string {
	if word == "" {
		return ""
	}
	return strings.ToUpper(word[:1]) + word[1:]
}

type openFailuresBody struct {
	ProjectID    string        `json:"projectId"`
	OpenFailures []openFailure `json:"openFailures"` // newest first
}

// openFailure is an item that failed when it was last tested, with its lineage.
type openFailure struct {
	ID              string          `json:"id"`
	Key             string          `json:"key"`
	Description     string          `json:"description"`
	ExpectedOutcome *string         `json:"expectedOutcome"`
	Severity        job.Severity    `json:"severity"`
	JobID           string          `json:"jobId"`
	FailedAt        wire.Timestamp  `json:"failedAt"`
	FirstFailedAt   wire.Timestamp  `json:"firstFailedAt"` // in this row of failures
	FailedTests     int             `json:"failedTests"`
	LastPassedAt    *wire.Timestamp `json:"lastPassedAt"`
}

// openFailures is GET /v1/projects/:id/open-failures.
func (a *Handlers) openFailures(r *wire.Request) (wire.Answer, error) {
	id, err := a.ownProject(r)
	var p wire.Problems
	limit := r.Query(&p).Integer("limit", 20, 1, 100)
	if err := wire.RefusedFor(err, p.Err()); err != nil {
		return wire.Answer{}, err
	}
	failures, err := a.Reads.History.OpenFailures(r.Context(), r.Caller.AccountID, id, limit)
	return wire.ReplyUnless(err, http.StatusOK, openFailuresBody{ProjectID: id, OpenFailures: wire.List(failures, openFailureOf)})
}

func openFailureOf(f history.OpenFailure) openFailure {
	return openFailure{
		ID: f.ID, Key: f.Key, Description: f.Description, ExpectedOutcome: wire.OrNull(f.ExpectedOutcome),
		Severity: f.Severity, JobID: f.JobID, FailedAt: wire.Timestamp(f.FailedAt),
		FirstFailedAt: wire.Timestamp(f.FirstFailedAt), FailedTests: f.FailedTests, LastPassedAt: wire.Stamp(f.LastPassedAt),
	}
}
