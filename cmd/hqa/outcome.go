package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"humanqa/cmd/hqa/wait"
	"humanqa/integrations/clients/go/humanqa"
	"humanqa/internal/fence"
)

// waiting says whether a command waits, and how it reports the outcome.
type waiting struct {
	Wait bool `help:"Wait until the test has ended, and exit by its verdict."`
	ending
}

// ending are the flags of every wait.
type ending struct {
	Timeout           time.Duration `default:"2h" help:"How long to wait; then exit 5, and the test goes on. 0 looks once."`
	FailOn            string        `enum:"critical,major,minor,never" default:"minor" help:"The least severity of a failure that counts: critical, major, minor, or never."`
	CancelOnInterrupt bool          `help:"Let Ctrl-C cancel tests that no checker has begun. Without it they go on."`
	Format            string        `enum:"${formats}," default:"" help:"The report at the end: ${formats}."`
	Output            string        `short:"o" type:"path" placeholder:"FILE" help:"Write the report to a file instead of standard output."`
}

// check refuses flags that contradict each other, before anything is paid.
func (e ending) check(a *app) error {
	switch {
	case a.json && e.Format != "" && e.Output == "":
		return usage("--json and --format would share standard output: add --output FILE")
	case e.Output != "" && e.Format == "":
		return usage("--output needs a --format: %s", formats)
	case e.Timeout < 0:
		return usage("--timeout must not be negative")
	}
	return writable(e.Output)
}

// writable makes the folder of a report's file, and refuses a file that cannot be written.
// Devices and pipes are not opened: a pipe's reader would take that for the end.
func writable(file string) error {
	if file == "" {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return usage("--output: %w", err)
	}
	there, err := os.Stat(file)
	if err == nil && there.Mode()&(fs.ModeDevice|fs.ModeNamedPipe) != 0 {
		return nil
	}
	f, errOpen := os.OpenFile(file, os.O_WRONLY|os.O_CREATE, 0o644)
	if errOpen != nil {
		return usage("--output: %w", errOpen)
	}
	errOpen = f.Close()
	if err != nil { // nothing was there
		errOpen = errors.Join(errOpen, os.Remove(file))
	}
	return errOpen
}

// unwritten tells why a report could not be written. The verdict stands all the same.
func (a *app) unwritten(err error) (told string) {
	if err != nil {
		told = oneLine(err.Error())
		a.say("hqa: the report could not be written: %s; hqa report writes it again", told)
	}
	return told
}

// submission is an accepted submission.
type submission struct {
	Type     string   `json:"type"`
	BatchID  string   `json:"batchId,omitempty"`
	JobIDs   []string `json:"jobIds"`
	Credits  int64    `json:"creditsDeducted"`
	Replayed bool     `json:"replayed"` // it was made before, and nothing is charged now
	Pages    []string `json:"pages"`

	Files map[string]string `json:"files,omitempty"` // by job, of tests that stand in files
}

// follow reports the submission, and waits where the flags ask for it.
func (c waiting) follow(ctx context.Context, a *app, client *humanqa.Client, s submission) error {
	s.Type, s.Files = "submitted", a.files
	for _, id := range s.JobIDs {
		s.Pages = append(s.Pages, page(client, id))
	}
	charged := fmt.Sprintf("%d credits", s.Credits)
	if s.Replayed {
		charged = "nothing is charged: it was submitted before"
	}
	switch {
	case a.json:
		if err := a.line(s); err != nil {
			return err
		}
	case c.Wait:
		for _, p := range s.Pages {
			a.say("submitted (%s): %s", charged, p)
		}
	default:
		a.say("submitted (%s); wait for the verdict with: hqa wait %s", charged, strings.Join(s.JobIDs, " "))
		for i, id := range s.JobIDs {
			if _, err := fmt.Fprintf(a.out, "%s %s\n", id, s.Pages[i]); err != nil {
				return err
			}
		}
	}
	if c.Wait {
		return c.await(ctx, a, client, s.BatchID, s.JobIDs)
	}
	if s.Replayed { // after the end of these tests the same command makes new ones
		var over []string
		for _, id := range s.JobIDs {
			if j, err := readJob(ctx, client, id); err == nil && j.IsFinal {
				over = append(over, id)
			}
		}
		a.verdictTold(over)
	}
	return nil
}

