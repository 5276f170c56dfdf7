package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"humanqa/cmd/humanqa/service"
	"humanqa/domain/announce"
	"humanqa/httpapi/ui"
	"humanqa/integrations/clients/go/humanqa"
	"humanqa/internal/buildinfo"
	"humanqa/internal/receiver"
)

const (
	// demoLimit bounds the whole demo, deliveryLimit the wait for one webhook:
	// the service has a second request to try within it.
	demoLimit     = 2 * time.Minute
	deliveryLimit = 20 * time.Second
	// inboxSize is more than a demo is ever sent.
	inboxSize = 64
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
	api, err := humanqa.New(file.BaseURL, "", "humanqa/"+buildinfo.This().Version) // each call has its own key
	if err != nil {
		return err
	}
	d := &demo{app: a, file: file, out: a.out, api: api, arrived: make(chan receiver.Delivery, inboxSize)}
	if a.json {
		d.out = io.Discard
	}
	defer d.clearWebhook(ctx)
	if err := d.tellStory(ctx); err != nil {
		return err
	}
	if a.json {
		return json.NewEncoder(a.out).Encode(d.told)
	}
	return nil
}

// demo is one run of the story.
type demo struct {
	app     *app
	file    service.DemoFile
	out     io.Writer
	api     *humanqa.Client
	inbox   *receiver.Receiver
	arrived chan receiver.Delivery
	secret  atomic.Value // a text, once it is known
	charged int64
	claim   humanqa.Claim
	checker string // the key of the one that claims
	told
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

func (d *demo) tellStory(ctx context.Context) error {
	for i, step := range []struct {
		title   string
		do      func(context.Context) error
		webhook string // arrives after it; empty: none
	}{
		{"How many credits does the account have?", d.credits(&d.CreditsBefore), ""},
		{"A receiver for webhooks starts on this machine.", d.openInbox, ""},
		{"The client creates a project whose webhook points there.", d.createProject, ""},
		{"The API never shows the signing secret. The operator hands it to the receiver.", d.handSecret, ""},
		{"The client submits a job with credentials and three things to check.", d.submitJob, "job.created"},
		{"A checker claims it. Only they see the credentials.", d.claimJob, "job.claimed"},
		{"The checker tests and ticks each item.", d.checkItems, ""},
		{"The checker completes the job.", d.completeJob, "job.completed"},
		{"The client reads the report.", d.readReport, ""},
		{"How many credits are left?", d.credits(&d.CreditsAfter), ""},
	} {
		_, _ = fmt.Fprintf(d.out, "\n%2d. %s\n", i+1, step.title) // a closed terminal ends us anyway
		err := step.do(ctx)
		if err == nil && step.webhook != "" {
			err = d.expectDelivery(ctx, step.webhook)
		}
		if err != nil {
			return fmt.Errorf("step %d: %w", i+1, err)
		}
	}
	if gone := d.CreditsBefore - d.CreditsAfter; gone != d.charged {
		return fmt.Errorf("%d credits were deducted, but %d are gone", d.charged, gone)
	}
	d.ReportPage = announce.ReportPage(ui.Origin(d.file.BaseURL), d.JobID)
	_, err := fmt.Fprintf(d.out, "\nAll of it is in the log, without a secret:\n  %[1]s replay job-%[2]s\n  %[1]s replay credits-%[3]s\n"+
		"\nThe finished report, for the owner, by the link that make run printed:\n  %[4]s\n",
		os.Args[0], d.JobID, d.file.AccountID, d.ReportPage)
	return err
}

func (d *demo) say(format string, args ...any) {
	_, _ = fmt.Fprintf(d.out, "    %s\n", fmt.Sprintf(format, args...))
}

func (d *demo) credits(into *int64) func(context.Context) error {
	return func(ctx context.Context) error {
		var out humanqa.Balance
		err := d.client(ctx, http.MethodGet, "/v1/credits", nil, http.StatusOK, &out)
		if *into = out.Available; err == nil {
			d.say("%d available", out.Available)
		}
		return err
	}
}

// openInbox starts the receiver, which lasts as long as the demo.
func (d *demo) openInbox(ctx context.Context) (err error) {
	d.inbox, err = receiver.New(ctx, receiver.Config{
		Dir: service.ReceiverDir(d.app.cfg),
		Secret: func() []byte {
			secret, _ := d.secret.Load().(string)
			return []byte(secret)
		},
		Received: func(_ context.Context, r receiver.Delivery) int {
			d.arrived <- r
			return http.StatusNoContent
		},
	})
	if err != nil {
		return err
	}
	go func() { _ = d.inbox.Run(ctx) }() // a webhook that does not arrive tells of it
	d.say("it listens at %s", d.inbox.URL())
	return nil
}

func (d *demo) createProject(ctx context.Context) error {
	var out humanqa.CreatedProject
	err := d.client(ctx, http.MethodPost, "/v1/projects",
		map[string]any{"name": "Demo shop", "webhookUrl": d.inbox.URL()}, http.StatusCreated, &out)
	if d.ProjectID = out.ProjectID; err == nil {
		d.say("project %s", d.ProjectID)
	}
	return err
}

// clearWebhook removes the webhook of the project, because its receiver ends.
func (d *demo) clearWebhook(ctx context.Context) {
	if d.ProjectID == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	// If this fails, the webhook disables itself later.
	_ = d.client(ctx, http.MethodPatch, "/v1/projects/"+d.ProjectID, map[string]any{"webhookUrl": ""}, http.StatusOK, nil)
}

func (d *demo) handSecret(ctx context.Context) error {
	return d.app.withCore(ctx, func(ctx context.Context, core *service.Core) error {
		secret, err := core.Commands.WebhookSecret(ctx, d.ProjectID)
		if err != nil {
			return err
		}
		d.secret.Store(secret)
		d.say("as: humanqa project secret --project %s", d.ProjectID)
		return nil
	})
}

func (d *demo) submitJob(ctx context.Context) error {
	items := make([]map[string]string, len(demoItems))
	for i, item := range demoItems {
		items[i] = map[string]string{
			"description": item.Description, "expectedOutcome": item.ExpectedOutcome, "severity": item.Severity,
		}
	}
	var out humanqa.SubmittedJob
	err := d.client(ctx, http.MethodPost, "/v1/jobs", map[string]any{
		"projectId":      d.ProjectID,
		"url":            "https://shop.example.com/checkout",
		"title":          "Checkout of the demo shop",
		"description":    "Buy one thing and look at the receipt.",
		"jobType":        "Payment Flow",
		"checklistItems": items,
		"credentials":    map[string]string{"username": "demo@example.com", "password": "a demo password"},
	}, http.StatusCreated, &out)
	if err != nil {
		return err
	}
	if out.Status != humanqa.JobStatusPending || out.ChecklistItemCount != len(demoItems) {
		return fmt.Errorf("the job is %s with %d items, not pending with %d", out.Status, out.ChecklistItemCount, len(demoItems))
	}
	d.JobID, d.charged = out.JobID, out.CreditsDeducted
	d.say("job %s is pending, %d credits were deducted", d.JobID, d.charged)
	return nil
}

func (d *demo) claimJob(ctx context.Context) error {
	claim := func() error {
		return d.call(ctx, http.MethodPost, "/v1/checker/claims", d.checker, map[string]any{"jobId": d.JobID}, http.StatusCreated, &d.claim)
	}
	d.checker = d.file.CheckerKey
	err := claim()
	if humanqa.Refused(err, http.StatusConflict) {
		// An earlier demo was cut off in the middle of its claim.
		d.say("the demo checker still holds an earlier job; another one steps in")
		err = d.app.withCore(ctx, func(ctx context.Context, core *service.Core) error {
			checker, err := core.Commands.CreateChecker(ctx, service.OperatorCause(""), "Demo checker", nil)
			d.checker = checker.Token
			core.WaitVisible(ctx, checker.Position)
			return err
		})
		if err == nil {
			err = claim()
		}
	}
	switch {
	case err != nil:
		return err
	case humanqa.Value(d.claim.Brief.Credentials).Password != "a demo password":
		return errors.New("the claim does not show the credentials that were submitted")
	case len(d.claim.Checklist) != len(demoItems):
		return fmt.Errorf("the claim shows %d items, not %d", len(d.claim.Checklist), len(demoItems))
	}
	d.say("claimed with token %s, due %s", d.claim.ClaimToken, d.claim.DueAt)
	return nil
}

func (d *demo) checkItems(ctx context.Context) error {
	for i, item := range d.claim.Checklist {
		verdict := demoItems[i]
		err := d.call(ctx, http.MethodPut, "/v1/checker/jobs/"+d.JobID+"/items/"+item.ID, d.checker,
			map[string]string{"status": verdict.Status, "note": verdict.Note}, http.StatusOK, nil)
		if err != nil {
			return err
		}
		d.say("%s  %s", verdict.Status, item.Description)
	}
	return nil
}

func (d *demo) completeJob(ctx context.Context) error {
	var out humanqa.CompletedJob
	err := d.call(ctx, http.MethodPost, "/v1/checker/jobs/"+d.JobID+"/complete", d.checker,
		map[string]string{"summary": "Signing in works; the payment is charged twice."}, http.StatusOK, &out)
	if err != nil {
		return err
	}
	if out.OverallStatus != humanqa.OverallStatusFail || out.PassCount != 2 || out.FailCount != 1 {
		return fmt.Errorf("the report says %s with %d passed and %d failed", out.OverallStatus, out.PassCount, out.FailCount)
	}
	d.ReportID, d.OverallStatus = out.ReportID, string(out.OverallStatus)
	d.say("report %s: %s", d.ReportID, d.OverallStatus)
	return nil
}

func (d *demo) readReport(ctx context.Context) error {
	var out humanqa.Report
	if err := d.client(ctx, http.MethodGet, "/v1/jobs/"+d.JobID+"/report", nil, http.StatusOK, &out); err != nil {
		return err
	}
	if out.ID != d.ReportID || string(out.OverallStatus) != d.OverallStatus || len(out.Items) != len(demoItems) {
		return fmt.Errorf("report %s is %s with %d items; the checker completed %s, %s with %d",
			out.ID, out.OverallStatus, len(out.Items), d.ReportID, d.OverallStatus, len(demoItems))
	}
	d.say("%s: %s", strings.ToUpper(d.OverallStatus), out.CheckerSummary)
	for _, item := range out.Items {
		d.say("%s  %s  %s", item.Status, item.Description, item.CheckerNote)
	}
	return nil
}

// expectDelivery waits for the next webhook and makes every check that a receiver has to
// make. Each comes at least once: a repeat of one that was told is passed over.
func (d *demo) expectDelivery(ctx context.Context, event string) error {
	late := time.After(deliveryLimit)
	for {
		var got receiver.Delivery
		select {
		case got = <-d.arrived:
		case <-late:
			return fmt.Errorf("the webhook %s did not arrive within %s", event, deliveryLimit)
		case <-ctx.Done():
			return fmt.Errorf("wait for a webhook: %w", ctx.Err())
		}
		var body struct{ Event, JobID string }
		switch err := json.Unmarshal(got.Body, &body); {
		case slices.Contains(d.Webhooks, got.Event):
			continue
		case !got.Verified:
			return fmt.Errorf("the webhook %s has a wrong signature", got.Event)
		case err != nil:
			return fmt.Errorf("read the webhook: %w", err)
		case body.Event != event || got.Event != event || body.JobID != d.JobID:
			return fmt.Errorf("the webhook is %s about job %s, not %s about %s", body.Event, body.JobID, event, d.JobID)
		}
		d.Webhooks = append(d.Webhooks, event)
		d.say("→ webhook %s arrived, signature verified", event)
		return nil
	}
}

// client calls the API as the client does.
func (d *demo) client(ctx context.Context, method, path string, body any, want int, out any) error {
	return d.call(ctx, method, path, d.file.APIKey, body, want, out)
}

// call calls the API once: an answer with another status than the story tells of ends it.
func (d *demo) call(ctx context.Context, method, path, key string, body any, want int, out any) error {
	answer, err := d.api.Once(ctx, humanqa.Call{Method: method, Path: path, Body: body, Header: map[string]string{
		"Authorization": "Bearer " + key, "X-Claim-Token": d.claim.ClaimToken,
	}}, out)
	_, refused := errors.AsType[*humanqa.Error](err)
	switch {
	case refused:
		return fmt.Errorf("%s %s: %w", method, path, err)
	case err != nil:
		return fmt.Errorf("%w: is the service running (make run)?", err)
	case answer.Status != want:
		return fmt.Errorf("%s %s answered %d, not %d", method, path, answer.Status, want)
	}
	return nil
}
