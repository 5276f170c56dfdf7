package main

import (
	"context"
	"errors"
	"fmt"
)

// crew runs a service's workers. Each has a context of its own, so that they
// stop one after the other, in an order that we choose. The first that ends
// before it was asked to ends the service.
type crew struct {
	values context.Context // never ends
	fail   context.CancelCauseFunc
}

// newCrew gives a context that ends with parent, or with the first worker that
// fails, which is then its cause.
func newCrew(parent context.Context) (*crew, context.Context) {
	ctx, fail := context.WithCancelCause(parent)
	return &crew{values: context.WithoutCancel(parent), fail: fail}, ctx
}

// start runs a worker. The returned stop asks it to end and waits until it
// has; what it still had to complain about by then is stop's error, or that it
// did not end within the limit.
func (c *crew) start(name string, run func(context.Context) error) (stop func(context.Context) error) {
	ctx, cancel := context.WithCancel(c.values)
	ended := make(chan error, 1)
	go func() {
		err := run(ctx)
		if ctx.Err() == nil {
			if err == nil {
				err = errors.New("ended by itself")
			}
			c.fail(fmt.Errorf("%s: %w", name, err))
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
