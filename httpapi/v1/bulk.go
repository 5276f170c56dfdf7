package v1

import (
	"cmp"
	"context"
	"net/http"
	"slices"

	"humanqa/domain"
	"humanqa/domain/command"
	"humanqa/domain/job"
	"humanqa/httpapi/input"
	"humanqa/httpapi/wire"
	"humanqa/projections/jobs"
)

// submitBulk is POST /v1/jobs/bulk: all jobs or none (decisions, "Bulk").
func (a *Handlers) submitBulk(r *wire.Request) (wire.Answer, error) {
	var p wire.Problems
	r.IdempotencyKey(&p)
	submits, targets := input.Bulk(r.Object(&p), r.Header)
	if err := a.Limits.Admitted(r, &p, targets...); err != nil {
		return wire.Answer{}, err
	}
	for i := range submits {
		if err := a.place(r, &submits[i], "bulk"); err != nil {
			return wire.Answer{}, err
		}
	}
	return a.Writer.Write(r, func(ctx context.Context, cause command.Cause) (wire.Answer, error) {
		out, err := a.Commands.SubmitBulk(ctx, cause, submits)
		return a.Writer.Done(ctx, r, out.Position, err, http.StatusCreated, out)
	})
}

type cancelledBatch struct {
	BatchID string `json:"batchId"`
	command.CancelledJobs
}

// cancelBatch is POST /v1/jobs/bulk/:batchId/cancel: what a checker has taken goes on.
func (a *Handlers) cancelBatch(r *wire.Request) (wire.Answer, error) {
	id, batch, err := a.ownBatch(r)
	return a.Writer.WriteUnless(err, r, func(ctx context.Context, cause command.Cause) (wire.Answer, error) {
		out, err := a.Commands.CancelJobs(ctx, cause, wire.List(batch, jobs.Outline.Key), "client")
		return a.Writer.Done(ctx, r, out.Position, err, http.StatusOK, cancelledBatch{id, out})
	})
}

// repeatBatch is POST /v1/jobs/bulk/:batchId/repeat: its jobs once more, as another batch.
func (a *Handlers) repeatBatch(r *wire.Request) (wire.Answer, error) {
	_, batch, err := a.ownBatch(r)
	var p wire.Problems
	r.IdempotencyKey(&p)
	var targets []input.Target
	for _, j := range batch {
		if j.ErasedAt == nil { // the command says that it was erased
			targets = append(targets, input.CheckTarget(&p, "url", j.URL, j.Type))
			r.Asked = append(r.Asked, j.Submission)
		}
	}
	err = wire.RefusedFor(err, a.Limits.Admit(r.Context(), r.Caller, &p, targets...))
	return a.Writer.WriteUnless(err, r, func(ctx context.Context, cause command.Cause) (wire.Answer, error) {
		out, err := a.Commands.RetestBatch(ctx, cause, batch[0].BatchName, wire.List(batch, jobs.Outline.Key))
		return a.Writer.Done(ctx, r, out.Position, err, http.StatusCreated, out)
	})
}

// The values of a batch's overallStatus.
const (
	batchInProgress = "in_progress"
	batchCompleted  = "completed"
)

type batchBody struct {
	BatchID       string     `json:"batchId"`
	Name          *string    `json:"name"`
	OverallStatus string     `json:"overallStatus"`
	TotalJobs     int        `json:"totalJobs"`
	CompletedJobs int        `json:"completedJobs"`
	PassCount     int        `json:"passCount"` // jobs
	FailCount     int        `json:"failCount"`
	Jobs          []batchJob `json:"jobs"`
	AsOf          *string    `json:"asOf,omitempty"`
}

type batchJob struct {
	ID            string     `json:"id"`
	Status        job.Status `json:"status"`
	Title         string     `json:"title"`
	OverallStatus *string    `json:"overallStatus"` // null until a report exists
	ReportID      string     `json:"reportId,omitempty"`
	IsFinal       bool       `json:"isFinal"`
}

// getBatch is GET /v1/jobs/bulk/:batchId.
func (a *Handlers) getBatch(r *wire.Request) (wire.Answer, error) {
	id, batch, _, at, err := a.ownBatchThen(r, new(wire.Problems))
	if err != nil {
		return wire.Answer{}, err
	}
	body := batchOf(id, batch)
	body.AsOf = at.then()
	return wire.Reply(http.StatusOK, body)
}

// batchOf counts jobs. Cancelled and failed ones end a batch, too, but don't
// count as completed.
func batchOf(id string, batch []jobs.Outline) batchBody {
	out := batchBody{
		BatchID: id, Name: wire.OrNull(batch[0].BatchName), OverallStatus: batchStatus(batch), TotalJobs: len(batch), Jobs: []batchJob{},
	}
	for _, j := range batch {
		if j.Status == job.StatusCompleted {
			out.CompletedJobs++
		}
		switch j.OverallStatus {
		case job.OverallPass:
			out.PassCount++
		case job.OverallFail:
			out.FailCount++
		}
		out.Jobs = append(out.Jobs, batchJob{
			ID: j.ID, Status: j.Status, Title: j.Title, OverallStatus: wire.OrNull(j.OverallStatus),
			ReportID: j.ReportID, IsFinal: j.IsFinal(),
		})
	}
	return out
}

// batchStatus is in progress from the submission until every job has ended.
func batchStatus(batch []jobs.Outline) string {
	if slices.ContainsFunc(batch, func(j jobs.Outline) bool { return !j.IsFinal() }) {
		return batchInProgress
	}
	return batchCompleted
}

// ownBatchThen is ownBatch at the moment of ?asOf=: past are then the jobs with their
// reports, in the same order. p holds the other problems of the request.
func (a *Handlers) ownBatchThen(
	r *wire.Request, p *wire.Problems,
) (id string, batch []jobs.Outline, past []*jobs.Past, at *asked, err error) {
	id, batch, err = a.ownBatch(r)
	at, failed := a.asOf(r, p)
	if err := wire.RefusedFor(err, cmp.Or(p.Err(), failed)); err != nil || at == nil {
		return id, batch, make([]*jobs.Past, len(batch)), nil, err
	}
	past, err = a.past.Batch(r.Context(), batch, at.Until)
	if err != nil {
		return "", nil, nil, at, at.orNotThen("batch", err)
	}
	batch = nil
	for _, then := range past {
		j, err := then.Job()
		if err != nil {
			return "", nil, nil, at, err
		}
		batch = append(batch, j.Outline)
	}
	return id, batch, past, at, nil
}

// ownBatch reads the jobs of the batch the path names. A project-bound key is refused a
// batch with a job of another project.
func (a *Handlers) ownBatch(r *wire.Request) (id string, batch []jobs.Outline, err error) {
	id = r.Vars["batchId"]
	if !wire.IDPattern.MatchString(id) {
		return "", nil, domain.NotFound("batch")
	}
	batch, err = a.Reads.Jobs.Batch(r.Context(), r.Caller.AccountID, id)
	if err != nil {
		return "", nil, err
	}
	bound := r.Caller.ProjectID
	if bound != "" && slices.ContainsFunc(batch, func(j jobs.Outline) bool { return j.ProjectID != bound }) {
		return "", nil, ErrOtherProject
	}
	return id, batch, nil
}
