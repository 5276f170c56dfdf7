package evidence

import (
	"context"
	"fmt"
	"path"
	"slices"
	"sync"

	"github.com/google/uuid"
	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"humanqa/domain"
	"humanqa/domain/job"
)

// References finds, in a log that is read from its start, the pieces without a row that
// reports and attached recordings refer to. Drafts do not count, because they may change.
// It also compares the pieces that the log let go with their rows.
type References struct {
	DB sqlx.QueryerContext

	jobs, ids []string // not looked up yet, in pairs
	lost      []Reference
	expired   map[uuid.UUID]bool
}

// Reference is a piece that an event of the job refers to.
type Reference struct {
	JobID string `db:"job_id"`
	ID    string `db:"id"`
}

// referencesAtOnce bounds the references that one statement looks up.
const referencesAtOnce = 1000

// See takes the next event.
func (e *References) See(ctx context.Context, r domain.Recorded) error {
	switch event := r.Event.(type) {
	case *job.EvidenceExpired:
		for _, piece := range event.Pieces {
			if id, err := uuid.Parse(piece.ID); err == nil {
				if e.expired == nil {
					e.expired = map[uuid.UUID]bool{}
				}
				e.expired[id] = true
			}
		}
	case *job.RecordingAttached:
		e.add(r.StreamID(), event.URL)
	case *job.Completed:
		e.add(r.StreamID(), event.RecordingURL)
		for _, i := range event.Items {
			e.add(r.StreamID(), i.Screenshots()...)
		}
	}
	if len(e.ids) < referencesAtOnce {
		return nil
	}
	return e.lookUp(ctx)
}

func (e *References) add(jobID string, stored ...string) {
	for _, s := range stored {
		if id := ID(s); isID(id) {
			e.jobs, e.ids = append(e.jobs, jobID), append(e.ids, id)
		}
	}
}

const lostReferencesSQL = `
SELECT DISTINCT r.job_id, r.id
FROM unnest($1::text[], $2::uuid[]) AS r (job_id, id)
WHERE NOT EXISTS (
    SELECT
    FROM http_evidence e
    WHERE e.id = r.id
      AND e.job_id = r.job_id
      AND e.stored_at IS NOT NULL)
ORDER BY r.job_id, r.id`

func (e *References) lookUp(ctx context.Context) error {
	var lost []Reference
	if err := sqlx.SelectContext(ctx, e.DB, &lost, lostReferencesSQL, pq.Array(e.jobs), pq.Array(e.ids)); err != nil {
		return fmt.Errorf("look for the evidence that events refer to: %w", err)
	}
	e.lost, e.jobs, e.ids = append(e.lost, lost...), nil, nil
	return nil
}

// Lost lists the references without a row, with those of erased accounts.
func (e *References) Lost(ctx context.Context) ([]Reference, error) {
	err := e.lookUp(ctx)
	return e.lost, err
}

// Unlike is a piece with a row that differs from the log.
type Unlike struct {
	Reference
	Problem string
}

// Files of pieces that are kept no longer, and pieces that a sweep is busy with.
const letGoSQL = `
SELECT id, account_id, job_id, content_type, size, gone_at, COALESCE(gone_why, '') AS gone_why,
       taken_until IS NOT NULL AS busy, erased_at IS NOT NULL AS erased
FROM http_evidence
WHERE stored_at IS NOT NULL
  AND (gone_at IS NOT NULL OR id = ANY($1::uuid[]))
ORDER BY account_id, job_id, id`

// LetGo compares the pieces that the log let go with their rows, once the whole log was
// seen. A crash leaves a lease, or a file, which the next sweep removes: neither is a
// difference.
func (e *References) LetGo(ctx context.Context, files Files) (unlike []Unlike, err error) {
	ids := make([]string, 0, len(e.expired))
	for id := range e.expired {
		ids = append(ids, id.String())
	}
	var rows []struct {
		Piece
		Busy   bool `db:"busy"`
		Erased bool `db:"erased"`
	}
	if err := sqlx.SelectContext(ctx, e.DB, &rows, letGoSQL, pq.Array(ids)); err != nil {
		return nil, fmt.Errorf("look for the evidence that is kept no longer: %w", err)
	}
	var erased []StoredFile
	for _, r := range rows {
		var problem string
		id, err := uuid.Parse(r.ID)
		switch {
		case err == nil && r.GoneAt != nil && !e.expired[id]:
			problem = "evidence " + r.ID + " is marked as kept no longer, which no event says"
		case r.GoneAt == nil && !r.Busy:
			problem = "evidence " + r.ID + " is kept although an event says that it is kept no longer"
		case r.Erased:
			erased = append(erased, StoredFile{JobID: r.JobID, Key: r.key(), Size: r.Size})
			continue
		default:
			continue
		}
		unlike = append(unlike, Unlike{Reference{JobID: r.JobID, ID: r.ID}, problem})
	}
	var mu sync.Mutex
	err = inParallel(ctx, slices.Values(erased), func(ctx context.Context, f StoredFile) error {
		there, err := isThere(ctx, files, f)
		if there {
			id := path.Base(f.Key)
			mu.Lock()
			defer mu.Unlock()
			unlike = append(unlike, Unlike{
				Reference{JobID: f.JobID, ID: id}, "the file of evidence " + id + ", which is kept no longer, is still there",
			})
		}
		return err
	})
	return unlike, err
}
