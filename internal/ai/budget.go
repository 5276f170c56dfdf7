package ai

import (
	"sync"
	"time"
)

// The limits of one account's requests to a model from this process in a minute. Beyond
// them the rules do the work for the rest of that minute.
const (
	requestsPerMinute = 20
	tokensPerMinute   = 100_000
)

// budget counts what accounts spend, in minutes that start with an account's
// first request.
type budget struct {
	requests, tokens int // a minute's limits
	now              func() time.Time

	mu    sync.Mutex // guards the rest
	spent map[string]*minute
}

type minute struct {
	began            time.Time
	requests, tokens int
}

func newBudget(now func() time.Time) *budget {
	return &budget{
		requests: requestsPerMinute, tokens: tokensPerMinute,
		now: now, spent: make(map[string]*minute),
	}
}

// bookTokens books a request of about so many tokens; false: the minute has no room
// for it, and nothing is booked.
func (b *budget) bookTokens(account string, tokens int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	m := b.minute(account)
	if m.requests+1 > b.requests || m.tokens+tokens > b.tokens {
		return false
	}
	m.requests++
	m.tokens += tokens
	return true
}

// correctTokens replaces the estimate by the number that the server has reported.
func (b *budget) correctTokens(account string, estimated, actual int) {
	if actual <= 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	m := b.minute(account)
	m.tokens = max(0, m.tokens+actual-estimated)
}

// minute is the account's running one. Starting one drops all that are over,
// so that the map holds no more than a minute's accounts.
func (b *budget) minute(account string) *minute {
	now := b.now()
	over := func(m *minute) bool {
		age := now.Sub(m.began)
		return age >= time.Minute || age < 0
	}
	if m, ok := b.spent[account]; ok && !over(m) {
		return m
	}
	for other, m := range b.spent {
		if over(m) {
			delete(b.spent, other)
		}
	}
	m := &minute{began: now}
	b.spent[account] = m
	return m
}
