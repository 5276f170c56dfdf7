package tied

import (
	"syscall"

	"golang.org/x/sys/unix"
)

func tie(attr *syscall.SysProcAttr, sig syscall.Signal) { attr.Pdeathsig = sig }

// ToParent has the kernel kill this process when its parent ends.
func ToParent() error { return unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(syscall.SIGKILL), 0, 0, 0) }
