package webhooks

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"
)

// A new delivery that may go at once waits for no claim: the subscriber, which holds
// its endpoint's row, leases the endpoint to the dispatcher of its own process, in the
// statement that writes the delivery, and that sends it once it is committed. It may
// go where nothing of its job and nothing of its endpoint waits, the endpoint is
// nobody else's, and takes more. All else is left to a claim.
const (
	// keptPart is the part of the pool that claims leave to deliveries handed over.
	keptPart = 8
	// offerEnds is how long a stop waits for a transaction that hands something over.
	offerEnds = time.Second
)

// handover is what the subscriber's one transaction at a time hands over.
type handover struct {
	mu      sync.Mutex
	kept    int  // places for it; 0: no subscriber hands anything over
	open    bool // what is handed over is sent
	offered []claimed
	until   time.Time     // when the leases end
	ended   chan struct{} // closed once nothing is offered
}

// HandTo has the subscriber hand what may go at once to the dispatcher of its own
// process. Call it before either runs.
func (s *Subscriber) HandTo(d *Dispatcher) {
	s.to = d
	d.handover.kept = d.cfg.Pool / keptPart
}

// Committed implements consumer.Committer.
func (s *Subscriber) Committed(err error) {
	if s.to != nil {
		s.to.committed(err)
	}
}

// offer takes places for those of the new deliveries that may go at once, as far as
// the endpoints' rows tell, which are locked.
func (d *Dispatcher) offer(p plan) []claimed {
	h := &d.handover
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.open {
		return nil
	}
	d.withdraw(h.offered) // of a transaction whose end nobody told
	until := d.queue.begin()
	room, streams := map[string]int{}, map[string]bool{}
	var offered []claimed
	for _, r := range p.rows {
		e, key := p.endpoints[r.projectID], r.orderingKey()
		first := !streams[key]
		streams[key] = true
		if _, known := room[r.projectID]; !known {
			room[r.projectID] = d.queue.roomAtOnce(e, p.changes(r.projectID))
		}
		if !first || r.state != "pending" || room[r.projectID] == 0 {
			continue
		}
		c := claimed{
			ID: r.id.String(), ProjectID: e.ProjectID, Event: r.kind.Name, Body: r.body, Attempt: 1,
			AccountID: e.AccountID, URL: e.URL, Secret: e.Secret, Resets: e.Resets,
		}
		if !d.busy.hold(c, h.kept) {
			room[r.projectID] = 0
			continue
		}
		room[r.projectID]--
		offered = append(offered, c)
	}
	h.offered, h.ended = nil, nil
	if len(offered) > 0 {
		h.offered, h.until, h.ended = offered, until, make(chan struct{})
		d.queue.take(offered, until)
	}
	return offered
}

// roomAtOnce is how many deliveries an endpoint may be handed. What it is trusted with
// beyond the beginning is for claims to give, which know how full the pool is. During
// a rotation's overlap, by whatever clock, a claim knows what signs.
func (q *queue) roomAtOnce(e *endpoint, changes bool) int {
	switch {
	case changes, !e.Enabled, e.URL == "", e.Secret == "", e.PreviousSecret != "":
		return 0
	case e.DueAt != nil && !e.DueAt.After(time.Now()): // something waits
		return 0
	case e.LeaseID != nil && *e.LeaseID != q.holder:
		return 0
	case len(e.InFlight) >= q.cap.most: // also those that are only to be settled
		return 0
	case e.Cap > 0 && e.Cap < q.cap.begin:
		return max(e.Cap-len(e.InFlight), 0)
	}
	return max(q.cap.begin-q.unanswered(e.InFlight), 0)
}

// answered gives the delivery's place to others: it is only to be settled.
func (d *Dispatcher) answered(c claimed) {
	d.busy.give(c)
	d.queue.answered(c)
}

// wrote says which of what was offered has its lease, by delivery.
func (d *Dispatcher) wrote(leased map[string]bool) {
	h := &d.handover
	h.mu.Lock()
	defer h.mu.Unlock()
	var left, going []claimed
	for _, c := range h.offered {
		if leased[c.ID] {
			going = append(going, c)
		} else {
			left = append(left, c)
		}
	}
	d.withdraw(left)
	h.offered = going
}

// committed sends what was handed over; after an error nobody can be sure that it is
// there. If it is, the next look at its endpoint writes it off, and it is sent then.
func (d *Dispatcher) committed(err error) {
	h := &d.handover
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ended == nil {
		return
	}
	if err != nil || !d.loop.Hand(h.offered, h.until) {
		d.withdraw(h.offered)
	}
	close(h.ended)
	h.offered, h.ended = nil, nil
}

