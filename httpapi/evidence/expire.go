package evidence

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"humanqa/domain"
	"humanqa/domain/command"
	"humanqa/domain/job"
	"humanqa/domain/retention"
	"humanqa/httpapi/wire"
	"humanqa/internal/pgpool"
)

// Expiry removes evidence that is kept no longer (decisions, "What is kept"). A read
// model nominates pieces, and each is leased to one process. The log decides: the event
// comes first. Then the row says that the piece is gone, and the file is deleted last.
//
// A crash after the lease, or after the event, leaves a lease that runs out: the next
// process asks the log again, which gives the same answer. A crash after the row leaves a
// file that the next sweep deletes.
type Expiry struct {
	DB       *sqlx.DB
	Files    Files
	Commands *command.Service

	// Before is called with each step before it is taken; an error ends the sweep there.
	// Tests crash with it.
	Before func(step string) error
}

const (
	// expireLease, in seconds, is longer than the log takes to answer for a batch.
	expireLease = 300
	// expireBatch is how many pieces are leased at once, and eraseBatch how many files are
	// deleted in one transaction.
	expireBatch = 500
	eraseBatch  = 100
)

// Swept is the result of a sweep.
type Swept struct {
	Expired Size `json:"expired"` // the log let them go
	Erased  Size `json:"erased"`  // their files are gone
	// Waiting says that files are deleted later, because a backup still reads the
	// evidence.
	Waiting bool `json:"waiting"`
}

// Sweep expires every piece that is due, and deletes the files.
func (x Expiry) Sweep(ctx context.Context) (swept Swept, err error) {
	for {
		expired, err := x.expireBatch(ctx)
		swept.Expired = swept.Expired.plus(expired)
		if err != nil {
			return swept, err
		}
		if expired.Files == 0 {
			break
		}
	}
	return x.eraseFiles(ctx, swept)
}

func (x Expiry) eraseFiles(ctx context.Context, swept Swept) (Swept, error) {
	for {
		erased, waiting, err := x.eraseBatch(ctx)
		swept.Erased, swept.Waiting = swept.Erased.plus(erased), waiting
		if err != nil || erased.Files == 0 {
			return swept, err
		}
	}
}

func (x Expiry) step(step string) error {
	if x.Before == nil {
		return nil
	}
	return x.Before(step)
}

// A piece whose lease ran out is taken even if it is not due any more: its event may be
// there.
var takeDueSQL = keptSQL(ownSettingsSQL) + `
UPDATE http_evidence e
SET taken_until = now() + make_interval(secs => $2)
WHERE e.id IN (
    SELECT t.id
    FROM http_evidence t
    WHERE t.gone_at IS NULL
      AND (t.taken_until IS NULL OR t.taken_until < now())
      AND t.id IN (
          SELECT id
          FROM kept
          WHERE NOT held
            AND due_at <= now()
          UNION
          SELECT id
          FROM http_evidence
          WHERE gone_at IS NULL
            AND taken_until < now())
    ORDER BY t.account_id, t.job_id
    LIMIT $3
    FOR UPDATE SKIP LOCKED)
RETURNING ` + duePieceSQL

const goneRowsSQL = `
UPDATE http_evidence
SET gone_at = $3,
    gone_why = $4,
    taken_until = NULL
WHERE account_id = $1
  AND id = $2
  AND gone_at IS NULL`

const untakeSQL = `
UPDATE http_evidence
SET taken_until = NULL
WHERE account_id = $1
  AND job_id = $2
  AND gone_at IS NULL`

type duePiece struct {
	Piece
	Recording bool `db:"recording"`
}

// duePieceSQL are the columns of a duePiece, of the row e of http_evidence.
const duePieceSQL = `e.id, e.account_id, e.job_id, e.content_type, e.size,
    EXISTS (
        SELECT
        FROM http_recordings f
        WHERE f.id = e.id) AS recording`

