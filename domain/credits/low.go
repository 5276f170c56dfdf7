package credits

import (
	"time"

	"humanqa/domain"
)

const (
	// DefaultLow is the limit of an account without its own: four tests.
	DefaultLow domain.Credits = 20
	// MaxLow bounds the limit.
	MaxLow domain.Credits = 1_000_000
)

// DecideLow sets the limit below which credits are low; 0 turns the limit off. The limit
// in force is a repeat.
func DecideLow(s State, below domain.Credits, now time.Time) ([]domain.Event, error) {
	if err := s.sound(); err != nil {
		return nil, err
	}
	if below < 0 || below > MaxLow {
		return nil, domain.InvalidAt("below", "must be a number from 0 to %d", MaxLow)
	}
	if below == s.LowBelow() {
		return nil, nil
	}
	events, balance := s.sweep(now)
	return append(events, &LowSet{Below: below, BalanceAfter: balance}), nil
}

// LowBelow is the limit in force.
func (s State) LowBelow() domain.Credits { return limit(s.low) }

// Limit is the limit that was in force.
func (e *Debited) Limit() domain.Credits { return limit(e.LowBelow) }

// BecameLow says that this debit took the balance below the limit. It is false for later
// debits below the limit.
func (e *Debited) BecameLow() bool {
	return e.BalanceAfter < e.Limit() && e.BalanceAfter+e.Amount >= e.Limit()
}

func limit(set *domain.Credits) domain.Credits {
	if set == nil {
		return DefaultLow
	}
	return *set
}
