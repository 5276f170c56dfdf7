package credential

import (
	"context"
	"fmt"
	"time"

	"humanqa/domain"
	"humanqa/internal/pgpool"
)

const (
	// So many attempts are free; each one more doubles the pause before the next. The
	// pause of a name stops guesses at that name from many addresses. The pause of an
	// address stops guesses of one password at many names.
	freeByName    = 5
	freeByAddress = 20

	longestPause = 5 * time.Minute
	forgetAfter  = time.Hour
)

// attemptSQL counts an attempt unless a pause is running. It locks the row, so
// attempts at once are counted one after the other.
const attemptSQL = `
INSERT INTO signin.attempts AS a (who, failures, last_at, free_at)
VALUES ($1, 1, $2, $2)
ON CONFLICT (who) DO UPDATE
SET failures = CASE WHEN a.last_at <= $3 THEN 1 ELSE a.failures + 1 END,
    last_at = $2,
    free_at = CASE WHEN a.last_at <= $3 OR a.failures + 1 < $4 THEN $2::timestamptz
                   ELSE $2::timestamptz + LEAST($5, power(2, LEAST(a.failures + 1 - $4, 20))) * interval '1 second' END
WHERE a.free_at <= $2
RETURNING failures`

const freeAtSQL = `
SELECT free_at
FROM signin.attempts
WHERE who = $1`

const takeBackSQL = `
UPDATE signin.attempts
SET failures = GREATEST(failures - 1, 0),
    free_at = CASE WHEN failures - 1 < $2 THEN $3::timestamptz ELSE free_at END
WHERE who = $1`

const forgiveSQL = `
DELETE FROM signin.attempts
WHERE who = $1`

// counted is a counter of attempts, and the number of attempts that are free.
type counted struct {
	who  string
	free int
}

// attempt counts a guess before the guess is checked. After a right guess the name's
// counter is cleared, and the address's counter loses that guess.
func (s *Store) attempt(ctx context.Context, c counted) error {
	now := s.time()
	_, counted, err := pgpool.Find[int](ctx, s.db, "the attempts", attemptSQL,
		c.who, now, now.Add(-forgetAfter), c.free, longestPause.Seconds())
	if err != nil || counted {
		return err
	}
	at, _, err := pgpool.Find[time.Time](ctx, s.db, "a pause", freeAtSQL, c.who)
	if err != nil {
		return err
	}
	seconds := max(1, int(at.Sub(now).Seconds()+0.999))
	return &domain.Error{
		Kind: domain.KindRateLimited, Code: domain.CodeRateLimited,
		Message: "too many attempts", Hint: fmt.Sprintf("wait %d s, then try again", seconds),
	}
}

func (s *Store) forgive(ctx context.Context, who string) error {
	return pgpool.Exec(ctx, s.db, "forgive attempts", forgiveSQL, who)
}

// takeBack takes one attempt out of the count: it was no guess. The others stay, so that
// a guesser cannot clear an address with a sign-in of their own.
func (s *Store) takeBack(ctx context.Context, c counted) error {
	return pgpool.Exec(ctx, s.db, "take an attempt back", takeBackSQL, c.who, c.free, s.time())
}
