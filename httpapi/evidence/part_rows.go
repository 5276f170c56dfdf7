package evidence

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jmoiron/sqlx"

	"humanqa/domain"
	"humanqa/internal/pgpool"
)

// partRow is a part of a recording.
type partRow struct {
	Piece
	RecordingID string `db:"recording_id"`
	At          int64  `db:"at"`
}

// recordedSQL sums the bytes of a checker's recordings: those acknowledged, and those of
// parts that are under way or broke off.
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

// reserve gives a part its row. Of several parts at one place, each has a file of its
// own, and one becomes the recording's; until then each counts. The checker's parts take
// turns here, so that two at once cannot both be the last one allowed.
func (r recordingRows) reserve(ctx context.Context, row recordingRow, size, limit int64) (partRow, error) {
	p := partRow{
		Piece:       Piece{ID: uuid.NewString(), AccountID: row.AccountID, JobID: row.JobID, Size: size},
		RecordingID: row.ID, At: row.Size,
	}
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

const storedPartSQL = `
UPDATE http_recording_parts
SET stored_at = now()
WHERE account_id = $1
  AND id = $2`

const partsSQL = `
SELECT id, recording_id, account_id, job_id, at, size
FROM http_recording_parts
WHERE account_id = $1
  AND recording_id = $2
  AND stored_at IS NOT NULL
ORDER BY at`

// parts are the stored parts of the recording, in order.
func (r recordingRows) parts(ctx context.Context, row recordingRow) ([]partRow, error) {
	return pgpool.List[partRow](ctx, r.db, "the parts of recording "+row.ID, partsSQL, row.AccountID, row.ID)
}

// Parts that broke off, or are needed no more.
const unneededPartListSQL = `
SELECT id, account_id, job_id, size
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
