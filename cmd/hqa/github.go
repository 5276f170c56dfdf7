package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"humanqa/integrations/clients/go/humanqa"
)

// githubCmd is the step of a GitHub Action: it submits by the other commands, and tells the
// outcome where a pull request shows it. The flags are the action's inputs.
type githubCmd struct {
	URL        string        `help:"The URL to test, or the one in front of the files' paths."`
	Feature    string        `help:"The focus of one test; without it tests stand in files."`
	Files      string        `help:"The tests' files, with spaces between them; without them qa/*.md."`
	Changed    string        `help:"Only tests that the change since this commit or branch touches."`
	FailOn     string        `default:"minor" help:"The least severity of a failure that counts."`
	MaxCredits string        `help:"Refuse a higher price."`
	Timeout    time.Duration `default:"2h" help:"How long to wait; then exit 5, and the test goes on."`
	NoWait     bool          `help:"End the step at once. A later step runs hqa wait."`
	NoComment  bool          `help:"Write no comment on the pull request."`
	Refresh    bool          `help:"Submit nothing: fill in, on the pull requests of the event, the verdicts that came since. It is for a workflow on status."`
	committing `embed:""`
}

// Run runs the step. A failure to report to GitHub is a warning; it never changes the
// verdict.
func (c *githubCmd) Run(ctx context.Context, a *app) error {
	if a.env("GITHUB_ACTIONS") != "true" {
		return usage("this is a step of a GitHub Action: elsewhere use hqa test or hqa run")
	}
	if c.Refresh {
		return a.refreshComments(ctx)
	}
	began := time.Now()
	dir, err := os.MkdirTemp("", "hqa")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	report := filepath.Join(dir, "report.md")
	args, err := c.args(report)
	if err != nil {
		return err
	}
	var lines bytes.Buffer
	inner := a.world
	inner.out, inner.terminal = io.MultiWriter(&lines, a.told), false
	code := run(ctx, args, inner)
	s := step{a: a, code: code, took: time.Since(began).Round(time.Second), failOn: c.FailOn, status: c.CommitStatus, feature: c.Feature}
	s.read(lines.Bytes())
	if text, err := os.ReadFile(report); err == nil {
		s.report = string(text)
	}
	for what, tell := range map[string]func(context.Context) error{
		"the outputs": s.writeOutputs, "the summary": s.writeSummary, "the annotations": s.annotate,
	} {
		if err := tell(ctx); err != nil {
			a.say("::warning::%s could not be written: %s", what, escapeData(err.Error()))
		}
	}
	if !c.NoComment {
		told, stop := context.WithTimeout(context.WithoutCancel(ctx), commentTime)
		defer stop()
		if err := s.comment(told); err != nil {
			a.say("::warning::the pull request has no comment: %s", escapeData(err.Error()))
		}
	}
	if code == exitPassed {
		return nil
	}
	return verdict(code)
}

// args is the command that does the work. A run that is cancelled, as by a newer commit,
// gives the credits of untouched tests back.
func (c *githubCmd) args(report string) ([]string, error) {
	args := []string{"--json"}
	switch {
	case c.Feature != "" && (c.Files != "" || c.Changed != ""):
		return nil, usage("feature is about one test, and files or changed about files: give one of them")
	case c.Feature != "" && c.URL == "":
		return nil, usage("feature needs a url")
	case c.Feature != "":
		args = append(args, "test", c.URL, "--feature="+c.Feature)
	default:
		args = append(args, "run")
		if c.URL != "" {
			args = append(args, "--url="+c.URL)
		}
		if c.Changed != "" {
			args = append(args, "--changed="+c.Changed)
		}
		args = append(args, strings.Fields(c.Files)...)
	}
	if c.MaxCredits != "" {
		args = append(args, "--max-credits="+c.MaxCredits)
	}
	args = append(args, "--fail-on="+c.FailOn)
	if c.CommitStatus != "" {
		args = append(args, "--commit-status="+c.CommitStatus)
	}
	if c.NoWait {
		return args, nil
	}
	return append(args, "--wait", "--cancel-on-interrupt", "--timeout="+c.Timeout.String(), "--format=md",
		"--output="+report), nil
}

