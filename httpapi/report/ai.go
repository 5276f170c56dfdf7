package report

import (
	"humanqa/domain/job"
	"humanqa/httpapi/wire"
	"humanqa/projections/jobs"
)

// Analysis is the AI's report of a job in JSON.
type Analysis struct {
	ID               string             `json:"id"`
	JobID            string             `json:"jobId"`
	ReportID         string             `json:"reportId"`
	Status           jobs.AIReportState `json:"status"`
	ExecutiveSummary string             `json:"executiveSummary"`
	HealthScore      int                `json:"healthScore"`
	Bugs             []bug              `json:"bugs"`
	PassCount        int                `json:"passCount"`
	FailCount        int                `json:"failCount"`
	SkipCount        int                `json:"skipCount"`
	Strengths        []string           `json:"strengths"`
	Recommendations  []string           `json:"recommendations"`
	GeneratedBy      string             `json:"generatedBy"`
	CreatedAt        wire.Timestamp     `json:"createdAt"`
	AsOf             *string            `json:"asOf,omitempty"`
}

type bug struct {
	ItemID            *string      `json:"itemId"`
	Title             string       `json:"title"`
	Severity          job.Severity `json:"severity"`
	Description       string       `json:"description"`
	ReproductionSteps []string     `json:"reproductionSteps"`
	SuggestedFix      string       `json:"suggestedFix"`
}

// Generating says in JSON that the analysis is on its way.
type Generating struct {
	JobID  string             `json:"jobId"`
	Status jobs.AIReportState `json:"status"`
	AsOf   *string            `json:"asOf,omitempty"`
}

// AnalysisOf is the job's analysis in JSON.
func AnalysisOf(j jobs.Job, report job.AIReport) Analysis {
	return Analysis{
		ID: report.ID, JobID: j.ID, ReportID: j.ReportID, Status: jobs.AIReportReady,
		ExecutiveSummary: report.ExecutiveSummary, HealthScore: report.HealthScore,
		PassCount: report.PassCount, FailCount: report.FailCount, SkipCount: report.SkipCount,
		Strengths: listOf(report.Strengths), Recommendations: listOf(report.Recommendations),
		GeneratedBy: report.GeneratedBy, CreatedAt: wire.Timestamp(report.At),
		Bugs: wire.List(report.Bugs, func(b job.Bug) bug {
			return bug{
				ItemID: wire.OrNull(b.ItemID), Title: b.Title, Severity: b.Severity, Description: b.Description,
				ReproductionSteps: listOf(b.ReproductionSteps), SuggestedFix: b.SuggestedFix,
			}
		}),
	}
}

// listOf is the list, or an empty one: never null.
func listOf(list []string) []string { return append([]string{}, list...) }
