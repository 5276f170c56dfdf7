package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
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
	committing `embed:""`
}

// Run runs the step. What cannot be told on GitHub is a warning, and never the verdict.
func (c *githubCmd) Run(ctx context.Context, a *app) error {
	if a.env("GITHUB_ACTIONS") != "true" {
		return usage("this is a step of a GitHub Action: elsewhere use hqa test or hqa run")
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
	s := step{a: a, code: code, took: time.Since(began).Round(time.Second)}
	s.read(lines.Bytes())
	if text, err := os.ReadFile(report); err == nil { //nolint:gosec // our own path
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
	// earlierRuns is how many runs a comment keeps below the newest one.
	earlierRuns = 20
	// commentLimit is below what GitHub takes in a comment, in bytes.
	commentLimit = 60_000
)

// step is the outcome of a run, as it is told.
type step struct {
	a       *app
	code    int
	took    time.Duration
	credits int
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
					s.out.Jobs = append(s.out.Jobs, tested{JobID: id, Page: made.Pages[i]})
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

// verdict is the outcome in a word or two.
func (s *step) verdict() string {
	return map[string]string{
		"passed": "passed", "failed": "failures", "untested": "not tested", "running": "still running", "error": "not submitted",
	}[s.out.Result]
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
		{"status", s.out.Result}, {"success", strconv.FormatBool(s.code == exitPassed)}, {"results", string(results)},
		{"credits", strconv.Itoa(s.credits)}, {"duration-seconds", strconv.Itoa(int(s.took.Seconds()))},
		{"report-url", first.Page}, {"job-id", first.JobID},
	} {
		end := rand.Text()
		fmt.Fprintf(&b, "%s<<%s\n%s\n%s\n", o[0], end, oneLine(o[1]), end)
	}
	return appendTo(s.a.env("GITHUB_OUTPUT"), b.String())
}

func (s *step) writeSummary(context.Context) error {
	return appendTo(s.a.env("GITHUB_STEP_SUMMARY"), s.table()+"\n"+s.report+"\n")
}

// appendTo adds to a file that GitHub named; without a name there is nothing to do.
func appendTo(file, text string) error {
	if file == "" {
		return nil
	}
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644) //nolint:gosec // GitHub's own file, for its runner
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
			_, err := fmt.Fprintf(s.a.out, "::error %stitle=%s::%s\n", at, escapeProperty(oneLine("Human QA ("+i.Severity+")")),
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

// table is the newest run: a line a test. Names of files and texts of testers stand in the
// fenced report only.
func (s *step) table() string {
	var b strings.Builder
	fmt.Fprintf(&b, "### Human QA: %s\n\n", s.verdict())
	if len(s.out.Jobs) > 0 {
		b.WriteString("| Test | Verdict | Passed | Failed | Skipped |\n|---|---|---|---|---|\n")
	}
	for n, j := range s.out.Jobs {
		word := j.OverallStatus
		if word == "" {
			word = j.Status
		}
		fmt.Fprintf(&b, "| [%d](%s) | %s | %d | %d | %d |\n", n+1, j.Page, plainWord(word), j.PassCount, j.FailCount, j.SkipCount)
	}
	return b.String()
}

var wordOnly = regexp.MustCompile(`[^a-zA-Z0-9_ .-]+`)

func plainWord(text string) string { return wordOnly.ReplaceAllString(text, "") }

// runRow is a line about a run in the comment; the marker finds it again.
var runRow = regexp.MustCompile(`(?m)^\| .* \|<!-- hqa-run -->$`)

// body is the comment: the newest run, and the runs before it folded below.
func (s *step) body(marker, before string) string {
	get := s.a.env
	sha := plainWord(get("GITHUB_SHA"))
	row := fmt.Sprintf("| %.7s | [%s](%s/%s/actions/runs/%s) | %s | %s | %s |<!-- hqa-run -->", sha, plainWord(get("GITHUB_RUN_NUMBER")),
		get("GITHUB_SERVER_URL"), get("GITHUB_REPOSITORY"), plainWord(get("GITHUB_RUN_ID")), s.verdict(), s.took,
		time.Now().UTC().Format("2006-01-02 15:04 UTC"))
	rows := append([]string{row}, runRow.FindAllString(before, earlierRuns)...)
	folded := "<details><summary>Runs</summary>\n\n| Commit | Run | Verdict | Took | At |\n|---|---|---|---|---|\n" +
		strings.Join(rows, "\n") + "\n\n</details>\n"
	report := s.report
	if len(report)+len(folded) > commentLimit {
		report = "The report is too long for a comment: see the pages of the tests.\n"
	}
	return marker + "\n" + s.table() + "\n" + report + "\n" + folded
}

// comment writes the one comment of this step on the pull request, if there is one.
func (s *step) comment(ctx context.Context) error {
	get := s.a.env
	number, err := pullRequest(get("GITHUB_EVENT_PATH"))
	token := get("GITHUB_TOKEN")
	if err != nil || number == 0 || token == "" {
		return err
	}
	marker := "<!-- hqa " + plainWord(get("GITHUB_WORKFLOW")+" "+get("GITHUB_JOB")+" "+get("GITHUB_ACTION")) + " -->"
	g := github{base: strings.TrimRight(get("GITHUB_API_URL"), "/") + "/repos/" + get("GITHUB_REPOSITORY"), token: token}
	type comment struct {
		ID   int64  `json:"id"`
		Body string `json:"body"`
	}
	for at := 1; at <= 10; at++ {
		var list []comment
		if err := g.call(ctx, http.MethodGet, fmt.Sprintf("/issues/%d/comments?per_page=100&page=%d", number, at), nil, &list); err != nil {
			return err
		}
		for _, c := range list {
			if strings.HasPrefix(c.Body, marker) {
				body := map[string]string{"body": s.body(marker, c.Body)}
				return g.call(ctx, http.MethodPatch, fmt.Sprintf("/issues/comments/%d", c.ID), body, nil)
			}
		}
		if len(list) < 100 {
			break
		}
	}
	return g.call(ctx, http.MethodPost, fmt.Sprintf("/issues/%d/comments", number), map[string]string{"body": s.body(marker, "")}, nil)
}

// pullRequest is the number in the event that started the workflow; 0: there is none.
func pullRequest(file string) (number int, err error) {
	if file == "" {
		return 0, nil
	}
	raw, err := os.ReadFile(file) //nolint:gosec // GitHub's own file
	if err != nil {
		return 0, err
	}
	var event struct {
		PullRequest struct{ Number int } `json:"pull_request"`
	}
	return event.PullRequest.Number, json.Unmarshal(raw, &event)
}

// github is the API of GitHub, as far as a comment needs it.
type github struct{ base, token string }

func (g github) call(ctx context.Context, method, path string, body, out any) error {
	ctx, stop := context.WithTimeout(ctx, callTime)
	defer stop()
	raw, err := json.Marshal(body)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, method, g.base+path, bytes.NewReader(raw))
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+g.token)
	req.Header.Set("Accept", "application/vnd.github+json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		var lost *url.Error
		if errors.As(err, &lost) {
			err = lost.Err
		}
		return fmt.Errorf("GitHub cannot be reached: %w", err)
	}
	defer func() { _ = res.Body.Close() }()
	answer, err := io.ReadAll(io.LimitReader(res.Body, answerLimit))
	switch {
	case err != nil:
		return fmt.Errorf("GitHub's answer broke off: %w", err)
	case res.StatusCode == http.StatusForbidden:
		return errors.New("the token may not do this: a comment needs pull-requests: write, a commit status needs statuses: write")
	case res.StatusCode >= http.StatusBadRequest:
		return fmt.Errorf("GitHub answered %s to %s %s", res.Status, method, path)
	case out == nil:
		return nil
	}
	return json.Unmarshal(answer, out)
}
