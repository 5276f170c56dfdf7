package datadir_test

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"humanqa/internal/datadir"
	"humanqa/internal/testing/must"
)

// holdEnv makes this binary lock the named directory and wait to be killed.
const holdEnv = "DATADIR_TEST_HOLD"

func TestMain(m *testing.M) {
	if dir := os.Getenv(holdEnv); dir != "" {
		if _, err := datadir.Lock(dir); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println("locked")
		select {}
	}
	if dir := os.Getenv(becomeEnv); dir != "" {
		if err := become(dir); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func TestLockMakesAPrivateDirectory(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "a", "b")
	release, err := datadir.Lock(dir)
	must.NoError(t, err)
	defer release()
	info, err := os.Stat(dir)
	must.NoError(t, err)
	if got := info.Mode().Perm(); got != 0o700 {
		t.Errorf("mode = %o, want 700", got)
	}
}

func TestTheOwnerIsKnownWhileItLives(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	if got := datadir.Owner(dir); got != 0 {
		t.Errorf("owner of nothing = %d", got)
	}
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("asking made the directory: %v", err)
	}
	release, err := datadir.Lock(dir)
	must.NoError(t, err)
	defer release()
	if got := datadir.Owner(dir); got != os.Getpid() {
		t.Errorf("owner = %d, want this process, %d", got, os.Getpid())
	}
	// No process has this id: it is above what the kernel gives out.
	must.NoError(t, os.WriteFile(filepath.Join(dir, "lock"), []byte("99999999\n"), 0o600))
	if got := datadir.Owner(dir); got != 0 {
		t.Errorf("owner = %d though it is dead", got)
	}
}

func TestASecondOwnerIsRefusedUntilTheFirstReleases(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	release, err := datadir.Lock(dir)
	must.NoError(t, err)

	_, err = datadir.Lock(dir)
	if !errors.Is(err, datadir.ErrInUse) {
		t.Fatalf("second lock: %v, want ErrInUse", err)
	}
	want := fmt.Sprintf("data directory %s is in use by process %d: stop it or set HUMANQA_DATA_DIR", dir, os.Getpid())
	if err.Error() != want {
		t.Errorf("message = %q, want %q", err, want)
	}

	release()
	release, err = datadir.Lock(dir)
	if err != nil {
		t.Fatalf("lock after release: %v", err)
	}
	release()
}

func TestAKilledOwnerLeavesTheDirectoryFree(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	owner := exec.CommandContext(t.Context(), os.Args[0])
	owner.Env = append(os.Environ(), holdEnv+"="+dir)
	out, err := owner.StdoutPipe()
	must.NoError(t, err)
	must.NoError(t, owner.Start())
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "locked\n" {
		t.Fatalf("owner said %q, %v", line, err)
	}

	var inUse *datadir.InUseError
	if _, err := datadir.Lock(dir); !errors.As(err, &inUse) || inUse.PID != owner.Process.Pid {
		t.Fatalf("lock beside a living owner: %v, want in use by %d", err, owner.Process.Pid)
	}

	must.NoError(t, owner.Process.Kill())
	_ = owner.Wait() // "signal: killed" is the point
	release, err := datadir.Lock(dir)
	if err != nil {
		t.Fatalf("lock after the owner was killed: %v", err)
	}
	release()
}
