package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"humanqa/cmd/hqa/pipeline"
	"humanqa/cmd/hqa/store"
	"humanqa/cmd/hqa/testfile"
	"humanqa/integrations/clients/go/humanqa"
)

// mostFiles is how many jobs one batch takes.
const mostFiles = 20

type runCmd struct {
	Files      []string `arg:"" optional:"" name:"file" help:"The tests' files; without one, qa/*.md."`
	Changed    string   `placeholder:"BASE" help:"Only tests that the change since BASE touches, by their paths."`
	URL        string   `placeholder:"URL" help:"The URL in front of a file's path. Without it HQA_TARGET_URL."`
	waiting    `embed:""`
	consent    `embed:""`
	committing `embed:""`
}

// Run submits the files' tests as one batch: all or none.
func (c *runCmd) Run(ctx context.Context, a *app) error {
	if err := c.check(a); err != nil {
		return err
	}
	tests, err := a.readTests(c.Files)
	if err != nil {
		return err
	}
	if c.Changed != "" {
		changed, err := a.changedFiles(ctx, c.Changed)
		if err != nil {
			return err
		}
		all := len(tests)
		tests = slices.DeleteFunc(tests, func(t testfile.Test) bool { return !t.Touched(changed) })
		a.say("%d of %s touched by %s", len(tests), count(all, "test"), count(len(changed), "changed file"))
	}
	switch {
	case len(tests) == 0:
		return c.nothing(ctx, a)
	case len(tests) > mostFiles:
		return usage("%d tests are more than the %d of a batch: name fewer files, or use --changed", len(tests), mostFiles)
	}
	status, token, err := c.atCommit(a, c.FailOn)
	if err != nil {
		return err
	}
	client, err := a.client()
	if err != nil {
		return err
	}
	jobs, cost, err := a.priced(ctx, client, tests, c.URL)
	if err != nil {
		return err
	}
	if err := c.agree(a, cost); err != nil {
		return err
	}
	var batch humanqa.SubmittedBatch
	body := map[string]any{"jobs": jobs}
	if status != nil {
		body["commitStatus"] = status
	}
	replayed, err := a.submit(ctx, client, c.consent, humanqa.Call{Path: "/v1/jobs/bulk", Body: body, Header: token}, &batch)
	if err != nil {
		return a.inFiles(err, tests)
	}
	a.files = map[string]string{}
	for i, id := range batch.JobIds {
		if i < len(tests) {
			a.files[id] = tests[i].File
		}
	}
	a.remember(client, store.Run{BatchID: batch.BatchID, JobIDs: batch.JobIds, Files: a.files})
	return c.follow(ctx, a, client, submission{
		BatchID: batch.BatchID, JobIDs: batch.JobIds, Credits: batch.TotalCreditsDeducted, Replayed: replayed,
	})
}

// nothing is the outcome of a change that touches no test.
func (c *runCmd) nothing(ctx context.Context, a *app) error {
	if err := c.untouched(ctx, a); err != nil {
		return err
	}
	out := outcome{Type: "result", Result: "passed", Jobs: []tested{}}
	if c.Format != "" {
		out.ReportError = a.unwritten(a.put([]byte(emptyReports[c.Format]), c.Output))
	}
	if !a.json {
		a.say("nothing to test: no credits are charged")
		return nil
	}
	return a.line(out)
}

// inFiles names the files in a refusal of the batch, whose paths are jobs[n].field.
func (a *app) inFiles(err error, tests []testfile.Test) error {
	refusal, ok := errors.AsType[*humanqa.Error](err)
	if !ok {
		return err
	}
	for i, d := range refusal.Details {
		var n int
		if _, scanErr := fmt.Sscanf(d.Path, "jobs[%d]", &n); scanErr == nil && n < len(tests) {
			refusal.Details[i].Path = tests[n].File + " " + d.Path
		}
	}
	return refusal
}

// priced makes jobs of tests and asks for their price.
func (a *app) priced(
	ctx context.Context, client *humanqa.Client, tests []testfile.Test, base string,
) (jobs []newJob, cost price, err error) {
	base = cmp.Or(base, a.env("HQA_TARGET_URL"))
	known := map[string]humanqa.Estimate{} // by the fields that decide the price
	for _, t := range tests {
		j := newJob{
			Title: t.Title, Description: t.Text(), JobType: cmp.Or(t.Type, "general_qa"), Priority: t.Priority, ProjectID: t.Project,
			SLAMinutes: t.SLA, TargetDevice: t.Device, TargetOS: t.OS, TargetBrowser: t.Browser,
		}
		if j.URL, err = t.Target(base); err != nil {
			return nil, cost, usage("%w", err)
		}
		if cost.Items += len(t.Items); len(t.Items) == 0 {
			cost.Generated++
		}
		for _, i := range t.Items {
			j.ChecklistItems = append(j.ChecklistItems, newItem{i.Description, i.Expected, i.Severity})
		}
		name := fmt.Sprintf("%s %s %s %d %s", j.JobType, j.Priority, j.ProjectID, j.SLAMinutes, j.URL)
		e, found := known[name]
		if !found {
			if e, err = estimate(ctx, client, j); err != nil {
				return nil, cost, fmt.Errorf("%s: %w", t.File, err)
			}
			known[name] = e
		}
		cost.Credits += e.CreditsRequired
		cost.Available, cost.Minutes = e.CreditsAvailable, max(cost.Minutes, e.EstimatedCompletionMinutes)
		jobs = append(jobs, j)
	}
	cost.Tests = len(tests)
	return jobs, cost, nil
}

