package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"humanqa/cmd/humanqa/service"
	"humanqa/integrations/clients/go/humanqa"
)

func (d *demo) credits(ctx context.Context) (int64, error) {
	var out humanqa.Balance
	err := d.client(ctx, http.MethodGet, "/v1/credits", nil, http.StatusOK, &out)
	return out.Available, err
}

func (d *demo) createProject(ctx context.Context, webhookURL string) (string, error) {
	var out humanqa.CreatedProject
	err := d.client(ctx, http.MethodPost, "/v1/projects",
		map[string]any{"name": "Demo shop", "webhookUrl": webhookURL}, http.StatusCreated, &out)
	return out.ProjectID, err
}

// clearWebhook removes the webhook of a project, because its receiver ends.
func (d *demo) clearWebhook(ctx context.Context, projectID string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	// If this fails, the webhook disables itself later.
	_ = d.client(ctx, http.MethodPatch, "/v1/projects/"+projectID, map[string]any{"webhookUrl": ""}, http.StatusOK, nil)
}

func (d *demo) handSecret(ctx context.Context, projectID string, in *inbox) error {
	return d.app.withCore(ctx, func(ctx context.Context, core *service.Core) error {
		secret, err := core.Commands.WebhookSecret(ctx, projectID)
		if err != nil {
			return err
		}
		in.secret.Store(secret)
		return nil
	})
}

func (d *demo) submitJob(ctx context.Context, t *told) (charged int64, err error) {
	items := make([]map[string]string, len(demoItems))
	for i, item := range demoItems {
		items[i] = map[string]string{
			"description": item.Description, "expectedOutcome": item.ExpectedOutcome, "severity": item.Severity,
		}
	}
	var out humanqa.SubmittedJob
	err = d.client(ctx, http.MethodPost, "/v1/jobs", map[string]any{
		"projectId":      t.ProjectID,
		"url":            "https://shop.example.com/checkout",
		"title":          "Checkout of the demo shop",
		"description":    "Buy one thing and look at the receipt.",
		"jobType":        "Payment Flow",
		"checklistItems": items,
		"credentials":    map[string]string{"username": "demo@example.com", "password": "a demo password"},
	}, http.StatusCreated, &out)
	if err != nil {
		return 0, err
	}
	if out.Status != humanqa.JobStatusPending || out.ChecklistItemCount != len(demoItems) {
		return 0, fmt.Errorf("the job is %s with %d items, not pending with %d", out.Status, out.ChecklistItemCount, len(demoItems))
	}
	t.JobID = out.JobID
	return out.CreditsDeducted, nil
}

type demoClaim struct {
	humanqa.Claim

	key string
}

func (d *demo) claimJob(ctx context.Context, jobID string) (demoClaim, error) {
	c := demoClaim{key: d.file.CheckerKey}
	body := map[string]any{"jobId": jobID}
	err := d.call(ctx, http.MethodPost, "/v1/checker/claims", c.key, "", body, http.StatusCreated, &c)
	if humanqa.Refused(err, http.StatusConflict) {
		// An earlier demo was cut off in the middle of its claim.
		if c.key, err = d.anotherChecker(ctx); err != nil {
			return c, err
		}
		d.say("the demo checker still holds an earlier job; another one steps in")
		err = d.call(ctx, http.MethodPost, "/v1/checker/claims", c.key, "", body, http.StatusCreated, &c)
	}
	switch {
	case err != nil:
		return c, err
	case humanqa.Value(c.Brief.Credentials).Password != "a demo password":
		return c, errors.New("the claim does not show the credentials that were submitted")
	case len(c.Checklist) != len(demoItems):
		return c, fmt.Errorf("the claim shows %d items, not %d", len(c.Checklist), len(demoItems))
	}
	return c, nil
}

func (d *demo) anotherChecker(ctx context.Context) (key string, err error) {
	err = d.app.withCore(ctx, func(ctx context.Context, core *service.Core) error {
		checker, err := core.Commands.CreateChecker(ctx, service.OperatorCause(""), "Demo checker", nil)
		key = checker.Token
		core.WaitVisible(ctx, checker.Position)
		return err
	})
	return key, err
}

