package admit

import (
	"context"
	"errors"
	"fmt"

	"github.com/jmoiron/sqlx"

	"humanqa/domain"
	"humanqa/domain/command"
	"humanqa/internal/pgpool"
)

const eraseAnswersSQL = `
WITH uses AS (
    DELETE FROM http_key_uses
    WHERE account_id = $1
)
DELETE FROM http_idempotency
WHERE account_id = $1`

// EraseAnswers removes the answers that are kept for an account's repeated requests, and
// the times at which its keys were used.
func EraseAnswers(ctx context.Context, db *sqlx.DB, accountID string) (erased int, err error) {
	return pgpool.ExecCount(ctx, db, "erase the answers to account "+accountID, eraseAnswersSQL, accountID)
}

const keptAnswersSQL = `
SELECT path, key, body
FROM http_idempotency
WHERE account_id = $1
  AND body IS NOT NULL`

const eraseAnswerSQL = `
DELETE FROM http_idempotency
WHERE account_id = $1
  AND path = $2
  AND key = $3`

// EraseAnswersWith removes, of the answers that are kept for repeated requests of the
// owners (accounts, checkers), those for which holds is true. A repeat of such a request
// is decided anew: it finds the job ended.
func EraseAnswersWith(
	ctx context.Context, db *sqlx.DB, v command.Sealer, owners []string, holds func(path string, body []byte) bool,
) error {
	for _, owner := range owners {
		var rows []struct {
			Path string `db:"path"`
			Key  string `db:"key"`
			Body string `db:"body"`
		}
		if err := db.SelectContext(ctx, &rows, keptAnswersSQL, owner); err != nil {
			return fmt.Errorf("list the answers to %s: %w", owner, err)
		}
		for _, row := range rows {
			body, err := v.Unseal(ctx, owner, KeyScope{Owner: owner, Path: row.Path, Key: row.Key}.stream(), row.Body)
			switch {
			case errors.Is(err, domain.ErrShredded), err == nil && !holds(row.Path, body):
				continue
			case err != nil:
				return fmt.Errorf("open an answer to %s: %w", owner, err)
			}
			if _, err := db.ExecContext(ctx, eraseAnswerSQL, owner, row.Path, row.Key); err != nil {
				return fmt.Errorf("erase an answer to %s: %w", owner, err)
			}
		}
	}
	return nil
}
