package webhooks

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"humanqa/domain"
	"humanqa/domain/announce"
	"humanqa/internal/pgpool"
)

// Chosen names deliveries that wait for a replay or a drop: those of the ids (an empty
// list names none), or, with nil, those that were created after Since.
type Chosen struct {
	Since time.Time
	IDs   []uuid.UUID
}

// changedAtOnce bounds the deliveries that one transaction changes, and so how long it
// holds the endpoint's row. The next transaction changes the others.
const changedAtOnce = 2000

const lockOwn = `
SELECT ` + EndpointColumns + `
FROM webhooks.endpoints
WHERE account_id = $1 AND project_id = $2
FOR UPDATE`

// noTest leaves out test events, which never wait for a replay or a drop.
const noTest = `d.event <> '` + announce.TestName + `'`

// chosen are deliveries that can be replayed or dropped, the oldest first, without those
// with a running attempt. The deliveries of a job keep their order, whichever transaction
// changes them.
const chosen = `
WHERE id IN (
	SELECT d.id
	FROM webhooks.deliveries d
	JOIN webhooks.endpoints e USING (project_id)
	WHERE d.project_id = $1 AND d.state IN ('held', 'failed') AND ` + noTest + `
		AND ($2::uuid[] IS NULL OR d.id = ANY($2)) AND d.created_at > $3 AND d.created_at <= $4
		AND NOT ` + underWay + `
	ORDER BY d.created_at, d.revision
	LIMIT $5
)`

// again makes a delivery wait to be sent, as if it had just come.
const again = `state = 'pending', due_at = now(), failures = 0, settled_at = NULL`

const replayDeliveries = `
UPDATE webhooks.deliveries
SET ` + again + chosen

const dropDeliveries = `
UPDATE webhooks.deliveries
SET state = 'dropped', settled_at = now()` + chosen

// checkSends refuses an endpoint that gets no deliveries.
func (e EndpointRow) checkSends() error {
	switch {
	case e.URL == "":
		return domain.Conflict("the project has no webhook").WithHint("set webhookUrl first")
	case !e.Enabled:
		return domain.Conflict("the webhook is disabled").WithHint("enable it first; what is held stays until it is replayed")
	}
	return nil
}

// Replay sends held and failed deliveries. Their ids and bytes stay. It returns their
// number; a delivery in another state, or with a request under way, is not counted. The
// endpoint must be enabled.
func (l *Log) Replay(ctx context.Context, accountID, projectID string, c Chosen) (int, error) {
	return l.changeDeliveries(ctx, accountID, projectID, replayDeliveries, c, EndpointRow.checkSends)
}

// Drop gives up on held and failed deliveries. It returns their number.
func (l *Log) Drop(ctx context.Context, accountID, projectID string, c Chosen) (int, error) {
	return l.changeDeliveries(ctx, accountID, projectID, dropDeliveries, c, func(EndpointRow) error { return nil })
}

// changeDeliveries may be cut off between two of its transactions. The changes so far
// stay, and the same call again changes the rest.
func (l *Log) changeDeliveries(
	ctx context.Context, accountID, projectID, query string, c Chosen, allowed func(EndpointRow) error,
) (changed int, err error) {
	// Later deliveries are not part of the request.
	began, err := pgpool.One[time.Time](ctx, l.db, "the clock", "SELECT clock_timestamp()")
	if err != nil {
		return 0, err
	}
	for {
		var n int
		err := l.withLockedEndpoint(ctx, accountID, projectID, func(tx *sqlx.Tx, e EndpointRow) error {
			if err := allowed(e); err != nil {
				return err
			}
			var err error
			n, err = pgpool.ExecCount(ctx, tx, "change deliveries", query, projectID, pq.Array(c.IDs), c.Since.UTC(), began, changedAtOnce)
			return err
		})
		changed += n
		switch {
		case domain.IsKind(err, domain.KindConflict) && changed > 0:
			return changed, nil // the first replayed deliveries disabled the endpoint again
		case err != nil:
			return 0, err
		case n < changedAtOnce:
			return changed, nil
		}
	}
}

// withLockedEndpoint changes deliveries under their endpoint's lock and wakes the
// dispatchers.
func (l *Log) withLockedEndpoint(ctx context.Context, accountID, projectID string, change func(*sqlx.Tx, EndpointRow) error) error {
	return pgpool.InTx(ctx, l.db, func(tx *sqlx.Tx) error {
		e, err := pgpool.FindOr[EndpointRow](ctx, tx, domain.NotFound("project"), "the endpoint", lockOwn, accountID, projectID)
		if err != nil {
			return err
		}
		if err := change(tx, e); err != nil {
			return err
		}
		return scheduleEndpoints(ctx, tx, []string{projectID})
	})
}

const redeliver = `
UPDATE webhooks.deliveries d
SET ` + again + `
FROM webhooks.endpoints e
WHERE d.id = $1 AND d.project_id = $2 AND e.project_id = d.project_id AND NOT ` + underWay

const delivers = `
SELECT EXISTS (SELECT FROM webhooks.deliveries WHERE id = $1 AND project_id = $2)`

// Redeliver sends one delivery again, in any state, under its id. A delivery that waits
// for its next attempt goes at once. While a request is under way nothing changes. The
// endpoint must be enabled.
func (l *Log) Redeliver(ctx context.Context, accountID, projectID string, id uuid.UUID) error {
	return l.withLockedEndpoint(ctx, accountID, projectID, func(tx *sqlx.Tx, e EndpointRow) error {
		there, err := pgpool.One[bool](ctx, tx, "a delivery", delivers, id, projectID)
		if err != nil {
			return err
		}
		if !there {
			return domain.NotFound("delivery")
		}
		if err := e.checkSends(); err != nil {
			return err
		}
		return pgpool.Exec(ctx, tx, "redeliver", redeliver, id, projectID)
	})
}

// It is revision 0 of a stream of its own, so it waits for no delivery, and no delivery
// waits for it.
const insertTest = `
INSERT INTO webhooks.deliveries (id, project_id, event_id, event, ordering_key, revision, body, state)
VALUES ($1, $2, $1, '` + announce.TestName + `', 'test-' || $1::uuid, 0, $3, 'pending')
ON CONFLICT (id) DO NOTHING`

// Test sends a test event under that id, once: it is not tried again, and its
// failure disables nothing. The same id again is the same event. The endpoint
// must be enabled.
func (l *Log) Test(ctx context.Context, accountID, projectID string, id uuid.UUID, at time.Time) error {
	body, err := announce.Test(projectID, at)
	if err != nil {
		return err
	}
	return l.withLockedEndpoint(ctx, accountID, projectID, func(tx *sqlx.Tx, e EndpointRow) error {
		if err := e.checkSends(); err != nil {
			return err
		}
		return pgpool.Exec(ctx, tx, "insert a test event", insertTest, id, projectID, body)
	})
}
