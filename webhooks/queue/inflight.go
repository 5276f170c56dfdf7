package queue

import (
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"humanqa/webhooks"
)

// inFlight is the register of the deliveries that this process is sending, or has sent
// and not settled. The endpoints' rows tell all processes the same (in_flight, under
// lease_id). A delivery that is in the row under this process's lease, but not in the
// register, was lost.
//
// Each delivery takes a place of the pool from its claim until its answer, or until its
// lease ends, even if its request still runs.
type inFlight struct {
	holder uuid.UUID // of this process's leases
	lease  time.Duration

	mu         sync.Mutex
	deliveries map[string]flight
}

type flight struct {
	Delivery
	until    time.Time // its lease ends
	direct   bool      // its place is one of those kept for direct dispatch
	answered bool      // it only needs to be settled
}

// takesPlace says whether the delivery has a place of the pool.
func (f flight) takesPlace(now time.Time) bool { return !f.answered && now.Before(f.until) }

func newInFlight(lease time.Duration) *inFlight {
	return &inFlight{holder: uuid.New(), lease: lease, deliveries: map[string]flight{}}
}

// leaseEnd is the end of leases that are written from now on, by this process's clock. It
// is no later than the end by the database's clock.
func (f *inFlight) leaseEnd() time.Time { return time.Now().Add(f.lease) }

// addBatch enters claimed deliveries.
func (f *inFlight) addBatch(batch []Delivery, until time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range batch {
		f.deliveries[c.ID] = flight{Delivery: c, until: until}
	}
}

// reservePlace enters a delivery for direct dispatch, if one of the places kept for that
// is free. The quota of an account holds for these places, too.
func (f *inFlight) reservePlace(c Delivery, kept int, until time.Time) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	now, all, own := time.Now(), 0, 0
	for _, other := range f.deliveries {
		if other.direct && other.takesPlace(now) {
			all++
			if other.AccountID == c.AccountID {
				own++
			}
		}
	}
	if all >= kept || quota(kept-all, own) == 0 {
		return false
	}
	f.deliveries[c.ID] = flight{Delivery: c, until: until, direct: true}
	return true
}

// Forget takes deliveries out that were settled, or reserved and not written; a later attempt
// of one of them stays. Any goroutine may call it.
func (f *inFlight) Forget(batch ...Delivery) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range batch {
		if f.deliveries[c.ID].Attempt == c.Attempt {
			delete(f.deliveries, c.ID)
		}
	}
}

// MarkAnswered frees the delivery's place: it only needs to be settled. Any goroutine may
// call it.
func (f *inFlight) MarkAnswered(c Delivery) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if one, known := f.deliveries[c.ID]; known && one.Attempt == c.Attempt {
		one.answered = true
		f.deliveries[c.ID] = one
	}
}

// countUnanswered is how many of the deliveries under way have no answer yet, as far as
// this process knows.
func (f *inFlight) countUnanswered(ids []string) (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, id := range ids {
		if !f.deliveries[id].answered {
			n++
		}
	}
	return n
}

// isSending says whether this process sends the delivery, within its lease.
func (f *inFlight) isSending(id string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.deliveries[id].until.After(time.Now())
}

// ownsOutcome says whether an outcome still counts, by the endpoint's row. The lease may
// have ended, and another process may have the endpoint. Or the attempt has expired, and
// this process sends the delivery once more.
func (f *inFlight) ownsOutcome(e webhooks.EndpointRow, o Outcome) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.deliveries[o.ID].Attempt == o.Attempt && e.LeaseID != nil && *e.LeaseID == f.holder && slices.Contains(e.InFlight, o.ID)
}

// accountUse counts the places that accounts take. back is the time until the lease of
// the first of them ends; its account may be waiting for that place. Negative: no place
// is taken.
func (f *inFlight) accountUse() (use accountUse, back time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := time.Now()
	use, back = accountUse{}, -1
	for _, one := range f.deliveries {
		if one.takesPlace(now) {
			use[one.AccountID]++
			back = sooner(back, one.until.Sub(now))
		}
	}
	return use, back
}
