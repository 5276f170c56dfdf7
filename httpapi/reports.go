package httpapi

import (
	"context"

	"humanqa/domain"
	"humanqa/domain/announce"
	"humanqa/domain/job"
	"humanqa/projections/jobs"
)

type reportBody struct {
	ID             string              `json:"id"`
	JobID          string              `json:"jobId"`
	OverallStatus  string              `json:"overallStatus"`
	PassCount      int                 `json:"passCount"`
	FailCount      int                 `json:"failCount"`
	SkipCount      int                 `json:"skipCount"`
	CheckerSummary string              `json:"checkerSummary"`
	Items          []reportItem        `json:"items"`
	RecordingURL   *string             `json:"recordingUrl"`
	Recordings     []attachedRecording `json:"recordings,omitempty"`
	CheckerRating  *int                `json:"checkerRating"`
	CreatedAt      timestamp           `json:"createdAt"`
	AsOf           *string             `json:"asOf,omitempty"`
}

// attachedRecording is a recording in a report.
type attachedRecording struct {
	ID          string    `json:"id"`
	URL         string    `json:"url"`
	ContentType string    `json:"contentType"`
	Size        int64     `json:"size"`
	StartedAt   timestamp `json:"startedAt"`
	DurationMs  *int64    `json:"durationMs"`
}

func attachedOf(r job.Recording) attachedRecording {
	shown := attachedRecording{ID: r.ID, URL: r.URL, ContentType: r.ContentType, Size: r.Size, StartedAt: timestamp(r.StartedAt)}
	if r.DurationMs > 0 {
		shown.DurationMs = &r.DurationMs
	}
	return shown
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
	ScreenshotURLs  []string       `json:"screenshotUrls,omitempty"` // all, where there are several
}

// reportRetrySeconds is how long a client is told to wait for a report.
const reportRetrySeconds = 30

// getReport is GET /v1/jobs/:id/report.
func (a *API) getReport(r *request) (answer, error) {
	var p problems
	format := reportFormatOf(r, &p)
	j, past, at, err := a.ownJobThen(r, r.vars["id"], &p)
	switch {
	case err != nil:
		return answer{}, err
	case j.ReportID == "" && at != nil:
		return answer{}, at.orNotThen("report", domain.NotFound("report"))
	case j.ReportID == "":
		return answer{}, noReport(j, "report", "the report exists once the job is completed")
	}
	tested, err := a.readTested(r.Context(), r.caller.accountID, j.Outline, past, format)
	if err != nil {
		return answer{}, err
	}
	body := tested.reportBody()
	body.AsOf = at.then()
	return format.answer(body, outcome{title: j.Title, jobs: []testedJob{tested}})
}

// noReport refuses what only a completed job has. Who can still get it is told
// when to ask again.
func noReport(j jobs.Job, what, hint string) error {
	if j.IsFinal() {
		return domain.NotFound(what).WithHint("the job is %s; it will have no %s", j.Status, what)
	}
	return retryAfter(domain.NotFound(what).WithHint("%s", hint), reportRetrySeconds)
}

type batchReportBody struct {
	BatchID string       `json:"batchId"`
	Reports []reportBody `json:"reports"`
	// WithoutReport are the jobs that ended without one.
	WithoutReport []unreportedJob `json:"withoutReport"`
	AsOf          *string         `json:"asOf,omitempty"`
}

type unreportedJob struct {
	JobID  string     `json:"jobId"`
	Status job.Status `json:"status"`
}

// getBatchReport is GET /v1/jobs/bulk/:batchId/report. Like a job's, it exists
// once everything has ended; a job that will have no report is named, not left
// out, lest a pipeline take a batch for green that was never tested.
func (a *API) getBatchReport(r *request) (answer, error) {
	var p problems
	format := reportFormatOf(r, &p)
	id, batch, past, at, err := a.ownBatchThen(r, &p)
	switch {
	case err != nil:
		return answer{}, err
	case batchStatus(batch) != batchCompleted && at != nil:
		return answer{}, at.orNotThen("report", domain.NotFound("report"))
	case batchStatus(batch) != batchCompleted:
		return answer{}, retryAfter(
			domain.NotFound("report").WithHint("the report exists once every job of the batch has ended"), reportRetrySeconds)
	}
	out := batchReportBody{BatchID: id, Reports: []reportBody{}, WithoutReport: []unreportedJob{}, AsOf: at.then()}
	shown := outcome{title: "Batch " + id, batchID: id}
	for i, j := range batch {
		tested := testedJob{Outline: j, page: announce.ReportPage(a.baseURL, j.ID)}
		if j.ReportID == "" {
			out.WithoutReport = append(out.WithoutReport, unreportedJob{JobID: j.ID, Status: j.Status})
		} else {
			var of *jobs.Past
			if at != nil {
				of = past[i]
			}
			if tested, err = a.readTested(r.Context(), r.caller.accountID, j, of, format); err != nil {
				return answer{}, err
			}
			out.Reports = append(out.Reports, tested.reportBody())
		}
		shown.jobs = append(shown.jobs, tested)
	}
	return format.answer(out, shown)
}

// testedJob is a job that has ended, with its report if it has one.
type testedJob struct {
	jobs.Outline
	report *jobs.Report
	page   string // of the report, for people
}

// reportThen reads the job's report; past, where it is given, is the job as it was.
func (a *API) reportThen(ctx context.Context, accountID, jobID string, past *jobs.Past) (jobs.Report, error) {
	if past != nil {
		return past.Report()
	}
	return a.reads.Jobs.Report(ctx, accountID, jobID)
}

// readTested reads the job's report, as it was where past is given.
func (a *API) readTested(ctx context.Context, accountID string, j jobs.Outline, past *jobs.Past, format reportFormat) (testedJob, error) {
	report, err := a.reportThen(ctx, accountID, j.ID, past)
	if err != nil {
		return testedJob{}, err
	}
	link := a.evidenceLink
	if format.kept() {
		link = a.lastingLink
	}
	err = linkReport(&report, func(stored string) (string, error) { return link(ctx, accountID, stored) })
	if err != nil {
		return testedJob{}, err
	}
	return testedJob{Outline: j, report: &report, page: announce.ReportPage(a.baseURL, j.ID)}, nil
}

func (t testedJob) reportBody() reportBody {
	report := t.report
	out := reportBody{
		ID: report.ID, JobID: report.JobID, OverallStatus: report.OverallStatus,
		PassCount: report.PassCount, FailCount: report.FailCount, SkipCount: report.SkipCount,
		CheckerSummary: report.Summary, Items: []reportItem{}, RecordingURL: orNull(report.RecordingURL),
		CheckerRating: report.CheckerRating, CreatedAt: timestamp(report.CreatedAt),
	}
	for _, r := range report.Recordings {
		out.Recordings = append(out.Recordings, attachedOf(r))
	}
	for _, i := range report.Items {
		out.Items = append(out.Items, reportItem{
			ID: i.ID, Key: i.Key, Description: i.Description, ExpectedOutcome: i.ExpectedOutcome,
			Severity: i.Severity, Status: i.Status, CheckerNote: i.Note,
			SkipReason: i.Reason, ScreenshotURL: i.ScreenshotURL, ScreenshotURLs: several(i),
		})
	}
	return out
}
