// Package overall reads the read models over all accounts, for operators. An account sees
// only what it can expect of the whole service (Prospect). The package has no tables of
// its own.
package overall

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"humanqa/domain"
	"humanqa/domain/identity"
	"humanqa/domain/job"
	"humanqa/internal/pgpool"
	"humanqa/projections/access"
	"humanqa/projections/readmodel"
)

// Reads reads through the views in schema readmodel.
type Reads struct{ db *sqlx.DB }

// NewReads makes Reads.
func NewReads(db *sqlx.DB) *Reads { return &Reads{db: readmodel.Pool(db)} }

// Waiting is the state of the checkers' queue, for urgent jobs or for the others.
type Waiting struct {
	Urgent  bool       `json:"urgent"`
	Jobs    int        `json:"jobs"`
	Overdue int        `json:"overdue"` // jobs past the end of their time; the policy has not acted yet
	Soon    int        `json:"soon"`    // jobs whose time ends within ten minutes
	Oldest  *time.Time `json:"oldest"`  // when the longest waiting job came
	Next    *time.Time `json:"next"`    // the next end of a job's time
	Used    float64    `json:"used"`    // the largest used part of a job's time; above 1 the time is over
}

const waitingSQL = `
SELECT urgent, COUNT(*) AS jobs,
       COUNT(*) FILTER (WHERE queue_due_at <= $1) AS overdue,
       COUNT(*) FILTER (WHERE queue_due_at > $1 AND queue_due_at <= $1 + interval '10 minutes') AS soon,
       MIN(created_at) AS oldest, MIN(queue_due_at) AS next,
       MAX(1 - EXTRACT(EPOCH FROM queue_due_at - $1) / (60 * sla_minutes))::double precision AS used
FROM readmodel.jobs
WHERE in_queue
  AND status = 'pending'
GROUP BY urgent
ORDER BY urgent DESC`

// Queue is the state of the queue by urgency; urgent first.
func (q *Reads) Queue(ctx context.Context, now time.Time) ([]Waiting, error) {
	return pgpool.List[Waiting](ctx, q.db, "the queue", waitingSQL, now)
}

// Ages counts the tests of the queue by the used part of their time: up to a quarter, a
// half, three quarters, the whole, and more.
type Ages [5]int

const agesSQL = `
SELECT LEAST(GREATEST(CEIL(4 * (1 - EXTRACT(EPOCH FROM queue_due_at - $1) / (60 * sla_minutes))), 1), 5)::integer AS quarter,
       COUNT(*) AS jobs
FROM readmodel.jobs
WHERE in_queue
  AND status = 'pending'
GROUP BY quarter`

// Ages counts the queue's tests by the used part of their time.
func (q *Reads) Ages(ctx context.Context, now time.Time) (ages Ages, err error) {
	rows, err := pgpool.List[struct {
		Quarter int `json:"quarter"`
		Jobs    int `json:"jobs"`
	}](ctx, q.db, "how old the queue is", agesSQL, now)
	for _, row := range rows {
		ages[row.Quarter-1] = row.Jobs
	}
	return ages, err
}

// Counts has the main numbers of the service.
type Counts struct {
	Accounts  int `json:"accounts"`
	People    int `json:"people"`
	Checkers  int `json:"checkers"`
	Jobs      int `json:"jobs"`
	Claimed   int `json:"claimed"`
	Completed int `json:"completed"`
}

const countsSQL = `
SELECT (SELECT COUNT(*) FROM readmodel.accounts) AS accounts,
       (SELECT COUNT(*) FROM readmodel.people) AS people,
       (SELECT COUNT(*) FROM readmodel.checkers) AS checkers,
       COALESCE(SUM(jobs), 0) AS jobs,
       COALESCE(SUM(jobs) FILTER (WHERE status = 'claimed'), 0) AS claimed,
       COALESCE(SUM(jobs) FILTER (WHERE status = 'completed'), 0) AS completed
FROM readmodel.job_counts`

