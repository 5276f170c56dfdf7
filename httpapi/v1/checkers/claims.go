package checkers

import (
	"context"
	"net/http"
	"strconv"

	"humanqa/domain"
	"humanqa/domain/command"
	"humanqa/domain/job"
	"humanqa/httpapi/input"
	"humanqa/httpapi/report"
	"humanqa/httpapi/wire"
)

type claimBody struct {
	JobID      string         `json:"jobId"`
	ClaimToken string         `json:"claimToken"`
	DueAt      wire.Timestamp `json:"dueAt"`
	Brief      briefBody      `json:"brief"`
	// The draft of the report: the verdicts of this checker, or one before, so far.
	Checklist []checkedItem `json:"checklist"`
	Findings  []checkedItem `json:"findings"`
	// Questions are the questions about this job, with their answers.
	Questions []toldQuestion `json:"questions"`
}

// briefBody is the one answer that holds a client's secrets, for the claimant.
type briefBody struct {
	Title              string           `json:"title"`
	URL                string           `json:"url"`
	Description        string           `json:"description"`
	Feature            *string          `json:"feature"`
	Credentials        *credentialsBody `json:"credentials"`
	AccessInstructions *string          `json:"accessInstructions"`
	ScenarioBrief      string           `json:"scenarioBrief,omitempty"` // of a session's slot
	RoleLabel          string           `json:"roleLabel,omitempty"`     // of a session's slot
}

type credentialsBody struct {
	Username string `json:"username"`
	Password string `json:"password"`
	Notes    string `json:"notes"`
}

// claimJob is POST /v1/checker/claims.
func (a *Handlers) claimJob(r *wire.Request) (wire.Answer, error) {
	var p wire.Problems
	o := r.OptionalObject(&p)
	wanted := o.ID("jobId")
	return a.Writer.WriteUnless(p.Err(), r, func(ctx context.Context, cause command.Cause) (wire.Answer, error) {
		if wanted != "" {
			return a.claim(ctx, r, cause, wanted)
		}
		ans := wire.Answer{Status: http.StatusNoContent}
		_, err := a.Reads.Jobs.ClaimNext(ctx, r.Caller.CheckerID, a.Now(), func(next string) (err error) {
			cause.CommandID = domain.NewCommandID() // each attempt is a command of its own
			ans, err = a.claim(ctx, r, cause, next)
			return err
		})
		return ans, err
	})
}

func (a *Handlers) claim(ctx context.Context, r *wire.Request, cause command.Cause, jobID string) (wire.Answer, error) {
	c, err := a.Commands.ClaimJob(ctx, cause, r.Caller.CheckerID, jobID)
	if err != nil {
		return wire.Answer{}, err
	}
	a.Writer.Visible(ctx, r, c.Position)
	return a.showClaim(ctx, r, cause.Step("reveal"), http.StatusCreated, c)
}

// liveClaim is GET /v1/checker/claims: the work of a checker whose browser was closed, or
// whose network was away, with all their verdicts.
func (a *Handlers) liveClaim(r *wire.Request) (wire.Answer, error) {
	return a.Writer.Write(r, func(ctx context.Context, cause command.Cause) (wire.Answer, error) { // the log says what is shown
		c, held, err := a.Commands.LiveClaim(ctx, r.Caller.CheckerID)
		switch {
		case err != nil:
			return wire.Answer{}, err
		case !held:
			return wire.Answer{Status: http.StatusNoContent}, nil
		}
		return a.showClaim(ctx, r, cause, http.StatusOK, c)
	})
}

// showClaim shows the claim with its secrets; the log says so before.
func (a *Handlers) showClaim(
	ctx context.Context, r *wire.Request, cause command.Cause, status int, c command.ClaimedJob,
) (wire.Answer, error) {
	if c.Brief.HasSecrets {
		brief, at, err := a.Commands.Reveal(ctx, cause, command.Claim{CheckerID: r.Caller.CheckerID, JobID: c.JobID, Token: c.Token})
		if err != nil {
			return wire.Answer{}, err
		}
		a.Writer.Visible(ctx, r, at)
		c.Brief = brief
	}
	out := claimBody{
		JobID: c.JobID, ClaimToken: strconv.Itoa(c.Token), DueAt: wire.Timestamp(c.DueAt),
		Brief: briefBody{
			Title: c.Brief.Title, URL: c.Brief.URL, Description: c.Brief.Description,
			Feature: wire.OrNull(c.Brief.Feature), AccessInstructions: wire.OrNull(c.Brief.AccessInstructions),
			ScenarioBrief: c.Brief.ScenarioBrief, RoleLabel: c.Brief.RoleLabel, Credentials: (*credentialsBody)(c.Brief.Credentials),
		},
		Questions: wire.List(c.Brief.Questions, toldOf),
	}
	var err error
	if out.Checklist, err = a.draft(ctx, c.AccountID, c.Checklist); err != nil {
		return wire.Answer{}, err
	}
	out.Findings, err = a.draft(ctx, c.AccountID, c.Findings)
	return wire.ReplyUnless(err, status, out)
}

// draft shows items as the claimant left them, evidence with fresh links.
func (a *Handlers) draft(ctx context.Context, accountID string, items []job.ReportItem) ([]checkedItem, error) {
	out := make([]checkedItem, len(items))
	for i, item := range items {
		if err := report.LinkItem(&item, func(stored string) (string, error) { return a.Evidence.Link(ctx, accountID, stored) }); err !=
			nil {
			return nil, err
		}
		out[i] = checkedOf(item)
	}
	return out, nil
}

type untestableBody struct {
	JobID  string     `json:"jobId"`
	Status job.Status `json:"status"` // pending: another checker has a look; failed: two agree
}

// reportUntestable is POST /v1/checker/jobs/:id/untestable: the checker gives the job
// back and says why it cannot be tested.
func (a *Handlers) reportUntestable(r *wire.Request) (wire.Answer, error) {
	var p wire.Problems
	o := r.Object(&p)
	reason, note := input.Untestable(o)
	claim, err := claimOf(r, &p)
	return a.Writer.WriteUnless(err, r, func(ctx context.Context, cause command.Cause) (wire.Answer, error) {
		status, at, err := a.Commands.ReportUntestable(ctx, cause, claim, reason, note)
		return a.Writer.Done(ctx, r, at, err, http.StatusOK, untestableBody{JobID: claim.JobID, Status: status})
	})
}

type heartbeatBody struct {
	JobID  string         `json:"jobId"`
	Status job.Status     `json:"status"`
	DueAt  wire.Timestamp `json:"dueAt"`
	// SilentAt is when the claim ends, unless the checker sends a request before.
	SilentAt wire.Timestamp `json:"silentAt"`
	// ClockStands says that a question is open: both will be later.
	ClockStands bool `json:"clockStands"`
}

// heartbeat is POST /v1/checker/jobs/:id/heartbeat: the claimant is still at work. The
// read models don't show it, so the answer does not wait for them.
func (a *Handlers) heartbeat(r *wire.Request) (wire.Answer, error) {
	claim, err := claimOf(r, new(wire.Problems))
	return a.Writer.WriteUnless(err, r, func(ctx context.Context, cause command.Cause) (wire.Answer, error) {
		beat, _, err := a.Commands.Heartbeat(ctx, cause, claim)
		return wire.ReplyUnless(err, http.StatusOK, heartbeatBody{
			JobID: claim.JobID, Status: job.StatusClaimed, DueAt: wire.Timestamp(beat.DueAt), SilentAt: wire.Timestamp(beat.SilentAt),
			ClockStands: beat.Stands,
		})
	})
}
