package httpapi

import (
	"cmp"
	"context"
	"net/http"
	"strings"

	"humanqa/domain"
	"humanqa/domain/command"
	"humanqa/domain/job"
	"humanqa/internal/place"
	"humanqa/projections/jobs"
)

const (
	normal = "normal"
	urgent = "urgent"
)

func priority(isUrgent bool) string {
	if isUrgent {
		return urgent
	}
	return normal
}

type submittedJob struct {
	JobID                      string         `json:"jobId"`
	Status                     job.Status     `json:"status"`
	EstimatedCompletionMinutes int            `json:"estimatedCompletionMinutes"`
	CreditsDeducted            domain.Credits `json:"creditsDeducted"`
	CreditsRemaining           domain.Credits `json:"creditsRemaining"`
	ChecklistItemCount         int            `json:"checklistItemCount"`
	JobType                    string         `json:"jobType"`
	JobTypeCode                job.Type       `json:"jobTypeCode"`
	ProjectID                  *string        `json:"projectId"`
}

// submitJob is POST /v1/jobs.
func (a *API) submitJob(r *request) (answer, error) {
	var p problems
	r.idempotencyKey(&p)
	in := readSubmit(r.object(&p))
	if err := a.admitted(r, &p); err != nil {
		return answer{}, err
	}
	if err := a.place(r, &in, "api"); err != nil {
		return answer{}, err
	}
	return a.write(r, func(ctx context.Context, cause command.Cause) (answer, error) {
		out, err := a.commands.SubmitJob(ctx, cause, in)
		return a.done(ctx, r, out.Position, err, http.StatusCreated, submittedOf(out, in.TypeEcho, in.Type, in.ProjectID))
	})
}

func submittedOf(out command.SubmittedJob, echo string, t job.Type, projectID string) submittedJob {
	return submittedJob{
		JobID: out.JobID, Status: out.Status, EstimatedCompletionMinutes: out.EstimatedMinutes,
		CreditsDeducted: out.CreditsDeducted, CreditsRemaining: out.CreditsRemaining,
		ChecklistItemCount: out.ChecklistItemCount, JobType: echo, JobTypeCode: t, ProjectID: orNull(projectID),
	}
}

// place says where a submission came from and which project it belongs to: a
// project-bound key's own, unless it names one.
func (a *API) place(r *request, in *command.SubmitJob, source string) error {
	in.Source = source
	if in.ProjectID == "" {
		in.ProjectID = r.caller.projectID
	}
	return a.mayUseProject(r.Context(), r.caller, in.ProjectID)
}

// readSubmit reads the body of a submission (specification, "POST /v1/jobs").
func readSubmit(o object) command.SubmitJob {
	in := command.SubmitJob{
		Submission: job.Submission{
			URL:         o.required("url", maxURL),
			Title:       o.required("title", maxTitle),
			Description: o.required("description", maxDescription),
			Urgent:      o.oneOf("priority", normal, normal, urgent) == urgent,
			ProjectID:   o.id("projectId"),
			SLAMinutes:  o.slaMinutes("slaMinutes"),
		},
		AccessInstructions: o.optional("accessInstructions", maxAccessInstructions),
	}
	in.Target, in.Items, in.Credentials = readTarget(o), readItems(o), readCredentials(o)
	in.Type, in.TypeEcho = o.jobType("jobType")
	o.target("url", in.URL, in.Type)
	in.Wait = o.oneOf("generateChecklist", "async", "sync", "async") == "sync"
	return in
}

func readTarget(o object) job.Target {
	text := func(name string) string { return strings.TrimSpace(o.optional(name, maxTarget)) }
	return job.Target{
		Device: text("targetDevice"), OS: text("targetOS"), Browser: text("targetBrowser"),
		ScreenSize: text("targetScreenSize"), Network: text("targetNetwork"),
	}
}

func readItems(o object) []command.NewItem {
	var items []command.NewItem
	for _, i := range o.objects("checklistItems", maxItems) {
		items = append(items, command.NewItem{
			Key:             strings.TrimSpace(i.optional("key", maxItemKey)),
			Description:     i.required("description", maxItemText),
			ExpectedOutcome: i.optional("expectedOutcome", maxItemText),
			Severity:        i.severity(job.Major),
		})
	}
	return items
}

func readCredentials(o object) *command.Credentials {
	c, ok := o.child("credentials")
	if !ok {
		return nil
	}
	in := command.Credentials{
		Username: c.optional("username", maxCredential),
		Password: c.optional("password", maxCredential),
		Notes:    c.optional("notes", maxCredentialNotes),
	}
	if in == (command.Credentials{}) {
		return nil
	}
	return &in
}

