package admit

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jmoiron/sqlx"

	"humanqa/domain"
	"humanqa/domain/command"
	"humanqa/httpapi/wire"
	"humanqa/internal/backoff"
	"humanqa/internal/pgpool"
)

const (
	// LeaseFor is the time for which a lease counts a request as in flight; RenewEvery is
	// the interval of its renewals. It may be short: the next owner issues the same
	// command id, so taking over from a slow owner costs nothing but work.
	LeaseFor   = 2500 * time.Millisecond
	RenewEvery = 700 * time.Millisecond
	// keptHours is how long a key is remembered (decisions,
	// "Idempotency-Key").
	keptHours = 24
	// finishTime bounds the storing of an answer whose request may be gone.
	finishTime = 5 * time.Second
	// SweepEvery and sweepBatch pace the removal of forgotten keys.
	SweepEvery = 10 * time.Minute
	sweepBatch = 1000
)

// keyStore keeps, for a day, the answer to the request with a key.
//
// The row is committed before its command is issued and carries the command's id. A crash
// anywhere in between leaves a row without an answer. Once the lease is over, the next
// request with that key and body issues the same command id, which has its effect only
// once. The answer is sealed, because that of a new project holds a token.
type keyStore struct {
	db    *sqlx.DB
	Vault command.Sealer
}

// KeyScope is the scope of a key. The owner is an account, or a checker.
type KeyScope struct {
	Owner, Path, Key string
}

func (s KeyScope) stream() string { return "idempotency/" + s.Path + "/" + s.Key }

// claimedKey is the outcome of claimKey: a command to issue, or an answer to repeat.
type claimedKey struct {
	commandID uuid.UUID
	askedAt   time.Time // when the key was first used, the same for every request under it
	takenOver bool      // an earlier request issued the command, and may have written
	stored    *wire.Answer
}

const claimKeySQL = `
INSERT INTO http_idempotency AS i
    (account_id, path, key, fingerprint, command_id, leased_until, created_at)
VALUES
    ($1, $2, $3, $4, $5, now() + make_interval(secs => $6), now())
ON CONFLICT (account_id, path, key) DO UPDATE
SET fingerprint = EXCLUDED.fingerprint,
    command_id = CASE WHEN i.created_at <= now() - make_interval(hours => $7)
                 THEN EXCLUDED.command_id ELSE i.command_id END,
    created_at = CASE WHEN i.created_at <= now() - make_interval(hours => $7)
                 THEN EXCLUDED.created_at ELSE i.created_at END,
    leased_until = EXCLUDED.leased_until,
    status = NULL,
    body = NULL
WHERE i.created_at <= now() - make_interval(hours => $7)
   OR (i.status IS NULL AND i.leased_until <= now() AND i.fingerprint = EXCLUDED.fingerprint)
RETURNING command_id, created_at`

const storedAnswerSQL = `
SELECT fingerprint, command_id, status, body
FROM http_idempotency
WHERE account_id = $1
  AND path = $2
  AND key = $3`

type storedRow struct {
	Fingerprint string         `db:"fingerprint"`
	CommandID   uuid.UUID      `db:"command_id"`
	Status      sql.NullInt16  `db:"status"`
	Body        sql.NullString `db:"body"`
}

// claimKey claims the key for this request, finds its stored answer, or refuses:
// the key was used with another body, or its request is still in flight.
func (s keyStore) claimKey(ctx context.Context, at KeyScope, fingerprint string, commandID uuid.UUID) (claimedKey, error) {
	for range 3 { // a row may be forgotten between the two statements
		var issued struct {
			CommandID uuid.UUID `db:"command_id"`
			CreatedAt time.Time `db:"created_at"`
		}
		err := s.db.GetContext(ctx, &issued, claimKeySQL,
			at.Owner, at.Path, at.Key, fingerprint, commandID, LeaseFor.Seconds(), keptHours)
		switch {
		case err == nil:
			return claimedKey{
				commandID: issued.CommandID, askedAt: issued.CreatedAt.UTC(), takenOver: issued.CommandID != commandID,
			}, nil
		case !errors.Is(err, sql.ErrNoRows):
			return claimedKey{}, fmt.Errorf("claim idempotency key: %w", err)
		}
		row, found, err := pgpool.Find[storedRow](ctx, s.db, "idempotency key", storedAnswerSQL, at.Owner, at.Path, at.Key)
		switch {
		case err != nil:
			return claimedKey{}, err
		case !found:
			continue
		case row.Fingerprint != fingerprint:
			return claimedKey{}, domain.Conflict("the %s was used with another body", wire.IdempotencyHeader).
				WithHint("use a new key for a new request")
		case !row.Status.Valid:
			return claimedKey{}, errInFlight
		}
		stored, err := s.openAnswer(ctx, at, row)
		return claimedKey{stored: stored}, err
	}
	return claimedKey{}, errInFlight // another request removes the row, and is in flight, too
}

