package service

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sirupsen/logrus"

	"humanqa/internal/backoff"
)

// workerGroup runs a service's workers. Each has a context of its own, so that they
// stop one after the other, in an order that we choose. The first that ends
// before it was asked to ends the service.
type workerGroup struct {
	values context.Context // never ends
	fail   context.CancelCauseFunc
}

// newWorkerGroup gives a context that ends with parent, or with the first worker that
// fails, which is then its cause.
func newWorkerGroup(parent context.Context) (*workerGroup, context.Context) {
	ctx, fail := context.WithCancelCause(parent)
	return &workerGroup{values: context.WithoutCancel(parent), fail: fail}, ctx
}

// start runs a worker. The returned stop asks it to end and waits until it
// has. Its error is the worker's last one, or that the worker did not end within
// the limit.
func (g *workerGroup) start(name string, run func(context.Context) error) (stop func(context.Context) error) {
	ctx, cancel := context.WithCancel(g.values)
	ended := make(chan error, 1)
	go func() {
		err := run(ctx)
		if ctx.Err() == nil {
			if err == nil {
				err = errors.New("ended by itself")
			}
			g.fail(fmt.Errorf("%s: %w", name, err))
			err = nil // told
		}
		ended <- err
	}()
	return func(limit context.Context) error {
		cancel()
		select {
		case err := <-ended:
			if err == nil || errors.Is(err, context.Canceled) {
				return nil
			}
			return err
		case <-limit.Done():
			return limit.Err()
		}
	}
}

// sweepEvery is how often a worker removes rows that are over.
const sweepEvery = 10 * time.Minute

// repeating is a worker that does a thing again and again. otherwise is the warning of a
// failure.
func repeating(
	every time.Duration, sweep func(context.Context) error, log logrus.FieldLogger, otherwise string,
) func(context.Context) error {
	return func(ctx context.Context) error {
		for again := true; again; again = backoff.Wait(ctx, every) == nil {
			if err := sweep(ctx); err != nil && ctx.Err() == nil {
				log.WithError(err).Warn(otherwise)
			}
		}
		return nil
	}
}
