package credits

import (
	"fmt"
	"time"

	"humanqa/domain"
)

// MaxGranted bounds all grants of one account together, so that sums stay
// exact everywhere, in JSON numbers too.
const MaxGranted domain.Credits = 1<<53 - 1

// Every decision first records the expiry of the lots that are due, so that
// balanceAfter of its last event is what can be spent at that moment. A
// refusal and a repeat write nothing, not even that.

// DecideGrant adds a lot. A lot id that the ledger knows is a repeat.
func DecideGrant(
	s State, lotID string, amount domain.Credits, expiresAt *time.Time, reason string, now time.Time,
) ([]domain.Event, error) {
	if err := s.sound(); err != nil {
		return nil, err
	}
	if _, ok := s.byID[lotID]; ok {
		return nil, nil
	}
	var wrong []domain.Detail
	switch {
	case amount <= 0:
		wrong = append(wrong, domain.Detail{Path: "amount", Message: "must be positive"})
	case amount > MaxGranted-s.granted:
		wrong = append(wrong, domain.Detail{Path: "amount", Message: "is more than an account can hold"})
	}
	if expiresAt != nil && !now.Before(*expiresAt) {
		wrong = append(wrong, domain.Detail{Path: "expiresAt", Message: "must lie ahead"})
	}
	if len(wrong) > 0 {
		return nil, domain.Invalid(wrong...)
	}
	events, balance := s.sweep(now)
	return append(events, &Granted{
		LotID: lotID, Amount: amount, ExpiresAt: expiresAt, Reason: reason, BalanceAfter: balance + amount,
	}), nil
}

// DecideDebit charges a job. The soonest-expiring lots pay first, those that
// never expire last, ties by grant order. A job is charged once: the same
// amount again is a repeat, and a charge that was given back stays given back.
func DecideDebit(s State, jobID string, amount domain.Credits, now time.Time) ([]domain.Event, error) {
	if err := s.sound(); err != nil {
		return nil, err
	}
	if d, ok := s.debits[jobID]; ok {
		switch {
		case d.refunded:
			return nil, domain.Conflict("the charge for this job was given back")
		case d.amount != amount:
			return nil, domain.Conflict("the job was charged %d credits already", d.amount)
		}
		return nil, nil
	}
	if amount < 0 {
		return nil, domain.Invalid(domain.Detail{Path: "amount", Message: "must not be negative"})
	}
	if available := s.Available(now); amount > available {
		return nil, domain.InsufficientCredits(amount, available)
	}
	events, balance := s.sweep(now)
	parts, owed := []Part{}, amount
	for _, i := range s.open[len(s.due(now)):] {
		if owed == 0 {
			break
		}
		pay := min(owed, s.lots[i].left)
		parts = append(parts, Part{LotID: s.lots[i].id, Amount: pay})
		owed -= pay
	}
	return append(events, &Debited{JobID: jobID, Amount: amount, Parts: parts, BalanceAfter: balance - amount}), nil
}

// DecideRefund gives a job's debit back, whole and once, to the lots that
// paid. What returns to a lot that has expired is lost at once.
func DecideRefund(s State, jobID, reason string, now time.Time) ([]domain.Event, error) {
	if err := s.sound(); err != nil {
		return nil, err
	}
	d, ok := s.debits[jobID]
	switch {
	case !ok:
		return nil, domain.NotFound("debit")
	case d.refunded:
		return nil, nil
	}
	events, balance := s.sweep(now)
	refund := &Refunded{JobID: jobID, Amount: d.amount, Parts: []Part{}, Reason: reason}
	for _, sh := range s.shares(jobID, d) {
		l := s.lots[sh.lot]
		part := Part{LotID: l.id, Amount: sh.amount, Expired: l.gone(now)}
		if part.Expired {
			refund.Expired += part.Amount
		}
		refund.Parts = append(refund.Parts, part)
	}
	refund.BalanceAfter = balance + d.amount - refund.Expired
	return append(events, refund), nil
}

// DecideExpire records the expiry of every lot that is due and has something
// left.
func DecideExpire(s State, now time.Time) ([]domain.Event, error) {
	if err := s.sound(); err != nil {
		return nil, err
	}
	events, _ := s.sweep(now)
	return events, nil
}

// sweep gives the expiries to record now, and the balance after them.
func (s State) sweep(now time.Time) ([]domain.Event, domain.Credits) {
	var events []domain.Event
	balance := s.balance
	for _, i := range s.due(now) {
		l := s.lots[i]
		balance -= l.left
		events = append(events, &LotExpired{LotID: l.id, Amount: l.left, BalanceAfter: balance})
	}
	return events, balance
}

// sound refuses to decide on a ledger that contradicts itself.
func (s State) sound() error {
	if s.damage != nil {
		return fmt.Errorf("the ledger is damaged: %w", s.damage)
	}
	return nil
}