const (
	// commentTime bounds all requests about the comment, and callTime each of them.
	commentTime = time.Minute
	callTime    = 20 * time.Second
	// answerLimit bounds an answer of GitHub, in bytes.
	answerLimit = 8 << 20
)

// step is the outcome of a run, in the form in which it is reported.
type step struct {
	a       *app
	code    int
	took    time.Duration
	failOn  string
	status  string // the name of the commit status that tells the verdict later; empty: none
	feature string // of the one test that stands in no file
	credits int64
	out     outcome
	report  string // Markdown, fenced
}

// read takes the outcome out of the lines of JSON.
func (s *step) read(lines []byte) {
	for line := range bytes.Lines(lines) {
		var kind struct{ Type string }
		if json.Unmarshal(line, &kind) != nil {
			continue
		}
		switch kind.Type {
		case "submitted":
			var made submission
			if json.Unmarshal(line, &made) == nil {
				s.credits, s.out.BatchID, s.out.Result = made.Credits, made.BatchID, "running"
				s.out.Jobs = nil
				for i, id := range made.JobIDs {
					s.out.Jobs = append(s.out.Jobs, tested{JobID: id, Page: made.Pages[i], File: made.Files[id], Title: s.feature})
				}
			}
		case "result":
			var out outcome
			if json.Unmarshal(line, &out) == nil {
				s.out = out
			}
		}
	}
	if s.out.Result == "" {
		s.out.Result = "error"
	}
}

// verdictWords are the results in a word or two.
var verdictWords = map[string]string{
	"passed": "passed", "failed": "failures", "untested": "not tested", "running": "still running", "error": "not submitted",
}

// writeOutputs sets the action's outputs. A value has one line, so it cannot set another.
func (s *step) writeOutputs(context.Context) error {
	results, err := json.Marshal(s.out)
	if err != nil {
		return err
	}
	first := tested{}
	if len(s.out.Jobs) > 0 {
		first = s.out.Jobs[0]
	}
	var b strings.Builder
	for _, o := range [][2]string{
		{"status", s.out.Result}, {"success", strconv.FormatBool(s.out.Result == "passed")}, {"results", string(results)},
		{"credits", fmt.Sprint(s.credits)}, {"duration-seconds", strconv.Itoa(int(s.took.Seconds()))},
		{"report-url", first.Page}, {"job-id", first.JobID},
	} {
		end := rand.Text()
		fmt.Fprintf(&b, "%s<<%s\n%s\n%s\n", o[0], end, oneLine(o[1]), end)
	}
	return appendTo(s.a.env("GITHUB_OUTPUT"), b.String())
}

func (s *step) writeSummary(ctx context.Context) error {
	pictures, err := s.pictures(ctx)
	return errors.Join(appendTo(s.a.env("GITHUB_STEP_SUMMARY"), s.out.table()+"\n"+s.later()+s.report+"\n"+pictures), err)
}

// appendTo adds to a file that GitHub named; without a name there is nothing to do.
func appendTo(file, text string) error {
	if file == "" {
		return nil
	}
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

// annotate marks each failure at the file of its test.
func (s *step) annotate(context.Context) error {
	for _, j := range s.out.Jobs {
		for _, i := range j.Failures {
			at := ""
			if j.File != "" {
				at = "file=" + escapeProperty(j.File) + ","
			}
			title := oneLine(fmt.Sprintf("Human QA (%s)", humanqa.Value(i.Severity)))
			_, err := fmt.Fprintf(s.a.out, "::error %stitle=%s::%s\n", at, escapeProperty(title),
				escapeData(marked(i.Description+": "+i.CheckerNote)))
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// escapeData and escapeProperty keep a text from being a command of the runner.
func escapeData(text string) string {
	return strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A").Replace(text)
}

func escapeProperty(text string) string {
	return strings.NewReplacer(":", "%3A", ",", "%2C").Replace(escapeData(text))
}
