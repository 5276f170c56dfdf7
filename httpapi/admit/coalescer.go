package admit

import (
	"context"
	"sync"
	"time"
)

// lookUpTime bounds a look-up for several requests, any of which may be gone.
const lookUpTime = 10 * time.Second

// coalescer asks Postgres once for all requests of one caller that wait at the same
// time. A request that comes alone is looked up at once. Requests that arrive while a
// look-up of the same caller runs share one further look-up, whose statement begins
// after they came. So the requests of one caller neither queue up on a row's lock nor
// take a connection each, and those of different callers never wait for each other.
type coalescer[R any] struct {
	mu     sync.Mutex
	queues map[string][]waitingRequest[R] // by caller; an entry is there while a look-up runs
}

// lookUp gives the answers of n requests.
type lookUp[R any] func(ctx context.Context, n int) ([]R, error)

type waitingRequest[R any] struct {
	context.Context
	lookUp   lookUp[R]
	answered chan<- lookedUp[R]
}

type lookedUp[R any] struct {
	answer R
	err    error
}

// lookUp gives one of the answers of ask, or of another request's ask for the same
// caller.
func (g *coalescer[R]) lookUp(ctx context.Context, caller string, ask lookUp[R]) (answer R, err error) {
	g.mu.Lock()
	line, busy := g.queues[caller]
	if busy {
		answered := make(chan lookedUp[R], 1)
		g.queues[caller] = append(line, waitingRequest[R]{ctx, ask, answered})
		g.mu.Unlock()
		select {
		case a := <-answered:
			return a.answer, a.err
		case <-ctx.Done():
			return answer, ctx.Err()
		}
	}
	if g.queues == nil {
		g.queues = map[string][]waitingRequest[R]{}
	}
	g.queues[caller] = nil
	g.mu.Unlock()
	defer g.serveWaiting(caller)
	answers, err := ask(ctx, 1)
	if err != nil {
		return answer, err
	}
	return answers[0], nil
}

// serveWaiting looks up for the requests that came meanwhile, if there are any.
func (g *coalescer[R]) serveWaiting(caller string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	line := g.queues[caller]
	if len(line) == 0 {
		delete(g.queues, caller)
		return
	}
	g.queues[caller] = nil
	go func() {
		defer g.serveWaiting(caller)
		// The look-up does not end when the first request goes away.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(line[0]), lookUpTime)
		defer cancel()
		answers, err := line[0].lookUp(ctx, len(line))
		for i, w := range line {
			a := lookedUp[R]{err: err}
			if err == nil {
				a.answer = answers[i]
			}
			w.answered <- a
		}
	}()
}
