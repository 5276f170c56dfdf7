package send

import (
	"sync"
	"time"

	"github.com/google/uuid"

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

// directDispatch is the state of a dispatcher's direct dispatch. The subscriber has one
// transaction at a time; its reservations are in the register.
type directDispatch struct {
	mu    sync.Mutex
	kept  int           // places for it; 0: no subscriber uses it
	open  bool          // reserved deliveries will be sent
	ended chan struct{} // closed once the transaction has ended; nil: there is no reservation
}

// Direct has the dispatcher send the deliveries that a subscriber of its process leases
// to it. Call it once, before either runs, and pass the result to Subscriber.SendThrough.
func (d *Dispatcher) Direct() webhooks.DirectSender {
	d.direct.kept = d.cfg.Pool / keptPart
	return direct{d}
}

// direct is the dispatcher's interface for the subscriber of its process.
type direct struct{ *Dispatcher }

// ReservePlaces implements webhooks.DirectSender. It decides by the endpoints' rows and
// the register.
func (d direct) ReservePlaces(candidates []webhooks.Candidate) webhooks.DirectLease {
	h := &d.direct
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.open {
		return webhooks.DirectLease{}
	}
	d.queue.InFlight.KeepReserved(nil) // of a transaction whose end was not reported
	h.ended = nil
	until := d.queue.InFlight.LeaseEnd()
	lease := webhooks.DirectLease{Holder: d.queue.InFlight.Holder, Term: d.cfg.Lease}
	room := map[string]int{}
	for _, one := range candidates {
		e := one.Endpoint
		if _, known := room[e.ProjectID]; !known {
			room[e.ProjectID] = d.queue.DirectRoom(e)
		}
		if room[e.ProjectID] == 0 {
			continue
		}
		c := queue.Delivery{
			ID: one.ID.String(), ProjectID: e.ProjectID, Event: one.Event, Body: one.Body, Attempt: 1,
			RequestID: one.RequestID, Trace: one.Trace,
			AccountID: e.AccountID, URL: e.URL, Secret: e.Secret, Resets: e.Resets, OwnHeaders: e.OwnHeaders,
		}
		if !d.queue.InFlight.ReservePlace(c, h.kept, until) {
			room[e.ProjectID] = 0
			continue
		}
		room[e.ProjectID]--
		lease.Deliveries = append(lease.Deliveries, c.ID)
	}
	if len(lease.Deliveries) > 0 {
		h.ended = make(chan struct{})
	}
	return lease
}

// KeepLeased implements webhooks.DirectSender.
func (d direct) KeepLeased(ids []string) { d.queue.InFlight.KeepReserved(ids) }

// Committed implements webhooks.DirectSender. After an error it is not certain that the
// deliveries are there. If they are, the next look at their endpoint expires the attempts,
// and they are sent then.
func (d direct) Committed(err error) {
	h := &d.direct
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ended == nil {
		return
	}
	reserved, until := d.queue.InFlight.EndReservation()
	if err != nil || !d.loop.Hand(reserved, until) {
		d.queue.InFlight.RemoveBatch(reserved)
	}
	close(h.ended)
	h.ended = nil
}

// openDirect allows reservations. closeDirect ends that; reserved deliveries are still
// sent.
func (d *Dispatcher) openDirect() {
	d.direct.mu.Lock()
	defer d.direct.mu.Unlock()
	d.direct.open = d.direct.kept > 0
}

func (d *Dispatcher) closeDirect() {
	d.direct.mu.Lock()
	d.direct.open = false
	ended := d.direct.ended
	d.direct.mu.Unlock()
	if ended == nil {
		return
	}
	select {
	case <-ended:
	case <-time.After(reservationEnds):
	}
}

// isOwnLease says whether a notification is only about leases of this process.
func (d *Dispatcher) isOwnLease(payload string) bool {
	holder, err := uuid.Parse(payload)
	return err == nil && holder == d.queue.InFlight.Holder
}
