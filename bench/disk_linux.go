package main

import "golang.org/x/sys/unix"

// inMemory says so when the databases would not be on a disk at all: a commit
// costs nothing there, and every ratio shifts.
func inMemory(dir string) string {
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err == nil && fs.Type == unix.TMPFS_MAGIC {
		return "databases in memory (tmpfs), not on a disk: see -dir"
	}
	return ""
}
