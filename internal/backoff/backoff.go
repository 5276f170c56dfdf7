// Package backoff waits, longer after each failure.
package backoff

import (
	"context"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"
)

// Delay is how long to wait after the n-th failure in a row, from 1: first,
// doubled with each further one, at most most.
func Delay(n int, first, most time.Duration) time.Duration {
	d := first
	for ; n > 1 && d < most; n-- {
		d *= 2
	}
	return min(d, most)
}

// Jitter is between half of d and d, so that many callers do not retry at the same
// moment.
func Jitter(d time.Duration) time.Duration { return d/2 + rand.N(d/2+1) }

// RetryAfter reads the header of that name: seconds or a date; 0 for anything else.
func RetryAfter(header string, now time.Time) time.Duration {
	if seconds, err := strconv.ParseUint(header, 10, 31); err == nil {
		return time.Duration(seconds) * time.Second
	}
	if at, err := http.ParseTime(header); err == nil {
		return max(0, at.Sub(now))
	}
	return 0
}

// Wait returns nil after d, or ctx's error as soon as ctx ends.
func Wait(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