// jobSummary is a job in a list.
type jobSummary struct {
	ID          string     `json:"id"`
	Status      job.Status `json:"status"`
	Title       string     `json:"title"`
	URL         string     `json:"url"`
	JobType     string     `json:"jobType"`
	JobTypeCode job.Type   `json:"jobTypeCode"`
	CreatedAt   timestamp  `json:"createdAt"`
	ReportID    string     `json:"reportId,omitempty"` // absent until a report exists
	ProjectID   *string    `json:"projectId"`
	Priority    string     `json:"priority"`
	IsFinal     bool       `json:"isFinal"`
}

func summaryOf(j jobs.Summary) jobSummary {
	return jobSummary{
		ID: j.ID, Status: j.Status, Title: j.Title, URL: j.URL,
		JobType: j.TypeEcho, JobTypeCode: j.Type, CreatedAt: timestamp(j.CreatedAt),
		ReportID: j.ReportID, ProjectID: orNull(j.ProjectID),
		Priority: priority(j.Urgent), IsFinal: j.IsFinal(),
	}
}

type jobPage struct {
	Jobs   []jobSummary `json:"jobs"`
	Total  int          `json:"total"`
	Limit  int          `json:"limit"`
	Offset int          `json:"offset"`
	// NextCursor is null at the end. Asking with it costs the same however far
	// down the list is; an offset has to be counted.
	NextCursor *string `json:"nextCursor"`
	AsOf       *string `json:"asOf,omitempty"`
}

// listedStatuses are what ?status= takes: the specification's four names, and
// cancelled (decisions, "status filter").
var listedStatuses = []job.Status{job.StatusPending, job.StatusClaimed, job.StatusCompleted, job.StatusFailed, job.StatusCancelled}

// maxOffset is far beyond any account, and within what Postgres can count.
const maxOffset = 1 << 31

// listJobs is GET /v1/jobs.
func (a *API) listJobs(r *request) (answer, error) {
	var p problems
	q := r.query(&p)
	f := jobs.Filter{
		Status: job.Status(q.oneOf("status", words(listedStatuses))), ProjectID: q.text("projectId"),
		Since: q.time("since"),
		Limit: q.integer("limit", 20, 1, 100), Offset: q.integer("offset", 0, 0, maxOffset),
	}
	var err error
	if f.After, err = place.Parse(q.text("cursor")); err != nil {
		p.add("cursor", "must be a nextCursor of this list")
	}
	if !f.After.IsBeginning() && f.Offset > 0 {
		p.add("offset", "must be absent with a cursor")
	}
	at, err := a.asOf(r, &p)
	if err := cmp.Or(p.err(), err); err != nil {
		return answer{}, err
	}
	page := jobPage{Jobs: []jobSummary{}, Limit: f.Limit, Offset: f.Offset, AsOf: at.then()}
	none, err := a.narrow(r, &f.ProjectID)
	switch {
	case err != nil:
		return answer{}, err
	case none:
		return reply(http.StatusOK, page)
	}
	f.Limit++ // one more tells whether there are more
	found, total, err := a.jobsThen(r, f, at)
	if err != nil {
		return answer{}, err
	}
	page.Total = total
	if len(found) == f.Limit {
		found = found[:page.Limit]
		last := found[page.Limit-1]
		page.NextCursor = orNull(place.Place{At: last.CreatedAt, ID: last.ID}.String())
	}
	for _, j := range found {
		page.Jobs = append(page.Jobs, summaryOf(j))
	}
	return reply(http.StatusOK, page)
}

// jobsThen is the list, as ?asOf= asks for it.
func (a *API) jobsThen(r *request, f jobs.Filter, at *asked) ([]jobs.Summary, int, error) {
	if at != nil {
		return a.past.Jobs(r.Context(), r.caller.accountID, f, at.Until)
	}
	return a.reads.Jobs.List(r.Context(), r.caller.accountID, f)
}

// jobBody is a job read alone.
type jobBody struct {
	jobSummary
	AsOf             *string        `json:"asOf,omitempty"` // where ?asOf= looks back to
	CreditsUsed      domain.Credits `json:"creditsUsed"`
	SLAMinutes       int            `json:"slaMinutes"`
	ClaimedAt        *timestamp     `json:"claimedAt"`
	CompletedAt      *timestamp     `json:"completedAt"`
	ParentJobID      string         `json:"parentJobId,omitempty"` // retests only
	Description      string         `json:"description"`
	Feature          *string        `json:"feature"`
	Source           string         `json:"source"`
	BatchID          *string        `json:"batchId"`
	SessionID        *string        `json:"sessionId"`
	DueAt            timestamp      `json:"dueAt"`
	CancelledAt      *timestamp     `json:"cancelledAt"`
	CancelReason     *string        `json:"cancelReason"`
	FailedAt         *timestamp     `json:"failedAt"`
	FailReason       *string        `json:"failReason"`
	RequeueCount     int            `json:"requeueCount"`
	LastFailedSLAAt  *timestamp     `json:"lastFailedSlaAt"`
	OverallStatus    *string        `json:"overallStatus"`
	AIReportStatus   *string        `json:"aiReportStatus"`       // null until completed, generating, completed
	GeneratedBy      *string        `json:"checklistGeneratedBy"` // null: the client's own list, or none yet
	TargetDevice     *string        `json:"targetDevice"`
	TargetOS         *string        `json:"targetOS"`
	TargetBrowser    *string        `json:"targetBrowser"`
	TargetScreenSize *string        `json:"targetScreenSize"`
	TargetNetwork    *string        `json:"targetNetwork"`
}

