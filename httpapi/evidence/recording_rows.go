package evidence

import (
	"context"
	"crypto/sha256"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/jmoiron/sqlx"

	"humanqa/domain"
	"humanqa/domain/command"
	"humanqa/internal/pgpool"
)

const (
	// maxRecordings bounds the recordings of one checker at one job: each new start is
	// one.
	maxRecordings = 30
	// recordingsOfDay, times the limit for one job, bounds the recordings that a checker
	// begins in any 24 hours.
	recordingsOfDay = 8
	// maxRecordingParts bounds the parts of one recording: fourteen hours of a part every
	// five seconds.
	maxRecordingParts = 10_000
	// recordingSilence, in seconds, is the time after its last part at which the service
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
func (r recordingRow) evidence() Piece {
	return Piece{ID: r.ID, AccountID: r.AccountID, JobID: r.JobID, ContentType: r.ContentType, Size: r.Size}
}

// recordingRows keeps the rows of recordings.
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
func (r recordingRows) begin(
	ctx context.Context, id uuid.UUID, accountID string, claim command.Claim, startedAt time.Time,
) (row recordingRow, err error) {
	err = pgpool.InTx(ctx, r.db, func(tx *sqlx.Tx) error {
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
		if err := pgpool.Exec(ctx, tx, "begin a recording", beginRecordingSQL,
			id, accountID, claim.JobID, claim.CheckerID, claim.Token, startedAt, recordingSilence); err != nil {
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

// getRecording finds a recording of the checker; another checker's is not found.
func getRecording(ctx context.Context, q sqlx.QueryerContext, checkerID, jobID, id string) (row recordingRow, err error) {
	if !isID(id) {
		return row, errNoRecording
	}
	row, _, err = pgpool.Find[recordingRow](ctx, q, "recording "+id, getRecordingSQL, id, checkerID)
	if err == nil && row.JobID != jobID { // or there is none
		return recordingRow{}, errNoRecording
	}
	return row, err
}

// erasedSQL says that account $1 was erased (Erase), or the job of the row or parameter.
func erasedSQL(job string) string {
	return `(EXISTS (
    SELECT
    FROM vault.data_keys
    WHERE account_id = $1
      AND shredded_at IS NOT NULL)
  OR EXISTS (
    SELECT
    FROM vault.subject_keys
    WHERE subject = '` + domain.JobStreams + `' || ` + job + `
      AND destroyed_at IS NOT NULL))`
}

var growRecordingSQL = `
UPDATE http_recordings
SET size = size + $4,
    parts = parts + 1,
    content_type = $5,
    due_at = now() + make_interval(secs => $6)
WHERE account_id = $1
  AND id = $2
  AND size = $3
  AND finished_at IS NULL
  AND NOT ` + erasedSQL("job_id")

var errSwept = domain.Unavailable(errors.New("the upload took so long that it was swept"))

// grow makes the part the recording's next; false where another part came first, or the
// recording was finished or erased.
func (r recordingRows) grow(ctx context.Context, p partRow, contentType string) (grown bool, err error) {
	err = pgpool.InTx(ctx, r.db, func(tx *sqlx.Tx) error {
		n, err := pgpool.ExecCount(ctx, tx, "grow recording "+p.RecordingID, growRecordingSQL,
			p.AccountID, p.RecordingID, p.At, p.Size, contentType, recordingSilence)
		if grown = n > 0; err != nil || !grown {
			return err
		}
		return pgpool.ExecOne(ctx, tx, errSwept, "note part "+p.ID, storedPartSQL, p.AccountID, p.ID)
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
	return pgpool.Exec(ctx, r.db, "look again at recording "+row.ID, recordingAgainSQL, row.AccountID, row.ID, seconds, row.Finished)
}

const finishRecordingSQL = `
UPDATE http_recordings
SET finished_at = now(),
    due_at = LEAST(due_at, now())
WHERE account_id = $1
  AND id = $2
  AND finished_at IS NULL`

// finish ends the recording; the next node that is free assembles it.
func (r recordingRows) finish(ctx context.Context, row recordingRow) error {
	return pgpool.Exec(ctx, r.db, "finish recording "+row.ID, finishRecordingSQL, row.AccountID, row.ID)
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
func (r recordingRows) take(ctx context.Context) (recordingRow, bool, error) {
	return pgpool.Find[recordingRow](ctx, r.db, "the next recording", takeRecordingSQL, assembleLease)
}

var keepRecordingSQL = `
INSERT INTO http_evidence
    (id, account_id, job_id, checker_id, digest, content_type, size, begun_at, stored_at)
SELECT $2, $1, $3, $4, $5, $6, $7, now(), now()
WHERE NOT ` + erasedSQL("$3") + `
ON CONFLICT (id) DO UPDATE
SET size = EXCLUDED.size`

// keep makes evidence of the file that the recording became, unless its account or its
// job was erased. It equals no other piece, because its digest is of its id.
func (r recordingRows) keep(ctx context.Context, row recordingRow, size int64) (kept bool, err error) {
	digest := sha256.Sum256([]byte("recording " + row.ID))
	n, err := pgpool.ExecCount(ctx, r.db, "keep recording "+row.ID, keepRecordingSQL,
		row.AccountID, row.ID, row.JobID, row.CheckerID, digest[:], row.ContentType, size)
	return n > 0, err
}

// erased says that the account, or the job, was erased.
func (r recordingRows) erased(ctx context.Context, row recordingRow) (bool, error) {
	return pgpool.One[bool](ctx, r.db, "whether a recording was erased", `SELECT `+erasedSQL("$2"), row.AccountID, row.JobID)
}

const forgetRecordingSQL = `
DELETE FROM http_recordings
WHERE account_id = $1
  AND id = $2`

func (r recordingRows) forget(ctx context.Context, row recordingRow) error {
	return pgpool.Exec(ctx, r.db, "forget recording "+row.ID, forgetRecordingSQL, row.AccountID, row.ID)
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
		if err := pgpool.Exec(ctx, tx, "note that a job has recording "+row.ID, attachedRecordingSQL, row.AccountID, row.ID); err != nil {
			return err
		}
		return pgpool.Exec(ctx, tx, "give up the parts of recording "+row.ID, unneededPartsSQL, row.AccountID, row.ID)
	})
}

// isGone refuses a part at a wrong place, and says where the recording goes on.
func isGone(row recordingRow) error {
	if row.Finished {
		return domain.Conflict("the recording is finished").WithHint("begin another").With("uploadOffset", row.Size)
	}
	return domain.Conflict("the recording has %d bytes", row.Size).
		WithHint("go on from there: send Upload-Offset: %d", row.Size).With("uploadOffset", row.Size)
}
