package v1

import (
	"net/http"
	"strconv"

	"humanqa/domain"
	"humanqa/domain/job"
	"humanqa/httpapi/report"
	"humanqa/httpapi/wire"
	"humanqa/projections/jobs"
)

// aiReportRetrySeconds is the Retry-After while the analysis is on its way.
const aiReportRetrySeconds = 15

// getAIReport is GET /v1/jobs/:id/ai-report.
func (a *Handlers) getAIReport(r *wire.Request) (wire.Answer, error) {
	j, past, at, err := a.ownJobThen(r, r.Vars["id"], new(wire.Problems))
	switch {
	case err != nil:
		return wire.Answer{}, err
	case j.Status != job.StatusCompleted && at != nil:
		return wire.Answer{}, at.orNotThen("AI report", domain.NotFound("AI report"))
	case j.Status != job.StatusCompleted:
		return wire.Answer{}, noReport(j, "AI report", "the AI report follows once the job is completed")
	}
	var analysis job.AIReport
	if past != nil {
		analysis, err = past.AIReport()
	} else {
		analysis, err = a.Reads.Jobs.AIReport(r.Context(), r.Caller.AccountID, j.ID)
	}
	switch {
	case domain.IsKind(err, domain.KindNotFound):
		ans, err := wire.Reply(http.StatusAccepted, report.Generating{JobID: j.ID, Status: jobs.AIReportGenerating, AsOf: at.then()})
		if at == nil { // an answer about a past moment does not change
			ans.Header = http.Header{"Retry-After": {strconv.Itoa(aiReportRetrySeconds)}}
		}
		return ans, err
	case err != nil:
		return wire.Answer{}, err
	}
	body := report.AnalysisOf(j, analysis)
	body.AsOf = at.then()
	return wire.Reply(http.StatusOK, body)
}
