package httpapi

import (
	"net/http"
	"strings"

	"humanqa/domain/job"
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
	CompletedCount      int             `json:"completedCount"` // what the rate is of; that of none is 0
	PassRate            float64         `json:"passRate"`
	AverageHealthScore  float64         `json:"averageHealthScore"`
	ScoredTests         int             `json:"scoredTests"` // what the average covers; an average of none is 0
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
	JobID         string    `json:"jobId"`
	OverallStatus string    `json:"overallStatus"` // in upper case, here alone
	HealthScore   *int      `json:"healthScore"`
	PassCount     int       `json:"passCount"`
	FailCount     int       `json:"failCount"`
	TestedAt      timestamp `json:"testedAt"`
}

type preparedBatch struct {
	BugIDs       []string  `json:"bugIds"`
	Descriptions []string  `json:"descriptions"`
	PreparedAt   timestamp `json:"preparedAt"`
}

// projectHistory is GET /v1/projects/:id/history.
func (a *API) projectHistory(r *request) (answer, error) {
	id, at, err := a.ownProjectThen(r)
	if err != nil {
		return answer{}, err
	}
	h, err := a.historyThen(r, id, at)
	if err != nil {
		return answer{}, err
	}
	body := historyOf(h)
	body.AsOf = at.then()
	return reply(http.StatusOK, body)
}

// historyThen is the project's history, as ?asOf= asks for it.
func (a *API) historyThen(r *request, id string, at *asked) (history.Project, error) {
	h, err := a.reads.History.Project(r.Context(), r.caller.accountID, id)
	if err != nil || at == nil {
		return h, err // another account's is none, whenever
	}
	h, err = a.past.History(r.Context(), r.caller.accountID, id, at.Until)
	return h, at.orNotThen("project", err)
}

func historyOf(h history.Project) historyBody {
	out := historyBody{
		ProjectID: h.ProjectID, ProjectName: h.ProjectName,
		TotalTests: h.TotalTests, PassCount: h.PassCount, FailCount: h.FailCount,
		CompletedCount: h.TotalTests, PassRate: h.PassRate, AverageHealthScore: h.AverageHealthScore, ScoredTests: h.ScoredTests,
		LatestFailures: []latestFailure{}, Regressions: append([]string{}, h.Regressions...),
		Trend: []trendTest{}, PreparedRegressions: []preparedBatch{},
	}
	for _, f := range h.LatestFailures {
		out.LatestFailures = append(out.LatestFailures, latestFailure{
			ID: f.ID, Description: f.Description, Key: f.Key, JobID: f.JobID,
			Severity: capitalised(string(f.Severity)),
		})
	}
	for _, t := range h.Trend {
		out.Trend = append(out.Trend, trendTest{
			JobID: t.JobID, OverallStatus: strings.ToUpper(t.OverallStatus), HealthScore: t.HealthScore,
			PassCount: t.PassCount, FailCount: t.FailCount, TestedAt: timestamp(t.TestedAt),
		})
	}
	for _, b := range h.Prepared {
		out.PreparedRegressions = append(out.PreparedRegressions, preparedBatch{
			BugIDs: b.BugIDs, Descriptions: b.Descriptions, PreparedAt: timestamp(b.PreparedAt),
		})
	}
	return out
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
	ID              string       `json:"id"`
	Key             string       `json:"key"`
	Description     string       `json:"description"`
	ExpectedOutcome *string      `json:"expectedOutcome"`
	Severity        job.Severity `json:"severity"`
	JobID           string       `json:"jobId"`
	FailedAt        timestamp    `json:"failedAt"`
	FirstFailedAt   timestamp    `json:"firstFailedAt"` // in this row of failures
	FailedTests     int          `json:"failedTests"`
	LastPassedAt    *timestamp   `json:"lastPassedAt"`
}

// openFailures is GET /v1/projects/:id/open-failures.
func (a *API) openFailures(r *request) (answer, error) {
	id, err := a.ownProject(r)
	var p problems
	limit := r.query(&p).integer("limit", 20, 1, 100)
	if err := refusedFor(err, p.err()); err != nil {
		return answer{}, err
	}
	failures, err := a.reads.History.OpenFailures(r.Context(), r.caller.accountID, id, limit)
	if err != nil {
		return answer{}, err
	}
	out := openFailuresBody{ProjectID: id, OpenFailures: []openFailure{}}
	for _, f := range failures {
		out.OpenFailures = append(out.OpenFailures, openFailure{
			ID: f.ID, Key: f.Key, Description: f.Description, ExpectedOutcome: orNull(f.ExpectedOutcome),
			Severity: f.Severity, JobID: f.JobID, FailedAt: timestamp(f.FailedAt),
			FirstFailedAt: timestamp(f.FirstFailedAt), FailedTests: f.FailedTests, LastPassedAt: stamp(f.LastPassedAt),
		})
	}
	return reply(http.StatusOK, out)
}
