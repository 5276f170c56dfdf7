package evidence

import (
	"context"
	"fmt"
	"time"

	"github.com/jmoiron/sqlx"

	"humanqa/internal/pgpool"
)

const accountEvidenceSQL = `
SELECT id, account_id, job_id, content_type, size
FROM http_evidence
WHERE account_id = $1
  AND ($2 = '' OR job_id = $2)
  AND (stored_at IS NOT NULL OR begun_at < now() - make_interval(secs => $3))`

// uploadSeconds is longer than an upload takes to write its file: one that began earlier
// and has not ended never will.
const uploadSeconds = 2 * int(writeTime/time.Second)

// Erase removes the evidence of an account, or of one of its jobs, with its files,
// recordings too (decisions, "Erasure"; without a job: all of the account's). The key of
// the account, or the job, is destroyed before: an upload that is under way then removes
// its own file. erased counts the pieces, recordings and stray files that were there.
// underWay counts the rows that a process still works on, which are erased afterwards.
//
// A file is removed before its row: a crash in between leaves a row whose file is erased
// again. Files without a row are removed last, with the folder.
func Erase(ctx context.Context, db *sqlx.DB, files Files, accountID, jobID string) (erased, underWay int, err error) {
	for _, kept := range []struct{ what, list, forget string }{
		{"evidence", accountEvidenceSQL, forgetEvidenceSQL}, {"parts of recordings", accountPartsSQL, forgetPartSQL},
	} {
		pieces, err := pgpool.List[Piece](ctx, db, kept.what+" of account "+accountID, kept.list, accountID, jobID, uploadSeconds)
		if err != nil {
			return 0, 0, err
		}
		for _, e := range pieces {
			if err := discard(ctx, db, files, e, kept.forget); err != nil {
				return 0, 0, fmt.Errorf("erase %s %s: %w", kept.what, e.ID, err)
			}
		}
		erased += len(pieces)
	}
	rows, err := pgpool.ExecCount(ctx, db, "erase the recordings of account "+accountID, eraseRecordingsSQL, accountID, jobID)
	if err != nil {
		return 0, 0, err
	}
	if underWay, err = pgpool.One[int](ctx, db, "the evidence left of account "+accountID, underWaySQL, accountID, jobID); err != nil {
		return 0, 0, err
	}
	folder := accountID
	if jobID != "" {
		folder += "/" + jobID
	}
	stray, err := files.Erase(ctx, folder)
	return erased + rows + stray, underWay, err
}

// A recording that a process is making a file of stays here: that process finds the
// account erased, and removes it.
const eraseRecordingsSQL = `
DELETE FROM http_recordings
WHERE account_id = $1
  AND ($2 = '' OR job_id = $2)
  AND (attached_at IS NOT NULL OR taken_until IS NULL OR taken_until < now())`

// Parts that the recording has, or had: no request is still sending them.
const accountPartsSQL = `
SELECT p.id, p.account_id, p.job_id, p.size
FROM http_recording_parts p
WHERE p.account_id = $1
  AND ($2 = '' OR p.job_id = $2)
  AND (p.stored_at IS NOT NULL
    OR p.begun_at < now() - make_interval(secs => $3)
    OR EXISTS (
        SELECT
        FROM http_recordings r
        WHERE r.id = p.recording_id
          AND r.attached_at IS NOT NULL))`

const underWaySQL = `
SELECT count(*)
FROM (
    SELECT account_id, job_id
    FROM http_evidence
    UNION ALL
    SELECT account_id, job_id
    FROM http_recordings
    UNION ALL
    SELECT account_id, job_id
    FROM http_recording_parts) kept
WHERE account_id = $1
  AND ($2 = '' OR job_id = $2)`

const jobFilesSQL = `
SELECT count(*) AS files, COALESCE(sum(size), 0)::bigint AS bytes
FROM (
    SELECT size
    FROM http_evidence
    WHERE account_id = $1
      AND job_id = $2
    UNION ALL
    SELECT size
    FROM http_recording_parts
    WHERE account_id = $1
      AND job_id = $2) kept`

// Kept counts the files of a job's evidence, with parts of recordings.
func Kept(ctx context.Context, db *sqlx.DB, accountID, jobID string) (files int, bytes int64, err error) {
	kept, err := pgpool.One[Size](ctx, db, "the evidence of job "+jobID, jobFilesSQL, accountID, jobID)
	return int(kept.Files), kept.Bytes, err
}
