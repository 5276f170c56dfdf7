package ai

import (
	"context"
	"errors"
	"time"

	"github.com/sony/gobreaker/v2"
)

const (
	// restAfter is how many questions in a row a server may fail.
	restAfter = 3
	// restTime is how long it is not asked then.
	restTime = 30 * time.Second
)

// newBreaker keeps this process from waiting again and again for a server that is down:
// after restAfter failures in a row the server is not asked for restTime. Then one
// question is sent, and its result decides for all.
//
// A malformed answer shows that the server is up. A spent budget, a question that the
// server does not take, and a caller that has gone are not counted.
func newBreaker() *gobreaker.CircuitBreaker[struct{}] {
	return gobreaker.NewCircuitBreaker[struct{}](gobreaker.Settings{
		Timeout:      restTime,
		ReadyToTrip:  func(c gobreaker.Counts) bool { return c.ConsecutiveFailures >= restAfter },
		IsSuccessful: func(err error) bool { return err == nil || errors.Is(err, errMalformed) },
		IsExcluded: func(err error) bool {
			return errors.Is(err, errBudget) || errors.Is(err, errNotTaken) || errors.Is(err, context.Canceled)
		},
	})
}
