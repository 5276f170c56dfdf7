package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// What each step of a stop may take. They are not shared: however long one part
// hangs, Postgres still gets the time to leave a clean cluster.
const (
	// drainFor is how long accepted requests may take to finish.
	drainFor = 15 * time.Second
	// apiStop leaves the drain room to cut off what did not finish.
	apiStop = drainFor + 2*time.Second
	// workerStop is a worker's, which stops what it does and drains for less.
	workerStop = 6 * time.Second
	// closing is for what only closes.
	closing = 5 * time.Second
	// postgresStop covers a fast shutdown with its checkpoint.
	postgresStop = 20 * time.Second
	// overtime is how much longer than its budget a step is waited for: what
	// keeps to the budget may still have to kill something. After that it is
	// left behind, and ends with the process.
	overtime = 6 * time.Second
)

// stops holds how to undo each step of a start; they run in reverse.
type stops []stop

type stop struct {
	name   string
	budget time.Duration
	undo   func(context.Context) error
}

func (s *stops) add(name string, budget time.Duration, undo func(context.Context) error) {
	*s = append(*s, stop{name, budget, undo})
}

// run undoes every step, also when one of them fails or hangs.
func (s *stops) run(ctx context.Context) error {
	var errs []error
	for _, step := range slices.Backward(*s) {
		errs = append(errs, step.run(ctx, overtime))
	}
	*s = nil
	return errors.Join(errs...)
}

// run takes the budget, and overtime, at most. ctx may have ended.
func (s stop) run(ctx context.Context, overtime time.Duration) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.budget)
	defer cancel()
	undone := make(chan error, 1)
	go func() { undone <- s.undo(ctx) }()
	patience := time.NewTimer(s.budget + overtime)
	defer patience.Stop()
	select {
	case err := <-undone:
		if err != nil {
			return fmt.Errorf("stop %s: %w", s.name, err)
		}
		return nil
	case <-patience.C:
		return fmt.Errorf("stop %s: it hangs and is left behind after %s", s.name, s.budget+overtime)
	}
}