// testFiles are the files that are named, or those of the folder qa.
func (a *app) testFiles(named []string) ([]string, error) {
	if len(named) > 0 {
		return named, nil
	}
	found, err := filepath.Glob(filepath.Join(a.dir, "qa", "*.md"))
	if err != nil || len(found) == 0 {
		return nil, usage("there is no qa/*.md here: name the files, or write a first one with hqa init qa/NAME.md --url URL")
	}
	for i, f := range found {
		if found[i], err = filepath.Rel(a.dir, f); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// mistakes are the problems of files, as an error.
type mistakes []testfile.Problem

func (m mistakes) Error() string {
	var lines []string
	for _, p := range m {
		lines = append(lines, p.String())
	}
	return strings.Join(lines, "\n")
}

// readTests reads the files; with a mistake in one of them nothing is submitted.
func (a *app) readTests(named []string) (tests []testfile.Test, err error) {
	files, err := a.testFiles(named)
	if err != nil {
		return nil, err
	}
	var wrong mistakes
	for _, f := range files {
		raw, err := os.ReadFile(a.path(f))
		if err != nil {
			return nil, usage("%w", err)
		}
		t, problems := testfile.Parse(a.inRepository(f), raw)
		wrong = append(wrong, problems...)
		tests = append(tests, t)
	}
	if len(wrong) > 0 {
		return nil, &failure{exitUsage, wrong}
	}
	return tests, nil
}

// path is a file that the command line names.
func (a *app) path(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(a.dir, name)
}

// inRepository is the file's name from the repository's root, as git names it; outside a
// repository it is as it was given.
func (a *app) inRepository(name string) string {
	root := a.dir
	for ; ; root = filepath.Dir(root) {
		if _, err := os.Stat(filepath.Join(root, ".git")); err == nil {
			break
		}
		if root == filepath.Dir(root) {
			return name
		}
	}
	rel, err := filepath.Rel(root, a.path(name))
	if err != nil || strings.HasPrefix(rel, "..") {
		return name
	}
	return filepath.ToSlash(rel)
}

// changedFiles are those that differ from the point where BASE was left: in commits, and in
// the working tree. A pipeline's working tree has what its steps have built, so there only
// commits count.
func (a *app) changedFiles(ctx context.Context, base string) ([]string, error) {
	fork, err := a.git(ctx, "merge-base", "--end-of-options", base, "HEAD")
	if err != nil {
		return nil, usage("the change since %s is not known: %w; a pipeline's checkout needs the history (fetch-depth: 0)", base, err)
	}
	since := []string{"diff", "--name-only", "--no-renames", "-z", strings.TrimSpace(fork)}
	added := ""
	if pipeline.Find(a.env, false).Known() || a.env("CI") == "true" {
		since = append(since, "HEAD")
	} else if added, err = a.git(ctx, "ls-files", "--others", "--exclude-standard", "--full-name", "-z", ":/"); err != nil {
		return nil, usage("the new files are not known: %w", err)
	}
	differ, err := a.git(ctx, since...)
	if err != nil {
		return nil, usage("the change since %s is not known: %w", base, err)
	}
	return strings.FieldsFunc(differ+added, func(c rune) bool { return c == 0 }), nil
}

func (a *app) git(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir, cmd.Env = a.dir, a.environ
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil && said.Len() > 0 {
		err = errors.New(oneLine(strings.TrimSpace(said.String())))
	}
	return string(out), err
}

type lintCmd struct {
	Files  []string `arg:"" optional:"" name:"file" help:"The files; without one, qa/*.md."`
	Schema bool     `help:"Print the JSON Schema of the front matter, for editors."`
}

// Run checks files and nothing else: it needs no key.
func (c *lintCmd) Run(a *app) error {
	if c.Schema {
		a.json = true
		return a.line(testfile.Schema())
	}
	tests, err := a.readTests(c.Files)
	var wrong mistakes
	switch {
	case errors.As(err, &wrong):
		for _, p := range wrong {
			if err := a.print(p, "%s", oneLine(p.String())); err != nil {
				return err
			}
		}
		return verdict(exitUsage)
	case err != nil:
		return err
	}
	if !a.json {
		a.say("no mistake in %s", count(len(tests), "file"))
	}
	return nil
}

type initCmd struct {
	File    string `arg:"" optional:"" help:"The file to write, such as qa/checkout.md; with --skill the folder of skills (.agents/skills), with --agents the file (AGENTS.md)."`
	URL     string `xor:"from" placeholder:"URL" help:"Write a first test of this URL."`
	Job     string `xor:"from" placeholder:"ID" help:"Write the test of this job, with its checklist."`
	Project string `xor:"from" placeholder:"ID" help:"Write a test of what still fails in this project."`
	Skill   bool   `xor:"from" help:"Install the skill for coding agents."`
	Agents  bool   `xor:"from" help:"Write the section on human tests into AGENTS.md."`
	Force   bool   `help:"Replace a file that is there."`
}

// Run writes the file.
func (c *initCmd) Run(ctx context.Context, a *app) error {
	switch {
	case c.Skill:
		return c.writeSkill(a)
	case c.Agents:
		return c.writeAgents(a)
	case c.File == "":
		return usage("name the file to write, such as qa/checkout.md")
	}
	t, err := c.test(ctx, a)
	if err != nil {
		return err
	}
	raw, err := testfile.Write(t)
	if err != nil {
		return err
	}
	how := os.O_EXCL
	if c.Force {
		how = os.O_TRUNC
	}
	switch err := a.write(c.File, string(raw), how); {
	case errors.Is(err, fs.ErrExist):
		return usage("%s is there already: name another file, or add --force", c.File)
	case err != nil:
		return err
	}
	return a.print(map[string]any{"file": c.File, "items": len(t.Items)}, "wrote %s with %s; run it with: hqa run %s", c.File,
		count(len(t.Items), "item"), c.File)
}

// test gives the test that the file is written from.
func (c *initCmd) test(ctx context.Context, a *app) (t testfile.Test, err error) {
	if c.URL != "" {
		return testfile.Test{
			URL: c.URL, Type: "general_qa", Title: "A first look", Description: "Say here what the checker should do.",
			Items: []testfile.Item{{Description: "The page opens", Expected: "No error shows", Severity: "critical"}},
		}, nil
	}
	client, err := a.client()
	switch {
	case err != nil:
		return t, err
	case c.Job != "":
		return ofJob(ctx, client, c.Job)
	case c.Project == "":
		return t, usage("name what to write: --url URL, --job ID or --project ID")
	}
	return ofFailures(ctx, client, c.Project)
}

// ofJob is a job's test, with the checklist as far as it is written.
func ofJob(ctx context.Context, client *humanqa.Client, id string) (t testfile.Test, err error) {
	j, err := readJob(ctx, client, id)
	if err != nil {
		return t, err
	}
	t = testfile.Test{
		URL: j.URL, Type: strings.ToLower(strings.ReplaceAll(j.JobType, " ", "_")), Title: j.Title, Description: j.Description,
		Priority: string(j.Priority), Project: humanqa.Value(j.ProjectID),
	}
	if j.Status == humanqa.JobStatusCompleted {
		var r humanqa.Report
		if err := client.Get(ctx, "/v1/jobs/"+url.PathEscape(id)+"/report", &r); err != nil {
			return t, err
		}
		for _, i := range r.Items {
			t.Items = append(t.Items, testfile.Item{
				Description: i.Description, Expected: humanqa.Value(i.ExpectedOutcome), Severity: string(humanqa.Value(i.Severity)),
			})
		}
		return t, nil
	}
	var s humanqa.HostedStatus
	if err := client.Get(ctx, "/v1/hosted/status/"+url.PathEscape(id)+"?items=true", &s); err != nil {
		return t, err
	}
	for _, i := range humanqa.Value(s.Items) {
		t.Items = append(t.Items, testfile.Item{Description: i.Description, Severity: string(i.Severity)})
	}
	return t, nil
}

// ofFailures is a test of the items that still fail, at the URL of the first one's job.
func ofFailures(ctx context.Context, client *humanqa.Client, projectID string) (t testfile.Test, err error) {
	items, err := openFailures(ctx, client, projectID)
	switch {
	case err != nil:
		return t, err
	case len(items) == 0:
		return t, usage("nothing fails in project %s", projectID)
	}
	j, err := readJob(ctx, client, items[0].JobID)
	if err != nil {
		return t, err
	}
	t = testfile.Test{
		URL: j.URL, Type: "general_qa", Title: "Open failures", Description: "Check whether these failures are fixed.", Project: projectID,
	}
	for _, i := range items {
		t.Items = append(t.Items, testfile.Item{Description: i.Description, Expected: i.Expected, Severity: i.Severity})
	}
	return t, nil
}
