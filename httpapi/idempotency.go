package httpapi

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
	"humanqa/internal/backoff"
)

const (
	idempotencyHeader = "Idempotency-Key"
	maxIdempotencyKey = 255
	// leaseFor is how long a request is taken to be in flight without a sign of
	// life, renewEvery how often it gives one. It may be short: who takes over
	// issues the same command id, so an owner that is merely slow, not dead,
	// costs nothing but work.
	leaseFor   = 2500 * time.Millisecond
	renewEvery = 700 * time.Millisecond
	// keptHours is how long a key is remembered (decisions,
	// "Idempotency-Key").
	keptHours = 24
	// finishTime bounds the storing of an answer whose request may be gone.
	finishTime = 5 * time.Second
	// sweepEvery and sweepBatch pace the removal of forgotten keys.
	sweepEvery = 10 * time.Minute
	sweepBatch = 1000
)

// idempotency remembers, for a day, what was answered under a key.
//
// The row is committed before its command is issued and carries the command's
// id. A crash anywhere in between leaves a row without an answer: the next
// request with that key and body, once the lease is over, issues the same
// command id, and the same command id has the same effect once. The answer is
// sealed, because that of a new project holds a token.
type idempotency struct {
	db    *sqlx.DB
	vault Vault
}

// scope is what a key belongs to. The owner is an account, or a checker.
type scope struct {
	owner, path, key string
}

func (s scope) stream() string { return "idempotency/" + s.path + "/" + s.key }

// begun is the outcome of begin: a command to issue, or an answer to repeat.
type begun struct {
	commandID uuid.UUID
	askedAt   time.Time // when the key was first used, the same for every request under it
	takenOver bool      // an earlier request issued the command, and may have written
	stored    *answer
}

const beginSQL = `
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

const storedSQL = `
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

// begin claims the key for this request, finds its stored answer, or refuses:
// the key was used with another body, or its request is still in flight.
func (s idempotency) begin(ctx context.Context, at scope, fingerprint string, commandID uuid.UUID) (begun, error) {
	for range 3 { // a row may be forgotten between the two statements
		var issued struct {
			CommandID uuid.UUID `db:"command_id"`
			CreatedAt time.Time `db:"created_at"`
		}
		err := s.db.GetContext(ctx, &issued, beginSQL,
			at.owner, at.path, at.key, fingerprint, commandID, leaseFor.Seconds(), keptHours)
		switch {
		case err == nil:
			return begun{
				commandID: issued.CommandID, askedAt: issued.CreatedAt.UTC(), takenOver: issued.CommandID != commandID,
			}, nil
		case !errors.Is(err, sql.ErrNoRows):
			return begun{}, fmt.Errorf("claim idempotency key: %w", err)
		}
		var row storedRow
		err = s.db.GetContext(ctx, &row, storedSQL, at.owner, at.path, at.key)
		switch {
		case errors.Is(err, sql.ErrNoRows):
			continue
		case err != nil:
			return begun{}, fmt.Errorf("read idempotency key: %w", err)
		case row.Fingerprint != fingerprint:
			return begun{}, domain.Conflict("the %s was used with another body", idempotencyHeader).
				WithHint("use a new key for a new request")
		case !row.Status.Valid:
			return begun{}, errInFlight
		}
		stored, err := s.open(ctx, at, row)
		return begun{stored: stored}, err
	}
	return begun{}, errInFlight // whoever makes the row vanish is in flight, too
}

var errInFlight = retryAfter(domain.Conflict("a request with this %s is still in flight", idempotencyHeader).
	WithHint("send the same request again in a moment"), 1)

func (s idempotency) open(ctx context.Context, at scope, row storedRow) (*answer, error) {
	body, err := s.vault.Unseal(ctx, at.owner, at.stream(), row.Body.String)
	if err != nil {
		return nil, fmt.Errorf("open the stored answer: %w", err)
	}
	return &answer{status: int(row.Status.Int16), body: body}, nil
}

const renewSQL = `
UPDATE http_idempotency
SET leased_until = now() + make_interval(secs => $5)
WHERE account_id = $1
  AND path = $2
  AND key = $3
  AND command_id = $4
  AND status IS NULL`

