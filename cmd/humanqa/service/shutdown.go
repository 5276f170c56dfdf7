package service

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"humanqa/httpapi"
	"humanqa/internal/tracing"
)

// The time limits of the steps of a stop. They are not shared: however long one
// part hangs, Postgres still gets the time to leave a clean cluster.
const (
	// drainTime is how long accepted requests may take to finish.
	drainTime = 15 * time.Second
	// apiBudget leaves the drain time to cut off unfinished requests.
	apiBudget = drainTime + 2*time.Second
	// workerBudget is a worker's, which stops its work and drains for less.
	workerBudget = 6 * time.Second
	// closeBudget is for steps that only close.
	closeBudget = 5 * time.Second
	// postgresBudget covers a fast shutdown with its checkpoint.
	postgresBudget = 20 * time.Second
	// overtime is how much longer than its budget the stop waits for a step: a step
	// in time may still have to kill a process. After that the stop leaves the step
	// behind, and it ends with this process.
	overtime = 6 * time.Second
)

// leave tells of the stop before it begins, by /readyz: a proxy that learned of it from
// refused connections would fail the requests that it sends in between.
func (s *Service) leave(api *httpapi.API) {
	if s.api != nil {
		api.Leave()
		time.Sleep(s.cfg.StopDelay)
	}
}

// closeTracer sends the spans that wait, last of all. A collector that is away costs no
// more than its budget, and is no failure of the stop.
func closeTracer(ctx context.Context, t *tracing.Tracer) error {
	return shutdownStep{"traces", closeBudget, func(ctx context.Context) error { _ = t.Close(ctx); return nil }}.run(ctx, overtime)
}

// shutdown holds the steps that undo a start; they run in reverse.
type shutdown []shutdownStep

type shutdownStep struct {
	name   string
	budget time.Duration
	undo   func(context.Context) error
}

func (s *shutdown) add(name string, budget time.Duration, undo func(context.Context) error) {
	*s = append(*s, shutdownStep{name, budget, undo})
}

// run undoes every step, also when one of them fails or hangs.
func (s *shutdown) run(ctx context.Context) error {
	var errs []error
	for _, step := range slices.Backward(*s) {
		errs = append(errs, step.run(ctx, overtime))
	}
	*s = nil
	return errors.Join(errs...)
}

// run takes the budget, and overtime, at most. ctx may have ended.
func (s shutdownStep) run(ctx context.Context, overtime time.Duration) error {
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
