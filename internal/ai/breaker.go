package ai

import (
	"sync"
	"time"
)

const (
	// restAfter is how many questions in a row a server may fail.
	restAfter = 3
	// restTime is how long it is left alone then.
	restTime = 30 * time.Second
)

// breaker keeps this process from waiting again and again for a server that is
// down: after restAfter failures in a row it is not asked for restTime, then by
// one question, whose end decides for all.
type breaker struct {
	now func() time.Time

	mu       sync.Mutex // guards the rest
	failures int        // in a row
	again    time.Time  // when it may be asked, after restAfter of them
	probing  bool
}

// health is what the end of a question says of the server.
type health int

const (
	unknown health = iota // the question was the trouble, or nobody waited for it
	up
	down
)

// enter says whether the server may be asked. Who may must leave, as the probe
// that it is, or not.
func (b *breaker) enter() (probe, may bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.failures < restAfter:
		return false, true
	case b.probing || b.now().Before(b.again):
		return false, false
	}
	b.probing = true
	return true, true
}

// leave tells how it went. A question that was on its way when the rest began
// counts, too.
func (b *breaker) leave(probe bool, h health) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if probe {
		b.probing = false
	}
	switch h {
	case up:
		b.failures = 0
	case down:
		b.failures++
		b.again = b.now().Add(restTime)
	case unknown:
	}
}
