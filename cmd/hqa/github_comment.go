package main

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"time"

	"humanqa/integrations/clients/go/humanqa"
)

const (
	// earlierRuns is how many runs a comment keeps below the newest one.
	earlierRuns = 20
	// commentLimit is below GitHub's limit for a comment, in bytes.
	commentLimit = 60_000
	// commentMark begins the marker of every comment of ours.
	commentMark = "<!-- hqa "
)

// table is a run: a line a test, which its file names, or else its title. Texts of testers
// stand in the fenced report only.
func (o outcome) table() string {
	var b strings.Builder
	fmt.Fprintf(&b, "### Human QA: %s\n\n", verdictWords[o.Result])
	if len(o.Jobs) > 0 {
		b.WriteString("| Test | Verdict | Passed | Failed | Skipped |\n|---|---|---|---|---|\n")
	}
	for n, j := range o.Jobs {
		word := cmp.Or(j.OverallStatus, string(j.Status))
		name := strings.Join(strings.Fields(markup.ReplaceAllString(cmp.Or(j.File, j.Title), " ")), " ")
		name = cmp.Or(name, fmt.Sprint("Test ", n+1))
		fmt.Fprintf(&b, "| [%s](%s) | %s | %d | %d | %d |\n", clip(name), j.Page, plainWord(word), j.PassCount, j.FailCount, j.SkipCount)
	}
	return b.String()
}

var wordOnly = regexp.MustCompile(`[^a-zA-Z0-9_ .-]+`)

// markup matches the characters that a name in a table is shown without.
var markup = regexp.MustCompile(`[^\pL\pM\pN_ ./-]+`)

func plainWord(text string) string { return wordOnly.ReplaceAllString(text, "") }

// pastRun is a line about a run in the comment. The tests stand in its hidden marker, so
// that a later step finds the verdict of a run that did not wait for it.
type pastRun struct {
	commit, run, verdict, took, at string

	failOn string
	jobs   []string
}

var runRow = regexp.MustCompile(
	`(?m)^\| ([^|\n]*) \| ([^|\n]*) \| ([^|\n]*) \| ([^|\n]*) \| ([^|\n]*) \|<!-- hqa-run(?: (critical|major|minor|never)((?: [0-9a-f-]{36})+))? -->$`)

// runsOf are the runs of a comment, the newest first.
func runsOf(comment string) (runs []pastRun) {
	for _, m := range runRow.FindAllStringSubmatch(comment, -1) {
		runs = append(runs, pastRun{m[1], m[2], m[3], m[4], m[5], m[6], strings.Fields(m[7])})
	}
	return runs
}

func (r pastRun) String() string {
	tests := ""
	if len(r.jobs) > 0 {
		tests = " " + r.failOn + " " + strings.Join(r.jobs, " ")
	}
	return fmt.Sprintf("| %s | %s | %s | %s | %s |<!-- hqa-run%s -->", r.commit, r.run, r.verdict, r.took, r.at, tests)
}

// folded are the runs below the newest report.
func folded(runs []pastRun) string {
	var b strings.Builder
	b.WriteString("<details><summary>Runs</summary>\n\n| Commit | Run | Verdict | Took | At |\n|---|---|---|---|---|\n")
	for _, r := range runs[:min(len(runs), earlierRuns+1)] {
		b.WriteString(r.String() + "\n")
	}
	return b.String() + "\n</details>\n"
}

// commentOf is the comment: the newest run with its report, and all runs folded below.
func commentOf(marker string, newest outcome, later, report string, runs []pastRun) string {
	below := folded(runs)
	if len(report)+len(below) > commentLimit {
		report = "The report is too long for a comment: see the pages of the tests.\n"
	}
	return marker + "\n" + newest.table() + "\n" + later + report + "\n" + below
}

// later says where the verdict of a run that did not wait appears.
func (s *step) later() string {
	switch {
	case s.out.Result != "running":
		return ""
	case s.status != "":
		return fmt.Sprintf("The commit status `%s` of %.7s tells the verdict. The next run of this step fills it in here.\n\n", plainWord(s.status), s.commit())
	}
	return "The tests go on. The next run of this step fills the verdict in here.\n\n"
}

// commit is the newest one of the pull request, or that of the run.
func (s *step) commit() string {
	if head := s.a.pullRequestHead(); head != "" {
		return plainWord(head)
	}
	return plainWord(s.a.env("GITHUB_SHA"))
}

// row is this run as a line of the comment.
func (s *step) row() pastRun {
	get := s.a.env
	r := pastRun{
		commit: fmt.Sprintf("%.7s", s.commit()), verdict: verdictWords[s.out.Result], took: s.took.String(), failOn: s.failOn,
		run: fmt.Sprintf("[%s](%s/%s/actions/runs/%s)", plainWord(get("GITHUB_RUN_NUMBER")), get("GITHUB_SERVER_URL"),
			get("GITHUB_REPOSITORY"), plainWord(get("GITHUB_RUN_ID"))),
		at: time.Now().UTC().Format("2006-01-02 15:04 UTC"),
	}
	for _, j := range s.out.Jobs {
		r.jobs = append(r.jobs, j.JobID)
	}
	return r
}

