package httpapi

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jmoiron/sqlx"

	"humanqa/domain"
	"humanqa/domain/command"
	"humanqa/internal/pgpool"
)

const (
	// maxRecordings of one checker at one job: each time somebody starts anew is one.
	maxRecordings = 30
	// recordingsOfDay is how many jobs' worth of recordings a checker may begin in
	// any 24 hours.
	recordingsOfDay = 8
	// maxRecordingParts of one recording: fourteen hours of a part every five
	// seconds.
	maxRecordingParts = 10_000
	// recordingSilence, in seconds, is how long after its last part the service
	// looks whether more can come.
	recordingSilence = 120
	// assembleLease, in seconds, is longer than a recording takes to become a file.
	assembleLease = 900
)

// recordingRow is a recording as the database knows it.
type recordingRow struct {
	ID          string    `db:"id"`
	AccountID   string    `db:"account_id"`
	JobID       string    `db:"job_id"`
	CheckerID   string    `db:"checker_id"`
	ClaimToken  int       `db:"claim_token"`
	ContentType string    `db:"content_type"`
	Size        int64     `db:"size"`
	Parts       int       `db:"parts"`
	StartedAt   time.Time `db:"started_at"`
	Finished    bool      `db:"finished"`
	Attached    bool      `db:"attached"`
}

const recordingColumns = `id, account_id, job_id, checker_id, claim_token, content_type, size, parts, started_at,
       finished_at IS NOT NULL AS finished, attached_at IS NOT NULL AS attached`

func (r recordingRow) of(claim command.Claim) bool {
	return r.JobID == claim.JobID && r.CheckerID == claim.CheckerID && r.ClaimToken == claim.Token
}

func (r recordingRow) claim() command.Claim {
	return command.Claim{CheckerID: r.CheckerID, JobID: r.JobID, Token: r.ClaimToken}
}

// evidence is the piece that the recording becomes.
func (r recordingRow) evidence() evidenceRow {
	return evidenceRow{ID: r.ID, AccountID: r.AccountID, JobID: r.JobID, ContentType: r.ContentType, Size: r.Size}
}

// partRow is a part of one.
type partRow struct {
	ID          string `db:"id"`
	RecordingID string `db:"recording_id"`
	AccountID   string `db:"account_id"`
	JobID       string `db:"job_id"`
	At          int64  `db:"at"`
	Size        int64  `db:"size"`
}

func (p partRow) key() string {
	return evidenceRow{ID: p.ID, AccountID: p.AccountID, JobID: p.JobID}.key()
}

// recordingRows records recordings.
type recordingRows struct{ db *sqlx.DB }

var errNoRecording = domain.NotFound("recording")

const countRecordingsSQL = `
SELECT count(*)
FROM http_recordings
WHERE account_id = $1
  AND job_id = $2
  AND checker_id = $3
  AND id <> $4`

const beginRecordingSQL = `
INSERT INTO http_recordings
    (id, account_id, job_id, checker_id, claim_token, content_type, size, parts, started_at, due_at)
VALUES
    ($1, $2, $3, $4, $5, '', 0, 0, $6, now() + make_interval(secs => $7))
ON CONFLICT (id) DO NOTHING`

// begin gives the recording its row; one that is there already is a repeat.
func (r recordingRows) begin(ctx context.Context, id uuid.UUID, accountID string, claim command.Claim, startedAt time.Time) (row recordingRow, err error) {
	err = pgpool.InTxDurable(ctx, r.db, func(tx *sqlx.Tx) error {
		if _, err := tx.ExecContext(ctx, lockEvidenceSQL, claim.JobID); err != nil {
			return err
		}
		var others int
		if err := tx.GetContext(ctx, &others, countRecordingsSQL, accountID, claim.JobID, claim.CheckerID, id); err != nil {
			return err
		}
		if others >= maxRecordings {
			return domain.Conflict("you have begun %d recordings of this job, the most there may be", maxRecordings).
				WithHint("go on without one, or show pictures")
		}
		_, err := tx.ExecContext(ctx, beginRecordingSQL,
			id, accountID, claim.JobID, claim.CheckerID, claim.Token, startedAt, recordingSilence)
		if err != nil {
			return err
		}
		row, err = getRecording(ctx, tx, claim.CheckerID, claim.JobID, id.String())
		return err
	})
	return row, err
}

const getRecordingSQL = `
SELECT ` + recordingColumns + `
FROM http_recordings
WHERE id = $1
  AND checker_id = $2`

