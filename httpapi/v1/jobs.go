package v1

import (
	"cmp"
	"context"
	"net/http"

	"humanqa/domain"
	"humanqa/domain/command"
	"humanqa/domain/job"
	"humanqa/httpapi/input"
	"humanqa/httpapi/report"
	"humanqa/httpapi/wire"
	"humanqa/internal/cursor"
	"humanqa/projections/commitstatuses"
	"humanqa/projections/jobs"
)

type submittedJob struct {
	command.SubmittedJob
	JobType     string   `json:"jobType"`
	JobTypeCode job.Type `json:"jobTypeCode"`
	ProjectID   *string  `json:"projectId"`
}

// submitJob is POST /v1/jobs.
func (a *Handlers) submitJob(r *wire.Request) (wire.Answer, error) {
	var p wire.Problems
	r.IdempotencyKey(&p)
	o := r.Object(&p)
	in, target := input.Submit(o)
	in.CommitStatus = input.CommitStatus(o, r.Header)
	if err := a.Limits.Admitted(r, &p, target); err != nil {
		return wire.Answer{}, err
	}
	return a.Writer.WriteUnless(a.place(r, &in, "api"), r, func(ctx context.Context, cause command.Cause) (wire.Answer, error) {
		out, err := a.Submits.SubmitJob(ctx, cause, in)
		return a.Writer.Done(ctx, r, out.Position, err, http.StatusCreated, submittedOf(out, in.TypeEcho, in.Type, in.ProjectID))
	})
}

func submittedOf(out command.SubmittedJob, echo string, t job.Type, projectID string) submittedJob {
	return submittedJob{SubmittedJob: out, JobType: echo, JobTypeCode: t, ProjectID: wire.OrNull(projectID)}
}

// place notes the source of a submission, and its project: the one that it names, or else
// the project of the key.
func (a *Handlers) place(r *wire.Request, in *command.SubmitJob, source string) error {
	in.Source = source
	in.ProjectID = cmp.Or(in.ProjectID, r.Caller.ProjectID)
	r.Asked = append(r.Asked, in.Submission)
	return a.mayUseProject(r.Context(), r.Caller, in.ProjectID)
}

// jobSummary is a job in a list.
type jobSummary struct {
	ID          string         `json:"id"`
	Status      job.Status     `json:"status"`
	Title       string         `json:"title"`
	URL         string         `json:"url"`
	JobType     string         `json:"jobType"`
	JobTypeCode job.Type       `json:"jobTypeCode"`
	CreatedAt   wire.Timestamp `json:"createdAt"`
	ReportID    string         `json:"reportId,omitempty"` // absent until a report exists
	ProjectID   *string        `json:"projectId"`
	Priority    string         `json:"priority"`
	IsFinal     bool           `json:"isFinal"`
}

func summaryOf(j jobs.Summary) jobSummary {
	return jobSummary{
		ID: j.ID, Status: j.Status, Title: j.Title, URL: j.URL,
		JobType: j.TypeEcho, JobTypeCode: j.Type, CreatedAt: wire.Timestamp(j.CreatedAt),
		ReportID: j.ReportID, ProjectID: wire.OrNull(j.ProjectID),
		Priority: wire.Priority(j.Urgent), IsFinal: j.IsFinal(),
	}
}

type jobPage struct {
	Jobs   []jobSummary `json:"jobs"`
	Total  int          `json:"total"`
	Limit  int          `json:"limit"`
	Offset int          `json:"offset"`
	// NextCursor is null at the end. A page by cursor costs the same at any place of the
	// list; an offset has to be counted.
	NextCursor *string `json:"nextCursor"`
	AsOf       *string `json:"asOf,omitempty"`
}

// listedStatuses are the values of ?status=: the specification's four names, and
// cancelled (decisions, "status filter").
var listedStatuses = []job.Status{job.StatusPending, job.StatusClaimed, job.StatusCompleted, job.StatusFailed, job.StatusCancelled}

// maxOffset is far beyond any account, and within what Postgres can count.
const maxOffset = 1 << 31

