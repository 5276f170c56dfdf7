package evidence

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"humanqa/domain"
	"humanqa/domain/command"
	"humanqa/internal/pgpool"
)

const (
	// maxPieces bounds the pieces of a job.
	maxPieces = 200
	// evidenceMinutes is the age at which an upload that has not ended never will: no
	// request lives half as long.
	evidenceMinutes = 60
	// evidenceBatch bounds the rows that one sweep holds locked.
	evidenceBatch = 100
)

// Piece is a piece of evidence as the database knows it.
type Piece struct {
	ID          string `db:"id"`
	AccountID   string `db:"account_id"`
	JobID       string `db:"job_id"`
	ContentType string `db:"content_type"`
	Size        int64  `db:"size"`
	Stored      bool   `db:"stored"` // set by reserve alone
	// GoneAt is when the piece went, by the account's clock; nil: it is kept.
	GoneAt  *time.Time `db:"gone_at"`
	GoneWhy string     `db:"gone_why"` // the rule
}

// key names the file in the bucket. It starts with the account and the job, so that their
// evidence can be found, and removed, in the bucket alone.
func (e Piece) key() string { return e.AccountID + "/" + e.JobID + "/" + e.ID }

// Reference is the path of the piece, as events hold it.
func (e Piece) Reference() string { return Prefix + e.ID }

// pieceRows keeps the rows of uploads. The row comes first, then the file, then the mark
// in the row that the file is there. A crash in between leaves a row without the mark,
// which the sweep finds.
type pieceRows struct{ db *sqlx.DB }

const lockEvidenceSQL = `
SELECT pg_advisory_xact_lock(hashtextextended($1, 0))`

const countEvidenceSQL = `
SELECT count(*)
FROM http_evidence
WHERE account_id = $1
  AND job_id = $2
  AND digest <> $3`

// The same file again is the same evidence, whether the first upload ended or
// broke off.
const reserveEvidenceSQL = `
INSERT INTO http_evidence AS e
    (id, account_id, job_id, checker_id, digest, content_type, size, begun_at)
VALUES
    ($1, $2, $3, $4, $5, $6, $7, now())
ON CONFLICT (account_id, job_id, digest) DO UPDATE
SET begun_at = EXCLUDED.begun_at
RETURNING id, account_id, job_id, content_type, size, stored_at IS NOT NULL AS stored`

// reserve gives the piece its row. Uploads to one job take turns here, so that
// two at once cannot both be the last one allowed.
func (r pieceRows) reserve(ctx context.Context, accountID, jobID, checkerID string, p Upload) (row Piece, err error) {
	err = pgpool.InTx(ctx, r.db, func(tx *sqlx.Tx) error {
		if _, err := tx.ExecContext(ctx, lockEvidenceSQL, jobID); err != nil {
			return err
		}
		var others int
		if err := tx.GetContext(ctx, &others, countEvidenceSQL, accountID, jobID, p.digest); err != nil {
			return err
		}
		if others >= maxPieces {
			return domain.Conflict("the job has %d pieces of evidence, the most it holds", maxPieces).
				WithHint("refer to one that is there")
		}
		return tx.GetContext(ctx, &row, reserveEvidenceSQL,
			uuid.NewString(), accountID, jobID, checkerID, p.digest, p.kind.Media, p.size)
	})
	return row, err
}

var storedEvidenceSQL = `
UPDATE http_evidence
SET stored_at = COALESCE(stored_at, now())
WHERE account_id = $1
  AND id = $2
  AND NOT ` + erasedSQL("job_id")

// stored notes that the file is there; false where the row was swept, and its file
// with it, or the account was erased meanwhile.
func (r pieceRows) stored(ctx context.Context, e Piece) (kept bool, err error) {
	n, err := pgpool.ExecCount(ctx, r.db, "note evidence "+e.ID, storedEvidenceSQL, e.AccountID, e.ID)
	return n > 0, err
}

const dropEvidenceSQL = `
UPDATE http_evidence
SET stored_at = NULL,
    begun_at = now()
WHERE account_id = $1
  AND job_id = $2
  AND id = $3`

// Drop removes a reference to a piece. If it was the last one, the piece becomes an
// upload that broke off. No link to it works any more, and the sweep removes the file,
// later than a backup that is under way reads it. Meanwhile no reference to the job's
// evidence is given (Give). Any other link leads to no piece.
func (s *Service) Drop(ctx context.Context, jobID, stored string, take func() (command.Hidden, error)) error {
	id := ID(stored)
	return pgpool.InTx(ctx, s.DB, func(tx *sqlx.Tx) error {
		if _, err := tx.ExecContext(ctx, lockEvidenceSQL, jobID); err != nil {
			return err
		}
		left, err := take()
		if err != nil || left.Shown || !isID(id) {
			return err
		}
		return pgpool.Exec(ctx, tx, "drop evidence "+id, dropEvidenceSQL, left.AccountID, jobID, id)
	})
}

const shareEvidenceSQL = `
SELECT pg_advisory_xact_lock_shared(hashtextextended($1, 0))`

const thereSQL = `
SELECT count(*)
FROM http_evidence
WHERE job_id = $1
  AND id = ANY($2)
  AND stored_at IS NOT NULL
  AND gone_at IS NULL`

