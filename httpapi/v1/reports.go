package v1

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

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
	return a.Reports.Joined(r, report.Outcome{Title: cmp.Or(batch[0].BatchName, "Batch "+id), BatchID: id}, batch, past, at.then(), format)
}

// mostReports bounds the jobs of one GET /v1/jobs/report.
const mostReports = 100

// getReports is GET /v1/jobs/report: the reports of the jobs that ?ids= names, as one
// document. It names those that are not completed, and no document leaves them out.
func (a *Handlers) getReports(r *wire.Request) (wire.Answer, error) {
	var p wire.Problems
	format := report.Asked(r, &p)
	var named []string
	for id := range strings.SplitSeq(r.Query(&p).Text("ids"), ",") {
		if !slices.Contains(named, id) {
			named = append(named, id)
		}
	}
	if len(named) > mostReports || !wire.IDPattern.MatchString(named[0]) {
		p.Add("ids", "must be 1 to %d ids of jobs, with commas between them", mostReports)
		return wire.Answer{}, p.Err()
	}
	var all []jobs.Outline
	var past []*jobs.Past
	var at *asked
	var missing []domain.Detail
	for i, id := range named {
		j, then, asOf, err := a.ownJobThen(r, id, &p)
		switch {
		case domain.IsKind(err, domain.KindNotFound):
			return wire.Answer{}, domain.NotFound("job").WithHint("ids names %q", wire.Clip(id, wire.MaxSlip))
		case err != nil:
			return wire.Answer{}, err
		case j.ReportID == "":
			missing = append(missing, domain.Detail{Path: fmt.Sprintf("ids[%d]", i), Message: fmt.Sprintf("job %s is %s", id, j.Status)})
		}
		all, past, at = append(all, j.Outline), append(past, then), asOf
	}
	if missing != nil {
		return wire.Answer{}, domain.Conflict("%d of %d jobs are not completed", len(missing), len(named)).
			WithHint("name completed jobs only: a cancelled or failed job has no report").With("details", missing)
	}
	return a.Reports.Joined(r, report.Outcome{Title: "Tests"}, all, past, at.then(), format)
}
