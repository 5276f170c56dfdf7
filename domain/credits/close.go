package credits

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"humanqa/domain"
)

// Closed closes the book. It holds everything that a later decision needs of earlier
// events, so that a fold may begin here. A debit outside it was left behind: its job
// has ended, and the debit is settled for good. It was either kept by a completed job
// or given back (docs/decisions.md, "Closing the books").
type Closed struct {
	Number  int            `json:"number"` // of the ledger's closes, from 1
	At      time.Time      `json:"at"`     // later than the AskedAt of every debit before it
	Granted domain.Credits `json:"granted"`
	Used    domain.Credits `json:"used"` // net of refunds
	Expired domain.Credits `json:"expired"`
	// Debits counts the jobs that were ever charged.
	Debits int `json:"debits"`
	// Lots are all lots ever granted, in grant order.
	Lots []ClosedLot `json:"lots"`
	// Open are the debits that one lot paid and that can still be refunded, by lot and
	// amount. Their jobIds are base64 of the ids' bytes, 16 each.
	Open []OpenDebits `json:"open,omitempty"`
	// Kept are the other debits that stay.
	Kept []KeptDebit `json:"kept,omitempty"`
	// LowBelow is the limit in force (LowSet); absent: DefaultLow.
	LowBelow     *domain.Credits `json:"lowBelow,omitempty"`
	BalanceAfter domain.Credits  `json:"balanceAfter"`
}

// ClosedLot is a lot at the time of a close. Swept is true once its expiry is recorded.
type ClosedLot struct {
	LotID     string         `json:"lotId"`
	Left      domain.Credits `json:"left"`
	ExpiresAt *time.Time     `json:"expiresAt,omitempty"`
	Swept     bool           `json:"swept,omitempty"`
}

// OpenDebits are debits of the same amount from the same lot.
type OpenDebits struct {
	LotID  string         `json:"lotId"`
	Amount domain.Credits `json:"amount"`
	JobIDs JobIDs         `json:"jobIds"`
}

// KeptDebit is a debit that several lots paid, a debit of 0, or one with a refund that
// differs from its job's. Part.Expired is as in Refunded.
type KeptDebit struct {
	JobID    string         `json:"jobId"`
	Amount   domain.Credits `json:"amount"`
	Parts    []Part         `json:"parts,omitempty"`
	Refunded bool           `json:"refunded,omitempty"`
}

func (*Closed) EventType() string { return "credits.closed" }

// UnsureError refuses to charge for jobs without a debit in the open book. Their debits
// may stand in an older one, so the caller first asks the log about the jobs
// (Charge.Past).
type UnsureError struct {
	Closes int
	JobIDs []string
}

func (e *UnsureError) Error() string {
	return fmt.Sprintf("the debits of %v may have been left behind by close %d", e.JobIDs, e.Closes)
}

// unsure looks for charges that may repeat a debit that was left behind. A command whose
// first request came at the newest close's time or later is no such repeat: the close is
// later than the requests of all its debits.
func (s State) unsure(charges []Charge) error {
	if s.closes == 0 {
		return nil
	}
	e := &UnsureError{Closes: s.closes}
	for _, c := range charges {
		_, charged := s.debits[c.JobID]
		if !charged && c.KnownTo != s.closes && (c.AskedAt.IsZero() || c.AskedAt.Before(s.closedAt)) {
			e.JobIDs = append(e.JobIDs, c.JobID)
		}
	}
	if e.JobIDs == nil {
		return nil
	}
	return e
}

// LeftBehind says that the open book has no debit of the job, and that an older book may
// have one. Such a debit is settled.
func (s State) LeftBehind(jobID string) bool {
	_, ok := s.debits[jobID]
	return !ok && s.closes > 0
}

// Settled is the end of a job in the log. The job was completed, or it ended without a
// report: RefundExpired is then as in job.Cancelled.
type Settled struct {
	Completed     bool
	RefundExpired domain.Credits
}