// withdraw forgets deliveries that were offered.
func (d *Dispatcher) withdraw(offered []claimed) {
	for _, c := range offered {
		d.busy.give(c)
	}
	d.queue.forget(offered)
}

// openHandover begins with it, shutHandover ends it: what is on its way is sent.
func (d *Dispatcher) openHandover() {
	d.handover.mu.Lock()
	defer d.handover.mu.Unlock()
	d.handover.open = d.handover.kept > 0
}

func (d *Dispatcher) shutHandover() {
	d.handover.mu.Lock()
	d.handover.open = false
	ended := d.handover.ended
	d.handover.mu.Unlock()
	if ended == nil {
		return
	}
	select {
	case <-ended:
	case <-time.After(offerEnds):
	}
}

// handDeliveries is insertDeliveries that leases what of $12 is new, and the first of
// its job that is not settled. The row lock makes that last until the lease is
// committed. Who has nothing to do but with this process's leases is told of those by
// the payload, all others that there is something to look for.
const handDeliveries = `
WITH ` + inserted + `, going AS (
	SELECT id, o.project_id
	FROM unnest($12::uuid[], $13::text[], $14::text[]) AS o (id, project_id, ordering_key)
	JOIN inserted USING (id)
	WHERE (
		SELECT min(earlier.revision)
		FROM webhooks.deliveries earlier
		WHERE earlier.state = 'pending' AND earlier.revision >= 0 AND earlier.ordering_key = o.ordering_key
	) IS NULL
), touched AS (
	SELECT t.project_id, t.rest OR t.offered > cardinality(g.ids) AS waits, g.ids
	FROM unnest($1::text[], $10::boolean[], $11::integer[]) AS t (project_id, rest, offered)
	CROSS JOIN LATERAL (SELECT coalesce(array_agg(id), '{}') AS ids FROM going WHERE project_id = t.project_id) g
), marked AS (
	UPDATE webhooks.endpoints e
	SET in_flight = e.in_flight || t.ids,
		lease_id = CASE WHEN t.ids <> '{}' THEN $15::uuid ELSE e.lease_id END,
		leased_until = CASE WHEN t.ids <> '{}' THEN clock_timestamp() + $16 * interval '1 millisecond' ELSE e.leased_until END,
		due_at = CASE
			WHEN t.waits AND e.enabled AND e.url <> '' AND e.secret <> '' THEN least(e.due_at, now())
			WHEN t.ids <> '{}' THEN least(e.due_at, clock_timestamp() + $16 * interval '1 millisecond')
			ELSE e.due_at
		END
	FROM touched t
	WHERE e.project_id = ANY($1) AND e.project_id = t.project_id
)
SELECT id::text
FROM going
UNION ALL
SELECT pg_notify('` + dueChannel + `', CASE WHEN EXISTS (SELECT FROM touched WHERE waits) THEN '' ELSE $15::text END)::text`

// hand writes new deliveries, of which some were offered.
func (d *Dispatcher) hand(ctx context.Context, tx *sqlx.Tx, n newRows, touched []string, p plan, offered []claimed) error {
	going, streams := map[string]int{}, map[string]string{}
	var ids, projects, keys []string
	for _, c := range offered {
		going[c.ProjectID]++
		streams[c.ID] = ""
	}
	all := map[string]int{}
	for _, r := range p.rows {
		all[r.projectID]++
		if _, ok := streams[r.id.String()]; ok {
			ids, projects, keys = append(ids, r.id.String()), append(projects, r.projectID), append(keys, r.orderingKey())
		}
	}
	var rest []bool
	var counts []int64
	for _, id := range touched {
		rest, counts = append(rest, all[id] > going[id] || p.changes(id)), append(counts, int64(going[id]))
	}
	var written []string
	err := tx.SelectContext(ctx, &written, handDeliveries, append(n.args(touched),
		pq.Array(rest), pq.Array(counts), pq.Array(ids), pq.Array(projects), pq.Array(keys), d.queue.holder, d.cfg.Lease.Milliseconds())...)
	if err != nil {
		return fmt.Errorf("insert deliveries: %w", err)
	}
	leased := map[string]bool{}
	for _, id := range written {
		leased[id] = true
	}
	d.wrote(leased)
	return nil
}

// ownLease says whether a notification is about nothing but leases that this process
// gave itself.
func (d *Dispatcher) ownLease(payload string) bool {
	holder, err := uuid.Parse(payload)
	return err == nil && holder == d.queue.holder
}
