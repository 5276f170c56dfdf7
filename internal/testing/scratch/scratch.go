// Package scratch gives a test binary one place for all that it leaves behind, so that the
// next one removes what a killed one has left.
//
// Everything lies in folders that this package makes: temporary files (Main sets TMPDIR,
// which os.MkdirTemp, t.TempDir, services and browsers follow), the data directories of
// services, and the tests' own Postgres. A folder is locked for as long as its binary lives.
// Main removes the folders whose lock is free. It removes the clusters of the data
// directories in them too, wherever those are, and first stops a server that still runs there.
//
// On Linux processes end by themselves: a test binary with the process that started it, and
// services, Postgres and browsers with the test binary.
//
//	func TestMain(m *testing.M) { os.Exit(scratch.Main(m.Run)) }
package scratch

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"humanqa/internal/datadir"
	"humanqa/internal/testing/pgimage"
)

const (
	prefix = "humanqa-scratch-"
	// unlocked ends the name of a folder that its binary has yet to lock. One that is older
	// than a minute was left in that moment.
	unlocked = ".new"

	// A file system in memory makes a copy of a database in a third of the time. The
	// largest packages fill it with some hundred databases of 8 MB.
	memoryDir  = "/dev/shm"
	memoryFree = 4 << 30 // bytes

	removeLimit = 2 * time.Minute // the end of a server that outlived its owner is waited for
)

var (
	given  = os.Getenv("TMPDIR") // as it was set for this binary
	inside bool                  // of a Main
)

// Main runs a package's tests with a folder of their own for temporary files. Its result is
// the exit code. In another Main it only runs them.
func Main(run func() int) int {
	if inside {
		return run()
	}
	inside = true
	code, err := inFolder(run)
	if err != nil {
		fmt.Fprintln(os.Stderr, "scratch:", err)
		return max(code, 1)
	}
	return code
}

func inFolder(run func() int) (code int, err error) {
	if err := endWithParent(); err != nil {
		return 1, fmt.Errorf("end with the process that started this one: %w", err)
	}
	sweep(os.TempDir())
	if given == "" {
		sweep(memoryDir) // however little is free
	}
	dir, remove, err := Make(os.TempDir())
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, remove()) }()
	if err := os.Setenv("TMPDIR", dir); err != nil {
		return 1, err
	}
	return run(), nil
}

// Make makes a folder in another one. All users can pass through it, so that Postgres reaches
// its files if this user is root.
func Make(root string) (dir string, remove func() error, err error) {
	dir, err = os.MkdirTemp(root, prefix+"*"+unlocked)
	if err != nil {
		return "", nil, fmt.Errorf("make a folder for the tests: %w", err)
	}
	release, err := datadir.Lock(dir)
	if err != nil {
		return "", nil, err
	}
	locked := strings.TrimSuffix(dir, unlocked)
	if err := errors.Join(os.Chmod(dir, 0o711), os.Rename(dir, locked)); err != nil {
		release()
		return "", nil, fmt.Errorf("make a folder for the tests: %w", err)
	}
	return locked, func() error {
		defer release()
		return removeAll(locked)
	}, nil
}

// Memory is a folder in memory if there is plenty, unless TMPDIR names a folder for temporary
// files.
func Memory() string {
	var disk unix.Statfs_t
	if given != "" || unix.Statfs(memoryDir, &disk) != nil || disk.Bavail*uint64(disk.Bsize) < memoryFree ||
		unix.Access(memoryDir, unix.W_OK) != nil {
		return os.TempDir()
	}
	return memoryDir
}

// sweep removes what killed binaries left. Others may do it at the same time.
func sweep(root string) {
	left, err := filepath.Glob(filepath.Join(root, prefix+"*"))
	if err != nil {
		return // the pattern is constant; a temporary root with brackets is not worth a failure
	}
	for _, dir := range left {
		info, err := os.Lstat(dir)
		if err != nil || !info.IsDir() || !isOurs(info) ||
			strings.HasSuffix(dir, unlocked) && time.Since(info.ModTime()) < time.Minute {
			continue
		}
		release, err := datadir.Lock(dir)
		if err != nil {
			continue // its binary lives
		}
		_ = removeAll(dir) // the next sweep removes the rest
		release()
	}
}

// isOurs keeps root from following another user's links to clusters.
func isOurs(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(st.Uid) == os.Getuid()
}

// removeAll removes a folder with the clusters of all data directories in it. As root a
// cluster lives elsewhere (pgdev), and only a link is here.
func removeAll(dir string) error {
	ctx, cancel := context.WithTimeout(context.Background(), removeLimit)
	defer cancel()
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist): // a process that ends removes its files
			return nil
		case err != nil || entry.Name() != "postgres":
			return err
		}
		if err := pgimage.Remove(ctx, filepath.Dir(path)); err != nil || !entry.IsDir() {
			return err
		}
		return fs.SkipDir
	})
	if err != nil {
		return fmt.Errorf("remove the clusters in %s: %w", dir, err)
	}
	return os.RemoveAll(dir)
}
