// Package eventually waits, in tests, for a condition without a signal. A test that can
// wait for a signal does so instead.
package eventually

import (
	"errors"
	"testing"
	"time"
)

// Patience bounds a wait whose condition never comes. It is long because a machine may be very
// busy: two suites at once on two slow processors had axe take more than three minutes on one
// page. Only a hang ever waits for it.
const Patience = 10 * time.Minute

// True waits until a condition is met, and fails the test after Patience.
func True(t testing.TB, what string, met func() bool) {
	t.Helper()
	Within(t, Patience, func() error {
		if !met() {
			return errors.New(what)
		}
		return nil
	})
}

// Within tries until there is no error, and fails the test with the last one after the
// limit. It tries at once, soon again, and then twenty times a second.
func Within(t testing.TB, limit time.Duration, try func() error) {
	t.Helper()
	deadline := time.NewTimer(limit)
	defer deadline.Stop()
	for pause := time.Millisecond; ; pause = min(2*pause, 50*time.Millisecond) {
		err := try()
		if err == nil {
			return
		}
		select {
		case <-time.After(pause):
		case <-deadline.C:
			t.Fatalf("not after %s: %v", limit, err)
		}
	}
}
