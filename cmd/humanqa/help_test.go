package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/caarlos0/env/v11"

	"humanqa/internal/must"
)

var update = flag.Bool("update", false, "write the settings into README.md anew")

// humanqa runs the program in this process.
func humanqa(t *testing.T, environ []string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, complaint bytes.Buffer
	code = run(t.Context(), args, environ, &out, &complaint)
	return code, out.String(), complaint.String()
}

func TestEverySettingIsTold(t *testing.T) {
	t.Parallel()
	fields, err := env.GetFieldParams(&environment{})
	must.NoError(t, err)
	told := settings()
	if len(told) != len(fields) {
		t.Fatalf("%d settings are told, there are %d", len(told), len(fields))
	}
	for i, f := range fields {
		if told[i].name != f.Key || told[i].about == "" || f.DefaultValue != "" && told[i].byDefault != f.DefaultValue {
			t.Errorf("%s is told as %+v, its default is %q", f.Key, told[i], f.DefaultValue)
		}
	}
}

func TestTheHelpKeepsItsTable(t *testing.T) {
	t.Parallel()
	help := new(serveCmd).Help()
	for _, s := range settings() {
		if !strings.Contains(help, fmt.Sprintf("\n\t%-34s  %s", s.name, s.about)) {
			t.Errorf("humanqa serve --help has no line for %s", s.name)
		}
	}
	// What is indented is what the help's printer leaves alone.
	for _, line := range strings.Split(help, "\n")[2:] {
		if !strings.HasPrefix(line, "\t") {
			t.Errorf("%q would be wrapped", line)
		}
	}
}

// The table of README.md is made of the same settings; -update writes it.
func TestTheREADMETellsEverySetting(t *testing.T) {
	t.Parallel()
	const file, begin, end = "../../README.md", "| Variable | Default | |\n|---|---|---|\n", "\n\n"
	readme, err := os.ReadFile(file)
	must.NoError(t, err)
	before, rest, found := strings.Cut(string(readme), begin)
	table, after, ended := strings.Cut(rest, end)
	if !found || !ended {
		t.Fatalf("%s has no table of settings", file)
	}
	var lines []string
	for _, s := range settings() {
		byDefault := s.byDefault
		if byDefault != "" && !strings.Contains(byDefault, " ") {
			byDefault = "`" + byDefault + "`"
		}
		lines = append(lines, fmt.Sprintf("| `%s` | %s | %s |", s.name, byDefault, s.about))
	}
	want := strings.Join(lines, "\n")
	if *update {
		if err := os.WriteFile(file, []byte(before+begin+want+end+after), 0o644); err != nil { //nolint:gosec // a document
			t.Fatal(err)
		}
		return
	}
	if table != want {
		t.Errorf("%s does not tell the settings as they are: run go test ./cmd/humanqa -run %s -update", file, t.Name())
	}
}

func TestTheVersionIsTold(t *testing.T) {
	t.Parallel()
	b := thisBuild()
	code, stdout, stderr := humanqa(t, nil, "version")
	if want := fmt.Sprintf("humanqa %s, commit %s, %s\n", b.Version, b.Commit, b.GoVersion); code != exitDone || stdout != want || stderr != "" {
		t.Errorf("version: %d %q %q, want %q", code, stdout, stderr, want)
	}
	code, stdout, stderr = humanqa(t, nil, "--json", "version")
	if want := fmt.Sprintf("{\"version\":%q,\"commit\":%q,\"goVersion\":%q}\n", b.Version, b.Commit, b.GoVersion); code != exitDone || stdout != want || stderr != "" {
		t.Errorf("version: %d %q %q, want %q", code, stdout, stderr, want)
	}
	if !strings.HasPrefix(b.GoVersion, "go1.") {
		t.Errorf("%+v", b)
	}
}
