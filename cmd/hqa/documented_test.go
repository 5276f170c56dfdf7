package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

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

// The client is one small static program, and nothing of the service is in it.
func TestTheClientIsSmallAndHasNoPartOfTheService(t *testing.T) {
	t.Parallel()
	const most = 12 << 20
	deps, err := exec.CommandContext(t.Context(), "go", "list", "-deps", ".").Output()
	must.NoError(t, err)
	for pkg := range strings.Lines(string(deps)) {
		pkg = strings.TrimSpace(pkg)
		if strings.HasPrefix(pkg, "humanqa/") && pkg != "humanqa/cmd/hqa" && !strings.HasPrefix(pkg, "humanqa/internal/") ||
			strings.Contains(pkg, "lib/pq") || strings.Contains(pkg, "grpc") {
			t.Errorf("the client holds %s", pkg)
		}
	}
	file := filepath.Join(t.TempDir(), "hqa")
	build := exec.CommandContext(t.Context(), "go", "build", "-ldflags", "-s -w", "-o", file, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	info, err := os.Stat(file)
	must.NoError(t, err)
	if info.Size() > most {
		t.Errorf("bin/hqa has %d bytes, at most %d are allowed", info.Size(), most)
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
