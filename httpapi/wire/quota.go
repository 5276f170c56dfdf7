package wire

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"humanqa/domain"
)

// Quota divides a number of units, such as bytes or places, among accounts: no more than
// there are, and to no account more than its own limit.
type Quota struct {
	perAccount int64
	wait       time.Duration

	mu    sync.Mutex
	free  int64
	held  map[string]int64 // by account
	freed chan struct{}    // closed, and made anew, when units are given back
}

func NewQuota(n, perAccount int64, wait time.Duration) *Quota {
	return &Quota{free: n, perAccount: perAccount, wait: wait, held: map[string]int64{}, freed: make(chan struct{})}
}

// Acquire waits for n units.
func (q *Quota) Acquire(ctx context.Context, owner string, n int64) error {
	ctx, cancel := context.WithTimeout(ctx, q.wait)
	defer cancel()
	for {
		freed := q.TryAcquire(owner, n)
		if freed == nil {
			return nil
		}
		select {
		case <-freed:
		case <-ctx.Done():
			return domain.Unavailable(fmt.Errorf("no place among those of its account: %w", ctx.Err()))
		}
	}
}

// TryAcquire answers nil if it took the units, else a channel that closes when some are
// given back.
func (q *Quota) TryAcquire(owner string, n int64) (freed <-chan struct{}) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.free < n || q.held[owner]+n > q.perAccount {
		return q.freed
	}
	q.free -= n
	q.held[owner] += n
	return nil
}

func (q *Quota) Release(owner string, n int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.free += n
	if q.held[owner] -= n; q.held[owner] == 0 {
		delete(q.held, owner)
	}
	close(q.freed)
	q.freed = make(chan struct{})
}

// Holders are the accounts that hold units.
func (q *Quota) Holders() []string {
	q.mu.Lock()
	defer q.mu.Unlock()
	return slices.AppendSeq([]string{}, maps.Keys(q.held))
}

// placeRetry is the Retry-After, in seconds, for a client that found no place.
const placeRetry = 2

// Enter asks for an account's place; leave gives it back. what is the kind, in
// the plural.
func (q *Quota) Enter(what, accountID string) (leave func(), err error) {
	if q.TryAcquire(accountID, 1) != nil {
		return nil, RetryAfter(&domain.Error{
			Kind: domain.KindRateLimited, Code: domain.CodeRateLimited,
			Message: "too many " + what + " are under way", Hint: "send the same request again in a moment",
		}, placeRetry)
	}
	return sync.OnceFunc(func() { q.Release(accountID, 1) }), nil
}
