package overall

import (
	"context"
	"database/sql"
	"slices"
	"time"

	"humanqa/domain/job"
	"humanqa/internal/pgpool"
)

const (
	// latelyLooked is how many of the newest tests are searched for tests of a kind.
	// latelyLeast is the least number of the kind: fewer would reveal single tests of
	// others.
	latelyLooked = 500
	latelyLeast  = 5
	// latelyFor is the largest age of these tests.
	latelyFor = 30 * 24 * time.Hour
)

// Prospect tells an account what to expect of a test that waits for a checker.
type Prospect struct {
	// Online says that a checker with a right to the account's tests is present.
	Online bool
	// Typical is the median time of such tests from the submission to the report; zero:
	// there were too few lately.
	Typical time.Duration
}

// A checker tests no job of an account that they belong to. An account that is kept to a
// pool has that pool's checkers only.
const onlineSQL = `
SELECT EXISTS (
    SELECT
    FROM readmodel.checkers c
    WHERE $4 <> ALL (c.accounts)
      AND NOT EXISTS (
        SELECT
        FROM readmodel.person_roles w
        JOIN readmodel.person_roles r ON r.person_id = w.person_id
        WHERE w.checker_id = c.checker_id
          AND w.checker_id <> ''
          AND r.account_id = $4)
      AND NOT EXISTS (
        SELECT
        FROM readmodel.account_pools p
        WHERE p.account_id = $4
          AND p.pool_id <> ''
          AND NOT EXISTS (
            SELECT
            FROM readmodel.pool_checkers m
            WHERE m.pool_id = p.pool_id
              AND m.checker_id = c.checker_id))
      AND ` + presentSQL + `)`

// Tests of accounts that are kept to another pool have other checkers.
const typicalSQL = `
SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY extract(epoch FROM completed_at - created_at)::double precision)
FROM (
    SELECT account_id, type, urgent, sandbox, session_id, status, created_at, completed_at
    FROM readmodel.jobs
    WHERE created_at > $4
    ORDER BY created_at DESC, id DESC
    LIMIT $5) lately
LEFT JOIN readmodel.account_pools p USING (account_id)
WHERE type = $2
  AND urgent = $3
  AND status = 'completed'
  AND session_id = ''
  AND NOT sandbox
  AND COALESCE(p.pool_id, '') = COALESCE((SELECT own.pool_id FROM readmodel.account_pools own WHERE own.account_id = $1), '')
HAVING COUNT(*) >= $6`

// Prospect tells an account about checkers and tests of one kind. It names no other
// account and no checker.
func (q *Reads) Prospect(ctx context.Context, accountID string, of job.Type, urgent bool, now time.Time) (p Prospect, err error) {
	present := slices.Concat(presence(now), []any{accountID})
	if p.Online, err = pgpool.One[bool](ctx, q.db, "whether a checker is present", onlineSQL, present...); err != nil {
		return Prospect{}, err
	}
	took, _, err := pgpool.Find[sql.NullFloat64](ctx, q.db, "how long tests took", typicalSQL,
		accountID, of, urgent, now.Add(-latelyFor), latelyLooked, latelyLeast)
	p.Typical = time.Duration(took.Float64 * float64(time.Second))
	return p, err
}
