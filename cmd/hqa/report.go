package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"humanqa/integrations/clients/go/humanqa"
	"humanqa/internal/fence"
)

// fenced marks the Markdown of reports as data: pull requests and coding agents read it,
// and testers, pages and models wrote its texts.
func fenced(report string) string { return fence.Document("testers and pages", report) }

// marked is a tester's or a page's text in one line, as data.
func marked(text string) string { return fence.Line("tester", oneLine(text)) }

// formats are the service's formats of a report, for kong.
const formats = "md, junit, ctrf, json"

// emptyReports are the reports of a run that touched no test.
var emptyReports = map[string]string{
	"md":    "There is no report.\n",
	"json":  `{"reports":[]}` + "\n",
	"junit": `<?xml version="1.0" encoding="UTF-8"?>` + "\n" + `<testsuites name="hqa" tests="0" failures="0" errors="0" skipped="0" time="0.000"/>` + "\n",
	"ctrf": `{"reportFormat":"CTRF","specVersion":"1.0.0","results":{"tool":{"name":"humanqa"},` +
		`"summary":{"tests":0,"passed":0,"failed":0,"pending":0,"skipped":0,"other":0,"start":0,"stop":0},"tests":[]}}` + "\n",
}

type reportCmd struct {
	Jobs   []string `arg:"" optional:"" name:"job" help:"The jobs; without one, those of the last run of this directory."`
	Format string   `enum:"${formats}" default:"md" help:"${formats}."`
	Output string   `short:"o" type:"path" placeholder:"FILE" help:"Write to a file instead of standard output."`
}

// Run prints the report.
func (c *reportCmd) Run(ctx context.Context, a *app) error {
	if err := writable(c.Output); err != nil {
		return err
	}
	client, batchID, ids, err := a.these(c.Jobs)
	if err != nil {
		return err
	}
	var completed []string
	for _, id := range ids {
		j, err := readJob(ctx, client, id)
		switch {
		case err != nil:
			return err
		case !j.IsFinal:
			return &failure{exitRunning, fmt.Errorf("job %s has not ended: run hqa wait %s", id, id)}
		case j.Status != humanqa.JobStatusCompleted && len(ids) == 1:
			return &failure{exitUntested, fmt.Errorf("job %s is %s and will have no report", id, j.Status)}
		case j.Status == humanqa.JobStatusCompleted:
			completed = append(completed, id)
		}
	}
	return a.writeReport(ctx, client, batchID, completed, c.Format, c.Output)
}

// these are the client and the jobs that a command names, or those of the last run.
func (a *app) these(named []string) (client *humanqa.Client, batchID string, ids []string, err error) {
	if client, err = a.client(); err != nil || len(named) > 0 {
		return client, "", named, err
	}
	last, err := a.lastRun(client)
	a.files = last.Files
	return client, last.BatchID, last.JobIDs, err
}

type waitCmd struct {
	Jobs []string `arg:"" optional:"" name:"job" help:"The jobs; without one, those of the last run of this directory."`
	ending
}

// Run waits.
func (c *waitCmd) Run(ctx context.Context, a *app) error {
	if err := c.check(a); err != nil {
		return err
	}
	client, batchID, ids, err := a.these(c.Jobs)
	if err != nil {
		return err
	}
	return c.await(ctx, a, client, batchID, ids)
}

type statusCmd struct {
	Jobs []string `arg:"" optional:"" name:"job" help:"The jobs; without one, those of the last run of this directory."`
}

// Run prints where each test is.
func (c *statusCmd) Run(ctx context.Context, a *app) error {
	client, _, ids, err := a.these(c.Jobs)
	if err != nil {
		return err
	}
	for _, id := range ids {
		var s humanqa.HostedStatus
		if err := client.Get(ctx, "/v1/hosted/status/"+url.PathEscape(id), &s); err != nil {
			return err
		}
		if err := a.print(s, "%s  %-11s  %3d %%  %s", id, s.Status, s.ProgressPercent, oneLine(s.StatusMessage)); err != nil {
			return err
		}
	}
	return nil
}

type cancelCmd struct {
	Jobs []string `arg:"" optional:"" name:"job" help:"The jobs; without one, those of the last run of this directory."`
}

