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
