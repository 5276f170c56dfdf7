package evidence

import (
	"context"
	"fmt"
	"time"

	"github.com/jmoiron/sqlx"
)

const accountEvidenceSQL = `
SELECT id, account_id, job_id, content_type, size, TRUE AS stored
FROM http_evidence
WHERE account_id = $1
  AND ($2 = '' OR job_id = $2)
  AND (stored_at IS NOT NULL OR begun_at < now() - make_interval(secs => $3))`

const evidenceUnderWaySQL = `
SELECT count(*)
FROM http_evidence
WHERE account_id = $1
  AND ($2 = '' OR job_id = $2)`

// uploadSeconds is longer than an upload writes its file: what began before that
// and has not ended never will.
const uploadSeconds = 2 * int(writeTime/time.Second)

// Erase removes the evidence of an account, or of one of its jobs, with its files,
// recordings too (decisions, "Erasure"; without a job: all of the account's). The key of
// the account, or the job, is destroyed before: an upload that is under way
// then removes its own file. erased counts what was there; underWay counts what a
// process still works on, after which it is erased.
//
// A file goes before its row: a crash in between leaves a row whose file is erased
// again. Files without a row go with the folder, the last of all.
func Erase(ctx context.Context, db *sqlx.DB, files Files, accountID, jobID string) (erased, underWay int, err error) {
	var pieces []Piece
	if err := db.SelectContext(ctx, &pieces, accountEvidenceSQL, accountID, jobID, uploadSeconds); err != nil {
		return 0, 0, fmt.Errorf("list the evidence of account %s: %w", accountID, err)
	}
	for _, e := range pieces {
		if err := discardPiece(ctx, db, files, e); err != nil {
			return 0, 0, fmt.Errorf("erase evidence %s: %w", e.ID, err)
		}
	}
	if err := db.GetContext(ctx, &underWay, evidenceUnderWaySQL, accountID, jobID); err != nil {
		return 0, 0, fmt.Errorf("count the evidence of account %s: %w", accountID, err)
	}
	recorded, recording, err := recordingRows{db: db}.erase(ctx, files, accountID, jobID)
	if err != nil {
		return 0, 0, err
	}
	folder := accountID
	if jobID != "" {
		folder += "/" + jobID
	}
	stray, err := files.Erase(ctx, folder)
	return len(pieces) + recorded + stray, underWay + recording, err
}

// A recording that is being made a file stays here: its maker finds the account
// erased, and removes it.
const eraseRecordingsSQL = `
DELETE FROM http_recordings
WHERE account_id = $1
  AND ($2 = '' OR job_id = $2)
  AND (attached_at IS NOT NULL OR taken_until IS NULL OR taken_until < now())`

const recordingsUnderWaySQL = `
SELECT count(*)
FROM http_recordings
WHERE account_id = $1
  AND ($2 = '' OR job_id = $2)`

// Parts that the recording has, or had: no request is still sending them.
const accountPartsSQL = `
SELECT p.id, p.recording_id, p.account_id, p.job_id, p.at, p.size
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

const partsUnderWaySQL = `
SELECT count(*)
FROM http_recording_parts
WHERE account_id = $1
  AND ($2 = '' OR job_id = $2)`

// erase removes the recordings of an account or a job and their parts, those of finished
// recordings first; underWay counts what a process still works on.
func (r recordingRows) erase(ctx context.Context, files Files, accountID, jobID string) (erased, underWay int, err error) {
	var parts []partRow
	if err := r.db.SelectContext(ctx, &parts, accountPartsSQL, accountID, jobID, uploadSeconds); err != nil {
		return 0, 0, fmt.Errorf("list the recordings of account %s: %w", accountID, err)
	}
	for _, p := range parts {
		if err := discardPart(ctx, r.db, files, p); err != nil {
			return 0, 0, fmt.Errorf("erase part %s of a recording: %w", p.ID, err)
		}
	}
	done, err := r.db.ExecContext(ctx, eraseRecordingsSQL, accountID, jobID)
	if err != nil {
		return 0, 0, fmt.Errorf("erase the recordings of account %s: %w", accountID, err)
	}
	rows, err := done.RowsAffected()
	if err != nil {
		return 0, 0, fmt.Errorf("erase the recordings of account %s: %w", accountID, err)
	}
	for _, count := range []string{recordingsUnderWaySQL, partsUnderWaySQL} {
		var n int
		if err := r.db.GetContext(ctx, &n, count, accountID, jobID); err != nil {
			return 0, 0, fmt.Errorf("count the recordings of account %s: %w", accountID, err)
		}
		underWay += n
	}
	return int(rows) + len(parts), underWay, nil
}

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
	var kept struct {
		Files int   `db:"files"`
		Bytes int64 `db:"bytes"`
	}
	if err := db.GetContext(ctx, &kept, jobFilesSQL, accountID, jobID); err != nil {
		return 0, 0, fmt.Errorf("count the evidence of job %s: %w", jobID, err)
	}
	return kept.Files, kept.Bytes, nil
}