// getJob is GET /v1/jobs/:id.
func (a *API) getJob(r *request) (answer, error) {
	j, _, at, err := a.ownJobThen(r, r.vars["id"], new(problems))
	if err != nil {
		return answer{}, err
	}
	return reply(http.StatusOK, jobBody{
		AsOf:       at.then(),
		jobSummary: summaryOf(j.Summary()), CreditsUsed: j.CreditsUsed(), SLAMinutes: j.SLAMinutes,
		ClaimedAt: stamp(j.ClaimedAt), CompletedAt: stamp(j.CompletedAt), ParentJobID: j.ParentID,
		Description: j.Description, Feature: orNull(j.Feature), Source: j.Source,
		BatchID: orNull(j.BatchID), SessionID: orNull(j.SessionID), DueAt: timestamp(j.DueAt),
		CancelledAt: stamp(j.CancelledAt), CancelReason: orNull(j.CancelReason),
		FailedAt: stamp(j.FailedAt), FailReason: orNull(j.FailReason),
		RequeueCount: j.RequeueCount, LastFailedSLAAt: stamp(j.LastFailedSLAAt),
		OverallStatus: orNull(j.OverallStatus), AIReportStatus: orNull(string(j.AIReport())),
		GeneratedBy:  orNull(j.GeneratedBy),
		TargetDevice: orNull(j.Target.Device), TargetOS: orNull(j.Target.OS),
		TargetBrowser: orNull(j.Target.Browser), TargetScreenSize: orNull(j.Target.ScreenSize),
		TargetNetwork: orNull(j.Target.Network),
	})
}

// ownJobThen reads a job that the path names, as ?asOf= asks for it: past then has
// its report, too, if it had one. Without asOf past and at are nil. p is what else
// is wrong with the request.
func (a *API) ownJobThen(r *request, id string, p *problems) (j jobs.Job, past *jobs.Past, at *asked, err error) {
	j, err = a.ownJobNamed(r, id)
	at, failed := a.asOf(r, p)
	if err := refusedFor(err, cmp.Or(p.err(), failed)); err != nil || at == nil {
		return j, nil, nil, err
	}
	if past, err = a.past.Job(r.Context(), id, at.Until); err == nil {
		j, err = past.Job()
	}
	return j, past, at, at.orNotThen("job", err)
}

// ownJob reads the job the path names.
func (a *API) ownJob(r *request) (jobs.Job, error) { return a.ownJobNamed(r, r.vars["id"]) }

// ownJobNamed reads a job that the path names otherwise.
func (a *API) ownJobNamed(r *request, id string) (jobs.Job, error) {
	return own(r, "job", id, a.reads.Jobs.Job, func(j jobs.Job) string { return j.ProjectID })
}

// own reads what a path names. Another account's does not exist; a project-bound
// key is refused that of its account's other projects.
func own[T any](
	r *request, what, id string, get func(ctx context.Context, accountID, id string) (T, error), projectOf func(T) string,
) (none T, err error) {
	if !idPattern.MatchString(id) {
		return none, domain.NotFound(what)
	}
	found, err := get(r.Context(), r.caller.accountID, id)
	if err != nil {
		return none, err
	}
	if bound := r.caller.projectID; bound != "" && projectOf(found) != bound {
		return none, errOtherProject
	}
	return found, nil
}

type cancelledJob struct {
	JobID            string         `json:"jobId"`
	Status           job.Status     `json:"status"`
	CreditsRefunded  domain.Credits `json:"creditsRefunded"` // what came back
	CreditsExpired   domain.Credits `json:"creditsExpired"`  // what went into expired lots
	CreditsRemaining domain.Credits `json:"creditsRemaining"`
}

// cancelJob is POST /v1/jobs/:id/cancel. A repeat needs no Idempotency-Key: it
// answers the same.
func (a *API) cancelJob(r *request) (answer, error) {
	j, err := a.ownJob(r)
	if err != nil {
		return answer{}, err
	}
	return a.write(r, func(ctx context.Context, cause command.Cause) (answer, error) {
		out, err := a.commands.CancelJob(ctx, cause, j.ID, "client")
		return a.done(ctx, r, out.Position, err, http.StatusOK, cancelledJob{
			JobID: out.JobID, Status: out.Status,
			CreditsRefunded: out.CreditsRefunded, CreditsExpired: out.CreditsExpired, CreditsRemaining: out.CreditsRemaining,
		})
	})
}
