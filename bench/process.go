package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

const (
	readyLimit = time.Minute
	readyEvery = 20 * time.Millisecond
)

// process is a server of ours that runs beside this one.
type process struct {
	url   string
	cmd   *exec.Cmd
	logAt string
	ended chan struct{}
}

// start runs a program that serves at addr, with its log in a file, and waits
// until /readyz says so.
func (b *bench) start(ctx context.Context, name, addr string, environ []string, program string, args ...string) (*process, error) {
	p := &process{url: "http://" + addr, logAt: filepath.Join(b.work, name+".log"), ended: make(chan struct{})}
	log, err := os.OpenFile(p.logAt, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }() // the process has its own
	// It outlives ctx for long enough to be stopped in order.
	p.cmd = exec.CommandContext(context.WithoutCancel(ctx), program, args...)
	p.cmd.Env = append(withoutOurs(os.Environ()), environ...)
	p.cmd.Stdout, p.cmd.Stderr = log, log
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	go func() {
		defer close(p.ended)
		_ = p.cmd.Wait() // its log tells more than its code
	}()
	if err := p.becomeReady(ctx, cmp.Or(b.readyWithin, readyLimit)); err != nil {
		return nil, errors.Join(fmt.Errorf("start %s: %w", name, err), p.stop(ctx))
	}
	return p, nil
}

// withoutOurs drops settings that would reach a service we start.
func withoutOurs(environ []string) []string {
	var kept []string
	for _, v := range environ {
		if !strings.HasPrefix(v, "HUMANQA_") {
			kept = append(kept, v)
		}
	}
	return kept
}

func (p *process) becomeReady(ctx context.Context, within time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	tick := time.NewTicker(readyEvery)
	defer tick.Stop()
	for {
		if status, err := get(ctx, p.url+"/readyz"); err == nil && status == http.StatusOK {
			return nil
		}
		select {
		case <-p.ended:
			return p.explain(errors.New("it ended"))
		case <-ctx.Done():
			return p.explain(ctx.Err())
		case <-tick.C:
		}
	}
}

func get(ctx context.Context, url string) (status int, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, err
	}
	return answer.StatusCode, answer.Body.Close()
}

// explain adds the last line of the log.
func (p *process) explain(err error) error {
	log, readErr := os.ReadFile(p.logAt)
	if readErr != nil {
		return err
	}
	lines := strings.Split(strings.TrimSpace(string(log)), "\n")
	return fmt.Errorf("%w; its last words: %s", err, lines[len(lines)-1])
}

// stop asks the process to end in order, and ends it when it does not.
func (p *process) stop(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopLimit)
	defer cancel()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	select {
	case <-p.ended:
		return nil
	case <-ctx.Done():
		err := p.cmd.Process.Kill()
		<-p.ended
		return errors.Join(p.explain(fmt.Errorf("stop process %d: %w", p.cmd.Process.Pid, ctx.Err())), err)
	}
}

// freeAddr is a loopback address that is not in use.
func freeAddr(ctx context.Context) (string, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

// call runs a command to its end and gives its output.
func call(ctx context.Context, environ []string, program string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = append(withoutOurs(os.Environ()), environ...)
	var out, complaint bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaint
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("%s %s: %w: %s", filepath.Base(program), strings.Join(args, " "), err, strings.TrimSpace(complaint.String()))
	}
	return out.Bytes(), nil
}

// ifDead adds a process's last words when it is gone.
func (p *process) ifDead(err error) error {
	select {
	case <-p.ended:
		return p.explain(errors.Join(err, errors.New("a server ended")))
	default:
		return err
	}
}
