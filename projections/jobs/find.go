package jobs

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"humanqa/domain/identity"
	"humanqa/domain/job"
	"humanqa/internal/pgpool"
	"humanqa/projections/readmodel"
)

// Search narrows a list of tests; zero fields don't.
type Search struct {
	// Words are those of the title, address, feature, items, notes and findings, as a
	// search engine takes them: "a phrase", or, -without. An id finds its test.
	Words     string
	Status    job.Status
	ProjectID string
	Type      job.Type
	// Verdict is the report's verdict: pass, fail or inconclusive.
	Verdict string
	// From and Until bound the time of the submission; Until is exclusive.
	From, Until   time.Time
	Limit, Offset int
}

// Found is a test in a list of the pages.
type Found struct {
	Summary
	// Asked is the beginning of the feature, or of the description.
	Asked       string     `json:"asked"`
	PassCount   int        `json:"report_pass"`
	FailCount   int        `json:"report_fail"`
	SkipCount   int        `json:"report_skip"`
	ClaimedAt   *time.Time `json:"claimed_at"`
	CompletedAt *time.Time `json:"completed_at"`
	Commit      string     `json:"commit"` // empty: no deploy named one
}

// Took is the time between claim and report; zero without a report.
func (f Found) Took() time.Duration {
	if f.ClaimedAt == nil || f.CompletedAt == nil {
		return 0
	}
	return f.CompletedAt.Sub(*f.ClaimedAt)
}

const findJobsSQL = `
SELECT j.id, j.project_id, j.status, j.title, j.url, j.type, j.type_echo, j.urgent, j.report_id, j.created_at, j.overall_status,
       COALESCE(j.` + asksSQL + `, false) AS asks,
       LEFT(COALESCE(NULLIF(j.feature, ''), j.description), 200) AS asked, j.report_pass, j.report_fail, j.report_skip,
       j.claimed_at, j.completed_at, COALESCE(d.commit, '') AS commit`

// A search walks this many of the newest tests before it uses the index of words. For a
// common word the walk fills a page. So the index has to read only the tests of a rare
// word. Each of them costs about as much as a walked test.
const newestWalked = 1000

// walked is how many of the newest tests a search walks for a page. A page far down the
// list needs more tests.
func (s Search) walked() int { return max(newestWalked, 4*(s.Offset+s.Limit+1)) }

// The index gives the tests with the words. Then the jobs of one page are read.
const indexedWordsSQL = `
WITH found AS MATERIALIZED (
    SELECT w.job_id
    FROM readmodel.job_words w
    WHERE w.account_id = $1
      AND %[1]s%[2]s
    ORDER BY w.created_at DESC, w.job_id DESC
    LIMIT %[3]s
    OFFSET %[4]s)` + findJobsSQL + `
FROM found
JOIN readmodel.jobs j ON j.id = found.job_id
LEFT JOIN readmodel.history_deploys d ON d.job_id = j.id
WHERE j.account_id = $1
ORDER BY j.created_at DESC, j.id DESC`

// The list is walked in its order, and each test's words are looked at. OFFSET 0 keeps
// the planner from reversing the join.
const walkedWordsSQL = findJobsSQL + `
FROM (SELECT *
      FROM readmodel.jobs j
      WHERE j.account_id = $1%[2]s
      ORDER BY j.created_at DESC, j.id DESC
      LIMIT %[3]s) AS j
CROSS JOIN LATERAL (
    SELECT 1
    FROM readmodel.job_words w
    WHERE w.job_id = j.id
      AND w.account_id = $1
      AND %[1]s
    OFFSET 0) AS found
LEFT JOIN readmodel.history_deploys d ON d.job_id = j.id`

const noWordsSQL = findJobsSQL + `
FROM readmodel.jobs j
LEFT JOIN readmodel.history_deploys d ON d.job_id = j.id
WHERE j.account_id = $1`

const orderFoundSQL = `
ORDER BY j.created_at DESC, j.id DESC
LIMIT %s
OFFSET %s`

// text is the text of the search as the words of tests are folded. An id is no text.
func (s Search) text() string {
	if _, isID := s.id(); isID {
		return ""
	}
	return identity.Fold(s.Words)
}

// hasWords says that the search needs the words of tests: kind and verdict are words, too.
func (s Search) hasWords() bool { return s.text() != "" || s.Type != "" || s.Verdict != "" }

