package httpapi

import (
	"net/http"
	"strconv"

	"humanqa/domain"
	"humanqa/domain/job"
	"humanqa/projections/jobs"
)

type aiReportBody struct {
	ID               string             `json:"id"`
	JobID            string             `json:"jobId"`
	ReportID         string             `json:"reportId"`
	Status           jobs.AIReportState `json:"status"`
	ExecutiveSummary string             `json:"executiveSummary"`
	HealthScore      int                `json:"healthScore"`
	Bugs             []bugBody          `json:"bugs"`
	PassCount        int                `json:"passCount"`
	FailCount        int                `json:"failCount"`
	SkipCount        int                `json:"skipCount"`
	Strengths        []string           `json:"strengths"`
	Recommendations  []string           `json:"recommendations"`
	GeneratedBy      string             `json:"generatedBy"`
	CreatedAt        timestamp          `json:"createdAt"`
	AsOf             *string            `json:"asOf,omitempty"`
}

type bugBody struct {
	ItemID            *string      `json:"itemId"`
	Title             string       `json:"title"`
	Severity          job.Severity `json:"severity"`
	Description       string       `json:"description"`
	ReproductionSteps []string     `json:"reproductionSteps"`
	SuggestedFix      string       `json:"suggestedFix"`
}

type generatingBody struct {
	JobID  string             `json:"jobId"`
	Status jobs.AIReportState `json:"status"`
	AsOf   *string            `json:"asOf,omitempty"`
}

// aiReportRetrySeconds is how long a client is told to wait for an analysis.
const aiReportRetrySeconds = 15

// getAIReport is GET /v1/jobs/:id/ai-report.
func (a *API) getAIReport(r *request) (answer, error) {
	j, past, at, err := a.ownJobThen(r, r.vars["id"], new(problems))
	switch {
	case err != nil:
		return answer{}, err
	case j.Status != job.StatusCompleted && at != nil:
		return answer{}, at.orNotThen("AI report", domain.NotFound("AI report"))
	case j.Status != job.StatusCompleted:
		return answer{}, noReport(j, "AI report", "the AI report follows once the job is completed")
	}
	var report job.AIReport
	if past != nil {
		report, err = past.AIReport()
	} else {
		report, err = a.reads.Jobs.AIReport(r.Context(), r.caller.accountID, j.ID)
	}
	switch {
	case domain.IsKind(err, domain.KindNotFound):
		ans, err := reply(http.StatusAccepted, generatingBody{JobID: j.ID, Status: jobs.AIReportGenerating, AsOf: at.then()})
		if at == nil { // what was on its way then stays so
			ans.header = http.Header{"Retry-After": {strconv.Itoa(aiReportRetrySeconds)}}
		}
		return ans, err
	case err != nil:
		return answer{}, err
	}
	body := aiReportOf(j, report)
	body.AsOf = at.then()
	return reply(http.StatusOK, body)
}

func aiReportOf(j jobs.Job, report job.AIReport) aiReportBody {
	out := aiReportBody{
		ID: report.ID, JobID: j.ID, ReportID: j.ReportID, Status: jobs.AIReportReady,
		ExecutiveSummary: report.ExecutiveSummary, HealthScore: report.HealthScore, Bugs: []bugBody{},
		PassCount: report.PassCount, FailCount: report.FailCount, SkipCount: report.SkipCount,
		Strengths: listOf(report.Strengths), Recommendations: listOf(report.Recommendations),
		GeneratedBy: report.GeneratedBy, CreatedAt: timestamp(report.At),
	}
	for _, b := range report.Bugs {
		out.Bugs = append(out.Bugs, bugBody{
			ItemID: orNull(b.ItemID), Title: b.Title, Severity: b.Severity, Description: b.Description,
			ReproductionSteps: listOf(b.ReproductionSteps), SuggestedFix: b.SuggestedFix,
		})
	}
	return out
}

// listOf is the list, or an empty one: never null.
func listOf(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}
