package store

import (
	"context"
	"sync"
)

// term is the time for which the store has the writer's lock. Answers hold only within it:
// afterwards another node may write. The writer begins and ends it.
type term struct {
	mu  sync.Mutex
	ctx context.Context
	end context.CancelCauseFunc
}

// begin starts a new term.
func (t *term) begin() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ctx, t.end = context.WithCancelCause(context.Background())
}

// lose ends the term. What is learned of the loss later replaces its cause.
func (t *term) lose(cause error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ctx.Err() != nil {
		t.ctx, t.end = context.WithCancelCause(context.Background())
	}
	t.end(cause)
}

// Term ends when the store loses the writer's lock, with ErrLost or ErrLocked as its cause.
// Once the store has the lock again there is a new term.
func (t *term) Term() context.Context {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.ctx
}
