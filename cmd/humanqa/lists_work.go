package main

import (
	"context"
	"fmt"
	"net/url"
	"time"

	"humanqa/cmd/humanqa/service"
	"humanqa/cmd/humanqa/service/logging"
	"humanqa/domain"
	"humanqa/domain/job"
	"humanqa/projections"
	"humanqa/projections/jobs"
	"humanqa/projections/projects"
)

type projectListCmd struct {
	Account string `required:"" help:"The account's id."`

	page `embed:""`
}

// listedProject is a project of the JSON form. It names only the host of the webhook's
// URL, because the whole URL may be a secret.
type listedProject struct {
	ProjectID   string    `json:"projectId"`
	Name        string    `json:"name"`
	Jobs        int       `json:"jobs"`
	WebhookHost *string   `json:"webhookHost"`
	Disabled    bool      `json:"webhookDisabled"`
	Reason      *string   `json:"webhookDisabledReason"`
	CreatedAt   time.Time `json:"createdAt"`
}

func listedProjectOf(p projects.Project) listedProject {
	l := listedProject{ProjectID: p.ID, Name: p.Name, Jobs: p.JobCount, Disabled: p.WebhookDisabled, CreatedAt: p.CreatedAt}
	if u, err := url.Parse(p.WebhookURL); err == nil && u.Host != "" {
		l.WebhookHost = &u.Host
	}
	if p.WebhookDisabled {
		l.Reason = &p.DisabledReason
	}
	return l
}

func (l listedProject) String() string {
	line := fmt.Sprintf("%s  %s  %5d jobs  %s", l.ProjectID, l.CreatedAt.Format(time.RFC3339), l.Jobs, logging.OneLine(l.Name))
	if l.WebhookHost != nil {
		line += "  webhook to " + *l.WebhookHost
	}
	if l.Reason != nil {
		line += ", disabled: " + logging.OneLine(*l.Reason)
	}
	return line
}

func (c *projectListCmd) Run(ctx context.Context, a *app, reads *projections.Reads) error {
	return list(ctx, a, reads, "projects", &c.Account, c.page, listedProjectOf,
		func() ([]projects.Project, int, error) {
			return reads.Projects.List(ctx, c.Account, projects.Filter{Limit: c.Limit, Offset: c.Offset})
		})
}

type jobListCmd struct {
	Account string     `required:"" help:"The account's id."`
	Project string     `help:"Jobs of this project only."`
	Status  job.Status `enum:",pending,claimed,completed,cancelled,failed" default:"" help:"pending, claimed, completed, cancelled or failed."`

	page `embed:""`
}

// listedJob is a job of the JSON form.
type listedJob struct {
	JobID     string     `json:"jobId"`
	Title     string     `json:"title"`
	Status    job.Status `json:"status"`
	JobType   job.Type   `json:"jobType"`
	Urgent    bool       `json:"urgent"`
	ProjectID *string    `json:"projectId"`
	CreatedAt time.Time  `json:"createdAt"`
}

func listedJobOf(j jobs.Summary) listedJob {
	return listedJob{
		JobID: j.ID, Title: j.Title, Status: j.Status, JobType: j.Type, Urgent: j.Urgent,
		ProjectID: given(j.ProjectID), CreatedAt: j.CreatedAt,
	}
}

// given is null in JSON for a value that was never given.
func given(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func (l listedJob) String() string {
	return fmt.Sprintf("%s  %s  %-9s  %s", l.JobID, l.CreatedAt.Format(time.RFC3339), l.Status, logging.OneLine(l.Title))
}

func (c *jobListCmd) Run(ctx context.Context, a *app, reads *projections.Reads) error {
	return list(ctx, a, reads, "jobs", &c.Account, c.page, listedJobOf,
		func() ([]jobs.Summary, int, error) {
			f := jobs.Filter{Status: c.Status, ProjectID: c.Project, Limit: c.Limit, Offset: c.Offset}
			return reads.Jobs.List(ctx, c.Account, f)
		})
}

type jobShowCmd struct {
	Job string `required:"" help:"The job's id."`
}

// shownJob is a job with the facts that an operator asks for. The sign-in data for its
// checker is in no read model.
type shownJob struct {
	listedJob

	AccountID     string         `json:"accountId"`
	URL           string         `json:"url"`
	Source        string         `json:"source"`
	SLAMinutes    int            `json:"slaMinutes"`
	CreditsUsed   domain.Credits `json:"creditsUsed"`
	ParentJobID   *string        `json:"parentJobId"`
	SessionID     *string        `json:"sessionId"`
	RequeueCount  int            `json:"requeueCount"`
	DueAt         time.Time      `json:"dueAt"`
	ClaimedAt     *time.Time     `json:"claimedAt"`
	CompletedAt   *time.Time     `json:"completedAt"`
	CancelledAt   *time.Time     `json:"cancelledAt"`
	FailedAt      *time.Time     `json:"failedAt"`
	EndReason     *string        `json:"endReason"` // of a cancellation or failure
	OverallStatus *string        `json:"overallStatus"`
	ReportID      *string        `json:"reportId"`
	Items         int            `json:"items"`
	ItemsChecked  int            `json:"itemsChecked"`
}

func shownJobOf(j jobs.Job) shownJob {
	s := shownJob{
		listedJob: listedJobOf(j.Summary()), AccountID: j.AccountID, URL: j.URL, Source: j.Source, SLAMinutes: j.SLAMinutes,
		CreditsUsed: j.CreditsUsed(), ParentJobID: given(j.ParentID), SessionID: given(j.SessionID),
		RequeueCount: j.RequeueCount, DueAt: j.DueAt, ClaimedAt: j.ClaimedAt, CompletedAt: j.CompletedAt,
		CancelledAt: j.CancelledAt, FailedAt: j.FailedAt, EndReason: given(j.CancelReason + j.FailReason),
		OverallStatus: given(j.OverallStatus), ReportID: given(j.ReportID), Items: len(j.Items),
	}
	for _, item := range j.Items {
		if item.Status != job.ItemPending {
			s.ItemsChecked++
		}
	}
	return s
}

func (c *jobShowCmd) Run(ctx context.Context, a *app, core *service.Core, reads *projections.Reads) error {
	cause, err := operatorOn(ctx, core.Log, domain.JobStream(c.Job))
	if err != nil {
		return err
	}
	found, err := reads.Jobs.Job(ctx, cause.AccountID, c.Job)
	if err != nil {
		return err
	}
	s := shownJobOf(found)
	text := fmt.Sprintf("%s\naccount   %s\nurl       %s\ncredits   %d\nitems     %d of %d checked\ndue       %s",
		s.listedJob, s.AccountID, logging.OneLine(s.URL), s.CreditsUsed, s.ItemsChecked, s.Items, s.DueAt.Format(time.RFC3339))
	for _, l := range []struct {
		name  string
		value *string
	}{{"project", s.ProjectID}, {"session", s.SessionID}, {"parent", s.ParentJobID}, {"result", s.OverallStatus},
		{"report", s.ReportID}, {"reason", s.EndReason}} {
		if l.value != nil {
			text += fmt.Sprintf("\n%-8s  %s", l.name, *l.value)
		}
	}
	return a.print(s, "%s\nThe whole story: humanqa replay job-%s", text, s.JobID)
}
