package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"humanqa/internal/testing/must"
)

// A comment is read back as it was written, with the lines of older versions.
func TestTheRunsOfACommentAreReadBack(t *testing.T) {
	t.Parallel()
	runs := []pastRun{
		{"1b4f0e9", "[2](https://x/2)", "still running", "1s", "now", "minor", []string{strings.Repeat("a", 36), strings.Repeat("b", 36)}},
		{"0000000", "[1](https://x/1)", "passed", "9s", "then", "", nil},
	}
	body := commentOf("<!-- hqa x -->", outcome{Result: "running"}, "", "| a | b | c | d | e |\n", runs)
	got := runsOf(body + "| a | b | c | d | e |<!-- hqa-run evil -->\n")
	if !slices.EqualFunc(got, runs, func(a, b pastRun) bool { return a.String() == b.String() }) {
		t.Errorf("read back: %+v", got)
	}
	if !strings.Contains(body, "| passed | 9s | then |<!-- hqa-run -->\n") {
		t.Errorf("the line of an older version is another one: %s", body)
	}
	if n := len(runsOf(commentOf("", outcome{}, "", "", slices.Repeat(runs[1:], 30)))); n != earlierRuns+1 {
		t.Errorf("%d runs are kept", n)
	}
}

// detachedComment is the comment of runs that did not wait: the next run fills their verdicts
// in, and so does a workflow that the commit status starts.
func detachedComment(t *testing.T, s *qa) {
	key := s.account(100, true)
	github := newPullRequest(t)
	a := newAction(t, s, key, github.URL)
	detached := []string{"INPUT_WAIT=detached", "HQA_STATUS_TOKEN=" + statusToken}
	has := func(want ...string) {
		t.Helper()
		got := github.comment(t)
		for _, text := range want {
			if !strings.Contains(got, text) {
				t.Fatalf("without %q: %s", text, got)
			}
		}
	}
	github.forged = "<!-- hqa ci qa human -->\n| evil | [0](x) | passed | 1s | then |<!-- hqa-run -->\n"

	commit := a.head("1")
	first := a.ends("1", exitPassed, detached...)
	has("### Human QA: still running", "The commit status `Human QA` of 1111111 tells the verdict.", "| 1111111 | [1](", "<!-- hqa-run minor "+first+" -->")
	if strings.Contains(github.comment(t), "evil") {
		t.Error("the lines of a stranger's comment are taken for runs")
	}
	s.play(key, first, "item-1")
	s.hosts.becomes(t, commit, "failure")
	commit = a.head("2")
	second := a.ends("2", exitPassed, detached...) // the next run fills the first one in
	has("### Human QA: still running", ") | failures | ", "<!-- hqa-run minor "+first+" -->", ") | still running | ", "<!-- hqa-run minor "+second+" -->")

	refresh := func(key string, want int) {
		t.Helper()
		a.ends("9", want, "INPUT_REFRESH=true", "HQA_API_KEY="+key)
	}
	s.play(key, second)
	s.hosts.becomes(t, commit, "success")
	github.head = commit
	must.NoError(t, os.WriteFile(filepath.Join(a.dir, "event.json"), []byte(`{"sha":"`+commit+`","state":"success"}`), 0o600)) // of on: status
	refresh(s.account(1, true), exitPassed)
	has("### Human QA: still running") // another account's tests say nothing
	refresh(key, exitPassed)
	has("### Human QA: passed", "[data ", ") | passed | ", ") | failures | ")
	if strings.Contains(github.comment(t), "tells the verdict") {
		t.Errorf("the verdict is there: %s", github.comment(t))
	}
	github.mu.Lock()
	written := github.written
	github.mu.Unlock()
	refresh(key, exitPassed)
	github.mu.Lock()
	if github.written != written {
		t.Error("a comment that is whole is written again")
	}
	github.mu.Unlock()

	a.head("3")
	third := a.ends("3", exitPassed, "INPUT_WAIT=false")
	has("The tests go on.")
	s.play(key, third)
	a.ends("3", exitPassed, "INPUT_WAIT=false") // the step again, whose test has ended
	has("### Human QA: passed", "[data ")
	fourth := a.ends("4", exitPassed, append(detached, "INPUT_FAIL_ON=never")...)
	s.play(key, fourth, "item-1")
	a.ends("5", exitRefused, "INPUT_MAX_CREDITS=1") // any later run fills it in, and by its own fail-on
	has("### Human QA: not submitted", "<!-- hqa-run never "+fourth+" -->")
	if got := github.comment(t); strings.Contains(got, "still running") || strings.Count(got, "<!-- hqa-run ") != 6 {
		t.Errorf("the comment in the end: %s", got)
	}
}