// comment writes the one comment of this step on the pull request, if there is one. Runs
// that did not wait get the verdict that they have come to since.
func (s *step) comment(ctx context.Context) error {
	g, e, err := s.a.repository()
	number := e.PullRequest.Number
	if err != nil || number == 0 || g.token == "" {
		return err
	}
	get := s.a.env
	marker := commentMark + plainWord(get("GITHUB_WORKFLOW")+" "+get("GITHUB_JOB")+" "+get("GITHUB_ACTION")) + " -->"
	ours, err := g.comments(ctx, number, marker)
	if err != nil {
		return err
	}
	runs := []pastRun{s.row()}
	if len(ours) > 0 {
		runs = append(runs, runsOf(ours[0].Body)...)
	}
	out, later, report := s.out, s.later(), s.report
	if client, err := s.a.client(); err == nil { // without one nothing was submitted, either
		if ended, ok := s.a.fillIn(ctx, client, runs); ok {
			out, later, report = ended, "", s.a.reportFor(ctx, client, ended)
		}
	}
	body := map[string]string{"body": commentOf(marker, out, later, report, runs)}
	if len(ours) > 0 {
		return g.call(ctx, http.MethodPatch, fmt.Sprintf("/issues/comments/%d", ours[0].ID), body, nil)
	}
	return g.call(ctx, http.MethodPost, fmt.Sprintf("/issues/%d/comments", number), body, nil)
}

// refreshComments fills the verdicts that came since into the comments of the event's pull
// requests. It submits nothing.
func (a *app) refreshComments(ctx context.Context) error {
	client, err := a.client()
	if err != nil {
		return err
	}
	g, e, err := a.repository()
	switch {
	case err != nil:
		return err
	case g.token == "":
		return usage("--refresh needs GITHUB_TOKEN, a token that may write comments")
	}
	numbers := []int{e.PullRequest.Number}
	if numbers[0] == 0 {
		if numbers, err = g.pullRequestsOf(ctx, e.SHA); err != nil {
			return err
		}
	}
	filled := 0
	for _, n := range numbers {
		ours, err := g.comments(ctx, n, commentMark)
		if err != nil {
			return err
		}
		for _, c := range ours {
			body := a.refreshed(ctx, client, c.Body)
			if body == c.Body {
				continue
			}
			path := fmt.Sprintf("/issues/comments/%d", c.ID)
			if err := g.call(ctx, http.MethodPatch, path, map[string]string{"body": body}, nil); err != nil {
				return err
			}
			filled++
		}
	}
	return a.print(map[string]int{"comments": filled}, "%d comments have a new verdict", filled)
}

// refreshed is a comment with the verdicts that its runs have come to.
func (a *app) refreshed(ctx context.Context, client *humanqa.Client, comment string) string {
	runs, before := runsOf(comment), runsOf(comment)
	out, newest := a.fillIn(ctx, client, runs)
	if newest {
		marker, _, _ := strings.Cut(comment, "\n")
		return commentOf(marker, out, "", a.reportFor(ctx, client, out), runs)
	}
	for i, r := range runs {
		comment = strings.Replace(comment, before[i].String(), r.String(), 1)
	}
	return comment
}

// fillIn writes the verdicts of runs that have ended since into their lines. ok says that
// the newest one is among them; out is its outcome. A run that cannot be read stays as it
// is: it may be another account's, or the service may be down. fillIn has a time limit of
// its own, so that the comment still has time.
func (a *app) fillIn(ctx context.Context, client *humanqa.Client, runs []pastRun) (out outcome, ok bool) {
	ctx, stop := context.WithTimeout(ctx, callTime)
	defer stop()
	for i, r := range runs {
		if r.verdict != verdictWords["running"] || len(r.jobs) == 0 {
			continue
		}
		one, ended := a.endedRun(ctx, client, r)
		if !ended {
			continue
		}
		runs[i].verdict = verdictWords[one.Result]
		if i == 0 {
			out, ok = one, true
		}
	}
	return out, ok
}

// endedRun is the outcome of a run whose tests have all ended.
func (a *app) endedRun(ctx context.Context, client *humanqa.Client, r pastRun) (out outcome, ended bool) {
	for _, id := range r.jobs {
		j, err := readJob(ctx, client, id)
		if err != nil || !j.IsFinal {
			return out, false
		}
		t, err := readTested(ctx, client, id)
		if err != nil {
			return out, false
		}
		out.Jobs = append(out.Jobs, t)
	}
	out.ExitCode, out.Result = judge(out.Jobs, r.failOn)
	return out, true
}

// reportFor is the Markdown of a run that has ended; empty if no test of it has a report.
func (a *app) reportFor(ctx context.Context, client *humanqa.Client, out outcome) string {
	ids := out.completed()
	if len(ids) == 0 {
		return ""
	}
	text, err := reportsOf(ctx, client, "", ids, "md")
	if err != nil {
		return "The report could not be read: see the pages of the tests.\n"
	}
	return string(text)
}
