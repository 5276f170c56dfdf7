package credential

import (
	"context"
	"time"

	"github.com/google/uuid"

	"humanqa/domain"
	"humanqa/internal/pgpool"
)

// sharesPerJob bounds the links to one report that work at a time.
const sharesPerJob = 20

// Share is a link that opens one report for its holder, until it ends
// (decisions, "Share links").
type Share struct {
	ID        uuid.UUID `db:"id"`
	AccountID string    `db:"account_id"`
	JobID     string    `db:"job_id"`
	PersonID  string    `db:"person_id"` // who made it
	CreatedAt time.Time `db:"created_at"`
	ExpiresAt time.Time `db:"expires_at"`
}

// ErrNoShare refuses a link to a report that does not lead anywhere (any more).
var ErrNoShare = domain.NotFound("report").WithHint("the link has ended: ask the sender for a new one")

const insertShareSQL = `
INSERT INTO signin.shares (hash, id, account_id, job_id, person_id, created_at, expires_at)
SELECT $1, $2, $3, $4, $5, $6, $7
WHERE (
    SELECT COUNT(*)
    FROM signin.shares
    WHERE account_id = $3
      AND job_id = $4
      AND expires_at > $6) < $8`

// Share makes a link to the job's report. The token is shown only here.
func (s *Store) Share(ctx context.Context, accountID, jobID, personID string, works time.Duration) (token string, err error) {
	token = domain.NewToken("")
	now := s.time()
	full := domain.Conflict("%d links to this report work already", sharesPerJob).WithHint("end one of them first")
	return token, pgpool.ExecOne(ctx, s.db, full, "store a share link", insertShareSQL, domain.HashToken(token), uuid.New(), accountID,
		jobID, personID, now, now.Add(works), sharesPerJob)
}

const shareSQL = `
SELECT id, account_id, job_id, person_id, created_at, expires_at
FROM signin.shares
WHERE hash = $1
  AND expires_at > $2`

// Shared gives the link of the token; ErrNoShare if there is none.
func (s *Store) Shared(ctx context.Context, token string) (Share, error) {
	return pgpool.FindOr[Share](ctx, s.db, ErrNoShare, "a share link", shareSQL, domain.HashToken(token), s.time())
}

const sharesSQL = `
SELECT id, account_id, job_id, person_id, created_at, expires_at
FROM signin.shares
WHERE account_id = $1
  AND job_id = $2
  AND expires_at > $3
ORDER BY created_at DESC, id`

// Shares lists the links to the job's report that work, the newest first.
func (s *Store) Shares(ctx context.Context, accountID, jobID string) ([]Share, error) {
	return pgpool.List[Share](ctx, s.db, "share links", sharesSQL, accountID, jobID, s.time())
}

const endShareSQL = `
DELETE FROM signin.shares
WHERE account_id = $1
  AND job_id = $2
  AND id = $3`

// EndShare ends one of the job's links at once; one that is over already is
// fine.
func (s *Store) EndShare(ctx context.Context, accountID, jobID string, id uuid.UUID) error {
	return pgpool.Exec(ctx, s.db, "end a share link", endShareSQL, accountID, jobID, id)
}