// getRecording finds a recording of the checker; anybody else's is not found.
func getRecording(ctx context.Context, q sqlx.QueryerContext, checkerID, jobID, id string) (row recordingRow, err error) {
	if !isEvidenceID(id) {
		return row, errNoRecording
	}
	switch err = sqlx.GetContext(ctx, q, &row, getRecordingSQL, id, checkerID); {
	case errors.Is(err, sql.ErrNoRows) || err == nil && row.JobID != jobID:
		return recordingRow{}, errNoRecording
	case err != nil:
		return row, fmt.Errorf("read recording %s: %w", id, err)
	}
	return row, nil
}

// recordedSQL sums what there is of a checker's recordings: what was acknowledged,
// and parts that are on their way or broke off.
const recordedSQL = `
WITH own AS (
    SELECT id, size, attached_at, account_id = $1 AND job_id = $2 AS of_job, begun_at > now() - interval '24 hours' AS of_day
    FROM http_recordings
    WHERE checker_id = $3
      AND (begun_at > now() - interval '24 hours' OR account_id = $1 AND job_id = $2)),
sizes AS (
    SELECT size, of_job, of_day
    FROM own
    UNION ALL
    SELECT p.size, own.of_job, own.of_day
    FROM own
    JOIN http_recording_parts p ON p.recording_id = own.id AND p.stored_at IS NULL
    WHERE own.attached_at IS NULL)
SELECT COALESCE(SUM(size) FILTER (WHERE of_job), 0), COALESCE(SUM(size) FILTER (WHERE of_day), 0)
FROM sizes`

const reservePartSQL = `
INSERT INTO http_recording_parts
    (id, recording_id, account_id, job_id, at, size, begun_at)
VALUES
    (:id, :recording_id, :account_id, :job_id, :at, :size, now())`

// reserve gives a part its row. Of several at one place, each has a file of its
// own, and one becomes the recording's; until then each counts. The checker's
// parts take turns here, so that no two at once are the last one allowed.
func (r recordingRows) reserve(ctx context.Context, row recordingRow, size, limit int64) (partRow, error) {
	p := partRow{ID: uuid.NewString(), RecordingID: row.ID, AccountID: row.AccountID, JobID: row.JobID, At: row.Size, Size: size}
	err := pgpool.InTx(ctx, r.db, func(tx *sqlx.Tx) error {
		if _, err := tx.ExecContext(ctx, lockEvidenceSQL, "recordings of "+row.CheckerID); err != nil {
			return err
		}
		var ofJob, ofDay int64
		if err := tx.QueryRowContext(ctx, recordedSQL, row.AccountID, row.JobID, row.CheckerID).Scan(&ofJob, &ofDay); err != nil {
			return err
		}
		if ofJob+size > limit {
			return recordingTooLarge("of this job", limit, ofJob+size)
		}
		if ofDay+size > recordingsOfDay*limit {
			return recordingTooLarge("of 24 hours", recordingsOfDay*limit, ofDay+size)
		}
		_, err := tx.NamedExecContext(ctx, reservePartSQL, p)
		return err
	})
	return p, err
}

func recordingTooLarge(which string, limit, size int64) error {
	return &domain.Error{
		Kind: domain.KindTooLarge, Code: domain.CodePayloadTooLarge,
		Message: fmt.Sprintf("your recordings %s may have %d bytes, these would have %d", which, limit, size),
		Hint:    "finish the recording; what is there stays",
	}
}

// erasedSQL says that account $1 was erased (Erase).
const erasedSQL = `EXISTS (
    SELECT
    FROM vault.data_keys
    WHERE account_id = $1
      AND shredded_at IS NOT NULL)`

const growRecordingSQL = `
UPDATE http_recordings
SET size = size + $4,
    parts = parts + 1,
    content_type = $5,
    due_at = now() + make_interval(secs => $6)
WHERE account_id = $1
  AND id = $2
  AND size = $3
  AND finished_at IS NULL
  AND NOT ` + erasedSQL

const storedPartSQL = `
UPDATE http_recording_parts
SET stored_at = now()
WHERE account_id = $1
  AND id = $2`

// grow makes the part the recording's next; false where something else came first.
func (r recordingRows) grow(ctx context.Context, p partRow, contentType string) (grown bool, err error) {
	// What is answered must outlive a crash of the database.
	err = pgpool.InTxDurable(ctx, r.db, func(tx *sqlx.Tx) error {
		done, err := tx.ExecContext(ctx, growRecordingSQL, p.AccountID, p.RecordingID, p.At, p.Size, contentType, recordingSilence)
		if err != nil {
			return err
		}
		if n, err := done.RowsAffected(); err != nil || n == 0 {
			return err
		}
		if done, err = tx.ExecContext(ctx, storedPartSQL, p.AccountID, p.ID); err != nil {
			return err
		}
		if n, err := done.RowsAffected(); err != nil || n == 0 {
			return domain.Unavailable(errors.Join(errors.New("the upload took so long that it was swept"), err))
		}
		grown = true
		return nil
	})
	return grown && err == nil, err
}

