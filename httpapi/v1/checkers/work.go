package checkers

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"strconv"

	"humanqa/domain"
	"humanqa/domain/command"
	"humanqa/domain/job"
	"humanqa/httpapi/input"
	"humanqa/httpapi/report"
	v1 "humanqa/httpapi/v1"
	"humanqa/httpapi/wire"
	"humanqa/projections/jobs"
)

// The checker's interface (decisions, "Checker keys", "Claims", "Checker
// queue" and "Checker work").

type queuedJob struct {
	ID          string         `json:"id"`
	Title       string         `json:"title"`
	URL         string         `json:"url"`
	JobType     string         `json:"jobType"`
	JobTypeCode job.Type       `json:"jobTypeCode"`
	Priority    string         `json:"priority"`
	SLAMinutes  int            `json:"slaMinutes"`
	CreatedAt   wire.Timestamp `json:"createdAt"`
	DueAt       wire.Timestamp `json:"dueAt"`
	SessionID   *string        `json:"sessionId"`
	// ReadyDeadline is when the slot's lobby closes; null without one.
	ReadyDeadline    *wire.Timestamp `json:"readyDeadline"`
	TargetDevice     *string         `json:"targetDevice"`
	TargetOS         *string         `json:"targetOS"`
	TargetBrowser    *string         `json:"targetBrowser"`
	TargetScreenSize *string         `json:"targetScreenSize"`
	TargetNetwork    *string         `json:"targetNetwork"`
}

type queueBody struct {
	Jobs   []queuedJob `json:"jobs"`
	Total  int         `json:"total"` // of all that wait for the checker
	Limit  int         `json:"limit"`
	Offset int         `json:"offset"`
}

// maxOffset is far beyond any queue, and within what Postgres can count.
const maxOffset = 1 << 31

// checkerQueue is GET /v1/checker/queue: urgent jobs and open lobbies first, then the
// jobs that are due first.
func (a *Handlers) checkerQueue(r *wire.Request) (wire.Answer, error) {
	var p wire.Problems
	q := r.Query(&p)
	f := jobs.QueueFilter{
		CheckerID: r.Caller.CheckerID, Now: a.Now(), Limit: q.Integer("limit", 20, 1, 100), Offset: q.Integer("offset", 0, 0, maxOffset),
	}
	if err := p.Err(); err != nil {
		return wire.Answer{}, err
	}
	queue, err := a.Reads.Jobs.Queue(r.Context(), f)
	if err != nil {
		return wire.Answer{}, err
	}
	counts, err := a.Reads.Jobs.CountQueue(r.Context(), f)
	return wire.ReplyUnless(err, http.StatusOK, queueBody{
		Jobs: wire.List(queue, queuedOf), Total: counts.Waiting, Limit: f.Limit, Offset: f.Offset,
	})
}

func queuedOf(j jobs.QueuedJob) queuedJob {
	return queuedJob{
		ID: j.ID, Title: j.Title, URL: j.URL, JobType: j.TypeEcho, JobTypeCode: j.Type,
		Priority: wire.Priority(j.Urgent), SLAMinutes: j.SLAMinutes,
		CreatedAt: wire.Timestamp(j.CreatedAt), DueAt: wire.Timestamp(j.DueAt), SessionID: wire.OrNull(j.SessionID),
		ReadyDeadline: wire.Stamp(j.LobbyUntil), TargetDevice: wire.OrNull(j.Target.V.Device), TargetOS: wire.OrNull(j.Target.V.OS),
		TargetBrowser: wire.OrNull(j.Target.V.Browser), TargetScreenSize: wire.OrNull(j.Target.V.ScreenSize),
		TargetNetwork: wire.OrNull(j.Target.V.Network),
	}
}