// query are the parameters of the search's words.
func (s Search) query(where *readmodel.Where) []any {
	all, words := labels(s.Type, s.Verdict), s.text()
	for i := range all {
		all[i] = "'" + strings.ReplaceAll(all[i], "'", "''") + "'"
	}
	return []any{where.Param(words), where.Param(prefixOf(words)), where.Param(strings.Join(all, " & "))}
}

func (s Search) id() (string, bool) {
	id, err := uuid.Parse(strings.TrimSpace(s.Words))
	return id.String(), err == nil
}

// filter adds all conditions but the words. table and id name the table of the jobs, or
// of their words, and its column of ids.
func (s Search) filter(where *readmodel.Where, table, id string) {
	if sought, isID := s.id(); isID {
		where.And(table+"."+id+" = %s", sought)
	}
	if s.Status != "" {
		where.And(table+".status = %s", s.Status)
	}
	if s.ProjectID != "" {
		// The second half is implied; it lets the planner use the partial index.
		where.And(table+".project_id = %s AND "+table+".project_id <> ''", s.ProjectID)
	}
	s.ofTime(where, table)
}

// ofTime adds the conditions on created_at, of the jobs or of their words.
func (s Search) ofTime(where *readmodel.Where, table string) {
	if !s.From.IsZero() {
		where.And(table+".created_at >= %s", s.From)
	}
	if !s.Until.IsZero() {
		where.And(table+".created_at < %s", s.Until)
	}
}

// page is the statement that reads a page, and one test of the next. A walk looks at
// the newest tests only.
func (s Search) page(where *readmodel.Where, walk bool) string {
	words := ""
	if s.hasWords() {
		words = fmt.Sprintf(wordsSQL, s.query(where)...)
	}
	limit, offset := where.Param(s.Limit+1), where.Param(s.Offset)
	if words != "" && !walk {
		s.filter(where, "w", "job_id")
		return fmt.Sprintf(indexedWordsSQL, words, where.SQL, limit, offset)
	}
	s.filter(where, "j", "id")
	query := noWordsSQL + where.SQL
	if words != "" {
		query = fmt.Sprintf(walkedWordsSQL, words, where.SQL, where.Param(s.walked()))
	}
	return query + fmt.Sprintf(orderFoundSQL, limit, offset)
}

// Results are a page of tests, the newest first.
type Results struct {
	Page []Found
	More bool // others follow
	// Partial says that only the newest tests were searched: the words of a phrase are in
	// too many tests to look for the phrase in all of them.
	Partial bool
}

// readAtMost bounds the tests that are read for one search that the index cannot answer.
const readAtMost = 5_000

// Find gives a page of the account's tests that fit the search.
func (q *Reads) Find(ctx context.Context, accountID string, s Search) (Results, error) {
	found, err := q.found(ctx, accountID, s, true)
	if err != nil || found.More || !s.hasWords() {
		return found, err
	}
	if all, err := q.Total(ctx, accountID, s.Status, s.ProjectID); err != nil || all <= s.walked() {
		return found, err // the newest tests were all of them
	}
	where := readmodel.WhereAccount(accountID)
	query := s.candidates(where)
	candidates, err := readmodel.Get[int](ctx, q.db, "the number of candidates", query, where.Args...)
	if err != nil {
		return Results{}, err
	}
	if candidates > readAtMost {
		found.Partial = true
		return found, nil
	}
	return q.found(ctx, accountID, s, false)
}

func (q *Reads) found(ctx context.Context, accountID string, s Search, walk bool) (found Results, err error) {
	where := readmodel.WhereAccount(accountID)
	query := s.page(where, walk)
	if found.Page, err = pgpool.List[Found](ctx, q.db, "the tests that fit", query, where.Args...); err != nil {
		return Results{}, err
	}
	found.More = len(found.Page) > s.Limit
	found.Page = found.Page[:min(len(found.Page), s.Limit)]
	return found, nil
}

// candidates is the statement that counts the tests that must be read.
func (s Search) candidates(where *readmodel.Where) string {
	params := s.query(where)
	s.ofTime(where, "w")
	return fmt.Sprintf(candidatesSQL, append(params, where.SQL, where.Param(readAtMost+1))...)
}

// Total is how many tests the account has in a state and a project, by the table of
// counts.
func (q *Reads) Total(ctx context.Context, accountID string, status job.Status, projectID string) (int, error) {
	where := Filter{Status: status, ProjectID: projectID}.Where(accountID)
	return readmodel.Get[int](ctx, q.db, "the number of jobs", totalJobsSQL+where.SQL, where.Args...)
}
