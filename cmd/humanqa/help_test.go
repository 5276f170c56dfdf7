package main

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"humanqa/cmd/humanqa/service"
	"humanqa/internal/buildinfo"
)

// runProgram runs it in this process.
func runProgram(t *testing.T, environ []string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, complaint bytes.Buffer
	code = run(t.Context(), args, environ, &out, &complaint)
	return code, out.String(), complaint.String()
}

func TestTheHelpKeepsItsTable(t *testing.T) {
	t.Parallel()
	help := new(serveCmd).Help()
	for _, s := range service.Settings() {
		if !strings.Contains(help, fmt.Sprintf("\n\t%-34s  %s", s.Name, s.About)) {
			t.Errorf("humanqa serve --help has no line for %s", s.Name)
		}
	}
	// What is indented is what the help's printer leaves alone.
	for _, line := range strings.Split(help, "\n")[2:] {
		if !strings.HasPrefix(line, "\t") {
			t.Errorf("%q would be wrapped", line)
		}
	}
}

func TestTheVersionIsTold(t *testing.T) {
	t.Parallel()
	b := buildinfo.This()
	code, stdout, stderr := runProgram(t, nil, "version")
	if want := fmt.Sprintf("humanqa %s, commit %s, %s\n", b.Version, b.Commit, b.GoVersion); code != exitDone || stdout != want || stderr != "" {
		t.Errorf("version: %d %q %q, want %q", code, stdout, stderr, want)
	}
	code, stdout, stderr = runProgram(t, nil, "--json", "version")
	if want := fmt.Sprintf("{\"version\":%q,\"commit\":%q,\"goVersion\":%q}\n", b.Version, b.Commit, b.GoVersion); code != exitDone || stdout != want || stderr != "" {
		t.Errorf("version: %d %q %q, want %q", code, stdout, stderr, want)
	}
	if !strings.HasPrefix(b.GoVersion, "go1.") {
		t.Errorf("%+v", b)
	}
}
