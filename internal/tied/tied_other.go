//go:build !linux

package tied

import "syscall"

func tie(*syscall.SysProcAttr, syscall.Signal) {}

// ToParent does nothing here.
func ToParent() error { return nil }