// claimOf reads the claim of a call.
func claimOf(r *wire.Request, p *wire.Problems) (command.Claim, error) {
	raw := r.Header.Get(wire.ClaimTokenHeader)
	token, err := strconv.ParseInt(raw, 10, 32)
	switch {
	case raw == "":
		p.Add(wire.ClaimTokenHeader, "is required: the claimToken of your claim")
	case err != nil || token < 1:
		p.Add(wire.ClaimTokenHeader, "must be the claimToken of your claim")
	}
	if err := p.Err(); err != nil {
		return command.Claim{}, err
	}
	if !wire.IDPattern.MatchString(r.Vars["id"]) {
		return command.Claim{}, domain.NotFound("job")
	}
	return command.Claim{CheckerID: r.Caller.CheckerID, JobID: r.Vars["id"], Token: int(token)}, nil
}

// checkedItem is an item with its verdict, which is pending until there is one.
type checkedItem struct {
	ID              string         `json:"id"`
	Key             string         `json:"key"`
	Description     string         `json:"description"`
	ExpectedOutcome string         `json:"expectedOutcome"`
	Severity        job.Severity   `json:"severity"`
	Status          job.ItemStatus `json:"status"`
	Note            string         `json:"note"`
	Reason          *string        `json:"reason"`
	ScreenshotURL   *string        `json:"screenshotUrl"`
	ScreenshotURLs  []string       `json:"screenshotUrls,omitempty"` // all, where there are several
	// Origin says that the item failed before: the question is whether it is fixed.
	Origin job.Origin `json:"origin,omitempty"`
}

func checkedOf(i job.ReportItem) checkedItem {
	return checkedItem{
		ID: i.ID, Key: i.Key, Description: i.Description, ExpectedOutcome: i.ExpectedOutcome, Severity: i.Severity,
		Status: i.Status, Note: i.Note, Reason: wire.OrNull(i.Reason), ScreenshotURL: wire.OrNull(i.ScreenshotURL),
		ScreenshotURLs: report.SeveralScreenshots(i), Origin: i.Origin,
	}
}

// checkItem is PUT /v1/checker/jobs/:id/items/:itemId.
func (a *Handlers) checkItem(r *wire.Request) (wire.Answer, error) {
	var p wire.Problems
	o := r.Object(&p)
	in := input.Check(o, r.Vars["itemId"])
	var owner string
	var err error
	if in.Screenshots, owner, err = a.screenshots(r, o); err != nil {
		return wire.Answer{}, err
	}
	claim, err := claimOf(r, &p)
	if err == nil && !wire.IDPattern.MatchString(in.ItemID) {
		err = domain.NotFound("checklist item")
	}
	return a.Writer.WriteUnless(err, r, func(ctx context.Context, cause command.Cause) (wire.Answer, error) {
		var item job.ReportItem
		var at domain.Position
		err := a.Evidence.Give(ctx, claim.JobID, in.Screenshots, func() (err error) {
			item, at, err = a.Commands.CheckItem(ctx, cause, claim, in)
			return err
		})
		if err != nil {
			return wire.Answer{}, err
		}
		a.Writer.Visible(ctx, r, at)
		err = report.LinkItem(&item, func(stored string) (string, error) { return a.Evidence.Link(ctx, owner, stored) })
		return wire.ReplyUnless(err, http.StatusOK, checkedOf(item))
	})
}

// screenshots reads an item's pictures: screenshotUrl, or several as
// screenshotUrls.
func (a *Handlers) screenshots(r *wire.Request, o wire.Object) (links []string, owner string, err error) {
	one := o.Optional("screenshotUrl", input.MaxURL)
	paths := []string{"screenshotUrl"}
	if list := o.Strings("screenshotUrls", job.MaxScreenshots, input.MaxURL); list != nil {
		if one != "" {
			o.Wrong("screenshotUrls", "goes without screenshotUrl: its first one is that")
		}
		links, paths = *list, nil
		for i := range links {
			paths = append(paths, fmt.Sprintf("screenshotUrls[%d]", i))
		}
	} else if one != "" {
		links = []string{one}
	}
	for i := range links {
		o.Link(paths[i], links[i])
		of, err := a.Evidence.Refer(r.Context(), r.Vars["id"], o, paths[i], &links[i])
		if err != nil {
			return nil, "", err
		}
		owner = cmp.Or(of, owner)
	}
	return links, owner, nil
}

