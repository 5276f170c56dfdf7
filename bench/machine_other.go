//go:build !linux

package main

import (
	"errors"
	"time"
)

// warnings are only known on Linux.
func warnings(string) []string { return nil }

// cpuTime is only known on Linux.
func cpuTime(int) (time.Duration, error) {
	return 0, errors.New("processors' time is only known on Linux")
}