var errInFlight = wire.RetryAfter(domain.Conflict("a request with this %s is still in flight", wire.IdempotencyHeader).
	WithHint("send the same request again in a moment"), 1)

func (s keyStore) openAnswer(ctx context.Context, at KeyScope, row storedRow) (*wire.Answer, error) {
	body, err := s.Vault.Unseal(ctx, at.Owner, at.stream(), row.Body.String)
	if err != nil {
		return nil, fmt.Errorf("open the stored answer: %w", err)
	}
	return &wire.Answer{Status: int(row.Status.Int16), Body: body}, nil
}

// leaseSQL begins the time of a lease anew; of no seconds, it ends the lease.
const leaseSQL = `
UPDATE http_idempotency
SET leased_until = now() + make_interval(secs => $5)
WHERE account_id = $1
  AND path = $2
  AND key = $3
  AND command_id = $4
  AND status IS NULL`

// holdLease renews the lease until stop returns. After a failed renewal the lease may
// end.
func (s keyStore) holdLease(ctx context.Context, at KeyScope, commandID uuid.UUID) (stop func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx)) // the client may go away, the command goes on
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for backoff.Wait(ctx, RenewEvery) == nil {
			_, _ = s.db.ExecContext(ctx, leaseSQL, at.Owner, at.Path, at.Key, commandID, LeaseFor.Seconds())
		}
	}()
	return sync.OnceFunc(func() { cancel(); <-ended })
}

const storeAnswerSQL = `
UPDATE http_idempotency
SET status = $5,
    body = $6
WHERE account_id = $1
  AND path = $2
  AND key = $3
  AND command_id = $4
  AND status IS NULL`

// StoreAnswer stores the command's answer. If another request that had taken the
// same command over was faster, its answer is the one that counts.
func (s keyStore) StoreAnswer(ctx context.Context, at KeyScope, commandID uuid.UUID, ans wire.Answer) (earlier *wire.Answer, err error) {
	sealed, err := s.Vault.Seal(ctx, at.Owner, at.stream(), ans.Body)
	if err != nil {
		return nil, fmt.Errorf("seal the answer: %w", err)
	}
	n, err := pgpool.ExecCount(ctx, s.db, "store the answer", storeAnswerSQL, at.Owner, at.Path, at.Key, commandID, ans.Status, sealed)
	if err != nil || n == 1 {
		return nil, err
	}
	row, found, err := pgpool.Find[storedRow](ctx, s.db, "the stored answer", storedAnswerSQL, at.Owner, at.Path, at.Key)
	switch {
	case err != nil:
		return nil, err
	case !found:
		return nil, nil // a day has passed, the key is forgotten
	case row.CommandID != commandID || !row.Status.Valid:
		return nil, nil // a day has passed, the key stands for something else
	}
	return s.openAnswer(ctx, at, row)
}

const forgetKeySQL = `
DELETE FROM http_idempotency
WHERE account_id = $1
  AND path = $2
  AND key = $3
  AND command_id = $4
  AND status IS NULL`

// releaseKey ends a request without a definite answer. With nothing written the
// key is as if never used; else the command id stays for the next try.
func (s keyStore) releaseKey(ctx context.Context, at KeyScope, commandID uuid.UUID, nothingWritten bool) error {
	const what = "release idempotency key"
	if nothingWritten {
		return pgpool.Exec(ctx, s.db, what, forgetKeySQL, at.Owner, at.Path, at.Key, commandID)
	}
	return pgpool.Exec(ctx, s.db, what, leaseSQL, at.Owner, at.Path, at.Key, commandID, 0.0)
}

const sweepKeysSQL = `
DELETE FROM http_idempotency
WHERE ctid = ANY (ARRAY(
    SELECT ctid
    FROM http_idempotency
    WHERE created_at <= now() - make_interval(hours => $1)
    LIMIT $2))`

// Sweep removes the keys that are older than a day.
func (s keyStore) Sweep(ctx context.Context) error {
	for {
		n, err := pgpool.ExecCount(ctx, s.db, "sweep idempotency keys", sweepKeysSQL, keptHours, sweepBatch)
		if err != nil || n < sweepBatch {
			return err
		}
	}
}

// definite says which outcomes are stored: successes, and the refusals that follow from
// the state (402, 404, 409). A 400 is not (decisions, "Idempotency-Key"), nor is a
// refusal for the key, the limit or a fault.
func definite(status int) bool {
	switch status {
	case http.StatusPaymentRequired, http.StatusNotFound, http.StatusConflict:
		return true
	}
	return status >= 200 && status < 300
}