// holds says that the debit of such a job can never change again.
func (o Settled) holds(d Debit) bool {
	if o.Completed {
		return !d.Refunded
	}
	return d.Refunded && d.Expired == o.RefundExpired
}

// Book is the size of a fold from the newest close.
type Book struct {
	Events int // since the close
	Debits int // in memory
	Closes int
	Lots   int
	// OpenedAt is when the book was opened; zero for the ledger's first book.
	OpenedAt time.Time
}

// Book gives the size of the open book.
func (s State) Book() Book {
	return Book{Events: s.events, Debits: len(s.debits), Closes: s.closes, Lots: len(s.lots), OpenedAt: s.closedAt}
}

// keptPerEvent is how many debits a close may keep for each event before it. An event takes
// as many bytes as some 32 ids in a close.
const keptPerEvent = 32

// Full says that it is time to close: after so many events, and not before they take as
// many bytes as the debits that had to be kept. So even if no job ends, all closes of a
// ledger together take about as many bytes as its other events.
func (s State) Full(every int) bool { return s.events >= max(every, s.kept/keptPerEvent) }

// Unsettled lists the jobs of the debits that a close would have to check: refunded
// debits, and the others.
func (s State) Unsettled() (refunded, open []string) {
	for id, d := range s.debits {
		if d.refunded {
			refunded = append(refunded, id)
		} else {
			open = append(open, id)
		}
	}
	slices.Sort(refunded)
	slices.Sort(open)
	return refunded, open
}

// DecideClose closes the book, unless it is empty. settled are jobs that the log knows to
// have ended; the debits of all others stay.
func DecideClose(s State, settled map[string]Settled, now time.Time) ([]domain.Event, error) {
	if err := s.sound(); err != nil || s.events == 0 {
		return nil, err
	}
	// The close is later than every earlier request, by any clock, so a later request is
	// no repeat of an earlier one.
	at := now
	for _, t := range []time.Time{s.closedAt, s.askedAt} {
		if !at.After(t) {
			at = t.Add(time.Millisecond)
		}
	}
	e := &Closed{
		Number: s.closes + 1, At: at, Granted: s.granted, Used: s.used, Expired: s.expired, Debits: s.charged,
		Lots: make([]ClosedLot, len(s.lots)), LowBelow: s.low, BalanceAfter: s.balance,
	}
	for i, l := range s.lots {
		e.Lots[i] = ClosedLot{LotID: l.id, Left: l.left, Swept: l.swept}
		if !l.expiresAt.IsZero() {
			e.Lots[i].ExpiresAt = &l.expiresAt
		}
	}
	type kind struct {
		lot    int32
		amount domain.Credits
	}
	open := map[kind][]string{}
	for _, id := range slices.Sorted(maps.Keys(s.debits)) {
		shown, _ := s.Debit(id)
		if o, ok := settled[id]; ok && o.holds(shown) {
			continue
		}
		if d := s.debits[id]; d.lot != noLot && !d.refunded {
			open[kind{d.lot, d.amount}] = append(open[kind{d.lot, d.amount}], id)
			continue
		}
		e.Kept = append(e.Kept, KeptDebit{JobID: id, Amount: shown.Amount, Parts: shown.Parts, Refunded: shown.Refunded})
	}
	for k, ids := range open {
		e.Open = append(e.Open, OpenDebits{LotID: s.lots[k.lot].id, Amount: k.amount, JobIDs: ids})
	}
	slices.SortFunc(e.Open, func(a, b OpenDebits) int {
		return cmp.Or(cmp.Compare(s.byID[a.LotID], s.byID[b.LotID]), cmp.Compare(a.Amount, b.Amount))
	})
	return []domain.Event{e}, nil
}

