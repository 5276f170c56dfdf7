package main

import (
	"os/exec"
	"strings"
	"testing"
)

// Where there is no Go, a build says so in one line, with the next step.
func TestABuildWithoutGoSaysSoInOneLine(t *testing.T) {
	t.Parallel()
	for _, script := range [][]string{{"needs-go.sh", "/nowhere/go"}, {"build.sh", "bin/nothing", "./cmd/humanqa"}} {
		build := exec.CommandContext(t.Context(), "bash", append([]string{"../../scripts/" + script[0]}, script[1:]...)...)
		build.Env = []string{"PATH=/usr/bin:/bin", "GO=/nowhere/go"}
		out, _ := build.CombinedOutput() // its exit code says what matters of the error
		if code := build.ProcessState.ExitCode(); code != 1 || strings.Count(string(out), "\n") != 1 ||
			!strings.HasPrefix(string(out), "this needs Go, and there is no /nowhere/go: install Go 1.") {
			t.Errorf("%s: %d %q", script[0], code, out)
		}
	}
}