// addFinding is POST /v1/checker/jobs/:id/items.
func (a *Handlers) addFinding(r *wire.Request) (wire.Answer, error) {
	var p wire.Problems
	o := r.Object(&p)
	r.IdempotencyKey(&p)
	in := input.Finding(o)
	claim, err := claimOf(r, &p)
	return a.Writer.WriteUnless(err, r, func(ctx context.Context, cause command.Cause) (wire.Answer, error) {
		item, at, err := a.Commands.AddFinding(ctx, cause, claim, in)
		return a.Writer.Done(ctx, r, at, err, http.StatusCreated, checkedOf(item))
	})
}

// editFinding is PUT /v1/checker/jobs/:id/findings/:findingId.
func (a *Handlers) editFinding(r *wire.Request) (wire.Answer, error) {
	var p wire.Problems
	in := input.Finding(r.Object(&p))
	claim, finding, err := findingOf(r, &p)
	return a.Writer.WriteUnless(err, r, func(ctx context.Context, cause command.Cause) (wire.Answer, error) {
		item, at, err := a.Commands.EditFinding(ctx, cause, claim, finding, in)
		return a.Writer.Done(ctx, r, at, err, http.StatusOK, checkedOf(item))
	})
}

type withdrawnFinding struct {
	JobID     string `json:"jobId"`
	FindingID string `json:"findingId"`
}

// withdrawFinding is POST /v1/checker/jobs/:id/findings/:findingId/withdraw; a repeat
// is harmless.
func (a *Handlers) withdrawFinding(r *wire.Request) (wire.Answer, error) {
	claim, finding, err := findingOf(r, new(wire.Problems))
	return a.Writer.WriteUnless(err, r, func(ctx context.Context, cause command.Cause) (wire.Answer, error) {
		at, err := a.Commands.WithdrawFinding(ctx, cause, claim, finding)
		return a.Writer.Done(ctx, r, at, err, http.StatusOK, withdrawnFinding{JobID: claim.JobID, FindingID: finding})
	})
}

// findingOf reads the finding of a call, and its claim.
func findingOf(r *wire.Request, p *wire.Problems) (claim command.Claim, findingID string, err error) {
	claim, err = claimOf(r, p)
	if err == nil && !wire.IDPattern.MatchString(r.Vars["findingId"]) {
		err = domain.NotFound("finding")
	}
	return claim, r.Vars["findingId"], err
}

// completeJob is POST /v1/checker/jobs/:id/complete.
func (a *Handlers) completeJob(r *wire.Request) (wire.Answer, error) {
	var p wire.Problems
	o := r.OptionalObject(&p)
	in := command.CompleteJob{
		Summary:      input.Summary(o),
		RecordingURL: o.Optional("recordingUrl", input.MaxURL),
	}
	o.Link("recordingUrl", in.RecordingURL)
	if _, err := a.Evidence.Refer(r.Context(), r.Vars["id"], o, "recordingUrl", &in.RecordingURL); err != nil {
		return wire.Answer{}, err
	}
	claim, err := claimOf(r, &p)
	return a.Writer.WriteUnless(err, r, func(ctx context.Context, cause command.Cause) (wire.Answer, error) {
		var done job.Completed
		var at domain.Position
		err := a.Evidence.Give(ctx, claim.JobID, []string{in.RecordingURL}, func() (err error) {
			done, at, err = a.Commands.CompleteJob(ctx, cause, claim, in)
			return err
		})
		return a.Writer.Done(ctx, r, at, err, http.StatusOK, v1.CompletedOf(claim.JobID, done))
	})
}

type releasedJob struct {
	JobID  string     `json:"jobId"`
	Status job.Status `json:"status"`
}

// releaseJob is POST /v1/checker/jobs/:id/release.
func (a *Handlers) releaseJob(r *wire.Request) (wire.Answer, error) {
	claim, err := claimOf(r, new(wire.Problems))
	return a.Writer.WriteUnless(err, r, func(ctx context.Context, cause command.Cause) (wire.Answer, error) {
		at, err := a.Commands.ReleaseJob(ctx, cause, claim)
		return a.Writer.Done(ctx, r, at, err, http.StatusOK, releasedJob{JobID: claim.JobID, Status: job.StatusPending})
	})
}
