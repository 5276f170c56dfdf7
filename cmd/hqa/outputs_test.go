package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"humanqa/internal/testing/must"
)

// A step that did not wait has no verdict, whatever its exit code is.
func TestAStepSucceedsByAVerdictAlone(t *testing.T) {
	t.Parallel()
	for lines, want := range map[string]string{
		`{"type":"result","result":"passed"}`:                       "true",
		`{"type":"result","result":"failed"}`:                       "false",
		`{"type":"result","result":"running"}`:                      "false",
		`{"type":"submitted","jobIds":["1"],"pages":["https://x"]}`: "false",
		`{"type":"price"}`:                                          "false",
	} {
		file := filepath.Join(t.TempDir(), "output")
		s := step{a: &app{world: world{environ: []string{"GITHUB_OUTPUT=" + file}}}, code: exitPassed}
		s.read([]byte(lines + "\n"))
		must.NoError(t, s.writeOutputs(t.Context()))
		raw, err := os.ReadFile(file)
		must.NoError(t, err)
		_, success, _ := strings.Cut(string(raw), "success<<")
		if fields := strings.Fields(success); fields[1] != want {
			t.Errorf("%s: success is %s, want %s", lines, fields[1], want)
		}
	}
}

func TestATestIsNamedByItsFileOrItsTitle(t *testing.T) {
	t.Parallel()
	s := step{feature: "sign in"}
	s.read([]byte(`{"type":"submitted","jobIds":["1","2"],"pages":["https://x/1","https://x/2"],"files":{"1":"qa/cart.md"}}` + "\n"))
	got := s.out.table()
	for _, want := range []string{"| [qa/cart.md](https://x/1) |", "| [sign in](https://x/2) |"} {
		if !strings.Contains(got, want) {
			t.Errorf("a run that was submitted, without %q: %s", want, got)
		}
	}
	for title, want := range map[string]string{
		"": "Test 1", "Größe_1 / 日本": "Größe_1 / 日本", "a|b](https://evil.example) <b>@ann</b>\n::error::x": "a b https //evil.example b ann /b error x",
		"`*#": "Test 1", strings.Repeat("x", 200): strings.Repeat("x", 100),
	} {
		out := outcome{Result: "failed", Jobs: []tested{{JobID: "1", Title: title, Page: "https://x/1", Status: "completed", OverallStatus: "fail"}}}
		if got := out.table(); !strings.Contains(got, "| ["+want+"](https://x/1) | fail |") {
			t.Errorf("the title %q: %s", title, got)
		}
	}
}

// The steps before this one leave files in the working tree of a pipeline.
func TestInAPipelineOnlyCommitsAreAChange(t *testing.T) {
	t.Parallel()
	u := &user{t: t, dir: t.TempDir(), environ: []string{"HOME=" + t.TempDir(), "PATH=" + os.Getenv("PATH")}}
	u.repository()
	write(t, u.dir, "dist/bundle.js", "built")
	write(t, u.dir, "qa/cart.md", cartTest+"\n- [ ] One more\n")
	changed := func(environ ...string) []string {
		t.Helper()
		a := &app{world: world{environ: append(slices.Clone(u.environ), environ...), dir: u.dir}}
		files, err := a.changedFiles(t.Context(), "main")
		must.NoError(t, err)
		slices.Sort(files)
		return files
	}
	if got := changed(); !slices.Equal(got, []string{"dist/bundle.js", "qa/cart.md", "src/cart/cart.js"}) {
		t.Errorf("on a person's machine: %v", got)
	}
	for _, environ := range [][]string{
		{"GITHUB_ACTIONS=true", "GITHUB_RUN_ID=1"}, {"GITLAB_CI=true", "CI_PIPELINE_ID=1"}, {"HQA_RUN_ID=1"}, {"CI=true"},
	} {
		if got := changed(environ...); !slices.Equal(got, []string{"src/cart/cart.js"}) {
			t.Errorf("%v: %v", environ, got)
		}
	}
}

