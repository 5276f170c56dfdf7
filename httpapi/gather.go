package httpapi

import (
	"context"
	"sync"
	"time"
)

// gatherTime bounds what is asked for several requests, any of which may be gone.
const gatherTime = 10 * time.Second

// gathering asks Postgres once for all requests of one caller that wait at the same
// time. Who comes alone asks at once; who comes while a caller is asked for waits, and
// is asked for together with all others that do, by a statement that begins after they
// came. So the requests of one caller neither queue up on a row's lock nor take a
// connection each, and those of different callers never wait for each other.
type gathering[R any] struct {
	mu     sync.Mutex
	queues map[string][]waiting[R] // by caller; there while one is asked for
}

// asking gives the answers of n requests.
type asking[R any] func(ctx context.Context, n int) ([]R, error)

type waiting[R any] struct {
	context.Context
	ask      asking[R]
	answered chan<- gathered[R]
}

type gathered[R any] struct {
	answer R
	err    error
}

// ask gives one of the answers that ask, or somebody else's ask for the same caller,
// gives.
func (g *gathering[R]) ask(ctx context.Context, caller string, ask asking[R]) (answer R, err error) {
	g.mu.Lock()
	line, busy := g.queues[caller]
	if busy {
		answered := make(chan gathered[R], 1)
		g.queues[caller] = append(line, waiting[R]{ctx, ask, answered})
		g.mu.Unlock()
		select {
		case a := <-answered:
			return a.answer, a.err
		case <-ctx.Done():
			return answer, ctx.Err()
		}
	}
	if g.queues == nil {
		g.queues = map[string][]waiting[R]{}
	}
	g.queues[caller] = nil
	g.mu.Unlock()
	defer g.next(caller)
	answers, err := ask(ctx, 1)
	if err != nil {
		return answer, err
	}
	return answers[0], nil
}

// next asks for those who came meanwhile, if anybody did.
func (g *gathering[R]) next(caller string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	line := g.queues[caller]
	if len(line) == 0 {
		delete(g.queues, caller)
		return
	}
	g.queues[caller] = nil
	go func() {
		defer g.next(caller)
		// That one goes away ends nothing for the others.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(line[0]), gatherTime)
		defer cancel()
		answers, err := line[0].ask(ctx, len(line))
		for i, w := range line {
			a := gathered[R]{err: err}
			if err == nil {
				a.answer = answers[i]
			}
			w.answered <- a
		}
	}()
}