// hold renews the lease until stop, after which it does so no more. A renewal
// that fails leaves the lease to end.
func (s idempotency) hold(ctx context.Context, at scope, commandID uuid.UUID) (stop func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx)) // the client may go away, the command goes on
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for backoff.Wait(ctx, renewEvery) == nil {
			_, _ = s.db.ExecContext(ctx, renewSQL, at.owner, at.path, at.key, commandID, leaseFor.Seconds())
		}
	}()
	return sync.OnceFunc(func() { cancel(); <-ended })
}

const finishSQL = `
UPDATE http_idempotency
SET status = $5,
    body = $6
WHERE account_id = $1
  AND path = $2
  AND key = $3
  AND command_id = $4
  AND status IS NULL`

// finish stores the command's answer. If another request that had taken the
// same command over was faster, its answer is the one that counts.
func (s idempotency) finish(ctx context.Context, at scope, commandID uuid.UUID, ans answer) (earlier *answer, err error) {
	sealed, err := s.vault.Seal(ctx, at.owner, at.stream(), ans.body)
	if err != nil {
		return nil, fmt.Errorf("seal the answer: %w", err)
	}
	res, err := s.db.ExecContext(ctx, finishSQL, at.owner, at.path, at.key, commandID, ans.status, sealed)
	if err != nil {
		return nil, fmt.Errorf("store the answer: %w", err)
	}
	if n, err := res.RowsAffected(); err != nil || n == 1 {
		return nil, err
	}
	var row storedRow
	switch err := s.db.GetContext(ctx, &row, storedSQL, at.owner, at.path, at.key); {
	case errors.Is(err, sql.ErrNoRows):
		return nil, nil // a day has passed, the key is forgotten
	case err != nil:
		return nil, fmt.Errorf("read the stored answer: %w", err)
	case row.CommandID != commandID || !row.Status.Valid:
		return nil, nil // a day has passed, the key stands for something else
	}
	return s.open(ctx, at, row)
}

const releaseSQL = `
UPDATE http_idempotency
SET leased_until = now()
WHERE account_id = $1
  AND path = $2
  AND key = $3
  AND command_id = $4
  AND status IS NULL`

const forgetSQL = `
DELETE FROM http_idempotency
WHERE account_id = $1
  AND path = $2
  AND key = $3
  AND command_id = $4
  AND status IS NULL`

// giveUp ends a request without a definite answer. With nothing written the
// key is as if never used; else the command id stays for the next try.
func (s idempotency) giveUp(ctx context.Context, at scope, commandID uuid.UUID, nothingWritten bool) error {
	statement := releaseSQL
	if nothingWritten {
		statement = forgetSQL
	}
	if _, err := s.db.ExecContext(ctx, statement, at.owner, at.path, at.key, commandID); err != nil {
		return fmt.Errorf("release idempotency key: %w", err)
	}
	return nil
}

const sweepSQL = `
DELETE FROM http_idempotency
WHERE ctid = ANY (ARRAY(
    SELECT ctid
    FROM http_idempotency
    WHERE created_at <= now() - make_interval(hours => $1)
    LIMIT $2))`

// sweep removes the keys that a day has passed over.
func (s idempotency) sweep(ctx context.Context) error {
	for {
		res, err := s.db.ExecContext(ctx, sweepSQL, keptHours, sweepBatch)
		if err != nil {
			return fmt.Errorf("sweep idempotency keys: %w", err)
		}
		if n, err := res.RowsAffected(); err != nil || n < sweepBatch {
			return err
		}
	}
}

// definite says which outcomes are stored: successes and the refusals that
// stand for what the state was (402, 404, 409). A 400 is not (decisions,
// "Idempotency-Key"), nor is anything that speaks of the key, the limit or a fault.
func definite(status int) bool {
	switch status {
	case http.StatusPaymentRequired, http.StatusNotFound, http.StatusConflict:
		return true
	}
	return status >= 200 && status < 300
}

// idempotencyKey reads the header; present says that the client sent one. Who
// creates reads it with the body, so that one 400 names everything.
func (r *request) idempotencyKey(p *problems) (key string, present bool) {
	values := r.Header.Values(idempotencyHeader)
	if len(values) == 0 {
		return "", false
	}
	key = values[0]
	ok := key != "" && len(key) <= maxIdempotencyKey
	for i := range len(key) {
		ok = ok && ' ' <= key[i] && key[i] <= '~'
	}
	if !ok {
		p.add(idempotencyHeader, "must be 1 to %d printable ASCII characters", maxIdempotencyKey)
	}
	return key, true
}