// Counts counts.
func (q *Reads) Counts(ctx context.Context) (Counts, error) {
	return readmodel.Get[Counts](ctx, q.db, "the counts", countsSQL)
}

// Page is a part of a list.
type Page = access.Page

// Account is an account in a list.
type Account struct {
	access.Account

	Available domain.Credits `json:"available"` // what its lots hold that have not expired
	Jobs      int            `json:"jobs"`
	Pool      string         `json:"pool"` // its name; empty: any checker
}

const accountsSQL = `
FROM readmodel.accounts a
LEFT JOIN readmodel.erasures e ON e.account_id = a.account_id
WHERE a.account_id = $1
   OR strpos(a.folded, $2) > 0`

const listAccountsSQL = `
SELECT a.account_id, a.name, a.sandbox, a.suspended, e.erased_at, e.finished_at IS NOT NULL AS finished,
       COALESCE((
           SELECT SUM(l.remaining)
           FROM readmodel.credit_lots l
           WHERE l.account_id = a.account_id
             AND (l.expires_at IS NULL OR l.expires_at > $5)), 0)::bigint AS available,
       COALESCE((SELECT SUM(c.jobs) FROM readmodel.job_counts c WHERE c.account_id = a.account_id), 0)::bigint AS jobs,
       COALESCE((
           SELECT p.name
           FROM readmodel.account_pools m
           JOIN readmodel.pools p ON p.pool_id = m.pool_id
           WHERE m.account_id = a.account_id), '') AS pool` + accountsSQL + `
ORDER BY a.name, a.account_id
LIMIT $3
OFFSET $4`

// Accounts lists accounts by name, those whose name contains the text or whose id it is,
// and how many there are.
func (q *Reads) Accounts(ctx context.Context, text string, page Page, now time.Time) ([]Account, int, error) {
	return readmodel.Page[Account](ctx, q.db, "accounts", `SELECT COUNT(*)`+accountsSQL, listAccountsSQL,
		[]any{text, identity.Fold(text)}, page.Limit, page.Offset, now)
}

// Person is a person in a list, with the person's roles in words of their own.
type Person struct {
	ID        string         `json:"person_id"`
	InvitedAt time.Time      `json:"invited_at"`
	JoinedAt  *time.Time     `json:"joined_at"`
	Disabled  bool           `json:"disabled"`
	Roles     pq.StringArray `json:"roles"` // such as "owner of Acme"
}

const peopleSQL = `
FROM readmodel.people p
WHERE $1 = ''
   OR EXISTS (
       SELECT
       FROM readmodel.person_roles r
       WHERE r.person_id = p.person_id
         AND r.role = $1)`

const listPeopleSQL = `
SELECT p.person_id, p.invited_at, p.joined_at, p.disabled,
       ARRAY(
           SELECT r.role || CASE WHEN r.account_id = '' THEN '' ELSE ' of ' || COALESCE(a.name, r.account_id) END
           FROM readmodel.person_roles r
           LEFT JOIN readmodel.accounts a ON a.account_id = r.account_id
           WHERE r.person_id = p.person_id
           ORDER BY 1) AS roles` + peopleSQL + `
ORDER BY p.invited_at DESC, p.person_id
LIMIT $2
OFFSET $3`

// People lists people, the last invited first. A role, if given, narrows them to people
// with that role.
func (q *Reads) People(ctx context.Context, role string, page Page) ([]Person, int, error) {
	return readmodel.Page[Person](ctx, q.db, "people", `SELECT COUNT(*)`+peopleSQL, listPeopleSQL, []any{role}, page.Limit, page.Offset)
}

// Checker is a checker in a list.
type Checker struct {
	access.Checker

	PersonID  string         `json:"person_id"` // empty: the holder of the key
	Languages pq.StringArray `json:"languages"`
	Devices   pq.StringArray `json:"devices"`
	Pools     pq.StringArray `json:"pools"` // their names
	Done      int            `json:"done"`
	Rated     int            `json:"rated"`
	Average   float64        `json:"average"` // of the ratings
	Stood     int            `json:"stood"`   // disputed verdicts that stand
	Fell      int            `json:"fell"`    // those that were overturned
	JobID     string         `json:"job_id"`  // the claimed job; empty: none
}