// listJobs is GET /v1/jobs.
func (a *Handlers) listJobs(r *wire.Request) (wire.Answer, error) {
	var p wire.Problems
	q := r.Query(&p)
	f := jobs.Filter{
		Status: job.Status(q.OneOf("status", wire.Words(listedStatuses))), ProjectID: q.Text("projectId"),
		Since: q.Time("since"),
		Limit: q.Integer("limit", 20, 1, 100), Offset: q.Integer("offset", 0, 0, maxOffset),
	}
	var err error
	if f.After, err = cursor.Parse(q.Text("cursor")); err != nil {
		p.Add("cursor", "must be a nextCursor of this list")
	}
	if !f.After.IsBeginning() && f.Offset > 0 {
		p.Add("offset", "must be absent with a cursor")
	}
	at, err := a.asOf(r, &p)
	if err := cmp.Or(p.Err(), err); err != nil {
		return wire.Answer{}, err
	}
	page := jobPage{Jobs: []jobSummary{}, Limit: f.Limit, Offset: f.Offset, AsOf: at.then()}
	none, err := a.narrow(r, &f.ProjectID)
	switch {
	case err != nil:
		return wire.Answer{}, err
	case none:
		return wire.Reply(http.StatusOK, page)
	}
	f.Limit++ // one more tells whether there are more
	found, total, err := listThen(r, f, at, a.Reads.Jobs.List, a.past.Jobs)
	page.Total = total
	if len(found) == f.Limit {
		found = found[:page.Limit]
		last := found[page.Limit-1]
		page.NextCursor = wire.OrNull(cursor.Cursor{At: last.CreatedAt, ID: last.ID}.String())
	}
	page.Jobs = wire.List(found, summaryOf)
	return wire.ReplyUnless(err, http.StatusOK, page)
}

// jobBody is a job read alone.
type jobBody struct {
	jobSummary
	AsOf             *string         `json:"asOf,omitempty"` // the moment of ?asOf=
	CreditsUsed      domain.Credits  `json:"creditsUsed"`
	SLAMinutes       int             `json:"slaMinutes"`
	ClaimedAt        *wire.Timestamp `json:"claimedAt"`
	CompletedAt      *wire.Timestamp `json:"completedAt"`
	ParentJobID      string          `json:"parentJobId,omitempty"` // retests only
	Description      string          `json:"description"`
	Feature          *string         `json:"feature"`
	Source           string          `json:"source"`
	BatchID          *string         `json:"batchId"`
	BatchName        *string         `json:"batchName"`
	SessionID        *string         `json:"sessionId"`
	DueAt            wire.Timestamp  `json:"dueAt"`
	CancelledAt      *wire.Timestamp `json:"cancelledAt"`
	CancelReason     *string         `json:"cancelReason"`
	FailedAt         *wire.Timestamp `json:"failedAt"`
	FailReason       *string         `json:"failReason"`
	FailNote         *string         `json:"failNote"` // the checkers' words, a line each
	RequeueCount     int             `json:"requeueCount"`
	LastFailedSLAAt  *wire.Timestamp `json:"lastFailedSlaAt"`
	ErasedAt         *wire.Timestamp `json:"erasedAt,omitempty"`
	OverallStatus    *string         `json:"overallStatus"`
	AIReportStatus   *string         `json:"aiReportStatus"`       // null until completed, generating, completed
	GeneratedBy      *string         `json:"checklistGeneratedBy"` // null: the client's own list, or none yet
	TargetDevice     *string         `json:"targetDevice"`
	TargetOS         *string         `json:"targetOS"`
	TargetBrowser    *string         `json:"targetBrowser"`
	TargetScreenSize *string         `json:"targetScreenSize"`
	TargetNetwork    *string         `json:"targetNetwork"`
	CommitSHA        *string         `json:"commitSha"`   // of a deploy
	Branch           *string         `json:"branch"`      // of a deploy
	Environment      *string         `json:"environment"` // of a deploy
	// OpenQuestion is a checker's question that waits for an answer; null without one.
	OpenQuestion *report.Question `json:"openQuestion"`
	// CommitStatus is null where none was asked for.
	CommitStatus *commitStatus `json:"commitStatus"`
}

// commitStatus is the commit status that shows the verdict. State is null before the
// first report to the platform. Error is the reason that no further report comes.
type commitStatus struct {
	Provider   string  `json:"provider"`
	Repository string  `json:"repository"`
	Commit     string  `json:"commit"`
	Context    string  `json:"context"`
	Ref        *string `json:"ref"`
	FailOn     string  `json:"failOn"`
	State      *string `json:"state"`
	Error      *string `json:"error"`
}

// commitStatusOf reads the job's commit status, as it was where at is given; nil: it has none.
func (a *Handlers) commitStatusOf(r *wire.Request, jobID string, at *asked) (*commitStatus, error) {
	var s commitstatuses.Status
	var found bool
	var err error
	if at == nil {
		s, found, err = a.Reads.Commits.OfJob(r.Context(), r.Caller.AccountID, jobID)
	} else {
		s, found, err = a.past.CommitStatus(r.Context(), jobID, at.Until)
	}
	if err != nil || !found {
		return nil, err
	}
	return &commitStatus{
		Provider: s.Provider, Repository: s.Repository, Commit: s.Commit, Context: s.Context, Ref: wire.OrNull(s.Ref), FailOn: s.FailOn,
		State: wire.OrNull(string(s.State)), Error: wire.OrNull(s.Abandoned),
	}, nil
}

