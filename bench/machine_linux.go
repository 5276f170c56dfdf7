package main

import (
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// warnings are what makes the figures mean less than they seem to.
func warnings(dir string) []string {
	var found []string
	// A commit costs nothing in memory, and every ratio shifts.
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err == nil && fs.Type == unix.TMPFS_MAGIC {
		found = append(found, "the databases are in memory (tmpfs), not on a disk: see -dir")
	}
	// Other work does not hit both sides alike: one event travels through more
	// hands than one row.
	if load, err := loadAverage(); err == nil && load > float64(runtime.NumCPU())/4 {
		found = append(found, fmt.Sprintf("the machine is busy with something else (load %.1f): not even the ratios can be relied on", load))
	}
	return found
}

func loadAverage() (load float64, err error) {
	data, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return 0, err
	}
	_, err = fmt.Sscan(string(data), &load)
	return load, err
}
