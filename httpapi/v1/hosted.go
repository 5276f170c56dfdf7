package v1

import (
	"context"
	"fmt"
	"net/http"

	"humanqa/domain"
	"humanqa/domain/announce"
	"humanqa/domain/command"
	"humanqa/domain/job"
	"humanqa/httpapi/admit"
	"humanqa/httpapi/input"
	"humanqa/httpapi/wire"
	"humanqa/internal/signature"
)

// hostedJob is the handle of a hosted test. creditsCharged always equals
// creditsDeducted.
type hostedJob struct {
	JobID                      string         `json:"jobId"`
	ProjectID                  string         `json:"projectId"`
	Status                     job.Status     `json:"status"`
	EstimatedCompletionMinutes int            `json:"estimatedCompletionMinutes"`
	CreditsDeducted            domain.Credits `json:"creditsDeducted"`
	CreditsCharged             domain.Credits `json:"creditsCharged"`
	CreditsRemaining           domain.Credits `json:"creditsRemaining"`
	ChecklistItemCount         int            `json:"checklistItemCount"`
	JobType                    string         `json:"jobType"`
	JobTypeCode                job.Type       `json:"jobTypeCode"`
	IsHostedApp                bool           `json:"isHostedApp"`
	RegressionItemsIncluded    int            `json:"regressionItemsIncluded"`
	LoopSessionID              string         `json:"loopSessionId,omitempty"` // of an agent's test
	StatusURL                  string         `json:"statusUrl"`
	ReportURL                  string         `json:"reportUrl"`
	DashboardReportURL         string         `json:"dashboardReportUrl"`
}

func (a *Handlers) hostedJob(in command.HostedTest, out command.HostedJob) hostedJob {
	return hostedJob{
		JobID: out.JobID, ProjectID: out.ProjectID, Status: out.Status,
		EstimatedCompletionMinutes: out.EstimatedMinutes,
		CreditsDeducted:            out.CreditsDeducted, CreditsCharged: out.CreditsDeducted,
		CreditsRemaining:   out.CreditsRemaining,
		ChecklistItemCount: out.ChecklistItemCount,
		JobType:            out.TypeEcho, JobTypeCode: out.Type,
		IsHostedApp: in.HostedApp, RegressionItemsIncluded: out.RegressionItems,
		LoopSessionID: out.LoopSessionID,
		StatusURL:     a.statusURL(out.JobID), ReportURL: a.BaseURL + "/v1/jobs/" + out.JobID + "/report",
		DashboardReportURL: announce.ReportPage(a.BaseURL, out.JobID),
	}
}

func (a *Handlers) statusURL(jobID string) string { return a.BaseURL + "/v1/hosted/status/" + jobID }

// testHosted is POST /v1/hosted/test.
func (a *Handlers) testHosted(r *wire.Request) (wire.Answer, error) {
	var p wire.Problems
	r.IdempotencyKey(&p)
	o := r.Object(&p)
	in, target := input.HostedTest(o, r.Header, a.Limits)
	in.ProjectID = r.Caller.ProjectID // a project-bound key's tests go to its project, for any host
	in.Loop = input.LoopStep(r, &p)
	r.Asked = append(r.Asked, in.Submission)
	err := a.Limits.Admitted(r, &p, target)
	return a.Writer.WriteUnless(err, r, func(ctx context.Context, cause command.Cause) (wire.Answer, error) {
		out, err := a.Commands.TestHosted(ctx, cause, in)
		if err != nil {
			return wire.Answer{}, err
		}
		a.Writer.Visible(ctx, r, out.Position)
		a.noteUnused(ctx, r, in.Webhook, out.ProjectID)
		return wire.Reply(http.StatusCreated, a.hostedJob(in, out))
	})
}

// noteUnused warns of a webhook's settings that lead to no delivery: the project has no
// URL for them. It warns of a secret that receivers' libraries cannot read, too. A failure
// here costs the warning only, never the test.
func (a *Handlers) noteUnused(ctx context.Context, r *wire.Request, in command.Webhook, projectID string) {
	if !signature.ForLibraries(in.Secret) {
		r.Notes = append(r.Notes, domain.Detail{
			Path: "webhookSecret", Message: "is no base64 of 24 to 64 bytes behind whsec_: libraries of Standard Webhooks cannot read it; verify X-Service-Signature",
		})
	}
	if in.URL != "" || in.Secret == "" && in.Events == nil {
		return
	}
	p, err := a.Reads.Projects.Get(ctx, r.Caller.AccountID, projectID)
	if err != nil {
		r.Log.WithError(err).Warn("answered without a look at the project's webhook")
		return
	}
	if p.WebhookURL != "" {
		return
	}
	if in.Secret != "" {
		r.Unused("webhookSecret")
	}
	if in.Events != nil {
		r.Unused("subscribedWebhookEvents")
	}
}

type preparedBody struct {
	Message         string   `json:"message"`
	RegressionItems int      `json:"regressionItems"`
	Descriptions    []string `json:"descriptions"`
	ProjectID       string   `json:"projectId"`
}

// prepareNext is POST /v1/hosted/prepare-next.
func (a *Handlers) prepareNext(r *wire.Request) (wire.Answer, error) {
	var p wire.Problems
	r.IdempotencyKey(&p)
	o := r.Object(&p)
	projectID := o.RequiredID("projectId")
	bugs, fixed := input.Fixes(o)
	if err := p.Err(); err != nil {
		return wire.Answer{}, err
	}
	err := a.mayUseProject(r.Context(), r.Caller, projectID)
	return a.Writer.WriteUnless(err, r, func(ctx context.Context, cause command.Cause) (wire.Answer, error) {
		// Within the command, so that a stored answer is repeated even if other items
		// failed since.
		named, err := admit.AtHead(ctx, a.Fresh, func() ([]command.PreparedFix, error) {
			return input.FailedInLastTest(ctx, a.Reads, cause.AccountID, projectID, bugs)
		}, admit.Refused)
		if err != nil {
			return wire.Answer{}, err
		}
		out, err := a.Commands.PrepareNext(ctx, cause, projectID, append(named, fixed...))
		n, fixes := len(out.Descriptions), "fixes"
		if n == 1 {
			fixes = "fix"
		}
		return a.Writer.Done(ctx, r, out.Position, err, http.StatusOK, preparedBody{
			Message:         fmt.Sprintf("%d %s will be verified by the project's next test", n, fixes),
			RegressionItems: n, Descriptions: out.Descriptions, ProjectID: projectID,
		})
	})
}