// openQuestion is the question that waits for an answer; nil without one.
func openQuestion(j jobs.Job) *report.Question {
	if q, open := j.OpenQuestion(); open {
		return new(report.QuestionOf(q))
	}
	return nil
}

// getJob is GET /v1/jobs/:id.
func (a *Handlers) getJob(r *wire.Request) (wire.Answer, error) {
	j, _, at, err := a.ownJobThen(r, r.Vars["id"], new(wire.Problems))
	if err != nil {
		return wire.Answer{}, err
	}
	told, err := a.commitStatusOf(r, j.ID, at)
	return wire.ReplyUnless(err, http.StatusOK, jobBody{
		AsOf: at.then(), OpenQuestion: openQuestion(j), CommitStatus: told,
		CommitSHA: wire.OrNull(j.Commit), Branch: wire.OrNull(j.Branch), Environment: wire.OrNull(j.Environment),
		jobSummary: summaryOf(j.Summary()), CreditsUsed: j.CreditsUsed(), SLAMinutes: j.SLAMinutes,
		ClaimedAt: wire.Stamp(j.ClaimedAt), CompletedAt: wire.Stamp(j.CompletedAt), ParentJobID: j.ParentID,
		Description: j.Description, Feature: wire.OrNull(j.Feature), Source: j.Source,
		BatchID: wire.OrNull(j.BatchID), BatchName: wire.OrNull(j.BatchName), SessionID: wire.OrNull(j.SessionID),
		DueAt:       wire.Timestamp(j.DueAt),
		CancelledAt: wire.Stamp(j.CancelledAt), CancelReason: wire.OrNull(j.CancelReason),
		FailedAt: wire.Stamp(j.FailedAt), FailReason: wire.OrNull(j.FailReason), FailNote: wire.OrNull(j.FailNote),
		RequeueCount: j.RequeueCount, LastFailedSLAAt: wire.Stamp(j.LastFailedSLAAt), ErasedAt: wire.Stamp(j.ErasedAt),
		OverallStatus: wire.OrNull(j.OverallStatus), AIReportStatus: wire.OrNull(string(j.AIReport())),
		GeneratedBy:  wire.OrNull(j.GeneratedBy),
		TargetDevice: wire.OrNull(j.Target.Device), TargetOS: wire.OrNull(j.Target.OS),
		TargetBrowser: wire.OrNull(j.Target.Browser), TargetScreenSize: wire.OrNull(j.Target.ScreenSize),
		TargetNetwork: wire.OrNull(j.Target.Network),
	})
}

// ownJobThen reads a job that the path names, at the moment of ?asOf=: past then has its
// report, too, if it had one. Without asOf past and at are nil. p holds the other
// problems of the request.
func (a *Handlers) ownJobThen(r *wire.Request, id string, p *wire.Problems) (j jobs.Job, past *jobs.Past, at *asked, err error) {
	j, err = a.ownJobNamed(r, id)
	at, failed := a.asOf(r, p)
	if err := wire.RefusedFor(err, cmp.Or(p.Err(), failed)); err != nil || at == nil {
		return j, nil, nil, err
	}
	if past, err = a.past.Job(r.Context(), id, at.Until); err == nil {
		j, err = past.Job()
	}
	return j, past, at, at.orNotThen("job", err)
}

// ownJob reads the job the path names.
func (a *Handlers) ownJob(r *wire.Request) (jobs.Job, error) { return a.ownJobNamed(r, r.Vars["id"]) }

// ownJobNamed reads a job that the path names otherwise.
func (a *Handlers) ownJobNamed(r *wire.Request, id string) (jobs.Job, error) {
	return own(r, "job", id, a.Reads.Jobs.Job, func(j jobs.Job) string { return j.ProjectID })
}

// own reads the resource that a path names. A resource of another account is not found. A
// project-bound key is refused a resource of its account's other projects.
func own[T any](
	r *wire.Request, what, id string, get func(ctx context.Context, accountID, id string) (T, error), projectOf func(T) string,
) (none T, err error) {
	if !wire.IDPattern.MatchString(id) {
		return none, domain.NotFound(what)
	}
	found, err := get(r.Context(), r.Caller.AccountID, id)
	if err != nil {
		return none, err
	}
	if bound := r.Caller.ProjectID; bound != "" && projectOf(found) != bound {
		return none, ErrOtherProject
	}
	return found, nil
}

// cancelJob is POST /v1/jobs/:id/cancel. A repeat needs no Idempotency-Key: it
// answers the same.
func (a *Handlers) cancelJob(r *wire.Request) (wire.Answer, error) {
	j, err := a.ownJob(r)
	return a.Writer.WriteUnless(err, r, func(ctx context.Context, cause command.Cause) (wire.Answer, error) {
		out, err := a.Commands.CancelJob(ctx, cause, j.ID, "client")
		return a.Writer.Done(ctx, r, out.Position, err, http.StatusOK, out)
	})
}