func page(client *humanqa.Client, id string) string { return client.Base() + "/dashboard/jobs/" + id }

// await is the wait of every command: it tells progress, then the outcome, and its error
// carries the exit code.
func (e ending) await(ctx context.Context, a *app, client *humanqa.Client, batchID string, ids []string) error {
	w := wait.Waiter{
		API: client, Tell: func(n wait.Note) { a.tellNote(n, len(ids) > 1) }, Until: time.Now().Add(e.Timeout).Round(0),
	}
	err := w.For(ctx, ids)
	back := "hqa wait " + strings.Join(ids, " ")
	switch {
	case errors.Is(err, wait.ErrTime):
		return a.stillRunning(client, batchID, ids, fmt.Sprintf("not ended after %s; the test goes on, and nothing more is charged. Come back with: %s", e.Timeout, back))
	case ctx.Err() != nil && e.CancelOnInterrupt:
		return a.interrupted(client, batchID, ids, back)
	case ctx.Err() != nil:
		return a.stillRunning(client, batchID, ids, "interrupted; the test goes on, and nothing more is charged. Come back with: "+back+
			"; or end it with: hqa cancel "+strings.Join(ids, " "))
	case err != nil:
		return err
	}
	return e.conclude(ctx, a, client, batchID, ids)
}

// interrupted cancels what can still be cancelled.
func (a *app) interrupted(client *humanqa.Client, batchID string, ids []string, back string) error {
	ctx, stop := context.WithTimeout(context.Background(), 30*time.Second)
	defer stop()
	for _, id := range ids {
		c, err := cancelJob(ctx, client, id)
		if err != nil {
			a.say("hqa: %s is not cancelled: %s", id, oneLine(err.Error()))
			continue
		}
		a.say("%s is cancelled, %d credits are back", id, c.CreditsRefunded)
	}
	return a.stillRunning(client, batchID, ids, "interrupted; see what became of it with: "+back)
}

// stillRunning is the outcome of a wait that ended before the tests.
func (a *app) stillRunning(client *humanqa.Client, batchID string, ids []string, told string) error {
	out := outcome{Type: "result", Result: "running", ExitCode: exitRunning, BatchID: batchID}
	for _, id := range ids {
		out.Jobs = append(out.Jobs, tested{JobID: id, Page: page(client, id), File: a.files[id]})
	}
	if a.json {
		if err := a.line(out); err != nil {
			return err
		}
	}
	a.say("%s", told)
	return verdict(exitRunning)
}

// tellNote shows a note of the waiter: lines of JSON as data, or words beside it.
func (a *app) tellNote(n wait.Note, several bool) {
	if a.json {
		var object any
		switch {
		case n.Item != nil:
			object = n.Item
		case n.Asked != nil:
			object = n.Asked
		case n.State != nil:
			state := *n.State
			state.Items, state.OpenQuestion, state.Result = nil, nil, nil // told one by one
			object = struct {
				Type string `json:"type"`
				humanqa.HostedStatus
			}{"state", state}
		case n.Moved != nil:
			object = map[string]string{"type": "moved", "error": oneLine(n.Moved.Error())}
		case n.Lost != nil:
			object = map[string]string{"type": "lost", "error": oneLine(n.Lost.Error())}
		default:
			object = map[string]string{"type": "back"}
		}
		_ = a.line(object) // a closed pipe shows at the result
		return
	}
	of := ""
	switch {
	case n.Item != nil:
		if several {
			of = n.Item.JobID + " "
		}
		line := fmt.Sprintf("%s%d of %d  %-4s  %s", of, n.Item.Number, n.Item.Of, n.Item.Status, marked(n.Item.Description))
		if n.Item.Status == humanqa.HostedStatusItemStatusFail {
			line += fmt.Sprintf(" (%s)", n.Item.Severity)
		}
		a.say("%s", line)
	case n.Asked != nil:
		a.say("the checker asks (%s): %s\nanswer with: hqa answer --job %s TEXT", n.Asked.Kind, marked(n.Asked.Text), n.Asked.JobID)
	case n.State != nil:
		if several {
			of = n.State.JobID + " "
		}
		a.say("%s%s", of, oneLine(n.State.StatusMessage))
	case n.Moved != nil:
		a.say("%s", oneLine(n.Moved.Error()))
	case n.Lost != nil:
		a.say("%s; trying again, the test goes on meanwhile", oneLine(n.Lost.Error()))
	default:
		a.say("the service is back")
	}
}

