package service

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
)

func untilStopped(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

func TestWorkersStopInOrder(t *testing.T) {
	t.Parallel()
	parent, cancel := context.WithCancel(t.Context())
	workers, ctx := newWorkerGroup(parent)
	order := make(chan string, 2)
	worker := func(name string) func(context.Context) error {
		return func(ctx context.Context) error {
			<-ctx.Done()
			order <- name
			return nil
		}
	}
	var s shutdown
	s.add("first", time.Minute, workers.start("first", worker("first")))
	s.add("second", time.Minute, workers.start("second", worker("second")))
	cancel()
	<-ctx.Done()
	if len(order) != 0 {
		t.Error("a worker ended before it was asked to")
	}
	if err := s.run(t.Context()); err != nil {
		t.Error(err)
	}
	if a, b := <-order, <-order; a != "second" || b != "first" {
		t.Errorf("stopped %s, then %s", a, b)
	}
}

func TestAWorkerThatEndsEndsTheService(t *testing.T) {
	t.Parallel()
	for name, run := range map[string]func(context.Context) error{
		"broken":          func(context.Context) error { return errors.New("broken") },
		"ended by itself": func(context.Context) error { return nil },
	} {
		workers, ctx := newWorkerGroup(t.Context())
		stop := workers.start("worker", run)
		<-ctx.Done()
		if cause := context.Cause(ctx); !strings.Contains(cause.Error(), "worker: "+name) {
			t.Errorf("cause %v, want %q", cause, name)
		}
		if err := stop(t.Context()); err != nil {
			t.Errorf("the failure was told twice: %v", err)
		}
	}
}

func TestAStopTellsWhatDidNotEndWell(t *testing.T) {
	t.Parallel()
	workers, ctx := newWorkerGroup(t.Context())
	quiet := workers.start("quiet", untilStopped)
	loud := workers.start("loud", func(ctx context.Context) error {
		<-ctx.Done()
		return errors.New("three requests were cut off")
	})
	release := make(chan struct{})
	stuck := workers.start("stuck", func(context.Context) error { <-release; return nil })
	if err := quiet(t.Context()); err != nil {
		t.Error(err)
	}
	if err := (shutdownStep{"loud", time.Minute, loud}).run(t.Context(), time.Minute); err == nil || err.Error() != "stop loud: three requests were cut off" {
		t.Errorf("error %v", err)
	}
	limit, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if err := stuck(limit); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v, want the limit", err)
	}
	close(release)
	if ctx.Err() != nil {
		t.Error("an orderly stop counted as a failure")
	}
}

func TestNoStepOfAStopTakesTheTimeOfAnother(t *testing.T) {
	t.Parallel()
	var s shutdown
	var left time.Duration
	s.add("postgres", time.Hour, func(ctx context.Context) error {
		until, _ := ctx.Deadline()
		left = time.Until(until)
		return ctx.Err()
	})
	s.add("slow", time.Millisecond, untilStopped)
	over, cancel := context.WithCancel(t.Context())
	cancel()
	err := s.run(over)
	if err == nil || err.Error() != "stop slow: context deadline exceeded" {
		t.Errorf("error %v, want the slow step alone", err)
	}
	if left < 59*time.Minute {
		t.Errorf("postgres had %s to stop, want its hour", left)
	}
}

func TestAStepThatHangsIsLeftBehind(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	defer close(release)
	deaf := shutdownStep{"deaf", time.Millisecond, func(context.Context) error { <-release; return nil }}
	if err := deaf.run(t.Context(), time.Millisecond); err == nil || err.Error() != "stop deaf: it hangs and is left behind after 2ms" {
		t.Errorf("error %v", err)
	}
	// What only keeps to its budget is waited for.
	late := shutdownStep{"late", time.Millisecond, func(ctx context.Context) error { <-ctx.Done(); return nil }}
	if err := late.run(t.Context(), time.Minute); err != nil {
		t.Errorf("error %v", err)
	}
}
