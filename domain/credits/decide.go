package credits

import (
	"fmt"
	"time"

	"humanqa/domain"
)

// MaxGranted bounds all grants of one account together, so that sums stay
// exact everywhere, in JSON numbers too.
const MaxGranted domain.Credits = 1<<53 - 1

// Every decision first records the expiry of the lots that are due, so that balanceAfter
// of its last event is the spendable amount at that moment. A refusal and a repeat write
// nothing, not even these expiries.

// DisputeLot is the lot that refunds a job after a dispute. A job has one.
func DisputeLot(jobID string) string { return domain.CommandIDFor("dispute-lot", jobID).String() }

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
	var wrong domain.Wrong
	wrong.AddIf(amount <= 0, "amount", "must be positive")
	wrong.AddIf(amount > MaxGranted-s.granted, "amount", "is more than an account can hold")
	wrong.AddIf(expiresAt != nil && !now.Before(*expiresAt), "expiresAt", "must lie ahead")
	if err := wrong.Refusal(); err != nil {
		return nil, err
	}
	events, balance := s.sweep(now)
	return append(events, &Granted{
		LotID: lotID, Amount: amount, ExpiresAt: expiresAt, Reason: reason, BalanceAfter: balance + amount,
	}), nil
}

// Charge is the price of one job.
type Charge struct {
	JobID  string
	Amount domain.Credits
	// AskedAt is when the command was first asked for, the same for every repeat of it.
	// Zero: unknown.
	AskedAt time.Time
	// KnownTo is the newest close that the caller knew when it read the job from the log.
	// Past is the job's debit if a close left it behind, nil if the job has not ended.
	// See UnsureError.
	KnownTo int
	Past    *Debit
}

// DecideDebits charges jobs, all or none. The soonest-expiring lots pay first, those that
// never expire last, ties by grant order. A job is charged once: the same amount again is
// a repeat, and a charge that was given back stays given back. An *UnsureError says that
// the caller must read the log first. A refusal for lack of credits names the sum of the
// missing charges.
func DecideDebits(s State, charges []Charge, now time.Time) ([]domain.Event, error) {
	if err := s.sound(); err != nil {
		return nil, err
	}
	if err := s.unsure(charges); err != nil {
		return nil, err
	}
	owed, err := s.unpaid(charges)
	if err != nil || len(owed) == 0 {
		return nil, err
	}
	available := s.Available(now)
	var sum domain.Credits
	for _, c := range owed {
		if c.Amount > MaxGranted-sum {
			return nil, domain.InvalidAt("amount", "is more than an account can hold")
		}
		sum += c.Amount
	}
	if sum > available {
		return nil, domain.InsufficientCredits(sum, available)
	}
	events, balance := s.sweep(now)
	open := s.open[len(s.due(now)):]
	var taken domain.Credits // from open[0]
	for _, c := range owed {
		parts := []Part{}
		balance -= c.Amount
		for rest := c.Amount; rest > 0; {
			l := s.lots[open[0]]
			pay := min(rest, l.left-taken)
			parts = append(parts, Part{LotID: l.id, Amount: pay})
			rest -= pay
			if taken += pay; taken == l.left {
				open, taken = open[1:], 0
			}
		}
		events = append(events, &Debited{JobID: c.JobID, Amount: c.Amount, Parts: parts, BalanceAfter: balance, AskedAt: c.AskedAt,
			LowBelow: s.low})
	}
	return events, nil
}

// unpaid are the charges that the ledger does not hold yet.
func (s State) unpaid(charges []Charge) ([]Charge, error) {
	var owed []Charge
	named := make(map[string]bool, len(charges))
	for _, c := range charges {
		d, charged := s.debits[c.JobID]
		if !charged && c.Past != nil && c.KnownTo == s.closes {
			d, charged = debit{amount: c.Past.Amount, refunded: c.Past.Refunded}, true
		}
		switch {
		case c.Amount < 0:
			return nil, domain.InvalidAt("amount", "must not be negative")
		case charged && d.refunded:
			return nil, domain.Conflict("the charge for this job was given back").WithHint("submit the job again")
		case charged && d.amount != c.Amount:
			return nil, domain.Conflict("the job was charged %d credits already", d.amount)
		case named[c.JobID]:
			return nil, domain.Conflict("the job is to be charged twice at once")
		case !charged:
			owed = append(owed, c)
		}
		named[c.JobID] = true
	}
	return owed, nil
}

// DecideRefund refunds a job's debit, whole and once, to the lots that paid. A part for
// an expired lot is lost at once.
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
