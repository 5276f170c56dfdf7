package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// warnings lists the conditions of the machine that distort the figures.
func warnings(dir string) []string {
	var found []string
	// A commit costs nothing in memory, and every ratio shifts.
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err == nil && fs.Type == unix.TMPFS_MAGIC {
		found = append(found, "the databases are in memory (tmpfs), not on a disk: see -dir")
	}
	// Other work does not slow both sides alike: an event takes more steps than a row.
	if load, err := loadAverage(); err == nil && load > float64(runtime.NumCPU())/4 {
		found = append(found, fmt.Sprintf("the machine is busy with something else (load %.1f): not even the ratios can be relied on",
			load))
	}
	return found
}

// ticks is the number of units per second in which /proc counts processor time
// (sysconf(_SC_CLK_TCK), which Linux keeps at 100).
const ticks = 100

// cpuTime is the processor time of the process and of all processes that it started.
func cpuTime(pid int) (time.Duration, error) {
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return 0, err
	}
	parents, used := map[int]int{}, map[int]int{}
	for _, file := range stats {
		line, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended
		}
		var id int
		if _, err := fmt.Sscan(string(line), &id); err != nil {
			return 0, fmt.Errorf("read %s: %w", file, err)
		}
		// The name, in parentheses, may hold anything.
		fields := strings.Fields(string(line[bytes.LastIndexByte(line, ')')+1:]))
		for _, f := range []struct {
			at   int
			into map[int]int
		}{{1, parents}, {11, used}, {12, used}, {13, used}, {14, used}} { // ppid; utime, stime, and those of children that have ended
			n, err := strconv.Atoi(fields[f.at])
			if err != nil {
				return 0, fmt.Errorf("read %s: %w", file, err)
			}
			f.into[id] += n
		}
	}
	all := 0
	for id, n := range used {
		for up := id; up > 1; up = parents[up] {
			if up == pid {
				all += n
				break
			}
		}
	}
	return time.Duration(all) * time.Second / ticks, nil
}

func loadAverage() (load float64, err error) {
	data, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return 0, err
	}
	_, err = fmt.Sscan(string(data), &load)
	return load, err
}
