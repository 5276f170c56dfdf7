// Package process runs a program as a process of its own, which a test can stop and kill, or
// in the test's process, which costs less.
package process

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/pprof"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"humanqa/internal/testing/eventually"
	"humanqa/internal/testing/must"
	"humanqa/internal/tied"
)

// The kernel gives ports from 32768 on by itself, and internal/pgdev chooses from 20000.
const firstPort, ports = 10_000, 10_000

// Address is an address on the loopback interface that this test keeps until its end. A
// port that the kernel gave, and that is free again, may be another test's by the time a
// program listens there. The port of the same number for UDP is the lock: the kernel frees
// it with this process.
func Address(t testing.TB) string {
	t.Helper()
	for range 1000 {
		address := net.JoinHostPort("127.0.0.1", strconv.Itoa(firstPort+rand.IntN(ports)))
		lock, err := net.ListenPacket("udp", address) //nolint:noctx // at once
		if err != nil {
			continue
		}
		listener, err := net.Listen("tcp", address) //nolint:noctx // at once
		if err != nil {
			_ = lock.Close() // another program listens there
			continue
		}
		must.NoError(t, listener.Close())
		t.Cleanup(func() { _ = lock.Close() }) // nothing was sent
		return address
	}
	t.Fatalf("no port from %d to %d is free", firstPort, firstPort+ports)
	return ""
}

var built sync.Map // functions that build, by the program's name

// Build builds a program of ours beside the test binary, where humanqa looks for it.
func Build(t testing.TB, name string) (path string) {
	t.Helper()
	self, err := os.Executable()
	must.NoError(t, err)
	path = filepath.Join(filepath.Dir(self), name)
	once, _ := built.LoadOrStore(name, sync.OnceValue(func() error {
		out, err := exec.Command("go", "build", "-ldflags=-s -w", "-o", path, "humanqa/cmd/"+name).CombinedOutput() //nolint:noctx // as long as it takes
		if err != nil {
			return fmt.Errorf("build %s: %w: %s", name, err, out)
		}
		return nil
	}))
	must.NoError(t, once.(func() error)())
	return path
}

// Process is a running program, as one test or its subtest sees it.
type Process struct {
	*state
	t testing.TB
}

type state struct {
	Cmd     *exec.Cmd          // nil: it runs in the test's process
	cancel  context.CancelFunc // stops it there
	running interface {
		Exited() <-chan struct{}
		Err() error // once it has ended
	}
	said output
}

// output collects what a process says.
type output struct {
	mu   sync.Mutex
	text strings.Builder
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(b)
}

// Start starts the command and keeps its standard error. The end of the test stops the
// process, and shows its standard error if the test failed. If the test binary is killed, so
// is the process.
func Start(t testing.TB, cmd *exec.Cmd) *Process {
	t.Helper()
	p := &Process{t: t, state: &state{Cmd: cmd}}
	cmd.Stderr = &p.said
	running, err := tied.Start(cmd, syscall.SIGKILL)
	must.NoError(t, err)
	p.running = running
	p.endsWithItsTest(fmt.Sprint("process ", cmd.Process.Pid))
	return p
}

// Inside runs a program in the test's process until it is stopped: for a test that needs
// neither a kill nor signals nor an environment. The program writes its log to the writer.
func Inside(t testing.TB, program func(ctx context.Context, log io.Writer) error) *Process {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	running := &inside{exited: make(chan struct{})}
	p := &Process{t: t, state: &state{cancel: cancel, running: running}}
	go func() {
		running.err = program(ctx, &p.said)
		close(running.exited)
	}()
	p.endsWithItsTest("the program")
	return p
}

// inside is a program in the test's process.
type inside struct {
	exited chan struct{}
	err    error
}

func (i *inside) Exited() <-chan struct{} { return i.exited }
func (i *inside) Err() error              { return i.err }

// endsWithItsTest stops the program, and shows its log if the test failed.
func (p *Process) endsWithItsTest(name string) {
	p.t.Cleanup(func() {
		if p.Running() {
			p.Stop(syscall.SIGTERM)
		}
		if p.t.Failed() {
			p.t.Logf("log of %s:\n%s", name, p.Said())
		}
	})
}

// In is the same process in a subtest.
func (p *Process) In(t testing.TB) *Process { return &Process{t: t, state: p.state} }

// Said is the process's standard error so far.
func (p *Process) Said() string {
	p.said.mu.Lock()
	defer p.said.mu.Unlock()
	return p.said.text.String()
}

// LeaveUnread stops reading the process's standard error, like a broken collector of logs:
// once the pipe is full, the process blocks when it writes to its log. Meanwhile Said blocks,
// too. The end of the test reads on at the latest.
func (p *Process) LeaveUnread() (readOn func()) {
	p.said.mu.Lock()
	readOn = sync.OnceFunc(p.said.mu.Unlock)
	p.t.Cleanup(readOn)
	return readOn
}

// Running says that the process has not ended.
func (p *Process) Running() bool {
	select {
	case <-p.running.Exited():
		return false
	default:
		return true
	}
}

// Err is the error of the process's exit, once it has ended.
func (p *Process) Err() error { return p.running.Err() }

// Ready waits until the service's /readyz answers that all parts are ready.
func (p *Process) Ready(client *http.Client, url string, limit time.Duration) {
	p.t.Helper()
	eventually.Within(p.t, limit, func() error {
		if !p.Running() {
			p.t.Fatalf("the service ended: %v\n%s", p.Err(), p.Said())
		}
		res, err := client.Get(url + "/readyz") //nolint:noctx // the caller's client has a time-out
		if err != nil {
			return err
		}
		defer func() { _ = res.Body.Close() }() // read to its end
		body, err := io.ReadAll(res.Body)
		if err != nil {
			return err
		}
		if res.StatusCode != http.StatusOK {
			return fmt.Errorf("not ready: %d %s", res.StatusCode, body)
		}
		return nil
	})
}

// Stop asks the process to end in order, and checks that it did so without an error.
func (p *Process) Stop(by syscall.Signal) {
	p.t.Helper()
	if p.Cmd == nil {
		p.cancel()
	} else {
		must.NoError(p.t, p.Cmd.Process.Signal(by))
	}
	p.WaitExit(eventually.Patience)
	if p.Err() != nil {
		p.t.Errorf("stop: %v\n%s", p.Err(), p.Said())
	}
}

// Kill ends the process as a crash would.
func (p *Process) Kill() {
	p.t.Helper()
	if p.Cmd == nil {
		p.t.Fatal("a program in the test's process cannot be killed alone")
	}
	if err := p.Cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		p.t.Fatal(err)
	}
	p.WaitExit(eventually.Patience)
}

// WaitExit waits for the end of the process.
func (p *Process) WaitExit(limit time.Duration) {
	p.t.Helper()
	select {
	case <-p.running.Exited():
	case <-time.After(limit):
		if p.Cmd == nil {
			_ = pprof.Lookup("goroutine").WriteTo(&p.said, 1) // its stacks show what it waits for
			p.t.Fatalf("the program is still there after %s\n%s", limit, p.Said())
		}
		_ = p.Cmd.Process.Signal(syscall.SIGQUIT) // likewise
		select {
		case <-p.running.Exited():
		case <-time.After(5 * time.Second):
		}
		p.t.Fatalf("process %d is still there after %s\n%s", p.Cmd.Process.Pid, limit, p.Said())
	}
}
