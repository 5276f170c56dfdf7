package credential

import (
	"context"
	"time"

	"github.com/google/uuid"

	"humanqa/domain"
	"humanqa/internal/pgpool"
)

const (
	// A session ends after SessionFor, or when it was idle for idleFor (decisions,
	// "Sign-in sessions").
	SessionFor = 30 * 24 * time.Hour
	idleFor    = 7 * 24 * time.Hour
	// OperatorFor is how long a session may do an operator's work.
	OperatorFor = 8 * time.Hour
	// FreshFor is how long a proof is fresh.
	FreshFor = 10 * time.Minute

	// seenEvery is how often a session in use is written.
	seenEvery = time.Minute
	maxAgent  = 300
)

// Session is a browser in which a person has signed in.
type Session struct {
	ID        uuid.UUID `db:"id"`
	PersonID  string    `db:"person_id"`
	AccountID string    `db:"account_id"` // the account that is looked at; empty: the first
	Address   string    `db:"address"`
	Agent     string    `db:"agent"`
	CreatedAt time.Time `db:"created_at"`
	SeenAt    time.Time `db:"seen_at"`
	ProvedAt  time.Time `db:"proved_at"`
	ExpiresAt time.Time `db:"expires_at"`
}

// Fresh says that the person has just proved who they are.
func (s Session) Fresh(now time.Time) bool { return now.Sub(s.ProvedAt) < FreshFor }

const insertSessionSQL = `
WITH before AS (
    DELETE FROM signin.sessions
    WHERE hash = $8
)
INSERT INTO signin.sessions (hash, id, person_id, account_id, address, agent, created_at, seen_at, proved_at, expires_at)
VALUES ($1, $2, $3, '', $4, $5, $6, $6, $6, $7)`

// Begin opens a session for a person who has just proved who they are. It ends the
// earlier session of that browser, even another person's; before is that session's token,
// or empty. The browser keeps the new token, which is shown only here.
func (s *Store) Begin(ctx context.Context, personID, address, agent, before string) (token string, err error) {
	token = domain.NewToken("")
	now := s.time()
	return token, pgpool.Exec(ctx, s.db, "open a session", insertSessionSQL, domain.HashToken(token), uuid.New(), personID, address,
		storable(agent, maxAgent), now, now.Add(SessionFor), domain.HashToken(before))
}

const sessionSQL = `
SELECT id, person_id, account_id, address, agent, created_at, seen_at, proved_at, expires_at
FROM signin.sessions
WHERE hash = $1
  AND expires_at > $2
  AND seen_at > $3`

const seenSQL = `
UPDATE signin.sessions
SET seen_at = $2
WHERE hash = $1
  AND seen_at < $2`

// Session gives the live session of the token and notes that it is in use.
func (s *Store) Session(ctx context.Context, token string) (Session, bool, error) {
	hash, now := domain.HashToken(token), s.time()
	one, found, err := pgpool.Find[Session](ctx, s.db, "a session", sessionSQL, hash, now, now.Add(-idleFor))
	if err != nil || !found {
		return Session{}, false, err
	}
	if now.Sub(one.SeenAt) >= seenEvery {
		if err := pgpool.Exec(ctx, s.db, "note a session's use", seenSQL, hash, now); err != nil {
			return Session{}, false, err
		}
		one.SeenAt = now
	}
	return one, true, nil
}

const sessionsSQL = `
SELECT id, person_id, account_id, address, agent, created_at, seen_at, proved_at, expires_at
FROM signin.sessions
WHERE person_id = $1
  AND expires_at > $2
  AND seen_at > $3
ORDER BY seen_at DESC, id`

// Sessions lists the person's live sessions, the one used last first.
func (s *Store) Sessions(ctx context.Context, personID string) ([]Session, error) {
	now := s.time()
	return pgpool.List[Session](ctx, s.db, "the sessions of "+personID, sessionsSQL, personID, now, now.Add(-idleFor))
}

const endSessionSQL = `
DELETE FROM signin.sessions
WHERE person_id = $1
  AND id = $2`

const endSessionsSQL = `
DELETE FROM signin.sessions
WHERE person_id = $1
  AND id <> $2`

// End ends one of the person's sessions; another person's is not touched.
func (s *Store) End(ctx context.Context, personID string, id uuid.UUID) error {
	return pgpool.Exec(ctx, s.db, "end a session", endSessionSQL, personID, id)
}

// EndOthers ends all of the person's sessions but one; uuid.Nil: all of them.
func (s *Store) EndOthers(ctx context.Context, personID string, but uuid.UUID) error {
	return pgpool.Exec(ctx, s.db, "end the sessions of "+personID, endSessionsSQL, personID, but)
}

const provedSQL = `
UPDATE signin.sessions
SET proved_at = $2
WHERE id = $1`

// Proved notes that the session's person has just proved who they are.
func (s *Store) Proved(ctx context.Context, id uuid.UUID) error {
	return pgpool.Exec(ctx, s.db, "note a proof", provedSQL, id, s.time())
}

const lookAtSQL = `
UPDATE signin.sessions
SET account_id = $2
WHERE id = $1`

// LookAt remembers which account the session looks at.
func (s *Store) LookAt(ctx context.Context, id uuid.UUID, accountID string) error {
	return pgpool.Exec(ctx, s.db, "choose an account", lookAtSQL, id, accountID)
}
