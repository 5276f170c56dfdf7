package main

import (
	"bytes"
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