// expireBatch leases some pieces that are due, and expires those that the log lets go. It
// counts the expired ones.
func (x Expiry) expireBatch(ctx context.Context) (expired Size, err error) {
	if err := x.step("lease"); err != nil {
		return expired, err
	}
	due, err := pgpool.List[duePiece](ctx, x.DB, "the evidence that is due", takeDueSQL, "", expireLease, expireBatch)
	if err != nil {
		return expired, err
	}
	byJob := map[string][]duePiece{}
	for _, p := range due {
		byJob[p.JobID] = append(byJob[p.JobID], p)
	}
	for jobID, pieces := range byJob {
		size, err := x.expireJob(ctx, jobID, pieces, x.Commands.ExpireEvidence)
		expired = expired.plus(size)
		if err != nil {
			return expired, fmt.Errorf("let evidence of job %s go: %w", jobID, err)
		}
	}
	return expired, nil
}

// letGo has the log let pieces of a job go: ExpireEvidence or EraseEvidence.
type letGo func(ctx context.Context, cause command.Cause, jobID string, pieces []job.Piece) ([]command.ExpiredEvidence, error)

func (x Expiry) expireJob(ctx context.Context, jobID string, due []duePiece, commands letGo) (expired Size, err error) {
	pieces := make([]job.Piece, len(due))
	sizes := map[string]int64{}
	for i, p := range due {
		pieces[i] = job.Piece{ID: p.ID, ContentType: p.ContentType, Size: p.Size, Recording: p.Recording}
		sizes[p.ID] = p.Size
	}
	if err := x.step("event"); err != nil {
		return expired, err
	}
	gone, err := commands(ctx,
		command.Cause{CommandID: domain.NewCommandID(), Actor: "policy:retention", AccountID: due[0].AccountID}, jobID, pieces)
	var refused *domain.Error
	if errors.As(err, &refused) && refused.Kind == domain.KindNotFound {
		gone, err = nil, nil // the read model is of another log: fsck reports it
	}
	if err != nil {
		return expired, err
	}
	if err := x.step("row"); err != nil {
		return expired, err
	}
	err = pgpool.InTx(ctx, x.DB, func(tx *sqlx.Tx) error {
		for _, g := range gone {
			if _, err := tx.ExecContext(ctx, goneRowsSQL, due[0].AccountID, g.ID, g.At, g.Rule.Words()); err != nil {
				return err
			}
			expired = expired.plus(Size{1, sizes[g.ID]})
		}
		return pgpool.Exec(ctx, tx, "end the lease of evidence", untakeSQL, due[0].AccountID, jobID)
	})
	if err != nil {
		return Size{}, err
	}
	return expired, nil
}

const madeBySQL = `
SELECT ` + duePieceSQL + `
FROM http_evidence e
WHERE e.checker_id = $1
  AND e.gone_at IS NULL
ORDER BY e.job_id, e.id`

// MadeBy counts the pieces that a checker made, and that are kept.
func MadeBy(ctx context.Context, db *sqlx.DB, checkerID string) (kept Size, err error) {
	pieces, err := pgpool.List[duePiece](ctx, db, "the evidence of checker "+checkerID, madeBySQL, checkerID)
	for _, p := range pieces {
		kept = kept.plus(Size{1, p.Size})
	}
	return kept, err
}

// EraseMadeBy expires the pieces that a checker made, and deletes their files. It may be
// repeated. A piece stays while a hold or a test that has not ended keeps it: MadeBy
// counts it.
func (x Expiry) EraseMadeBy(ctx context.Context, checkerID string) (swept Swept, err error) {
	pieces, err := pgpool.List[duePiece](ctx, x.DB, "the evidence of checker "+checkerID, madeBySQL, checkerID)
	if err != nil {
		return swept, err
	}
	for len(pieces) > 0 {
		n := slices.IndexFunc(pieces, func(p duePiece) bool { return p.JobID != pieces[0].JobID })
		if n < 0 {
			n = len(pieces)
		}
		expired, err := x.expireJob(ctx, pieces[0].JobID, pieces[:n], x.Commands.EraseEvidence)
		swept.Expired, pieces = swept.Expired.plus(expired), pieces[n:]
		if err != nil {
			return swept, err
		}
	}
	return x.eraseFiles(ctx, swept)
}