const recordingAgainSQL = `
UPDATE http_recordings
SET due_at = now() + make_interval(secs => $3),
    taken_until = NULL
WHERE account_id = $1
  AND id = $2
  AND (finished_at IS NOT NULL) = $4`

// again says in how many seconds the service looks at the recording next, unless
// it was finished meanwhile.
func (r recordingRows) again(ctx context.Context, row recordingRow, seconds int) error {
	_, err := r.db.ExecContext(ctx, recordingAgainSQL, row.AccountID, row.ID, seconds, row.Finished)
	return err
}

const finishRecordingSQL = `
UPDATE http_recordings
SET finished_at = now(),
    due_at = LEAST(due_at, now())
WHERE account_id = $1
  AND id = $2
  AND finished_at IS NULL`

// finish ends the recording; it is assembled as soon as somebody gets to it.
func (r recordingRows) finish(ctx context.Context, row recordingRow) error {
	return pgpool.InTxDurable(ctx, r.db, func(tx *sqlx.Tx) error {
		_, err := tx.ExecContext(ctx, finishRecordingSQL, row.AccountID, row.ID)
		return err
	})
}

const takeRecordingSQL = `
UPDATE http_recordings
SET due_at = now() + make_interval(secs => $1),
    taken_until = now() + make_interval(secs => $1)
WHERE id = (
    SELECT id
    FROM http_recordings
    WHERE attached_at IS NULL
      AND due_at <= now()
    ORDER BY due_at
    LIMIT 1
    FOR UPDATE SKIP LOCKED)
RETURNING ` + recordingColumns

// take leases a recording that is due to be looked at.
func (r recordingRows) take(ctx context.Context) (row recordingRow, found bool, err error) {
	switch err = r.db.GetContext(ctx, &row, takeRecordingSQL, assembleLease); {
	case errors.Is(err, sql.ErrNoRows):
		return row, false, nil
	case err != nil:
		return row, false, fmt.Errorf("take a recording: %w", err)
	}
	return row, true, nil
}

const partsSQL = `
SELECT id, recording_id, account_id, job_id, at, size
FROM http_recording_parts
WHERE account_id = $1
  AND recording_id = $2
  AND stored_at IS NOT NULL
ORDER BY at`

// parts are the recording's, in order.
func (r recordingRows) parts(ctx context.Context, row recordingRow) (parts []partRow, err error) {
	err = r.db.SelectContext(ctx, &parts, partsSQL, row.AccountID, row.ID)
	return parts, err
}

const keepRecordingSQL = `
INSERT INTO http_evidence
    (id, account_id, job_id, checker_id, digest, content_type, size, begun_at, stored_at)
SELECT $2, $1, $3, $4, $5, $6, $7, now(), now()
WHERE NOT ` + erasedSQL + `
ON CONFLICT (id) DO UPDATE
SET size = EXCLUDED.size`

// keep makes evidence of the file that the recording became, unless its account
// was erased. It is the same as no other: its digest is of its id.
func (r recordingRows) keep(ctx context.Context, row recordingRow, size int64) (kept bool, err error) {
	digest := sha256.Sum256([]byte("recording " + row.ID))
	err = pgpool.InTxDurable(ctx, r.db, func(tx *sqlx.Tx) error {
		done, err := tx.ExecContext(ctx, keepRecordingSQL,
			row.AccountID, row.ID, row.JobID, row.CheckerID, digest[:], row.ContentType, size)
		if err != nil {
			return err
		}
		n, err := done.RowsAffected()
		kept = n > 0
		return err
	})
	return kept, err
}

// erased says that the account is no more.
func (r recordingRows) erased(ctx context.Context, row recordingRow) (erased bool, err error) {
	err = r.db.GetContext(ctx, &erased, `SELECT `+erasedSQL, row.AccountID)
	return erased, err
}

const forgetRecordingSQL = `
DELETE FROM http_recordings
WHERE account_id = $1
  AND id = $2`

func (r recordingRows) forget(ctx context.Context, row recordingRow) error {
	_, err := r.db.ExecContext(ctx, forgetRecordingSQL, row.AccountID, row.ID)
	return err
}

// A recording that is being made a file ends with that: whoever makes it finds the
// account erased.
const eraseRecordingsSQL = `
DELETE FROM http_recordings
WHERE account_id = $1
  AND (attached_at IS NOT NULL OR taken_until IS NULL OR taken_until < now())`