// outcome is the result of a wait.
type outcome struct {
	Type     string   `json:"type"`
	Result   string   `json:"result"` // passed, failed, untested, running
	ExitCode int      `json:"exitCode"`
	BatchID  string   `json:"batchId,omitempty"`
	Jobs     []tested `json:"jobs"`

	ReportError string `json:"reportError,omitempty"` // of a report that could not be written
}

type tested struct {
	JobID         string               `json:"jobId"`
	Title         string               `json:"title,omitempty"`
	URL           string               `json:"url,omitempty"`
	File          string               `json:"file,omitempty"` // of a test that stands in one
	Status        humanqa.JobStatus    `json:"status,omitempty"`
	OverallStatus string               `json:"overallStatus,omitempty"`
	Reason        string               `json:"reason,omitempty"` // of a test without a report
	PassCount     int                  `json:"passCount"`
	FailCount     int                  `json:"failCount"`
	SkipCount     int                  `json:"skipCount"`
	Failures      []humanqa.ReportItem `json:"failures,omitempty"`
	Page          string               `json:"page"`
}

// completed are the jobs that have a report.
func (o outcome) completed() (ids []string) {
	for _, j := range o.Jobs {
		if j.Status == humanqa.JobStatusCompleted {
			ids = append(ids, j.JobID)
		}
	}
	return ids
}

// severities are from the worst on.
var severities = []string{"critical", "major", "minor"}

// counts says whether a failure of the severity is one at the threshold.
func counts(severity, failOn string) bool {
	at := slices.Index(severities, severity)
	if at < 0 {
		at = 0 // one that is not known here is taken for the worst
	}
	return at <= slices.Index(severities, failOn)
}

// judge gives the code of the outcome: a failure outweighs a test without a verdict.
func judge(jobs []tested, failOn string) (code int, result string) {
	result = "passed"
	for _, j := range jobs {
		if j.Status != humanqa.JobStatusCompleted || j.OverallStatus == "inconclusive" {
			code, result = exitUntested, "untested"
		}
	}
	for _, j := range jobs {
		if slices.ContainsFunc(j.Failures, func(i humanqa.ReportItem) bool { return counts(string(humanqa.Value(i.Severity)), failOn) }) {
			code, result = exitFailures, "failed"
		}
	}
	return code, result
}

// conclude reads the reports of jobs that have ended, prints them, and gives the verdict.
func (e ending) conclude(ctx context.Context, a *app, client *humanqa.Client, batchID string, ids []string) error {
	out := outcome{Type: "result", BatchID: batchID}
	for _, id := range ids {
		t, err := readTested(ctx, client, id)
		if err != nil {
			return err
		}
		t.File = a.files[id]
		out.Jobs = append(out.Jobs, t)
	}
	out.ExitCode, out.Result = judge(out.Jobs, e.FailOn)
	if e.Format != "" {
		out.ReportError = a.unwritten(a.writeReport(ctx, client, batchID, out.completed(), e.Format, e.Output))
		for _, j := range out.Jobs {
			if j.Status != humanqa.JobStatusCompleted && !a.json {
				a.say("job %s is %s: %s", j.JobID, j.Status, j.Reason)
			}
		}
	}
	var err error
	switch {
	case a.json:
		err = a.line(out)
	case e.Format == "":
		err = a.summarize(out)
	}
	if err != nil {
		return err
	}
	a.verdictTold(ids)
	if out.ExitCode == exitPassed {
		return nil
	}
	return verdict(out.ExitCode)
}

