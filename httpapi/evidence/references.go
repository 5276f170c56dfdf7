package evidence

import (
	"context"
	"fmt"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"humanqa/domain"
	"humanqa/domain/job"
)

// References finds, in a log that is read from its start, what reports and
// attached recordings refer to without a row. What is still a draft may change.
type References struct {
	DB sqlx.QueryerContext

	jobs, ids []string // not looked up yet, in pairs
	lost      []Reference
}

// Reference is a piece that an event of the job refers to.
type Reference struct {
	JobID string `db:"job_id"`
	ID    string `db:"id"`
}

// referencesAtOnce bounds what one statement looks up.
const referencesAtOnce = 1000

// See takes the next event.
func (e *References) See(ctx context.Context, r domain.Recorded) error {
	switch event := r.Event.(type) {
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

// Lost tells what has no row; that of accounts that were erased is among it.
func (e *References) Lost(ctx context.Context) ([]Reference, error) {
	err := e.lookUp(ctx)
	return e.lost, err
}
