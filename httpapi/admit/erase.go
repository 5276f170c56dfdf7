package admit

import (
	"context"
	"fmt"

	"github.com/jmoiron/sqlx"
)

const eraseAnswersSQL = `
WITH uses AS (
    DELETE FROM http_key_uses
    WHERE account_id = $1
)
DELETE FROM http_idempotency
WHERE account_id = $1`

// EraseAnswers removes the answers that are kept for an account's repeated requests, and
// when its keys were used.
func EraseAnswers(ctx context.Context, db *sqlx.DB, accountID string) (erased int, err error) {
	done, err := db.ExecContext(ctx, eraseAnswersSQL, accountID)
	if err != nil {
		return 0, fmt.Errorf("erase the answers to account %s: %w", accountID, err)
	}
	n, err := done.RowsAffected()
	if err != nil {
		return 0, fmt.Errorf("erase the answers to account %s: %w", accountID, err)
	}
	return int(n), nil
}
