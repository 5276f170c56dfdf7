package scratch_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"humanqa/internal/pgdev"
	"humanqa/internal/testing/must"
	"humanqa/internal/testing/pgtest"
	"humanqa/internal/testing/process"
	"humanqa/internal/testing/scratch"
)

// They make this binary another one that tests, and the service that it starts.
const (
	runAsTests   = "SCRATCH_TEST_RUN_AS_TESTS"
	runAsService = "SCRATCH_TEST_RUN_AS_SERVICE"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(runAsService); dir != "" {
		if _, err := pgdev.Start(context.Background(), pgdev.Config{Dir: dir}); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		fmt.Println("ready")
		select {}
	}
	os.Exit(pgtest.Main(m))
}

// other is another test binary, whose temporary files are in a folder.
func other(t *testing.T, temporary, flag string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], flag)
	cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "HUMANQA_") })
	cmd.Env = append(cmd.Env, "TMPDIR="+temporary, runAsTests+"=1")
	cmd.Stderr = os.Stderr
	return cmd
}

// A test binary with a Postgres, and a service on a data directory, is killed. What a living
// one uses stays.
func TestTheNextBinaryRemovesWhatAKilledOneLeft(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("only Linux ties processes to each other")
	}
	temporary, err := os.MkdirTemp("", "t") //nolint:usetesting // a unix socket's path has to be short
	must.NoError(t, err)
	killed := other(t, temporary, "-test.run=^TestThatIsKilled$")
	out, err := killed.StdoutPipe()
	must.NoError(t, err)
	must.NoError(t, killed.Start())
	says := bufio.NewReader(out)
	if line, err := says.ReadString('\n'); line != "ready\n" {
		t.Fatalf("it says %q, %v", line, err)
	}
	must.NoError(t, killed.Process.Kill())
	_, err = io.Copy(io.Discard, says) // until the service has ended, too
	must.NoError(t, err)
	_ = killed.Wait() // "signal: killed" is the point

	var homes []string
	for _, pattern := range []string{"*/humanqa-scratch-*/postgres", "*/hq*/data/postgres"} {
		links, err := filepath.Glob(filepath.Join(temporary, pattern))
		if err != nil || len(links) != 1 {
			t.Fatalf("%s: %v, %v", pattern, links, err)
		}
		home, err := filepath.EvalSymlinks(links[0])
		must.NoError(t, err)
		homes = append(homes, home)
	}
	living, remove, err := scratch.Make(temporary) // this very binary lives
	must.NoError(t, err)
	must.NoError(t, other(t, temporary, "-test.list=^$").Run())
	for _, home := range homes {
		if _, err := os.Stat(home); !os.IsNotExist(err) {
			t.Errorf("%s: %v", home, err)
		}
	}
	if left, err := filepath.Glob(filepath.Join(temporary, "*")); err != nil || !slices.Equal(left, []string{living}) {
		t.Errorf("the next binary leaves %v, %v; want %s", left, err, living)
	}
	must.NoError(t, remove())
}

// TestThatIsKilled is the other binary's.
func TestThatIsKilled(t *testing.T) {
	if os.Getenv(runAsTests) == "" {
		t.Skip("another test runs it")
	}
	pgtest.New(t)
	dir := pgtest.NewDataDir(t)
	must.NoError(t, os.Mkdir(dir, 0o700))
	service := exec.Command(os.Args[0]) //nolint:noctx // this very binary; the test stops it
	service.Env = append(os.Environ(), runAsService+"="+dir)
	service.Stdout = os.Stdout
	process.Start(t, service)
	select {}
}