const checkersSQL = `
FROM readmodel.checkers c
WHERE (c.checker_id = $1 OR strpos(c.folded, $2) > 0)
  AND ($3 = '' OR EXISTS (
           SELECT
           FROM readmodel.pool_checkers m
           WHERE m.pool_id = $3
             AND m.checker_id = c.checker_id))`

const listCheckersSQL = `
SELECT c.checker_id, c.name, c.accounts, COALESCE((
           SELECT r.person_id
           FROM readmodel.person_roles r
           WHERE r.checker_id = c.checker_id
             AND r.checker_id <> ''
           LIMIT 1), '') AS person_id,
       COALESCE(f.languages, '{}') AS languages, COALESCE(f.devices, '{}') AS devices,
       ARRAY(
           SELECT p.name
           FROM readmodel.pool_checkers m
           JOIN readmodel.pools p ON p.pool_id = m.pool_id
           WHERE m.checker_id = c.checker_id
           ORDER BY 1) AS pools,
       w.done, w.rated, w.average, w.job_id, w.stood, w.fell
FROM (SELECT c.checker_id, c.name, c.accounts` + checkersSQL + `
      ORDER BY c.name, c.checker_id
      LIMIT $4
      OFFSET $5) c
LEFT JOIN readmodel.checker_profiles f ON f.checker_id = c.checker_id
CROSS JOIN LATERAL (
    SELECT COUNT(*) FILTER (WHERE j.status = 'completed') AS done, COUNT(r.checker_rating) AS rated,
           COALESCE(AVG(r.checker_rating), 0)::float8 AS average,
           COALESCE(MIN(j.id) FILTER (WHERE j.status = 'claimed'), '') AS job_id,
           COALESCE(SUM(jsonb_array_length(jsonb_path_query_array(j.disputes, '$[*].decided.decision ? (@ == "stands")'))), 0) AS stood,
           COALESCE(SUM(jsonb_array_length(jsonb_path_query_array(j.disputes, '$[*].decided.decision ? (@ == "overturned")'))), 0) AS fell
    FROM readmodel.jobs j
    LEFT JOIN readmodel.job_reports r ON r.job_id = j.id
    WHERE j.checker_id = c.checker_id
      AND j.checker_id <> '') w
ORDER BY c.name, c.checker_id`

// Checkers lists checkers by name, those whose name contains the text or whose id it is.
// A pool, if given, narrows them to its checkers.
func (q *Reads) Checkers(ctx context.Context, text, poolID string, page Page) ([]Checker, int, error) {
	return readmodel.Page[Checker](ctx, q.db, "checkers", `SELECT COUNT(*)`+checkersSQL, listCheckersSQL,
		[]any{text, identity.Fold(text), poolID}, page.Limit, page.Offset)
}

// Job is a job as operators see it without a reason. It has no text of a client or a
// checker.
type Job struct {
	ID           string     `json:"id"`
	AccountID    string     `json:"account_id"`
	Account      string     `json:"account"` // its name
	ProjectID    string     `json:"project_id"`
	Status       job.Status `json:"status"`
	Type         job.Type   `json:"type"`
	Urgent       bool       `json:"urgent"`
	SLAMinutes   int        `json:"sla_minutes"`
	Price        int        `json:"price"`
	Refunded     int        `json:"refunded"`
	Source       string     `json:"source"`
	SessionID    string     `json:"session_id"`
	Sandbox      bool       `json:"sandbox"`
	InQueue      bool       `json:"in_queue"`
	CheckerID    string     `json:"checker_id"`
	ReportID     string     `json:"report_id"`
	CancelReason string     `json:"cancel_reason"`
	FailReason   string     `json:"fail_reason"`
	RequeueCount int        `json:"requeue_count"`
	CreatedAt    time.Time  `json:"created_at"`
	DueAt        time.Time  `json:"due_at"`
	ClaimedAt    *time.Time `json:"claimed_at"`
	CompletedAt  *time.Time `json:"completed_at"`
}

