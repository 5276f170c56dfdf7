package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"humanqa/cmd/humanqa/service"
	"humanqa/domain/announce"
	"humanqa/httpapi/ui"
	"humanqa/integrations/clients/go/humanqa"
	"humanqa/internal/buildinfo"
)

const (
	// demoLimit bounds the whole demo, deliveryLimit the wait for one webhook:
	// the service has a second request to try within it.
	demoLimit     = 2 * time.Minute
	deliveryLimit = 20 * time.Second
)

type demoCmd struct{}

// Run tells one job's life by the public API alone, and fails where the
// service does not do what it promises.
func (c *demoCmd) Run(ctx context.Context, a *app) error {
	ctx, cancel := context.WithTimeout(ctx, demoLimit)
	defer cancel()
	if !service.HasData(a.cfg) {
		return fmt.Errorf("%w: start it with make run (humanqa serve --demo) first", service.NoData(a.cfg))
	}
	file, err := service.ReadDemo(a.cfg.DataDir)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("there is no %s: start the service with make run (humanqa serve --demo) first", service.DemoPath(a.cfg.DataDir))
	}
	if err != nil {
		return err
	}
	calls, err := humanqa.New(file.BaseURL, "", "humanqa/"+buildinfo.This().Version) // each call has its own key
	if err != nil {
		return err
	}
	d := &demo{app: a, file: file, out: a.out, api: calls}
	if a.json {
		d.out = io.Discard
	}
	told, err := d.tellStory(ctx)
	if err != nil {
		return fmt.Errorf("step %d: %w", d.steps, err)
	}
	if a.json {
		return json.NewEncoder(a.out).Encode(told)
	}
	return nil
}

// demo is one run of the story.
type demo struct {
	app   *app
	file  service.DemoFile
	out   io.Writer
	api   *humanqa.Client
	steps int
}

// told is the result of the demo, for --json.
type told struct {
	ProjectID     string   `json:"projectId"`
	JobID         string   `json:"jobId"`
	ReportID      string   `json:"reportId"`
	OverallStatus string   `json:"overallStatus"`
	CreditsBefore int64    `json:"creditsBefore"`
	CreditsAfter  int64    `json:"creditsAfter"`
	Webhooks      []string `json:"webhooks"` // verified, in the order they came
	ReportPage    string   `json:"reportPage"`
}

// The demo's three items and what the checker finds.
var demoItems = []struct{ Description, ExpectedOutcome, Severity, Status, Note string }{
	{"Sign in with the given account", "The dashboard opens", "critical", "pass", "Signed in within two seconds."},
	{"Pay with the test card", "A receipt with the right total", "critical", "fail", "The total is charged twice."},
	{"Read the receipt on a phone", "Nothing is cut off", "minor", "pass", ""},
}

func (d *demo) tellStory(ctx context.Context) (t told, err error) {
	d.step("How many credits does the account have?")
	if t.CreditsBefore, err = d.credits(ctx); err != nil {
		return t, err
	}
	d.say("%d available", t.CreditsBefore)

	d.step("A receiver for webhooks starts on this machine.")
	receiver, err := openInbox(ctx, service.ReceiverDir(d.app.cfg))
	if err != nil {
		return t, err
	}
	defer func() { err = errors.Join(err, receiver.stop()) }()
	d.say("it listens at %s", receiver.url)

	d.step("The client creates a project whose webhook points there.")
	if t.ProjectID, err = d.createProject(ctx, receiver.url); err != nil {
		return t, err
	}
	defer d.clearWebhook(ctx, t.ProjectID)
	d.say("project %s", t.ProjectID)

	d.step("The API never shows the signing secret. The operator hands it to the receiver.")
	if err := d.handSecret(ctx, t.ProjectID, receiver); err != nil {
		return t, err
	}
	d.say("as: humanqa project secret --project %s", t.ProjectID)

	d.step("The client submits a job with credentials and three things to check.")
	charged, err := d.submitJob(ctx, &t)
	if err != nil {
		return t, err
	}
	d.say("job %s is pending, %d credits were deducted", t.JobID, charged)
	if err := d.expectDelivery(ctx, receiver, &t, "job.created"); err != nil {
		return t, err
	}

	d.step("A checker claims it. Only they see the credentials.")
	claim, err := d.claimJob(ctx, t.JobID)
	if err != nil {
		return t, err
	}
	d.say("claimed with token %s, due %s", claim.ClaimToken, claim.DueAt)
	if err := d.expectDelivery(ctx, receiver, &t, "job.claimed"); err != nil {
		return t, err
	}

	d.step("The checker tests and ticks each item.")
	if err := d.checkItems(ctx, claim); err != nil {
		return t, err
	}

	d.step("The checker completes the job.")
	if err := d.completeJob(ctx, claim, &t); err != nil {
		return t, err
	}
	d.say("report %s: %s", t.ReportID, t.OverallStatus)
	if err := d.expectDelivery(ctx, receiver, &t, "job.completed"); err != nil {
		return t, err
	}

	d.step("The client reads the report.")
	if err := d.readReport(ctx, t); err != nil {
		return t, err
	}

	d.step("How many credits are left?")
	if t.CreditsAfter, err = d.credits(ctx); err != nil {
		return t, err
	}
	d.say("%d available", t.CreditsAfter)
	if t.CreditsBefore-t.CreditsAfter != charged {
		return t, fmt.Errorf("%d credits were deducted, but %d are gone", charged, t.CreditsBefore-t.CreditsAfter)
	}
	t.ReportPage = announce.ReportPage(ui.Origin(d.file.BaseURL), t.JobID)
	_, err = fmt.Fprintf(d.out, "\nAll of it is in the log, without a secret:\n  %[1]s replay job-%[2]s\n  %[1]s replay credits-%[3]s\n"+
		"\nThe finished report, for the owner, by the link that make run printed:\n  %[4]s\n",
		os.Args[0], t.JobID, d.file.AccountID, t.ReportPage)
	return t, err
}

func (d *demo) step(what string) {
	d.steps++
	_, _ = fmt.Fprintf(d.out, "\n%2d. %s\n", d.steps, what) // a closed terminal ends us anyway
}

func (d *demo) say(format string, args ...any) {
	_, _ = fmt.Fprintf(d.out, "    %s\n", fmt.Sprintf(format, args...))
}
