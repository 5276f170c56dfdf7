package queue

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"humanqa/internal/pgpool"
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
	Holder uuid.UUID // of this process's leases
	lease  time.Duration

	mu         sync.Mutex
	deliveries map[string]flight
}

type flight struct {
	Delivery
	until    time.Time // its lease ends
	reserved bool      // the transaction that leases it has not ended
	direct   bool      // its place is one of those kept for direct dispatch
	answered bool      // it only needs to be settled
}

// takesPlace says whether the delivery has a place of the pool.
func (f flight) takesPlace(now time.Time) bool { return !f.answered && now.Before(f.until) }

func newInFlight(lease time.Duration) *inFlight {
	return &inFlight{Holder: uuid.New(), lease: lease, deliveries: map[string]flight{}}
}

// LeaseEnd is the end of leases that are written from now on, by this process's clock. It
// is no later than the end by the database's clock.
func (f *inFlight) LeaseEnd() time.Time { return time.Now().Add(f.lease) }

// addBatch enters claimed deliveries.
func (f *inFlight) addBatch(batch []Delivery, until time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range batch {
		f.deliveries[c.ID] = flight{Delivery: c, until: until}
	}
}

// ReservePlace enters a delivery for direct dispatch, if one of the places kept for that
// is free. The quota of an account holds for these places, too.
func (f *inFlight) ReservePlace(c Delivery, kept int, until time.Time) bool {
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
	f.deliveries[c.ID] = flight{Delivery: c, until: until, reserved: true, direct: true}
	return true
}

// KeepReserved removes the reserved deliveries that are not listed.
func (f *inFlight) KeepReserved(ids []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	maps.DeleteFunc(f.deliveries, func(id string, one flight) bool { return one.reserved && !slices.Contains(ids, id) })
}

// EndReservation returns the reserved deliveries, which stay in the register.
func (f *inFlight) EndReservation() (batch []Delivery, until time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for id, one := range f.deliveries {
		if one.reserved {
			batch, until = append(batch, one.Delivery), one.until
			one.reserved = false
			f.deliveries[id] = one
		}
	}
	return batch, until
}

// RemoveBatch forgets deliveries; a later attempt of one of them stays.
func (f *inFlight) RemoveBatch(batch []Delivery) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range batch {
		if f.deliveries[c.ID].Attempt == c.Attempt {
			delete(f.deliveries, c.ID)
		}
	}
}

// removeSettled is RemoveBatch for settled deliveries.
func (f *inFlight) removeSettled(done []Outcome) {
	batch := make([]Delivery, len(done))
	for i, o := range done {
		batch[i] = o.Delivery
	}
	f.RemoveBatch(batch)
}

// MarkAnswered frees the delivery's place: it only needs to be settled.
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
	return f.deliveries[o.ID].Attempt == o.Attempt && e.LeaseID != nil && *e.LeaseID == f.Holder && slices.Contains(e.InFlight, o.ID)
}

// AccountUse counts the places that accounts take. back is the time until the lease of
// the first of them ends; its account may be waiting for that place. Negative: no place
// is taken.
func (f *inFlight) AccountUse() (use accountUse, back time.Duration) {
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

// DirectRoom is how many deliveries an endpoint may be sent directly. Only claims use a
// cap above the initial one, because they know how full the pool is. During a rotation's
// overlap, by any clock, only a claim knows which secret signs.
func (q *Queue) DirectRoom(e *webhooks.EndpointRow) int {
	switch {
	case !e.Enabled, e.URL == "", e.Secret == "", e.PreviousSecret != "":
		return 0
	case e.DueAt != nil && !e.DueAt.After(time.Now()): // a delivery waits
		return 0
	case e.LeaseID != nil && *e.LeaseID != q.InFlight.Holder:
		return 0
	case len(e.InFlight) >= q.cap.Most: // also those that are only to be settled
		return 0
	case e.Cap > 0 && e.Cap < q.cap.Begin:
		return max(e.Cap-len(e.InFlight), 0)
	}
	return max(q.cap.Begin-q.InFlight.countUnanswered(e.InFlight), 0)
}

// expireAttemptsSQL expires attempts with an unknown outcome. Each counts as an attempt.
// A process that still brings the outcome finds another number, and changes only the log
// of attempts.
const expireAttemptsSQL = `
WITH gone AS (
	UPDATE webhooks.deliveries
	SET attempts = attempts + 1
	WHERE id = ANY($1)
	RETURNING id, project_id, attempts
), logged AS (
	INSERT INTO webhooks.attempts (delivery_id, attempt, at, duration_ms, url, status, error, response)
	SELECT g.id, g.attempts, e.leased_until - $3 * interval '1 millisecond', $3, e.url, NULL, '` + lost + `', ''
	FROM gone g
	JOIN webhooks.endpoints e USING (project_id)
	ON CONFLICT DO NOTHING
)
UPDATE webhooks.endpoints
SET in_flight = ARRAY(SELECT f FROM unnest(in_flight) f WHERE f <> ALL($1))
WHERE project_id = ANY($2)`

// expireAttempts expires deliveries that are under way by the endpoints' rows, but not in
// fact. The lease of their process has ended, or in this process they outlived their
// lease.
func (q *Queue) expireAttempts(ctx context.Context, tx *sqlx.Tx, endpoints []dueEndpoint) error {
	var ids, projects []string
	for i, e := range endpoints {
		alive := slices.Clone(e.InFlight)
		alive = slices.DeleteFunc(alive, func(id string) bool { return !e.Ours || !q.InFlight.isSending(id) })
		if len(alive) == len(e.InFlight) {
			continue
		}
		for _, id := range e.InFlight {
			if !slices.Contains(alive, id) {
				ids = append(ids, id)
			}
		}
		projects, endpoints[i].InFlight = append(projects, e.ProjectID), alive
	}
	if len(ids) == 0 {
		return nil
	}
	return pgpool.Exec(ctx, tx, "expire attempts", expireAttemptsSQL, pq.Array(ids), pq.Array(projects), q.InFlight.lease.Milliseconds())
}