func cancelJob(ctx context.Context, client *humanqa.Client, id string) (c humanqa.CancelledJob, err error) {
	_, err = client.Do(ctx, humanqa.Call{
		Method: http.MethodPost, Path: "/v1/jobs/" + url.PathEscape(id) + "/cancel", Safe: true, // a repeat answers the same
	}, &c)
	return c, err
}

// Run cancels each job. It continues after a job that cannot be cancelled.
func (c *cancelCmd) Run(ctx context.Context, a *app) error {
	client, _, ids, err := a.these(c.Jobs)
	if err != nil {
		return err
	}
	var first error
	var over []string
	for _, id := range ids {
		out, err := cancelJob(ctx, client, id)
		if err != nil {
			if first != nil {
				a.say("hqa: %s", oneLine(err.Error()))
			} else {
				first = fmt.Errorf("job %s: %w", id, err)
			}
			continue
		}
		over = append(over, id)
		if err := a.print(out, "%s is cancelled: %d credits are back, %d are left", id, out.CreditsRefunded, out.CreditsRemaining); err != nil {
			return err
		}
	}
	a.verdictTold(over)
	return first
}

type failuresCmd struct {
	Jobs    []string `arg:"" optional:"" name:"job" help:"The jobs; without one, those of the last run of this directory."`
	Project string   `help:"List what still fails in this project instead."`
}

// Run lists failures; their texts are marked as data.
func (c *failuresCmd) Run(ctx context.Context, a *app, client *humanqa.Client) (err error) {
	var items []failing
	var untested error // of a job without a report
	if c.Project != "" {
		if len(c.Jobs) > 0 {
			return usage("name jobs or a --project, not both")
		}
		items, err = openFailures(ctx, client, c.Project)
	} else {
		items, untested, err = a.failuresOf(ctx, c.Jobs)
	}
	if err != nil {
		return err
	}
	switch {
	case a.json:
		return errors.Join(a.line(map[string]any{"failures": items}), untested)
	case len(items) == 0 && untested == nil:
		a.say("nothing fails")
		return nil
	case len(items) == 0:
		return untested
	}
	var b strings.Builder
	for _, i := range items {
		fmt.Fprintf(&b, "- %s: %s", i.Severity, oneLine(i.Description))
		if i.Note != "" {
			fmt.Fprintf(&b, ": %s", oneLine(i.Note))
		}
		fmt.Fprintf(&b, " (%s)\n", i.ID)
	}
	_, err = fmt.Fprint(a.out, fenced(strings.TrimSpace(b.String())))
	return errors.Join(err, untested)
}

// failing is an item that fails.
type failing struct {
	ID          string `json:"id"`
	JobID       string `json:"jobId,omitempty"`
	Key         string `json:"key,omitempty"`
	Description string `json:"description"`
	Expected    string `json:"expectedOutcome,omitempty"`
	Severity    string `json:"severity"`
	Note        string `json:"note,omitempty"`
}

// failuresOf are the failures of the jobs that have a report. untested names a job
// without a report, if there is one: its lack of failures is not a verdict.
func (a *app) failuresOf(ctx context.Context, named []string) (items []failing, untested, err error) {
	client, _, ids, err := a.these(named)
	if err != nil {
		return nil, nil, err
	}
	items = []failing{}
	for _, id := range ids {
		t, err := readTested(ctx, client, id)
		switch {
		case err != nil:
			return nil, nil, err
		case t.Status != humanqa.JobStatusCompleted && t.Reason == "":
			untested = &failure{exitRunning, fmt.Errorf("job %s has not ended: run hqa wait %[1]s", id)}
		case t.Status != humanqa.JobStatusCompleted && untested == nil:
			untested = &failure{exitUntested, fmt.Errorf("job %s is %s (%s): nothing of it was tested", id, t.Status, t.Reason)}
		}
		for _, i := range t.Failures {
			items = append(items, failing{
				i.ID, id, humanqa.Value(i.Key), i.Description, humanqa.Value(i.ExpectedOutcome), string(humanqa.Value(i.Severity)),
				i.CheckerNote,
			})
		}
	}
	return items, untested, nil
}

// openFailures are the items whose latest result in the project is a failure.
func openFailures(ctx context.Context, client *humanqa.Client, projectID string) ([]failing, error) {
	var open struct {
		OpenFailures []failing `json:"openFailures"`
	}
	err := client.Get(ctx, "/v1/projects/"+url.PathEscape(projectID)+"/open-failures", &open)
	return open.OpenFailures, err
}