// Give runs a command that refers to pieces of the job's evidence while none of them can
// be dropped. A reference to a dropped piece is refused; links that are not ours are
// ignored.
func (s *Service) Give(ctx context.Context, jobID string, stored []string, refer func() error) error {
	var ids []string
	for _, one := range stored {
		if id := ID(one); id != "" && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	if len(ids) == 0 {
		return refer()
	}
	return pgpool.InTx(ctx, s.DB, func(tx *sqlx.Tx) error {
		if _, err := tx.ExecContext(ctx, shareEvidenceSQL, jobID); err != nil {
			return err
		}
		var there int
		if err := tx.GetContext(ctx, &there, thereSQL, jobID, pq.Array(ids)); err != nil {
			return err
		}
		if there < len(ids) {
			return domain.Conflict("a file that you refer to was taken away").WithHint("upload it again, and send the new link")
		}
		return refer()
	})
}

// isID holds for ids as reserve writes them.
func isID(id string) bool {
	parsed, err := uuid.Parse(id)
	return err == nil && parsed.String() == id
}

const getEvidenceSQL = `
SELECT id, account_id, job_id, content_type, size, gone_at, COALESCE(gone_why, '') AS gone_why
FROM http_evidence
WHERE id = $1
  AND stored_at IS NOT NULL`

// get finds a piece by its id alone: the caller checks a signature of its account.
func (r pieceRows) get(ctx context.Context, id string) (e Piece, found bool, err error) {
	if !isID(id) {
		return Piece{}, false, nil
	}
	return pgpool.Find[Piece](ctx, r.db, "evidence "+id, getEvidenceSQL, id)
}

const unfinishedEvidenceSQL = `
SELECT id, account_id, job_id, content_type, size
FROM http_evidence
WHERE stored_at IS NULL
  AND begun_at < now() - make_interval(mins => $1)
ORDER BY begun_at
LIMIT $2
FOR UPDATE SKIP LOCKED`

const forgetEvidenceSQL = `
DELETE FROM http_evidence
WHERE account_id = $1
  AND id = $2`

const (
	storedPiecesSQL = `
SELECT id, account_id, job_id, content_type, size
FROM http_evidence
WHERE stored_at IS NOT NULL`
	stillKeptSQL = `
  AND gone_at IS NULL`
	// Parts of recordings that have not become a file are evidence, too.
	storedPartsSQL = `
UNION ALL
SELECT id, account_id, job_id, '', size
FROM http_recording_parts
WHERE stored_at IS NOT NULL`
	inOrderSQL = `
ORDER BY account_id, job_id, id`
)

// The schemas from which on there are recordings, and evidence goes.
const (
	recordingsSince = 26
	goingSince      = 64
)

// storedFilesSQL is for any schema, whether an earlier version's or this one's.
func storedFilesSQL(schema int64) string {
	query := storedPiecesSQL
	if schema >= goingSince {
		query += stillKeptSQL
	}
	if schema >= recordingsSince {
		query += storedPartsSQL
	}
	return query + inOrderSQL
}

// StoredFile is a piece of evidence that is in the bucket.
type StoredFile struct {
	AccountID, JobID, ContentType string
	Key                           string // in the bucket
	Size                          int64  // in bytes
}

// StoredFiles calls each for every piece of evidence that is in the bucket.
func StoredFiles(ctx context.Context, q sqlx.QueryerContext, each func(StoredFile) error) error {
	return StoredFilesIn(ctx, q, goingSince, each)
}

// StoredFilesIn is StoredFiles in a schema that may be an earlier version's.
func StoredFilesIn(ctx context.Context, q sqlx.QueryerContext, schema int64, each func(StoredFile) error) error {
	rows, err := q.QueryxContext(ctx, storedFilesSQL(schema)) //nolint:sqlclosecheck // it is closed below: the linter does not know sqlx
	if err != nil {
		return fmt.Errorf("list the evidence: %w", err)
	}
	defer func() { _ = rows.Close() }() // its error is the rows' own
	for rows.Next() {
		var e Piece
		if err := rows.StructScan(&e); err != nil {
			return fmt.Errorf("list the evidence: %w", err)
		}
		if err := each(StoredFile{e.AccountID, e.JobID, e.ContentType, e.key(), e.Size}); err != nil {
			return err
		}
	}
	return rows.Err()
}

// discard removes a file and its row, the file first: after a failure the row is found
// again.
func discard(ctx context.Context, q sqlx.ExecerContext, files Files, e Piece, forgetSQL string) error {
	if err := files.Delete(ctx, e.key()); err != nil {
		return err
	}
	return pgpool.Exec(ctx, q, "forget a file", forgetSQL, e.AccountID, e.ID)
}

// sweep discards the pieces that a query finds. The rows stay locked until their files
// are gone, so the same file sent again waits, and begins anew.
func sweep(ctx context.Context, db *sqlx.DB, files Files, what, listSQL, forgetSQL string) error {
	err := pgpool.InTx(ctx, db, func(tx *sqlx.Tx) error {
		found, err := pgpool.List[Piece](ctx, tx, "unfinished uploads", listSQL, evidenceMinutes, evidenceBatch)
		if err != nil {
			return err
		}
		for _, e := range found {
			if err := discard(ctx, tx, files, e, forgetSQL); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("sweep %s: %w", what, err)
	}
	return nil
}