// summarize prints the outcome for a person, or for an agent that reads along.
func (a *app) summarize(out outcome) error {
	var b strings.Builder
	if slices.ContainsFunc(out.Jobs, func(j tested) bool { return len(j.Failures) > 0 }) {
		fmt.Fprintf(&b, "%s\n", fence.Rule)
	}
	for _, j := range out.Jobs {
		if j.Status != humanqa.JobStatusCompleted {
			fmt.Fprintf(&b, "%s  %s\n", strings.ToUpper(string(j.Status)), oneLine(j.Title))
			fmt.Fprintf(&b, "  %s\n", j.Reason)
		} else {
			fmt.Fprintf(&b, "%s  %s: %d passed, %d failed, %d skipped\n", strings.ToUpper(j.OverallStatus), oneLine(j.Title), j.PassCount,
				j.FailCount, j.SkipCount)
		}
		if j.File != "" {
			fmt.Fprintf(&b, "  %s\n", oneLine(j.File))
		}
		for _, i := range j.Failures {
			fmt.Fprintf(&b, "  %-8s %s\n", humanqa.Value(i.Severity), marked(i.Description))
			if i.CheckerNote != "" {
				fmt.Fprintf(&b, "           %s\n", marked(i.CheckerNote))
			}
		}
		fmt.Fprintf(&b, "  %s\n", j.Page)
	}
	_, err := fmt.Fprint(a.out, b.String())
	return err
}

// readTested reads a job that has ended, with its report if it has one.
func readTested(ctx context.Context, client *humanqa.Client, id string) (tested, error) {
	j, err := readJob(ctx, client, id)
	if err != nil {
		return tested{}, err
	}
	t := tested{JobID: id, Title: j.Title, URL: j.URL, Status: j.Status, Page: page(client, id)}
	if j.Status != humanqa.JobStatusCompleted {
		cancelled, failed := humanqa.Value(j.CancelReason), humanqa.Value(j.FailReason)
		switch {
		case cancelled == humanqa.JobCancelReasonSuperseded:
			t.Reason = "a newer commit took its place; refunded"
		case cancelled != "":
			t.Reason = fmt.Sprintf("cancelled by %s; refunded", cancelled)
		case failed == humanqa.JobFailReasonSLA:
			t.Reason = "not tested in time; refunded"
		case failed != "":
			t.Reason = fmt.Sprintf("it could not be tested (%s); refunded", failed)
		}
		return t, nil
	}
	var r humanqa.Report
	if err := client.Get(ctx, "/v1/jobs/"+url.PathEscape(id)+"/report", &r); err != nil {
		return t, err
	}
	t.OverallStatus, t.PassCount, t.FailCount, t.SkipCount = string(r.OverallStatus), r.PassCount, r.FailCount, r.SkipCount
	for _, i := range r.Items {
		if i.Status == humanqa.ItemStatusFail {
			i.ScreenshotURL, i.ScreenshotUrls = nil, nil // a log may be public, and each link opens its picture
			t.Failures = append(t.Failures, i)
		}
	}
	return t, nil
}

// writeReport writes the report to the file, or to standard output.
func (a *app) writeReport(ctx context.Context, client *humanqa.Client, batchID string, ids []string, format, output string) error {
	whole, err := reportsOf(ctx, client, batchID, ids, format)
	if err != nil {
		return err
	}
	return a.put(whole, output)
}

// reportsOf is the report of a batch, or of completed jobs, as one document. It is the
// service's own; only hidden characters are escaped.
func reportsOf(ctx context.Context, client *humanqa.Client, batchID string, ids []string, format string) ([]byte, error) {
	var path string
	switch {
	case batchID != "":
		path = "/v1/jobs/bulk/" + url.PathEscape(batchID) + "/report?"
	case len(ids) == 0:
		return []byte(emptyReports[format]), nil
	case len(ids) == 1:
		path = "/v1/jobs/" + url.PathEscape(ids[0]) + "/report?"
	default:
		path = "/v1/jobs/report?ids=" + url.QueryEscape(strings.Join(ids, ",")) + "&"
	}
	answer, err := client.Do(ctx, humanqa.Call{Method: http.MethodGet, Path: path + "format=" + format}, nil)
	switch {
	case err != nil:
		return nil, err
	case format == "md":
		return answer.Raw, nil
	case format == "junit":
		return fence.XML(answer.Raw), nil
	}
	return fence.JSON(answer.Raw), nil
}

// put writes a report to the file, or to standard output.
func (a *app) put(report []byte, output string) error {
	if output == "" {
		_, err := a.out.Write(report)
		return err
	}
	return os.WriteFile(output, report, 0o644)
}
