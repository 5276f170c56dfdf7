package httpapi

import (
	"context"
	"errors"
	"net/http"
	"strconv"

	"humanqa/domain"
	"humanqa/domain/command"
	"humanqa/domain/job"
)

type claimBody struct {
	JobID      string    `json:"jobId"`
	ClaimToken string    `json:"claimToken"`
	DueAt      timestamp `json:"dueAt"`
	Brief      briefBody `json:"brief"`
	// The draft of the report: what this checker, or one before, said so far.
	Checklist []checkedItem `json:"checklist"`
	Findings  []checkedItem `json:"findings"`
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

// claimAttempts bounds how often the next job of the queue is tried when other
// checkers are faster.
const claimAttempts = 8

// claimJob is POST /v1/checker/claims.
func (a *API) claimJob(r *request) (answer, error) {
	var p problems
	o := r.optionalObject(&p)
	wanted := o.id("jobId")
	if err := p.err(); err != nil {
		return answer{}, err
	}
	return a.write(r, func(ctx context.Context, cause command.Cause) (answer, error) {
		if wanted != "" {
			return a.claim(ctx, r, cause, wanted)
		}
		ans := answer{status: http.StatusNoContent}
		_, err := a.ClaimNext(ctx, r.caller.checkerID, func(next string) (err error) {
			cause.CommandID = command.NewCommandID() // each attempt is a command of its own
			ans, err = a.claim(ctx, r, cause, next)
			return err
		})
		return ans, err
	})
}

// jobGone says that only this job is out of reach, not the whole queue because
// of the claims the checker holds already.
func jobGone(err error) bool {
	var refused *domain.Error
	if !errors.As(err, &refused) {
		return false
	}
	_, full := refused.Extras["claimedJobs"]
	return !full && (refused.Kind == domain.KindConflict || refused.Kind == domain.KindNotFound)
}

func (a *API) claim(ctx context.Context, r *request, cause command.Cause, jobID string) (answer, error) {
	c, err := a.commands.ClaimJob(ctx, cause, r.caller.checkerID, jobID)
	if err != nil {
		return answer{}, err
	}
	a.visible(ctx, r, c.Position)
	return a.showClaim(ctx, http.StatusCreated, c)
}

// liveClaim is GET /v1/checker/claims: the work of a checker whose browser was
// closed, or whose network was away, with all they had said.
func (a *API) liveClaim(r *request) (answer, error) {
	c, held, err := a.commands.LiveClaim(r.Context(), r.caller.checkerID)
	switch {
	case err != nil:
		return answer{}, err
	case !held:
		return answer{status: http.StatusNoContent}, nil
	}
	return a.showClaim(r.Context(), http.StatusOK, c)
}

func (a *API) showClaim(ctx context.Context, status int, c command.ClaimedJob) (answer, error) {
	out := claimBody{
		JobID: c.JobID, ClaimToken: strconv.Itoa(c.Token), DueAt: timestamp(c.DueAt),
		Brief: briefBody{
			Title: c.Brief.Title, URL: c.Brief.URL, Description: c.Brief.Description,
			Feature: orNull(c.Brief.Feature), AccessInstructions: orNull(c.Brief.AccessInstructions),
			ScenarioBrief: c.Brief.ScenarioBrief, RoleLabel: c.Brief.RoleLabel,
		},
	}
	if secret := c.Brief.Credentials; secret != nil {
		out.Brief.Credentials = &credentialsBody{Username: secret.Username, Password: secret.Password, Notes: secret.Notes}
	}
	var err error
	if out.Checklist, err = a.draft(ctx, c.AccountID, c.Checklist); err != nil {
		return answer{}, err
	}
	if out.Findings, err = a.draft(ctx, c.AccountID, c.Findings); err != nil {
		return answer{}, err
	}
	return reply(status, out)
}

// draft shows items as the claimant left them, evidence with fresh links.
func (a *API) draft(ctx context.Context, accountID string, items []job.ReportItem) ([]checkedItem, error) {
	out := make([]checkedItem, len(items))
	for i, item := range items {
		if err := linkItem(&item, func(stored string) (string, error) { return a.evidenceLink(ctx, accountID, stored) }); err != nil {
			return nil, err
		}
		out[i] = checkedOf(item)
	}
	return out, nil
}

type untestableBody struct {
	JobID  string     `json:"jobId"`
	Status job.Status `json:"status"` // pending: somebody else has a look; failed: two agree
}

// reportUntestable is POST /v1/checker/jobs/:id/untestable: the checker gives
// the job back and says why nobody can test it.
func (a *API) reportUntestable(r *request) (answer, error) {
	var p problems
	o := r.object(&p)
	reason, note := o.untestable()
	claim, err := claimOf(r, &p)
	if err != nil {
		return answer{}, err
	}
	return a.write(r, func(ctx context.Context, cause command.Cause) (answer, error) {
		status, at, err := a.commands.ReportUntestable(ctx, cause, claim, reason, note)
		return a.done(ctx, r, at, err, http.StatusOK, untestableBody{JobID: claim.JobID, Status: status})
	})
}

type heartbeatBody struct {
	JobID  string     `json:"jobId"`
	Status job.Status `json:"status"`
	DueAt  timestamp  `json:"dueAt"`
}

// heartbeat is POST /v1/checker/jobs/:id/heartbeat: the claimant is still at
// work. The read models don't show it, so nothing is waited for.
func (a *API) heartbeat(r *request) (answer, error) {
	claim, err := claimOf(r, new(problems))
	if err != nil {
		return answer{}, err
	}
	return a.write(r, func(ctx context.Context, cause command.Cause) (answer, error) {
		dueAt, _, err := a.commands.Heartbeat(ctx, cause, claim)
		if err != nil {
			return answer{}, err
		}
		return reply(http.StatusOK, heartbeatBody{JobID: claim.JobID, Status: job.StatusClaimed, DueAt: timestamp(dueAt)})
	})
}
