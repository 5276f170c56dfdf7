//go:build !linux

package pgdev

import (
	"context"
	"os/exec"
	"strconv"
	"strings"
)

// processArgs is a process's command line, nil when it is gone. Arguments with
// spaces come apart, so a data directory must not contain one to be recognized.
func processArgs(pid int) []string {
	out, err := exec.CommandContext(context.Background(), "ps", "-ww", "-o", "command=", "-p", strconv.Itoa(pid)).Output()
	if err != nil {
		return nil
	}
	return strings.Fields(string(out))
}
