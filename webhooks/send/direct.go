package send

import (
	"slices"
	"sync"
	"time"

	"humanqa/webhooks"
	"humanqa/webhooks/queue"
)

// Direct dispatch: a new delivery that may go at once waits for no claim. The subscriber,
// which holds its endpoint's row, leases the endpoint to the dispatcher of its own
// process, in the statement that writes the delivery. The dispatcher sends it after the
// commit. A delivery may go at once if no delivery of its job and of its endpoint waits,
// no other process has the endpoint, and the endpoint may be sent more. All others wait
// for a claim.
const (
	// keptPart is the part of the pool that claims leave to direct dispatch.
	keptPart = 8
	// reservationEnds is how long a stop waits for a transaction with reserved places.
	reservationEnds = time.Second
)

// direct is a dispatcher's interface for the subscriber of its process, which has one
// transaction at a time.
type direct struct {
	queue *queue.Queue
	hand  func(batch []queue.Delivery, until time.Time) (taken bool)
	kept  int // places for it; 0: no subscriber uses it

	mu       sync.Mutex // guards the rest
	open     bool       // reserved deliveries will be sent
	reserved []queue.Delivery
	until    time.Time     // their lease ends
	ended    chan struct{} // closed once the transaction has ended; nil: there is no reservation
}

// ReservePlaces implements webhooks.DirectSender.
func (d *direct) ReservePlaces(candidates []webhooks.NewDelivery) (lease webhooks.DirectLease) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.open {
		return lease
	}
	d.queue.Forget(d.reserved...) // of a transaction whose end was not reported
	d.ended = nil
	if lease, d.reserved, d.until = d.queue.Reserve(candidates, d.kept); len(d.reserved) > 0 {
		d.ended = make(chan struct{})
	}
	return lease
}

// KeepLeased implements webhooks.DirectSender.
func (d *direct) KeepLeased(ids []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	var kept []queue.Delivery
	for _, one := range d.reserved {
		if slices.Contains(ids, one.ID) {
			kept = append(kept, one)
		} else {
			d.queue.Forget(one)
		}
	}
	d.reserved = kept
}

// Committed implements webhooks.DirectSender. After an error it is not certain that the
// deliveries are there. If they are, the next look at their endpoint expires the attempts,
// and they are sent then.
func (d *direct) Committed(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ended == nil {
		return
	}
	if err != nil || !d.hand(d.reserved, d.until) {
		d.queue.Forget(d.reserved...)
	}
	close(d.ended)
	d.reserved, d.ended = nil, nil
}

// begin allows reservations, and end ends that; reserved deliveries are still sent.
func (d *direct) begin() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.open = d.kept > 0
}

func (d *direct) end() {
	d.mu.Lock()
	d.open = false
	ended := d.ended
	d.mu.Unlock()
	if ended == nil {
		return
	}
	select {
	case <-ended:
	case <-time.After(reservationEnds):
	}
}
