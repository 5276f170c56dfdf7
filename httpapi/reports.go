package httpapi

import (
	"net/http"

	"humanqa/domain"
	"humanqa/domain/job"
)

type reportBody struct {
	ID             string       `json:"id"`
	JobID          string       `json:"jobId"`
	OverallStatus  string       `json:"overallStatus"`
	PassCount      int          `json:"passCount"`
	FailCount      int          `json:"failCount"`
	SkipCount      int          `json:"skipCount"`
	CheckerSummary string       `json:"checkerSummary"`
	Items          []reportItem `json:"items"`
	RecordingURL   *string      `json:"recordingUrl"`
	CheckerRating  *int         `json:"checkerRating"`
	CreatedAt      timestamp    `json:"createdAt"`
}

type reportItem struct {
	ID              string         `json:"id"`
	Key             string         `json:"key"`
	Description     string         `json:"description"`
	ExpectedOutcome string         `json:"expectedOutcome,omitempty"`
	Severity        job.Severity   `json:"severity"`
	Status          job.ItemStatus `json:"status"`
	CheckerNote     string         `json:"checkerNote"`
	SkipReason      string         `json:"skipReason,omitempty"`
	ScreenshotURL   string         `json:"screenshotUrl,omitempty"`
}

// reportRetrySeconds is how long a client is told to wait for a report.
const reportRetrySeconds = 30

// getReport is GET /v1/jobs/:id/report.
func (a *API) getReport(r *request) (answer, error) {
	j, err := a.ownJob(r)
	if err != nil {
		return answer{}, err
	}
	switch {
	case j.ReportID != "":
	case j.IsFinal():
		return answer{}, domain.NotFound("report").WithHint("the job is %s; it will have no report", j.Status)
	default:
		return answer{}, retryAfter(
			domain.NotFound("report").WithHint("the report exists once the job is completed"), reportRetrySeconds)
	}
	report, err := a.reads.Jobs.Report(r.Context(), r.caller.accountID, j.ID)
	if err != nil {
		return answer{}, err
	}
	out := reportBody{
		ID: report.ID, JobID: report.JobID, OverallStatus: report.OverallStatus,
		PassCount: report.PassCount, FailCount: report.FailCount, SkipCount: report.SkipCount,
		CheckerSummary: report.Summary, Items: []reportItem{}, RecordingURL: orNull(report.RecordingURL),
		CheckerRating: report.CheckerRating, CreatedAt: timestamp(report.CreatedAt),
	}
	for _, i := range report.Items {
		out.Items = append(out.Items, reportItem{
			ID: i.ID, Key: i.Key, Description: i.Description, ExpectedOutcome: i.ExpectedOutcome,
			Severity: i.Severity, Status: i.Status, CheckerNote: i.Note,
			SkipReason: i.Reason, ScreenshotURL: i.ScreenshotURL,
		})
	}
	return reply(http.StatusOK, out)
}
