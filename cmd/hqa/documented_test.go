package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"humanqa/httpapi/report"
	"humanqa/integrations/skill"
	"humanqa/internal/fence"
	"humanqa/internal/testing/must"
)

func clientPage(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../docs/hqa.md")
	must.NoError(t, err)
	return string(text)
}

func TestThePublishedExitCodesAreTheProgramsOwn(t *testing.T) {
	t.Parallel()
	var table strings.Builder
	for code, meaning := range exits {
		fmt.Fprintf(&table, "| %d | %s |\n", code, meaning)
	}
	if !strings.Contains(clientPage(t), "| Code | Meaning |\n|---|---|\n"+table.String()+"\n") {
		t.Errorf("docs/hqa.md has another table than\n%s", table.String())
	}
}

// Nothing of the service is in the client. make build holds its size (Makefile).
func TestTheClientHasNoPartOfTheService(t *testing.T) {
	t.Parallel()
	deps, err := exec.CommandContext(t.Context(), "go", "list", "-deps", ".").Output()
	must.NoError(t, err)
	for pkg := range strings.Lines(string(deps)) {
		pkg = strings.TrimSpace(pkg)
		if strings.HasPrefix(pkg, "humanqa/") && !strings.HasPrefix(pkg, "humanqa/cmd/hqa") && !strings.HasPrefix(pkg, "humanqa/integrations/") &&
			!strings.HasPrefix(pkg, "humanqa/internal/") ||
			strings.Contains(pkg, "lib/pq") || strings.Contains(pkg, "grpc") {
			t.Errorf("the client holds %s", pkg)
		}
	}
}

// A new user's page: each line of it is run as it stands there, but for the service's
// address, and make, which other tests need no second time.
func newUsersPage(t *testing.T, s *qa) {
	if _, err := exec.LookPath("jq"); err != nil {
		t.Fatal("the page needs jq, which make test installs")
	}
	_, text, found := strings.Cut(clientPage(t), "\n## From nothing to the first test\n")
	_, text, _ = strings.Cut(text, "```sh\n")
	text, _, _ = strings.Cut(text, "```")
	lines := strings.Split(strings.TrimSpace(text), "\n")
	if !found || len(lines) < 5 || lines[0] != "make build" {
		t.Fatalf("docs/hqa.md has no first test: %q", lines)
	}
	makefile, err := os.ReadFile("../../Makefile")
	must.NoError(t, err)
	if !strings.Contains(string(makefile), "bin/hqa ./cmd/hqa") {
		t.Error("make build makes no bin/hqa")
	}
	u := s.user(t, "")
	key := s.account(5, true)
	write(t, u.dir, ".humanqa/demo.json", `{"apiKey": "`+key+`"}`)
	write(t, u.dir, "bin/hqa", "#!/bin/sh\nexport "+runAsClient+"=1\nunset HQA_URL HQA_API_KEY\nexec "+os.Args[0]+` "$@"`)
	must.NoError(t, os.Chmod(filepath.Join(u.dir, "bin/hqa"), 0o755))
	for _, line := range lines[1:] {
		cmd := exec.CommandContext(t.Context(), "sh", "-c", strings.ReplaceAll(line, "http://127.0.0.1:8080", s.url))
		cmd.Dir, cmd.Env = u.dir, u.environ
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", line, err, out)
		}
		if strings.Contains(line, " test ") && !strings.Contains(string(out), "submitted (5 credits)") {
			t.Errorf("%s: %s", line, out)
		}
	}
	if left := s.credits(key); left != 5 {
		t.Errorf("%d credits are left after the page, which cancels its test", left)
	}
}

// The texts for coding agents say what the programs do: exit codes, the fence's rule and every command line.
func TestTheTextsForAgentsAreTrue(t *testing.T) {
	t.Parallel()
	if lines := strings.Count(skill.Text, "\n"); lines >= 500 {
		t.Errorf("the skill has %d lines, and should have fewer than 500", lines)
	}
	head, body, found := strings.Cut(strings.TrimPrefix(skill.Text, "---\n"), "\n---\n")
	var front struct{ Name, Description string }
	if err := yaml.Unmarshal([]byte(head), &front); err != nil || !found || front.Name != skill.Name || len(front.Description) < 100 || len(front.Description) > 1024 {
		t.Errorf("the front matter is %+v: %v", front, err)
	}
	var table strings.Builder
	for code, meaning := range exits {
		fmt.Fprintf(&table, "| %d | %s |\n", code, meaning)
	}
	if !strings.Contains(body, "| Code | Meaning |\n|---|---|\n"+table.String()+"\n") {
		t.Errorf("the skill has other exit codes than\n%s", table.String())
	}
	for name, text := range map[string]string{"the skill": body, "the section": skill.AgentsSection} {
		if !strings.Contains(text, fence.Rule) {
			t.Errorf("%s has another rule about fences than %q", name, fence.Rule)
		}
		found := 0
		for _, line := range regexp.MustCompile("(?m)^hqa .+$|`hqa [^`]+`").FindAllString(text, -1) {
			args := words(strings.Trim(line, "`"))
			if len(args) == 2 && args[1] == "--help" {
				continue
			}
			parser, err := newParser(new(commands))
			must.NoError(t, err)
			if _, err := parser.Parse(args[1:]); err != nil {
				t.Errorf("%s: %s: %v", name, line, err)
			}
			found++
		}
		if found < 3 {
			t.Errorf("%s has %d commands", name, found)
		}
	}
	mark := fence.Text("checker", "x")
	if shown := regexp.MustCompile(`\[data [A-Z2-7]{26} by checker\]`); !shown.MatchString(mark) || !shown.MatchString(body) {
		t.Errorf("the skill shows another mark than %q", mark)
	}
}

// words splits a command line as a shell does, as far as the texts need it.
func words(line string) (all []string) {
	for _, m := range regexp.MustCompile(`"([^"]*)"|(\S+)`).FindAllStringSubmatch(line, -1) {
		all = append(all, m[1]+m[2])
	}
	return all
}

// The client cannot import the service, but its test can.
func TestTheClientKnowsEveryFormatOfAReport(t *testing.T) {
	t.Parallel()
	var names []string
	for _, f := range report.Formats() {
		names = append(names, f.Name)
	}
	known := strings.Split(formats, ", ")
	slices.Sort(names)
	slices.Sort(known)
	if !slices.Equal(known, names) {
		t.Errorf("it knows the formats %v, the service %v", known, names)
	}
}
