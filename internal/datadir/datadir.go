// Package datadir guards a data directory: one process owns it at a time.
//
// Ownership is a flock on the file "lock" inside the directory. The kernel drops it
// when the owner dies in any way, so a crash leaves nothing to clean up. The file
// stays, and means nothing without its lock. It is never removed: after an unlink, two
// processes could hold "the" lock on two different inodes.
package datadir

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// LockFile is the entry of a data directory that is there as soon as a
// process has had it.
const LockFile = "lock"

// ErrInUse matches, through errors.Is, every refusal because of another owner.
var ErrInUse = errors.New("data directory is in use")

// InUseError names the owner of a directory that could not be locked.
type InUseError struct {
	Dir string
	PID int // 0 when the owner has not written its id yet
}

// Error is one line with the next step.
func (e *InUseError) Error() string {
	owner := "another process"
	if e.PID != 0 {
		owner = "process " + strconv.Itoa(e.PID)
	}
	return fmt.Sprintf("data directory %s is in use by %s: stop it or set HUMANQA_DATA_DIR", e.Dir, owner)
}

// Is makes errors.Is(err, ErrInUse) true.
func (e *InUseError) Is(target error) bool { return target == ErrInUse }

// Lock makes the directory (0700) if it is missing and takes it. The returned
// release gives it back; the death of the process does the same. An
// *InUseError says that another process has it.
func Lock(dir string) (release func(), err error) {
	dir, err = filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("locate data directory: %w", err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("create data directory: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(dir, LockFile), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the lock of data directory %s: %w", dir, err)
	}
	if err := flock(f); err != nil {
		owner := readPID(f)
		_ = f.Close() // nothing was written
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, &InUseError{Dir: dir, PID: owner}
		}
		return nil, fmt.Errorf("lock data directory %s: %w", dir, err)
	}
	if err := writePID(f); err != nil {
		_ = f.Close() // the write's error is the one to tell
		return nil, fmt.Errorf("sign the lock of data directory %s: %w", dir, err)
	}
	return func() {
		// Closing alone is not enough: a child that is being forked at this
		// moment holds a copy of the descriptor until it execs.
		_ = syscall.Flock(int(f.Fd()), syscall.LOCK_UN) // closing is the second try
		_ = f.Close()                                   // the id inside needs no flush
	}, nil
}

// Owner is the process that took the directory last, if it is still alive, else
// 0. It only reads: asking for the lock, however briefly, could refuse it to
// a process that needs it.
func Owner(dir string) int {
	f, err := os.Open(filepath.Join(dir, LockFile))
	if err != nil {
		return 0 // no process ever had it, or this user may not read it
	}
	defer func() { _ = f.Close() }() // it was only read
	pid := readPID(f)
	if pid <= 0 {
		return 0
	}
	if err := syscall.Kill(pid, 0); err != nil && !errors.Is(err, syscall.EPERM) {
		return 0
	}
	return pid
}

func flock(f *os.File) error {
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}

func readPID(f *os.File) int {
	b, err := io.ReadAll(io.NewSectionReader(f, 0, 32))
	if err != nil {
		return 0
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil {
		return 0
	}
	return pid
}

func writePID(f *os.File) error {
	if err := f.Truncate(0); err != nil {
		return err
	}
	_, err := f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	return err
}
