package admit

import (
	"context"
	"fmt"
	"time"

	"humanqa/projections/access"
)

// noteUseSQL keeps the latest use of a key, whichever process notes it.
const noteUseSQL = `
INSERT INTO http_key_uses AS u (key_id, account_id, used_at)
VALUES ($1, $2, $3)
ON CONFLICT (key_id) DO UPDATE
SET used_at = EXCLUDED.used_at
WHERE u.used_at < EXCLUDED.used_at`

// noteUse writes that a key is in use, once a minute and process, so that most requests
// cost no second statement.
func (l *limiter) noteUse(ctx context.Context, key access.Key, now time.Time) error {
	minute := now.UTC().Truncate(time.Minute)
	if last, found := l.used.Load(key.KeyID); found && !minute.After(last.(time.Time)) {
		return nil
	}
	if _, err := l.db.ExecContext(ctx, noteUseSQL, key.KeyID, key.AccountID, minute); err != nil {
		return fmt.Errorf("note the use of key %s: %w", key.KeyID, err)
	}
	l.used.Store(key.KeyID, minute)
	return nil
}

// forgetUses drops the notes that are more than two minutes old.
func (l *limiter) forgetUses(now time.Time) {
	l.used.Range(func(id, last any) bool {
		if now.Sub(last.(time.Time)) > 2*time.Minute {
			l.used.Delete(id)
		}
		return true
	})
}