// Disputed is a status of the filter: jobs with an open dispute, the oldest dispute first.
const Disputed = "disputed"

// JobFilter narrows the list; empty fields don't. Text is the id of a job, an account or
// a checker.
type JobFilter struct {
	Text      string
	AccountID string
	Status    string
}

const jobColumnsSQL = `
SELECT j.id, j.account_id, COALESCE(a.name, '') AS account, j.project_id, j.status, j.type, j.urgent, j.sla_minutes, j.price,
       j.refunded, j.source, j.session_id, j.sandbox, j.in_queue, j.checker_id, j.report_id, j.cancel_reason, j.fail_reason,
       j.requeue_count, j.created_at, j.due_at, j.claimed_at, j.completed_at
FROM readmodel.jobs j
LEFT JOIN readmodel.accounts a ON a.account_id = j.account_id`

const orderJobsSQL = `
ORDER BY j.created_at DESC, j.id DESC
LIMIT %s
OFFSET %s`

// openDisputesSQL are the times of a job's open disputes. The condition before it lets the
// planner use the partial index.
const openDisputesSQL = `(SELECT MIN(d ->> 'at') FROM jsonb_array_elements(j.disputes) d WHERE d -> 'decided' IS NULL)`

const findJobsSQL = `j.id IN (
    SELECT id FROM readmodel.jobs WHERE id = %[1]s
    UNION SELECT id FROM readmodel.jobs WHERE account_id = %[1]s
    UNION SELECT id FROM readmodel.jobs WHERE checker_id = %[1]s AND checker_id <> '')`

// Jobs lists jobs of all accounts, the newest first; one more than the limit says
// that there are more.
func (q *Reads) Jobs(ctx context.Context, f JobFilter, page Page) ([]Job, error) {
	where := &readmodel.Where{SQL: "\nWHERE TRUE"}
	if f.AccountID != "" {
		where.And("j.account_id = %s", f.AccountID)
	}
	order := orderJobsSQL
	switch {
	case f.Status == Disputed:
		where.SQL += "\n  AND j.disputes <> '[]'\n  AND j.erased_at IS NULL\n  AND " + openDisputesSQL + " IS NOT NULL"
		order = strings.Replace(order, "j.created_at DESC", openDisputesSQL, 1)
	case f.Status != "":
		where.And("j.status = %s", f.Status)
	}
	if f.Text != "" {
		where.And(findJobsSQL, f.Text)
	}
	query := jobColumnsSQL + where.SQL + fmt.Sprintf(order, where.Param(page.Limit), where.Param(page.Offset))
	return pgpool.List[Job](ctx, q.db, "jobs of all accounts", query, where.Args...)
}

// Job gives one job, of any account.
func (q *Reads) Job(ctx context.Context, id string) (Job, error) {
	return readmodel.Get[Job](ctx, q.db, "job", jobColumnsSQL+"\nWHERE j.id = $1", id)
}

// Deadline is an open job whose time is over or nearly over.
type Deadline struct {
	ID        string     `json:"id"`
	AccountID string     `json:"account_id"`
	Account   string     `json:"account"`
	Status    job.Status `json:"status"`
	Urgent    bool       `json:"urgent"`
	CreatedAt time.Time  `json:"created_at"`
	DueAt     time.Time  `json:"due_at"`
}

const deadlinesSQL = `
SELECT j.id, j.account_id, COALESCE(a.name, '') AS account, j.status, j.urgent, j.created_at, j.queue_due_at AS due_at
FROM readmodel.jobs j
LEFT JOIN readmodel.accounts a ON a.account_id = j.account_id
WHERE j.in_queue
  AND j.status = 'pending'
ORDER BY j.queue_due_at, j.id
LIMIT $1`

// Next lists the jobs in the queue whose time is over soonest.
func (q *Reads) Next(ctx context.Context, limit int) ([]Deadline, error) {
	return pgpool.List[Deadline](ctx, q.db, "what is due", deadlinesSQL, limit)
}
