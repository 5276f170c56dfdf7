package httpapi

import (
	"context"
	"fmt"
	"time"

	"github.com/jmoiron/sqlx"
)

const eraseAnswersSQL = `
DELETE FROM http_idempotency
WHERE account_id = $1`

const accountEvidenceSQL = `
SELECT id, account_id, job_id, content_type, size, TRUE AS stored
FROM http_evidence
WHERE account_id = $1
  AND (stored_at IS NOT NULL OR begun_at < now() - make_interval(secs => $2))`

const evidenceUnderWaySQL = `
SELECT count(*)
FROM http_evidence
WHERE account_id = $1`

// uploadSeconds is longer than an upload writes its file: what began before that
// and has not ended never will.
const uploadSeconds = 2 * int(commandTime/time.Second)

// Erase removes what the API keeps of an account beside the log: answers to
// repeats, and evidence with its files, recordings too (decisions, "Erasure"). The account's data
// key is destroyed before: an upload that is under way then removes what it wrote.
// erased counts what was there; underWay what a process still works on, after
// which it is erased.
//
// A file goes before its row: a crash in between leaves a row whose file is
// erased again. What has no row goes with the account's folder, the last of all.
func Erase(ctx context.Context, db *sqlx.DB, files EvidenceFiles, accountID string) (erased, underWay int, err error) {
	done, err := db.ExecContext(ctx, eraseAnswersSQL, accountID)
	if err != nil {
		return 0, 0, fmt.Errorf("erase the answers to account %s: %w", accountID, err)
	}
	answers, err := done.RowsAffected()
	if err != nil {
		return 0, 0, fmt.Errorf("erase the answers to account %s: %w", accountID, err)
	}
	var evidence []evidenceRow
	if err := db.SelectContext(ctx, &evidence, accountEvidenceSQL, accountID, uploadSeconds); err != nil {
		return 0, 0, fmt.Errorf("list the evidence of account %s: %w", accountID, err)
	}
	for _, e := range evidence {
		if err := discardEvidence(ctx, db, files, e); err != nil {
			return 0, 0, fmt.Errorf("erase evidence %s: %w", e.ID, err)
		}
	}
	if err := db.GetContext(ctx, &underWay, evidenceUnderWaySQL, accountID); err != nil {
		return 0, 0, fmt.Errorf("count the evidence of account %s: %w", accountID, err)
	}
	recorded, recording, err := recordingRows{db: db}.erase(ctx, files, accountID)
	if err != nil {
		return 0, 0, err
	}
	stray, err := files.Erase(ctx, accountID)
	return int(answers) + len(evidence) + recorded + stray, underWay + recording, err
}
