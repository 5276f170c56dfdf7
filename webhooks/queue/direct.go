package queue

import (
	"time"

	"humanqa/webhooks"
)

// Reserve enters those of the candidates that may be sent directly into the register. The
// endpoints' rows decide, and the register, where direct dispatch has so many places. The
// lease with which they must be written ends at until, by this process's clock. Any
// goroutine may call it.
func (q *Queue) Reserve(candidates []webhooks.NewDelivery, places int) (lease webhooks.DirectLease, batch []Delivery, until time.Time) {
	until = q.leaseEnd()
	lease = webhooks.DirectLease{Holder: q.holder, Term: q.lease}
	room := map[string]int{}
	for _, one := range candidates {
		e := one.Endpoint
		if _, known := room[e.ProjectID]; !known {
			room[e.ProjectID] = q.directRoom(e)
		}
		if room[e.ProjectID] == 0 {
			continue
		}
		d := Delivery{
			ID: one.ID, ProjectID: e.ProjectID, Event: one.Event, Body: []byte(one.Body), Attempt: 1,
			RequestID: one.RequestID, Trace: one.Trace,
			AccountID: e.AccountID, URL: e.URL, Secret: e.Secret, Resets: e.Resets, OwnHeaders: e.OwnHeaders,
		}
		if !q.reservePlace(d, places, until) {
			room[e.ProjectID] = 0
			continue
		}
		room[e.ProjectID]--
		batch, lease.Deliveries = append(batch, d), append(lease.Deliveries, d.ID)
	}
	return lease, batch, until
}

// directRoom is how many deliveries an endpoint may be sent directly. Only claims use a
// cap above the initial one, because they know how full the pool is. During a rotation's
// overlap, by any clock, only a claim knows which secret signs.
func (q *Queue) directRoom(e *webhooks.EndpointRow) int {
	switch {
	case !e.Enabled, e.URL == "", e.Secret == "", e.PreviousSecret != "":
		return 0
	case e.DueAt != nil && !e.DueAt.After(time.Now()): // a delivery waits
		return 0
	case e.LeaseID != nil && *e.LeaseID != q.holder:
		return 0
	case len(e.InFlight) >= q.caps.Most: // also those that are only to be settled
		return 0
	case e.Cap > 0 && e.Cap < q.caps.Begin:
		return max(e.Cap-len(e.InFlight), 0)
	}
	return max(q.caps.Begin-q.countUnanswered(e.InFlight), 0)
}
