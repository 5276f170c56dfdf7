package credits

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"humanqa/domain"
)

// State is a ledger after some events. It belongs to its fold: Evolve changes maps and
// slices in place, so an event costs the same at any length of the ledger. Do not use a
// state again after passing it to Evolve.
//
// A debit stays until a close leaves it behind (a job is charged once), so it is small:
// 16 bytes and the job's id. Only a debit that several lots paid keeps its parts.
type State struct {
	balance domain.Credits // left in all lots that were not swept
	granted domain.Credits
	used    domain.Credits // net of refunds
	expired domain.Credits

	lots   []lot          // every lot ever granted, in grant order
	byID   map[string]int // lot id → index in lots
	open   []int          // the lots with something left, in paying order
	debits map[string]debit
	split  map[string][]share // the parts of debits that several lots paid

	damage error // the first event that the stream's own balances contradict

	charged  int       // debits ever
	closes   int       // the newest close's number
	closedAt time.Time // Closed.At
	askedAt  time.Time // the latest Debited.AskedAt since
	events   int       // since the newest close
	kept     int       // debits that the newest close did not leave behind

	low *domain.Credits // the limit that was set; never changed in place
}

type lot struct {
	id        string
	left      domain.Credits
	expiresAt time.Time // zero: never
	swept     bool      // a lot_expired took its remainder
}

// debit is the charge of a job. lot is the index of the one lot that paid; noLot when
// several did (see State.split) or the charge was nothing.
type debit struct {
	amount   domain.Credits
	lot      int32
	refunded bool
	expired  bool // the refund came too late for the lot
}

const noLot = -1

type share struct {
	amount  domain.Credits
	lot     int32
	expired bool // as in debit
}

// Lot is something left to spend, as of a moment.
type Lot struct {
	ID        string
	Remaining domain.Credits
	ExpiresAt *time.Time // nil: never
}

// Debit is the charge for one job.
type Debit struct {
	Amount   domain.Credits
	Parts    []Part
	Refunded bool
	// Expired is the part of the refund that was lost with its lots.
	Expired domain.Credits
}

// Balance is the last event's balanceAfter: the rest of all lots without a recorded
// expiry.
func (s State) Balance() domain.Credits { return s.balance }

// Granted is the sum of all grants: Balance + Used + Expired.
func (s State) Granted() domain.Credits { return s.granted }

// Used is the sum of all debits less the refunds.
func (s State) Used() domain.Credits { return s.used }

// Expired is the amount that lots lost by their recorded expiry.
func (s State) Expired() domain.Credits { return s.expired }

// Damage is not nil when the stream contradicts itself: an event's balanceAfter differs
// from the sum of the events before it. Nothing may be decided on such a ledger.
func (s State) Damage() error { return s.damage }

// Available is the spendable amount at that moment. It leaves out lots that expired but
// were not swept yet.
func (s State) Available(now time.Time) domain.Credits {
	sum := s.balance
	for _, i := range s.due(now) {
		sum -= s.lots[i].left
	}
	return sum
}

// Lots are the lots that can be spent at that moment, in the order in which
// they pay.
func (s State) Lots(now time.Time) []Lot {
	open := s.open[len(s.due(now)):]
	lots := make([]Lot, len(open))
	for n, i := range open {
		l := s.lots[i]
		lots[n] = Lot{ID: l.id, Remaining: l.left}
		if !l.expiresAt.IsZero() {
			lots[n].ExpiresAt = &l.expiresAt
		}
	}
	return lots
}

// Debit gives the charge for a job.
func (s State) Debit(jobID string) (Debit, bool) {
	d, ok := s.debits[jobID]
	if !ok {
		return Debit{}, false
	}
	shares := s.shares(jobID, d)
	debit := Debit{Amount: d.amount, Parts: make([]Part, len(shares)), Refunded: d.refunded}
	for n, sh := range shares {
		debit.Parts[n] = Part{LotID: s.lots[sh.lot].id, Amount: sh.amount, Expired: sh.expired}
		if sh.expired {
			debit.Expired += sh.amount
		}
	}
	return debit, true
}

// Lost is the part of the job's debit that goes into expired lots if the job is refunded
// then. For a refunded debit it is the part that did.
func (s State) Lost(jobID string, now time.Time) (lost domain.Credits) {
	d, ok := s.debits[jobID]
	if !ok {
		return 0
	}
	for _, sh := range s.shares(jobID, d) {
		if sh.expired || !d.refunded && s.lots[sh.lot].gone(now) {
			lost += sh.amount
		}
	}
	return lost
}

// Evolve folds one event into the state and takes the old state over (see
// State). Events of other aggregates change nothing.
func Evolve(s State, e domain.Event) State {
	switch e := e.(type) {
	case *Granted:
		s.grant(e)
		s.prove(e, e.BalanceAfter)
	case *Debited:
		s.debit(e)
		s.prove(e, e.BalanceAfter)
	case *Refunded:
		s.refund(e)
		s.prove(e, e.BalanceAfter)
	case *LotExpired:
		s.expire(e)
		s.prove(e, e.BalanceAfter)
	case *LowSet:
		s.low = &e.Below
		s.prove(e, e.BalanceAfter)
	case *Closed:
		s.closeBook(e)
		s.prove(e, e.BalanceAfter)
		return s
	default:
		return s
	}
	s.events++
	return s
}