// closeBook opens a new book. If the earlier events were folded, they must agree with the
// close; otherwise the fold begins with the close.
func (s *State) closeBook(e *Closed) {
	if s.events == 0 && s.closes == 0 {
		s.startBook(e)
	} else {
		s.compare(e)
	}
	keeps := e.each()
	kept := make(map[string]debit, len(keeps))
	split := make(map[string][]share)
	s.open = s.open[:0:0]
	for i := range s.lots {
		if s.lots[i].left > 0 {
			s.open = append(s.open, i)
		}
	}
	slices.SortFunc(s.open, s.payingOrder)
	for _, d := range keeps {
		of := debit{amount: d.Amount, lot: noLot, refunded: d.Refunded}
		var shares []share
		for _, p := range d.Parts {
			i, ok := s.byID[p.LotID]
			if !ok {
				s.damaged("close %d keeps a debit from the unknown lot %s", e.Number, p.LotID)
				return
			}
			shares = append(shares, share{lot: int32(i), amount: p.Amount, expired: p.Expired})
		}
		switch len(shares) {
		case 0:
		case 1:
			of.lot, of.expired = shares[0].lot, shares[0].expired
		default:
			split[d.JobID] = shares
		}
		kept[d.JobID] = of
	}
	if len(kept) < len(keeps) {
		s.damaged("close %d keeps the debit of a job twice", e.Number)
		return
	}
	s.debits, s.split = kept, split
	s.closes, s.closedAt, s.askedAt = e.Number, e.At, time.Time{}
	s.events, s.kept = 0, len(kept)
}

// startBook takes over a close's summary of all earlier events.
func (s *State) startBook(e *Closed) {
	*s = State{
		balance: 0, granted: e.Granted, used: e.Used, expired: e.Expired, charged: e.Debits,
		byID: make(map[string]int, len(e.Lots)), damage: s.damage, low: e.LowBelow,
	}
	for i, l := range e.Lots {
		s.lots = append(s.lots, lot{id: l.LotID, left: l.Left, swept: l.Swept, expiresAt: expiry(l.ExpiresAt)})
		s.byID[l.LotID] = i
		s.balance += l.Left
	}
}

// compare checks a close against the events before it.
func (s *State) compare(e *Closed) {
	want := sums{s.closes + 1, s.charged, s.granted, s.used, s.expired, s.balance}
	if is := (sums{e.Number, e.Debits, e.Granted, e.Used, e.Expired, e.BalanceAfter}); is != want {
		s.damaged("close %d sums up %+v, its stream %+v", e.Number, is, want)
	}
	if !e.At.After(s.closedAt) || !e.At.After(s.askedAt) {
		s.damaged("close %d stands at %s, which is not after all it closes", e.Number, e.At)
	}
	if limit(e.LowBelow) != s.LowBelow() {
		s.damaged("close %d says that credits are low below %d, its stream below %d", e.Number, limit(e.LowBelow), s.LowBelow())
	}
	same := slices.EqualFunc(e.Lots, s.lots, func(a ClosedLot, b lot) bool {
		return a.LotID == b.id && a.Left == b.left && a.Swept == b.swept && expiry(a.ExpiresAt).Equal(b.expiresAt)
	})
	if !same {
		s.damaged("close %d has other lots than its stream", e.Number)
	}
	for _, d := range e.each() {
		was, ok := s.Debit(d.JobID)
		if !ok || was.Amount != d.Amount || was.Refunded != d.Refunded || !slices.Equal(was.Parts, d.Parts) {
			s.damaged("close %d keeps another debit of job %s than its stream has", e.Number, d.JobID)
		}
	}
}

type sums struct {
	Number, Debits                  int
	Granted, Used, Expired, Balance domain.Credits
}

// each lists every debit that stays.
func (e *Closed) each() []KeptDebit {
	all := make([]KeptDebit, 0, len(e.Kept))
	for _, o := range e.Open {
		for _, id := range o.JobIDs {
			all = append(all, KeptDebit{JobID: id, Amount: o.Amount, Parts: []Part{{LotID: o.LotID, Amount: o.Amount}}})
		}
	}
	return append(all, e.Kept...)
}

// Keeps lists the jobs with debits that stay.
func (e *Closed) Keeps() map[string]bool {
	kept := make(map[string]bool)
	for _, d := range e.each() {
		kept[d.JobID] = true
	}
	return kept
}
