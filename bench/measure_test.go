package main

import (
	"context"
	"errors"
	"testing"
	"time"

	"humanqa/internal/testing/must"
)

func TestQuantilesComeFromTheSortedLatencies(t *testing.T) {
	s := sample{window: 2 * time.Second}
	for i := range 100 {
		s.latencies = append(s.latencies, time.Duration(i+1)*time.Millisecond)
	}
	for q, want := range map[float64]time.Duration{0: 1, 0.5: 51, 0.99: 100, 1: 100} {
		if got := s.quantile(q); got != want*time.Millisecond {
			t.Errorf("quantile %v is %s, want %dms", q, got, want)
		}
	}
	if got := s.perSecond(); got != 50 {
		t.Errorf("%v per second, want 50", got)
	}
	if got := (sample{window: time.Second}).quantile(0.5); got != 0 {
		t.Errorf("the quantile of nothing is %s", got)
	}
}

func TestMediansIgnoreTheOddRound(t *testing.T) {
	rounds := func(windows ...time.Duration) (out []sample) {
		for _, w := range windows {
			out = append(out, sample{window: w})
		}
		return out
	}
	seconds := func(s sample) float64 { return s.window.Seconds() }
	if got := medianOf(rounds(9*time.Second, time.Second, 2*time.Second), seconds); got != 2 {
		t.Errorf("median of 9, 1, 2 is %v", got)
	}
	if got := medianOf(rounds(4*time.Second, time.Second, 2*time.Second, 9*time.Second), seconds); got != 3 {
		t.Errorf("median of 4, 1, 2, 9 is %v", got)
	}
}

func TestAFailureEndsTheRound(t *testing.T) {
	broken := errors.New("broken")
	_, err := closedLoop(t.Context(), 4, time.Minute, func(_ context.Context, c int) error {
		if c == 2 {
			return broken
		}
		return nil
	})
	if !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
}

func TestOnlyTheWindowCounts(t *testing.T) {
	const window = 50 * time.Millisecond
	s, err := closedLoop(t.Context(), 2, window, func(context.Context, int) error { return nil })
	must.NoError(t, err)
	if len(s.latencies) == 0 || s.all <= len(s.latencies) {
		t.Errorf("%d counted of %d: the warm-up must not count", len(s.latencies), s.all)
	}
}

func TestFigures(t *testing.T) {
	for v, want := range map[float64]string{0.756: "0.76", 99.5: "99.50", 145.2: "145", 1234.4: "1,234", 100000: "100,000", 1234567: "1,234,567"} {
		if got := number(v); got != want {
			t.Errorf("number(%v) is %s, want %s", v, got, want)
		}
	}
}

func TestFlags(t *testing.T) {
	for name, args := range map[string][]string{
		"an unknown part":  {"-only", "a,x"},
		"no time":          {"-seconds", "0"},
		"no rounds":        {"-rounds", "0"},
		"something behind": {"a"},
	} {
		if _, _, err := parse(args, t.Output()); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
	_, chosen, err := parse([]string{"-only", "f,b"}, t.Output())
	if err != nil || len(chosen) != 2 || chosen[0].letter != "b" {
		t.Errorf("got %v, %v", chosen, err)
	}
}
