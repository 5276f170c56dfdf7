package jobs

import (
	"context"
	"time"

	"github.com/lib/pq"

	"humanqa/domain/job"
	"humanqa/internal/pgpool"
	"humanqa/projections/readmodel"
)

// QueuedJob is a job that waits for a human checker, as the checker may see
// it: nothing in it names the account.
type QueuedJob struct {
	ID         string                     `json:"id"`
	Title      string                     `json:"title"`
	URL        string                     `json:"url"`
	Type       job.Type                   `json:"type"`
	TypeEcho   string                     `json:"type_echo"`
	Urgent     bool                       `json:"urgent"`
	SLAMinutes int                        `json:"sla_minutes"`
	SessionID  string                     `json:"session_id"`
	Target     readmodel.JSON[job.Target] `json:"target"`
	CreatedAt  time.Time                  `json:"created_at"`
	DueAt      time.Time                  `json:"due_at"`
	// LobbyUntil is the end of the lobby that the slot waits in; nil for other jobs.
	LobbyUntil *time.Time `json:"lobby_until"`
	// Fits says that the checker has the device and software that the job asks for.
	Fits bool `json:"fits"`
}

// QueueFilter is a look at the queue by one checker.
type QueueFilter struct {
	CheckerID string
	Now       time.Time
	// Devices are those of the checker's profile; Fitting leaves out jobs that ask for
	// others.
	Devices []string
	Fitting bool
	Part    string // Lobbies or Others; empty: both
	Limit   int
	Offset  int
}

// The parts of the queue: the slots of open lobbies, and all else.
const (
	Lobbies = "lobby"
	Others  = "other"
)

// QueueCounts are the jobs that wait for a checker. All but Waiting and Fit count
// within the filter.
type QueueCounts struct {
	Waiting int `json:"waiting"`
	Fit     int `json:"fit"`
	Urgent  int `json:"urgent"`
	Lobby   int `json:"lobby"` // slots of open lobbies
	Other   int `json:"other"` // all others
}

// strangersSQL holds for jobs of accounts to which neither the checker $1 nor its person
// belongs. A checker never sees a job of their own account. The accounts are read once,
// before an index is walked.
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

// queueOrder is the order of the queue: urgent jobs and the slots of open lobbies
// before all others, each by the end of its time. The slots of a session are neighbours.
const queueOrder = `(urgent OR lobby_until IS NOT NULL) DESC, COALESCE(lobby_until, queue_due_at), session_id, id`

// A checker does not see jobs that they reported as untestable, nor jobs of an account
// that is kept to a pool without them. While an account is suspended its jobs are not in
// the queue. A slot leaves it when its lobby closes at the latest.
const queueSQL = `
FROM readmodel.jobs
WHERE in_queue
  AND status = 'pending'
  AND (lobby_until IS NULL OR lobby_until > $2)
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

// fitsSQL holds for jobs that ask only for devices, systems and browsers in $3. A job
// that names none fits every checker.
const fitsSQL = `NOT EXISTS (
        SELECT
        FROM unnest(ARRAY[target->>'device', target->>'os', target->>'browser']) AS wanted
        WHERE btrim(wanted) <> ''
          AND NOT EXISTS (
                SELECT
                FROM unnest($3::text[]) AS has
                WHERE strpos(lower(has), lower(btrim(wanted))) > 0))`

const listQueueSQL = `
SELECT id, title, url, type, type_echo, urgent, sla_minutes, session_id, target, created_at, due_at, lobby_until,
       ` + fitsSQL + ` AS fits` + queueSQL + `
  AND (NOT $4 OR ` + fitsSQL + `)
  AND ($5 = '' OR ($5 = 'lobby') = (lobby_until IS NOT NULL))
ORDER BY ` + queueOrder + `
LIMIT $6
OFFSET $7`

const countQueueSQL = `
SELECT COUNT(*) AS waiting,
       COUNT(*) FILTER (WHERE fits) AS fit,
       COUNT(*) FILTER (WHERE urgent AND (fits OR NOT $4)) AS urgent,
       COUNT(*) FILTER (WHERE lobby AND (fits OR NOT $4)) AS lobby,
       COUNT(*) FILTER (WHERE NOT lobby AND (fits OR NOT $4)) AS other
FROM (
    SELECT urgent, lobby_until IS NOT NULL AS lobby, ` + fitsSQL + ` AS fits` + queueSQL + `) waiting`

const nextInQueueSQL = `
SELECT id` + queueSQL + `
  AND id <> ALL ($3)
ORDER BY ` + queueOrder + `
LIMIT 1`

// Queue lists the jobs that the checker may claim. Urgent jobs and the slots of open
// lobbies come first; within each group the job that is due first.
func (q *Reads) Queue(ctx context.Context, f QueueFilter) ([]QueuedJob, error) {
	return pgpool.List[QueuedJob](ctx, q.db, "the queue", listQueueSQL,
		f.CheckerID, f.Now, pq.Array(f.Devices), f.Fitting, f.Part, f.Limit, f.Offset)
}

// CountQueue counts the jobs that the checker may claim, whatever the limit.
func (q *Reads) CountQueue(ctx context.Context, f QueueFilter) (QueueCounts, error) {
	return readmodel.Get[QueueCounts](ctx, q.db, "the length of the queue", countQueueSQL, f.CheckerID, f.Now, pq.Array(f.Devices), f.Fitting)
}

// NextForChecker nominates the job at the head of the checker's queue, without those in
// skip. The log decides which checker gets it. A caller that loses the claim asks again
// and skips that job.
func (q *Reads) NextForChecker(ctx context.Context, checkerID string, now time.Time, skip []string) (jobID string, ok bool, err error) {
	if skip == nil {
		skip = []string{}
	}
	return pgpool.Find[string](ctx, q.db, "the head of the queue", nextInQueueSQL, checkerID, now, pq.Array(skip))
}
