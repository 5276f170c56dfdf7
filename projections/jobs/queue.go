package jobs

import (
	"context"
	"fmt"
	"time"

	"github.com/lib/pq"

	"humanqa/domain/job"
	"humanqa/projections/readmodel"
)

// QueuedJob is a job that waits for a human checker, as the checker may see
// it: nothing in it names the account.
type QueuedJob struct {
	ID         string
	Title      string
	URL        string
	Type       job.Type
	TypeEcho   string
	Urgent     bool
	SLAMinutes int
	SessionID  string
	Target     job.Target
	CreatedAt  time.Time
	DueAt      time.Time
}

// strangersSQL holds for jobs of accounts without the checker $1 and without its
// person. A checker never sees a job of their own account. Which accounts are meant is
// read once, before an index is walked.
const strangersSQL = `
  AND account_id <> ALL (COALESCE((
        SELECT c.accounts
        FROM readmodel.checkers c
        WHERE c.checker_id = $1), '{}'))
  AND account_id <> ALL (ARRAY(
        SELECT r.account_id
        FROM readmodel.person_roles w
        JOIN readmodel.person_roles r ON r.person_id = w.person_id
        WHERE w.checker_id = $1
          AND w.checker_id <> ''))`

// A checker does not see again what they have called untestable, nor the jobs of
// an account that is kept to a pool of others. While an account is suspended its
// jobs are not in the queue.
const queueSQL = `
FROM readmodel.jobs
WHERE in_queue
  AND status = 'pending'
  AND $1 <> ALL (untestable_by)
  AND account_id <> ALL (ARRAY(
        SELECT a.account_id
        FROM readmodel.accounts a
        WHERE a.suspended))
  AND account_id <> ALL (ARRAY(
        SELECT p.account_id
        FROM readmodel.account_pools p
        WHERE p.pool_id <> ''
          AND NOT EXISTS (
                SELECT
                FROM readmodel.pool_checkers m
                WHERE m.pool_id = p.pool_id
                  AND m.checker_id = $1)))` + strangersSQL

const listQueueSQL = `
SELECT id, title, url, type, type_echo, urgent, sla_minutes, session_id, target, created_at, due_at` + queueSQL + `
ORDER BY urgent DESC, created_at, id
LIMIT $2`

const nextInQueueSQL = `
SELECT id` + queueSQL + `
  AND id <> ALL ($2)
ORDER BY urgent DESC, created_at, id
LIMIT 1`

// Queue lists what the checker may claim: urgent jobs first, then the oldest.
func (q *Reads) Queue(ctx context.Context, checkerID string, limit int) ([]QueuedJob, error) {
	var rows []jobRow
	if err := q.db.SelectContext(ctx, &rows, listQueueSQL, checkerID, limit); err != nil {
		return nil, fmt.Errorf("list the queue: %w", err)
	}
	jobs := make([]QueuedJob, len(rows))
	for i, r := range rows {
		readmodel.UTC(&r.CreatedAt, &r.DueAt)
		jobs[i] = QueuedJob{
			ID: r.ID, Title: r.Title, URL: r.URL, Type: r.Type, TypeEcho: r.TypeEcho, Urgent: r.Urgent,
			SLAMinutes: r.SLAMinutes, SessionID: r.SessionID, Target: r.Target.V, CreatedAt: r.CreatedAt, DueAt: r.DueAt,
		}
	}
	return jobs, nil
}

// NextForChecker nominates the job at the head of the checker's queue, those
// in skip left out. The log decides which checker gets it. One that loses
// the claim asks again and skips that job.
func (q *Reads) NextForChecker(ctx context.Context, checkerID string, skip []string) (jobID string, ok bool, err error) {
	if skip == nil {
		skip = []string{}
	}
	return readmodel.Find[string](ctx, q.db, "the head of the queue", nextInQueueSQL, checkerID, pq.Array(skip))
}