const recordingsUnderWaySQL = `
SELECT count(*)
FROM http_recordings
WHERE account_id = $1`

// Parts that the recording has, or had: no request is still sending them.
const accountPartsSQL = `
SELECT p.id, p.recording_id, p.account_id, p.job_id, p.at, p.size
FROM http_recording_parts p
WHERE p.account_id = $1
  AND (p.stored_at IS NOT NULL
    OR p.begun_at < now() - make_interval(secs => $2)
    OR EXISTS (
        SELECT
        FROM http_recordings r
        WHERE r.id = p.recording_id
          AND r.attached_at IS NOT NULL))`

const partsUnderWaySQL = `
SELECT count(*)
FROM http_recording_parts
WHERE account_id = $1`

// erase removes the account's recordings and their parts, those of finished
// recordings first; underWay counts what a process still works on.
func (r recordingRows) erase(ctx context.Context, files EvidenceFiles, accountID string) (erased, underWay int, err error) {
	var parts []partRow
	if err := r.db.SelectContext(ctx, &parts, accountPartsSQL, accountID, uploadSeconds); err != nil {
		return 0, 0, fmt.Errorf("list the recordings of account %s: %w", accountID, err)
	}
	for _, p := range parts {
		if err := discardPart(ctx, r.db, files, p); err != nil {
			return 0, 0, fmt.Errorf("erase part %s of a recording: %w", p.ID, err)
		}
	}
	done, err := r.db.ExecContext(ctx, eraseRecordingsSQL, accountID)
	if err != nil {
		return 0, 0, fmt.Errorf("erase the recordings of account %s: %w", accountID, err)
	}
	rows, err := done.RowsAffected()
	if err != nil {
		return 0, 0, fmt.Errorf("erase the recordings of account %s: %w", accountID, err)
	}
	for _, count := range []string{recordingsUnderWaySQL, partsUnderWaySQL} {
		var n int
		if err := r.db.GetContext(ctx, &n, count, accountID); err != nil {
			return 0, 0, fmt.Errorf("count the recordings of account %s: %w", accountID, err)
		}
		underWay += n
	}
	return int(rows) + len(parts), underWay, nil
}

const attachedRecordingSQL = `
UPDATE http_recordings
SET attached_at = now()
WHERE account_id = $1
  AND id = $2`

const unneededPartsSQL = `
UPDATE http_recording_parts
SET stored_at = NULL,
    begun_at = now()
WHERE account_id = $1
  AND recording_id = $2`

// attached notes that the job has the recording. Its parts are swept, later than a
// backup that is under way reads them.
func (r recordingRows) attached(ctx context.Context, row recordingRow) error {
	return pgpool.InTx(ctx, r.db, func(tx *sqlx.Tx) error {
		if _, err := tx.ExecContext(ctx, attachedRecordingSQL, row.AccountID, row.ID); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, unneededPartsSQL, row.AccountID, row.ID)
		return err
	})
}

const unneededPartListSQL = `
SELECT id, recording_id, account_id, job_id, at, size
FROM http_recording_parts
WHERE stored_at IS NULL
  AND begun_at < now() - make_interval(mins => $1)
ORDER BY begun_at
LIMIT $2
FOR UPDATE SKIP LOCKED`

const forgetPartSQL = `
DELETE FROM http_recording_parts
WHERE account_id = $1
  AND id = $2`

// discardPart removes a part and its row, the file first: what fails is found again.
func discardPart(ctx context.Context, q sqlx.ExecerContext, files EvidenceFiles, p partRow) error {
	if err := files.Delete(ctx, p.key()); err != nil {
		return err
	}
	_, err := q.ExecContext(ctx, forgetPartSQL, p.AccountID, p.ID)
	return err
}

// sweep removes parts that broke off, or are needed no more.
func (r recordingRows) sweep(ctx context.Context, files EvidenceFiles) error {
	err := pgpool.InTx(ctx, r.db, func(tx *sqlx.Tx) error {
		var unneeded []partRow
		if err := tx.SelectContext(ctx, &unneeded, unneededPartListSQL, evidenceMinutes, evidenceBatch); err != nil {
			return err
		}
		for _, p := range unneeded {
			if err := discardPart(ctx, tx, files, p); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("sweep recordings: %w", err)
	}
	return nil
}

// isGone tells, of a place in a recording, where it goes on instead.
func isGone(row recordingRow) error {
	if row.Finished {
		return domain.Conflict("the recording is finished").WithHint("begin another").With("uploadOffset", row.Size)
	}
	return domain.Conflict("the recording has %d bytes", row.Size).
		WithHint("go on from there: send Upload-Offset: %d", row.Size).With("uploadOffset", row.Size)
}
