// Package tied ties processes to each other: one ends when the other does, however that
// ends. The kernel sees to it on Linux; elsewhere they are not tied.
package tied

import (
	"os/exec"
	"runtime"
	"syscall"
)

// Process is a process that Start has started.
type Process struct {
	exited chan struct{}
	err    error
}

// Start starts the command and waits for it in the background. When this process ends, the
// kernel sends the signal to the new one.
//
// The thread that starts the command lives as long as the command: the kernel sends the
// signal when that thread ends, not the process.
func Start(cmd *exec.Cmd, onDeath syscall.Signal) (*Process, error) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	tie(cmd.SysProcAttr, onDeath)
	p := &Process{exited: make(chan struct{})}
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err != nil {
			return
		}
		p.err = cmd.Wait()
		close(p.exited)
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return p, nil
}

// Exited is closed after the process has ended and was waited for.
func (p *Process) Exited() <-chan struct{} { return p.exited }

// Err is the result of the command's Wait; it is read after Exited.
func (p *Process) Err() error { return p.err }
