package v1

import (
	"humanqa/domain"
	"humanqa/httpapi/report"
	"humanqa/httpapi/wire"
	"humanqa/projections/jobs"
)

// reportRetrySeconds is the Retry-After while a report may still come.
const reportRetrySeconds = 30

// getReport is GET /v1/jobs/:id/report.
func (a *Handlers) getReport(r *wire.Request) (wire.Answer, error) {
	var p wire.Problems
	format := report.Asked(r, &p)
	j, past, at, err := a.ownJobThen(r, r.Vars["id"], &p)
	switch {
	case err != nil:
		return wire.Answer{}, err
	case j.ReportID == "" && at != nil:
		return wire.Answer{}, at.orNotThen("report", domain.NotFound("report"))
	case j.ReportID == "":
		return wire.Answer{}, noReport(j, "report", "the report exists once the job is completed")
	}
	tested, err := a.Reports.Read(r.Context(), r.Caller.AccountID, j.Outline, past, format)
	if err != nil {
		return wire.Answer{}, err
	}
	body := tested.JSON()
	body.AsOf = at.then()
	return format.Answer(body, report.Outcome{Title: j.Title, Jobs: []report.Job{tested}})
}

// noReport refuses a resource that only a completed job has. While the job may still be
// completed, it says when to ask again.
func noReport(j jobs.Job, what, hint string) error {
	if j.IsFinal() {
		return domain.NotFound(what).WithHint("the job is %s; it will have no %s", j.Status, what)
	}
	return wire.RetryAfter(domain.NotFound(what).WithHint("%s", hint), reportRetrySeconds)
}

// getBatchReport is GET /v1/jobs/bulk/:batchId/report. Like a job's report, it exists
// once everything has ended. A job that will have no report is named, not left out, so
// that a pipeline does not take an untested batch for green.
func (a *Handlers) getBatchReport(r *wire.Request) (wire.Answer, error) {
	var p wire.Problems
	format := report.Asked(r, &p)
	id, batch, past, at, err := a.ownBatchThen(r, &p)
	switch {
	case err != nil:
		return wire.Answer{}, err
	case batchStatus(batch) != batchCompleted && at != nil:
		return wire.Answer{}, at.orNotThen("report", domain.NotFound("report"))
	case batchStatus(batch) != batchCompleted:
		return wire.Answer{}, wire.RetryAfter(
			domain.NotFound("report").WithHint("the report exists once every job of the batch has ended"), reportRetrySeconds)
	}
	out := report.Batch{BatchID: id, Reports: []report.Body{}, WithoutReport: []report.Unreported{}, AsOf: at.then()}
	shown := report.Outcome{Title: "Batch " + id, BatchID: id}
	for i, j := range batch {
		tested := a.Reports.Unreported(j)
		if j.ReportID == "" {
			out.WithoutReport = append(out.WithoutReport, report.Unreported{JobID: j.ID, Status: j.Status})
		} else {
			var of *jobs.Past
			if at != nil {
				of = past[i]
			}
			if tested, err = a.Reports.Read(r.Context(), r.Caller.AccountID, j, of, format); err != nil {
				return wire.Answer{}, err
			}
			out.Reports = append(out.Reports, tested.JSON())
		}
		shown.Jobs = append(shown.Jobs, tested)
	}
	return format.Answer(out, shown)
}