func (s *State) grant(e *Granted) {
	if s.byID == nil {
		s.byID = make(map[string]int)
	}
	s.lots = append(s.lots, lot{id: e.LotID, expiresAt: expiry(e.ExpiresAt)})
	s.byID[e.LotID] = len(s.lots) - 1
	s.granted += e.Amount
	s.give(len(s.lots)-1, e.Amount)
}

// expiry is when a lot expires; zero: never. Timers and answers know milliseconds: at the
// announced moment the lot must be expired.
func expiry(at *time.Time) time.Time {
	if at == nil {
		return time.Time{}
	}
	return at.Truncate(time.Millisecond)
}

func (s *State) debit(e *Debited) {
	if _, ok := s.debits[e.JobID]; ok {
		s.damaged("job %s is charged a second time", e.JobID)
		return
	}
	d := debit{amount: e.Amount, lot: noLot}
	shares := make([]share, 0, len(e.Parts))
	for _, p := range e.Parts {
		i, ok := s.byID[p.LotID]
		if !ok {
			s.damaged("job %s was paid from the unknown lot %s", e.JobID, p.LotID)
			return
		}
		s.takeFromLot(i, p.Amount)
		shares = append(shares, share{lot: int32(i), amount: p.Amount})
	}
	switch len(shares) {
	case 0:
	case 1:
		d.lot = shares[0].lot
	default:
		if s.split == nil {
			s.split = make(map[string][]share)
		}
		s.split[e.JobID] = shares
	}
	if s.debits == nil {
		s.debits = make(map[string]debit)
	}
	s.debits[e.JobID] = d
	s.used += e.Amount
	s.charged++
	if s.askedAt.Before(e.AskedAt) {
		s.askedAt = e.AskedAt
	}
}

func (s *State) refund(e *Refunded) {
	d, ok := s.debits[e.JobID]
	if !ok || d.refunded {
		s.damaged("the refund for job %s has no open debit", e.JobID)
		return
	}
	d.refunded = true
	s.used -= e.Amount
	for _, p := range e.Parts {
		i, ok := s.byID[p.LotID]
		switch {
		case !ok:
			s.damaged("the refund for job %s goes to the unknown lot %s", e.JobID, p.LotID)
		case p.Expired:
			s.expired += p.Amount
			d.expired = d.expired || d.lot == int32(i)
			for n, sh := range s.split[e.JobID] {
				s.split[e.JobID][n].expired = sh.expired || sh.lot == int32(i)
			}
		default:
			s.give(i, p.Amount)
		}
	}
	s.debits[e.JobID] = d
}

func (s *State) expire(e *LotExpired) {
	i, ok := s.byID[e.LotID]
	if !ok {
		s.damaged("the unknown lot %s expired", e.LotID)
		return
	}
	s.takeFromLot(i, e.Amount)
	s.lots[i].swept = true
	s.expired += e.Amount
}

// give adds to a lot and keeps s.open in paying order.
func (s *State) give(i int, amount domain.Credits) {
	if amount <= 0 {
		if amount < 0 {
			s.damaged("%d credits were given to lot %s", amount, s.lots[i].id)
		}
		return
	}
	if s.lots[i].left == 0 {
		at, _ := slices.BinarySearchFunc(s.open, i, s.payingOrder)
		s.open = slices.Insert(s.open, at, i)
	}
	s.lots[i].left += amount
	s.balance += amount
}

// takeFromLot takes an amount from a lot. A lot that is used up leaves s.open.
func (s *State) takeFromLot(i int, amount domain.Credits) {
	l := &s.lots[i]
	if amount < 0 || amount > l.left {
		s.damaged("%d credits were taken from lot %s, which holds %d", amount, l.id, l.left)
		return
	}
	l.left -= amount
	s.balance -= amount
	if l.left == 0 && amount > 0 {
		if at, ok := slices.BinarySearchFunc(s.open, i, s.payingOrder); ok {
			s.open = slices.Delete(s.open, at, at+1)
		}
	}
}

// payingOrder: soonest-expiring lots first, those that never expire last, ties
// by grant order.
func (s *State) payingOrder(i, j int) int {
	a, b := s.lots[i].expiresAt, s.lots[j].expiresAt
	switch {
	case a.Equal(b):
		return cmp.Compare(i, j)
	case a.IsZero():
		return 1
	case b.IsZero():
		return -1
	}
	return a.Compare(b)
}

// due are the open lots that have expired by now: a prefix of open.
func (s State) due(now time.Time) []int {
	n := 0
	for n < len(s.open) && s.lots[s.open[n]].gone(now) {
		n++
	}
	return s.open[:n]
}

func (l lot) gone(now time.Time) bool {
	return l.swept || !l.expiresAt.IsZero() && !now.Before(l.expiresAt)
}

func (s State) shares(jobID string, d debit) []share {
	if d.lot != noLot {
		return []share{{lot: d.lot, amount: d.amount, expired: d.expired}}
	}
	return s.split[jobID]
}

func (s *State) prove(e domain.Event, balanceAfter domain.Credits) {
	if s.balance != balanceAfter {
		s.damaged("%s says %d credits are left, its stream adds up to %d", e.EventType(), balanceAfter, s.balance)
	}
}

func (s *State) damaged(format string, args ...any) {
	if s.damage == nil {
		s.damage = fmt.Errorf(format, args...)
	}
}