func TestTheClientTellsItsVersionAndItsHelpByEveryName(t *testing.T) {
	t.Parallel()
	call := func(args ...string) string {
		t.Helper()
		var out bytes.Buffer
		if code := run(t.Context(), args, world{out: &out, told: &out, dir: t.TempDir()}); code != exitPassed {
			t.Errorf("%v: exit %d: %s", args, code, out.String())
		}
		return out.String()
	}
	for _, args := range [][]string{{"--version"}, {"--json", "--version"}, {"--version", "--json"}} {
		if want := call(append(slices.DeleteFunc(slices.Clone(args), func(a string) bool { return a == "--version" }), "version")...); call(args...) != want {
			t.Errorf("%v: %s, want %s", args, call(args...), want)
		}
	}
	if help := call("help"); help != call("--help") || !strings.Contains(help, "Usage: hqa") {
		t.Errorf("help: %s", help)
	}
	if help := call("help", "wait"); help != call("wait", "--help") || !strings.Contains(help, "Usage: hqa wait") {
		t.Errorf("help of a command: %s", help)
	}
}

// reportFiles: a folder that is missing is made, a file that cannot be written is found before
// the price, and one that fails at the end changes no verdict.
func reportFiles(t *testing.T, s *qa) {
	key := s.account(100, true)
	u := s.user(t, key, "HQA_TARGET_URL=https://example.com")
	write(t, u.dir, "qa/cart.md", cartTest)
	write(t, u.dir, "taken", "a file")
	submits := [][]string{{"test", "https://example.com"}, {"run"}}
	for _, output := range []string{filepath.Join(u.dir, "taken", "junit.xml"), u.dir} {
		for _, args := range submits {
			r := u.must(exitUsage, append(args, "--yes", "--wait", "--format=junit", "--output="+output)...)
			if !strings.Contains(r.err, "--output") {
				t.Errorf("%v: %+v", args, r)
			}
		}
	}
	file := filepath.Join(u.dir, "reports", "of", "qa", "junit.xml")
	u.must(exitRefused, "run", "--max-credits=0", "--wait", "--format=junit", "--output="+file)
	if left := s.credits(key); left != 100 {
		t.Fatalf("%d credits are left of 100", left)
	}
	if _, err := os.Stat(file); err == nil {
		t.Error("a run that was refused leaves an empty report")
	}
	r := u.must(exitPassed, "--json", "run", "--yes")
	if !strings.Contains(r.out, `"items":2`) {
		t.Errorf("the price: %s", r.out)
	}
	failed, passed := r.jobs(t)[0], s.submit(key)
	s.play(key, failed, "item-1")
	s.play(key, passed)
	u.must(exitFailures, "wait", failed, "--format=junit", "--output="+file)
	u.must(exitPassed, "report", passed, "--output="+filepath.Join(u.dir, "more", "report.md"))
	if raw, err := os.ReadFile(file); err != nil || !strings.Contains(string(raw), "<testsuites") {
		t.Errorf("the report: %v %s", err, raw)
	}
	for job, want := range map[string]int{failed: exitFailures, passed: exitPassed} {
		args := []string{"wait", job, "--format=junit", "--output=/dev/full"}
		if r := u.must(want, args...); !strings.Contains(r.err, "the report could not be written: ") {
			t.Errorf("%+v", r)
		}
		var out outcome
		lines := strings.Split(strings.TrimSpace(u.must(want, append([]string{"--json"}, args...)...).out), "\n")
		must.NoError(t, json.Unmarshal([]byte(lines[len(lines)-1]), &out))
		if out.ReportError == "" || out.ExitCode != want {
			t.Errorf("%+v", out)
		}
	}
	write(t, u.dir, "qa/empty.md", "---\nurl: https://example.com\n---\nLook around.\n")
	if r := u.must(exitUsage, "run"); !strings.Contains(r.err, "2 tests: 10 credits of") || !strings.Contains(r.err, "minutes; 2 items; the service writes 1 checklist\n") {
		t.Errorf("the price in words: %+v", r)
	}
}