// filesLock keeps the deletion of files apart from backups (LockFiles).
const filesLock = "humanqa.evidence.files"

const tryFilesSQL = `
SELECT pg_try_advisory_xact_lock(hashtext($1))`

const toEraseSQL = `
SELECT id, account_id, job_id, content_type, size
FROM http_evidence
WHERE gone_at IS NOT NULL
  AND erased_at IS NULL
ORDER BY gone_at
LIMIT $1
FOR UPDATE SKIP LOCKED`

const erasedFilesSQL = `
UPDATE http_evidence
SET erased_at = now()
WHERE id = ANY($1::uuid[])`

// eraseBatch deletes some files of pieces that are gone. Each deletion may be repeated.
func (x Expiry) eraseBatch(ctx context.Context) (erased Size, waiting bool, err error) {
	if err := x.step("files"); err != nil {
		return erased, false, err
	}
	err = pgpool.InTx(ctx, x.DB, func(tx *sqlx.Tx) error {
		var free bool
		if err := tx.GetContext(ctx, &free, tryFilesSQL, filesLock); err != nil {
			return err
		}
		var pieces []Piece
		if err := tx.SelectContext(ctx, &pieces, toEraseSQL, eraseBatch); err != nil {
			return err
		}
		if waiting = !free && len(pieces) > 0; !free {
			return nil
		}
		var ids []string
		for _, e := range pieces {
			if err := x.step("file"); err != nil {
				return err
			}
			if err := x.Files.Delete(ctx, e.key()); err != nil {
				return err
			}
			ids = append(ids, e.ID)
			erased = erased.plus(Size{1, e.Size})
		}
		if err := x.step("erased"); err != nil {
			return err
		}
		return pgpool.Exec(ctx, tx, "note which files are gone", erasedFilesSQL, pq.Array(ids))
	})
	if err != nil {
		return Size{}, false, fmt.Errorf("delete the files of evidence that is kept no longer: %w", err)
	}
	return erased, waiting, nil
}

const lockFilesSQL = `
SELECT pg_advisory_lock_shared(hashtext($1))`

// LockFiles keeps every file that a later snapshot of the database knows, until
// the connection's end. A backup takes it before its snapshot.
func LockFiles(ctx context.Context, c *sqlx.Conn) error {
	return pgpool.Exec(ctx, c, "keep the files of the evidence", lockFilesSQL, filesLock)
}

// gone refuses a piece that is kept no longer.
func (e Piece) gone() error {
	if e.GoneAt == nil {
		return nil
	}
	at := e.GoneAt.UTC()
	refused := domain.Gone("the evidence is no longer kept: it went on %s", at.Format(time.DateOnly)).
		WithHint("the report still has its name, size and verdict")
	return refused.With("goneAt", wire.Timestamp(at)).With("reason", e.GoneWhy).With("size", e.Size)
}

const goneOfJobSQL = `
SELECT ` + duePieceSQL + `, e.gone_at, e.gone_why
FROM http_evidence e
WHERE e.account_id = $1
  AND e.job_id = $2
  AND e.gone_at IS NOT NULL
ORDER BY e.gone_at, e.id`

// Gone lists the pieces of the account's job that are kept no longer.
func (s *Service) Gone(ctx context.Context, accountID, jobID string) ([]retention.Gone, error) {
	rows, err := pgpool.List[duePiece](ctx, s.DB, "the evidence of job "+jobID+" that is kept no longer", goneOfJobSQL, accountID, jobID)
	list := make([]retention.Gone, len(rows))
	for i, r := range rows {
		list[i] = retention.Gone{
			ID: r.ID, Reference: r.Reference(), Name: r.fileName(), ContentType: r.ContentType, Size: r.Size, Recording: r.Recording,
			At: *r.GoneAt, Why: r.GoneWhy,
		}
	}
	return list, err
}
