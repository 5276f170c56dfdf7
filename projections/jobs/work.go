package jobs

import (
	"context"
	"slices"
	"time"

	"github.com/lib/pq"

	"humanqa/domain/job"
	"humanqa/internal/pgpool"
	"humanqa/projections/readmodel"
)

// Work is a test that a checker has completed, as they may look back at it.
type Work struct {
	JobID         string                         `json:"id"`
	Title         string                         `json:"title"`
	URL           string                         `json:"url"`
	Type          job.Type                       `json:"type"`
	ClaimedAt     time.Time                      `json:"claimed_at"`
	CompletedAt   time.Time                      `json:"completed_at"`
	OverallStatus string                         `json:"overall_status"`
	PassCount     int                            `json:"pass_count"`
	FailCount     int                            `json:"fail_count"`
	SkipCount     int                            `json:"skip_count"`
	Rating        *int                           `json:"rating"` // nil until the client rates
	Note          string                         `json:"note"`   // the client's, with the rating
	AccountID     string                         `json:"account_id"`
	SessionID     string                         `json:"session_id"` // empty: of none
	Summary       string                         `json:"summary"`
	Items         readmodel.List[job.ReportItem] `json:"items"`
	Disputes      readmodel.List[job.Dispute]    `json:"disputes"`
}

// ToAnswer are the disputes that the checker may answer.
func (w Work) ToAnswer(now time.Time) (open []job.Dispute) {
	for _, d := range w.Disputes {
		if d.Answered == nil && d.Decided == nil && !now.After(d.AnswerUntil) {
			open = append(open, d)
		}
	}
	return open
}

// Record is all of a checker's work in numbers.
type Record struct {
	Done    int     `json:"done"`
	Rated   int     `json:"rated"`
	Average float64 `json:"average"` // of the ratings; 0 without any
}

// workSQL is the completed work of checker $1, without accounts that the checker belongs
// to by now. The conditions on checker_id let the planner use the partial index.
const workSQL = `
FROM readmodel.jobs j
JOIN (
    SELECT job_id, pass_count, fail_count, skip_count, checker_rating AS rating, checker_note AS note, summary,
           items AS report
    FROM readmodel.job_reports) r ON r.job_id = j.id
WHERE checker_id = $1
  AND checker_id <> ''
  AND status = 'completed'` + strangersSQL

const workColumnsSQL = `
SELECT id, title, url, type, claimed_at, completed_at, overall_status, pass_count, fail_count, skip_count, rating, note,
       account_id, session_id, summary, disputes, `

const listWorkSQL = workColumnsSQL + `'[]'::jsonb AS items` + workSQL + `
ORDER BY completed_at DESC, id DESC
LIMIT $2`

// A report is disputed within job.DisputeWithin, and a dispute is answered within
// job.DisputeAnswerWithin: $2 is so long ago.
const contestedSQL = workColumnsSQL + `'[]'::jsonb AS items` + workSQL + `
  AND completed_at > $2
  AND disputes <> '[]'
ORDER BY completed_at, id`

const oneWorkSQL = workColumnsSQL + `report AS items` + workSQL + `
  AND id = $2`

const recordSQL = `
SELECT COUNT(*) AS done, COUNT(rating) AS rated, COALESCE(AVG(rating), 0)::float8 AS average` + workSQL

// Done gives the tests that the checker has completed, the latest first and without their
// items. all has the numbers over all of them.
func (q *Reads) Done(ctx context.Context, checkerID string, limit int) (done []Work, all Record, err error) {
	if done, err = pgpool.List[Work](ctx, q.db, "the work of checker "+checkerID, listWorkSQL, checkerID, limit); err != nil {
		return nil, Record{}, err
	}
	all, err = readmodel.Get[Record](ctx, q.db, "the record of checker "+checkerID, recordSQL, checkerID)
	return done, all, err
}

// Contested gives the tests of the checker with disputes to answer, the oldest first and
// without their items.
func (q *Reads) Contested(ctx context.Context, checkerID string, now time.Time) ([]Work, error) {
	since := now.Add(-job.DisputeWithin - job.DisputeAnswerWithin)
	all, err := pgpool.List[Work](ctx, q.db, "the disputes to answer of checker "+checkerID, contestedSQL, checkerID, since)
	return slices.DeleteFunc(all, func(w Work) bool { return w.ToAnswer(now) == nil }), err
}

// DoneBy gives one test that the checker has completed, with its items; NotFound for
// another checker's test.
func (q *Reads) DoneBy(ctx context.Context, checkerID, jobID string) (Work, error) {
	return readmodel.Get[Work](ctx, q.db, "test", oneWorkSQL, checkerID, jobID)
}

// Part is a slot's test as its session shows it: how far it is, until when it is due, and
// its recordings.
type Part struct {
	ID         string                         `json:"id"`
	DueAt      time.Time                      `json:"due_at"`
	Items      readmodel.List[job.ReportItem] `json:"items"`
	Recordings readmodel.List[job.Recording]  `json:"recordings"`
}

// placeSQL finds the slot of session $2 that checker $1 holds or has completed, unless
// the checker belongs to the account. The condition on checker_id lets the planner use
// the partial index.
const placeSQL = `
SELECT account_id, id AS job_id
FROM readmodel.jobs
WHERE checker_id = $1
  AND checker_id <> ''
  AND session_id = $2` + strangersSQL + `
ORDER BY claimed_at DESC
LIMIT 1`

// Place is a checker's slot of a session.
type Place struct {
	AccountID string `json:"account_id"`
	JobID     string `json:"job_id"`
}

// PlaceIn gives the checker's slot of the session; NotFound without one.
func (q *Reads) PlaceIn(ctx context.Context, checkerID, sessionID string) (Place, error) {
	return readmodel.Get[Place](ctx, q.db, "session", placeSQL, checkerID, sessionID)
}

const partsSQL = `
SELECT id, due_at, items, recordings
FROM readmodel.jobs
WHERE account_id = $1
  AND id = ANY($2)`

// Parts gives how far the account's jobs are, by their id.
func (q *Reads) Parts(ctx context.Context, accountID string, jobIDs []string) (map[string]Part, error) {
	return pgpool.By(ctx, q.db, "how far jobs are", func(p Part) string { return p.ID }, partsSQL, accountID, pq.Array(jobIDs))
}