func (d *demo) checkItems(ctx context.Context, c demoClaim) error {
	for i, item := range c.Checklist {
		verdict := demoItems[i]
		path := "/v1/checker/jobs/" + c.JobID + "/items/" + item.ID
		err := d.call(ctx, http.MethodPut, path, c.key, c.ClaimToken,
			map[string]string{"status": verdict.Status, "note": verdict.Note}, http.StatusOK, nil)
		if err != nil {
			return err
		}
		d.say("%s  %s", verdict.Status, item.Description)
	}
	return nil
}

func (d *demo) completeJob(ctx context.Context, c demoClaim, t *told) error {
	var out humanqa.CompletedJob
	err := d.call(ctx, http.MethodPost, "/v1/checker/jobs/"+c.JobID+"/complete", c.key, c.ClaimToken,
		map[string]string{"summary": "Signing in works; the payment is charged twice."}, http.StatusOK, &out)
	if err != nil {
		return err
	}
	if out.OverallStatus != humanqa.OverallStatusFail || out.PassCount != 2 || out.FailCount != 1 {
		return fmt.Errorf("the report says %s with %d passed and %d failed", out.OverallStatus, out.PassCount, out.FailCount)
	}
	t.ReportID, t.OverallStatus = out.ReportID, string(out.OverallStatus)
	return nil
}

func (d *demo) readReport(ctx context.Context, t told) error {
	var out humanqa.Report
	if err := d.client(ctx, http.MethodGet, "/v1/jobs/"+t.JobID+"/report", nil, http.StatusOK, &out); err != nil {
		return err
	}
	if out.ID != t.ReportID || string(out.OverallStatus) != t.OverallStatus || len(out.Items) != len(demoItems) {
		return fmt.Errorf("report %s is %s with %d items; the checker completed %s, %s with %d",
			out.ID, out.OverallStatus, len(out.Items), t.ReportID, t.OverallStatus, len(demoItems))
	}
	d.say("%s: %s", strings.ToUpper(t.OverallStatus), out.CheckerSummary)
	for _, item := range out.Items {
		d.say("%s  %s  %s", item.Status, item.Description, item.CheckerNote)
	}
	return nil
}

// expectDelivery waits for the next webhook and makes every check that a receiver has to
// make.
func (d *demo) expectDelivery(ctx context.Context, in *inbox, t *told, event string) error {
	ctx, cancel := context.WithTimeout(ctx, deliveryLimit)
	defer cancel()
	got, err := in.next(ctx)
	if err != nil {
		return fmt.Errorf("the webhook %s did not arrive within %s", event, deliveryLimit)
	}
	if !got.Verified {
		return fmt.Errorf("the webhook %s has a wrong signature", got.Event)
	}
	var body struct {
		Event string `json:"event"`
		JobID string `json:"jobId"`
	}
	if err := json.Unmarshal(got.Body, &body); err != nil {
		return fmt.Errorf("read the webhook: %w", err)
	}
	if body.Event != event || got.Event != event || body.JobID != t.JobID {
		return fmt.Errorf("the webhook is %s about job %s, not %s about %s", body.Event, body.JobID, event, t.JobID)
	}
	t.Webhooks = append(t.Webhooks, event)
	d.say("→ webhook %s arrived, signature verified", event)
	return nil
}

// client calls the API as the client does.
func (d *demo) client(ctx context.Context, method, path string, body any, want int, out any) error {
	return d.call(ctx, method, path, d.file.APIKey, "", body, want, out)
}

// call calls the API once: an answer with another status than the story tells of ends it.
func (d *demo) call(ctx context.Context, method, path, key, claim string, body any, want int, out any) error {
	answer, err := d.api.Once(ctx, humanqa.Call{
		Method: method, Path: path, Body: body, Header: map[string]string{"Authorization": "Bearer " + key, "X-Claim-Token": claim},
	}, out)
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
