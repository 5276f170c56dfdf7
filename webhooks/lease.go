package webhooks

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"
)

// flights are the deliveries that this process is sending, or has sent and not
// settled: until when each is its own. The endpoints' rows have the same for all to
// see (in_flight, under lease_id); what stands there and is not known here was lost.
type flights struct {
	holder uuid.UUID // of this process's leases

	mu sync.Mutex
	of map[string]flight
}

type flight struct {
	attempt  int
	until    time.Time
	answered bool
}

// begin gives the end of the leases that are taken now, by this process's clock: no
// later than by the database's.
func (q *queue) begin() (until time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.of == nil {
		q.holder, q.of = uuid.New(), map[string]flight{}
	}
	return time.Now().Add(q.lease)
}

func (f *flights) take(batch []claimed, until time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range batch {
		f.of[c.ID] = flight{attempt: c.Attempt, until: until}
	}
}

// land forgets what has settled; a later attempt of the same delivery stays.
func (f *flights) land(batch []outcome) {
	landed := make([]claimed, len(batch))
	for i, o := range batch {
		landed[i] = o.claimed
	}
	f.forget(landed)
}

func (f *flights) forget(batch []claimed) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range batch {
		if f.of[c.ID].attempt == c.Attempt {
			delete(f.of, c.ID)
		}
	}
}

// answered is told that a delivery is only to be settled.
func (f *flights) answered(c claimed) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if of := f.of[c.ID]; of.attempt == c.Attempt {
		of.answered = true
		f.of[c.ID] = of
	}
}

// unanswered is how many of the deliveries that are under way are not only to be settled,
// as far as this process knows.
func (f *flights) unanswered(ids []string) (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, id := range ids {
		if !f.of[id].answered {
			n++
		}
	}
	return n
}

// flying says whether this process is sending the delivery, in its time.
func (f *flights) flying(id string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.of[id].until.After(time.Now())
}

// holds says whether an outcome still counts, by the endpoint's row: its lease may
// have ended, and the endpoint be another's. Or its delivery was written off, and this
// process is sending it once more.
func (f *flights) holds(e endpoint, o outcome) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.of[o.ID].attempt == o.Attempt && e.LeaseID != nil && *e.LeaseID == f.holder && slices.Contains(e.InFlight, o.ID)
}

// forsake writes attempts off whose outcome is unknown. Each counts: so whoever still
// comes with it finds another number, and changes nothing but the log of attempts.
const forsake = `
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

// writeOff gives up what is said to be under way to the endpoints and is not: the
// lease of who sent it has ended, or it outlived its own time in this process.
func (q *queue) writeOff(ctx context.Context, tx *sqlx.Tx, endpoints []dueEndpoint) error {
	var ids, projects []string
	for i, e := range endpoints {
		alive := slices.Clone(e.InFlight)
		alive = slices.DeleteFunc(alive, func(id string) bool { return !e.Ours || !q.flying(id) })
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
	if _, err := tx.ExecContext(ctx, forsake, pq.Array(ids), pq.Array(projects), q.lease.Milliseconds()); err != nil {
		return fmt.Errorf("write off what was under way: %w", err)
	}
	return nil
}
