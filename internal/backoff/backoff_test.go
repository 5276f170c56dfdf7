package backoff_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"humanqa/internal/backoff"
)

func TestADelayDoublesUpToItsLimit(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]time.Duration{
		0: 3, 1: 3, 2: 6, 3: 12, 4: 20, 5: 20, 1 << 40: 20,
	} {
		if got := backoff.Delay(n, 3, 20); got != want {
			t.Errorf("after %d failures: %d, want %d", n, got, want)
		}
	}
}

func TestJitterTakesAtMostHalfAway(t *testing.T) {
	t.Parallel()
	for range 1000 {
		if d := backoff.Jitter(9); d < 4 || d > 9 {
			t.Fatalf("9 became %d", d)
		}
	}
}

func TestAWaitEndsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	if err := backoff.Wait(ctx, time.Millisecond); err != nil {
		t.Errorf("a wait that ends by itself: %v", err)
	}
	cancel()
	for _, d := range []time.Duration{0, time.Hour} {
		if err := backoff.Wait(ctx, d); !errors.Is(err, context.Canceled) {
			t.Errorf("a wait of %s after the end: %v", d, err)
		}
	}
}

func TestARetryIsAskedForInSecondsOrByADate(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	for header, want := range map[string]time.Duration{
		"": 0, "7": 7 * time.Second, "-7": 0, "7.5": 0, "soon": 0, "99999999999999999999": 0,
		now.Add(time.Minute).Format(http.TimeFormat):  time.Minute,
		now.Add(-time.Minute).Format(http.TimeFormat): 0,
	} {
		if got := backoff.RetryAfter(header, now); got != want {
			t.Errorf("%q is %v, want %v", header, got, want)
		}
	}
}
