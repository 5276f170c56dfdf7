package pgdev

import (
	"bytes"
	"os"
	"strconv"
	"strings"
)

// processArgs is a process's command line, nil when it is gone. /proc/*/cmdline
// is readable across users, unlike /proc/*/cwd, which a container forbids.
func processArgs(pid int) []string {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline")
	b = bytes.TrimRight(b, "\x00")
	if err != nil || len(b) == 0 {
		return nil
	}
	return strings.Split(string(b), "\x00")
}
