package httpapi

import (
	"context"
	"fmt"

	"github.com/jmoiron/sqlx"
)

const eraseAnswersSQL = `
DELETE FROM http_idempotency
WHERE account_id = $1`

const accountEvidenceSQL = `
SELECT id, account_id, job_id, content_type, size, TRUE AS stored
FROM http_evidence
WHERE account_id = $1
  AND stored_at IS NOT NULL`

// Erase removes what the API keeps of an account beside the log: answers to
// repeats, and evidence with its files, recordings too (decisions, "Erasure"). The account's data
// key is destroyed before: an upload that is under way then ends as one that
// broke off, and the sweep removes it. erased counts what was there.
//
// A file goes before its row: a crash in between leaves a row whose file is
// erased again.
func Erase(ctx context.Context, db *sqlx.DB, files EvidenceFiles, accountID string) (erased int, err error) {
	done, err := db.ExecContext(ctx, eraseAnswersSQL, accountID)
	if err != nil {
		return 0, fmt.Errorf("erase the answers to account %s: %w", accountID, err)
	}
	answers, err := done.RowsAffected()
	if err != nil {
		return 0, fmt.Errorf("erase the answers to account %s: %w", accountID, err)
	}
	var evidence []evidenceRow
	if err := db.SelectContext(ctx, &evidence, accountEvidenceSQL, accountID); err != nil {
		return 0, fmt.Errorf("list the evidence of account %s: %w", accountID, err)
	}
	for _, e := range evidence {
		if err := files.Delete(ctx, e.key()); err != nil {
			return 0, err
		}
		if _, err := db.ExecContext(ctx, forgetEvidenceSQL, e.AccountID, e.ID); err != nil {
			return 0, fmt.Errorf("erase evidence %s: %w", e.ID, err)
		}
	}
	recorded, err := recordingRows{db: db}.erase(ctx, files, accountID)
	return int(answers) + len(evidence) + recorded, err
}
