package jobs

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"humanqa/domain/job"
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
	// Verdict is that of the report: pass, fail or inconclusive.
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
	Commit      string     `json:"commit"` // empty: no deploy told one
}

// Took is how long the checker had the test; zero without a report.
func (f Found) Took() time.Duration {
	if f.ClaimedAt == nil || f.CompletedAt == nil {
		return 0
	}
	return f.CompletedAt.Sub(*f.ClaimedAt)
}

const findJobsSQL = `
SELECT j.id, j.project_id, j.status, j.title, j.url, j.type, j.type_echo, j.urgent, j.report_id, j.created_at, j.overall_status,
       LEFT(COALESCE(NULLIF(j.feature, ''), j.description), 200) AS asked, j.report_pass, j.report_fail, j.report_skip,
       j.claimed_at, j.completed_at, COALESCE(d.commit, '') AS commit`

// fewWords is how many tests may have the words of a search for it to read them all. A
// search that more of them fit comes to the end of a page soon, as it walks the list.
const fewWords = 1000

const countWordsSQL = `
SELECT COUNT(*)
FROM (SELECT 1
      FROM readmodel.job_words w
      WHERE w.account_id = $1
        AND %s
      LIMIT %d) AS found`

// The tests with the words come first, and their jobs follow.
const fewWordsSQL = `
WITH found AS MATERIALIZED (
    SELECT w.job_id
    FROM readmodel.job_words w
    WHERE w.account_id = $1
      AND %s)` + findJobsSQL + `
FROM found
JOIN readmodel.jobs j ON j.id = found.job_id
LEFT JOIN readmodel.history_deploys d ON d.job_id = j.id
WHERE j.account_id = $1`

// The list is walked in its order, and each test's words are looked at. OFFSET 0 keeps the
// planner from doing that the other way round.
const manyWordsSQL = findJobsSQL + `
FROM readmodel.jobs j
CROSS JOIN LATERAL (
    SELECT 1
    FROM readmodel.job_words w
    WHERE w.job_id = j.id
      AND w.account_id = $1
      AND %s
    OFFSET 0) AS found
LEFT JOIN readmodel.history_deploys d ON d.job_id = j.id
WHERE j.account_id = $1`

const noWordsSQL = findJobsSQL + `
FROM readmodel.jobs j
LEFT JOIN readmodel.history_deploys d ON d.job_id = j.id
WHERE j.account_id = $1`

const orderFoundSQL = `
ORDER BY j.created_at DESC, j.id DESC
LIMIT %s
OFFSET %s`

// words is the condition on the words, which is empty where the search has none. An id
// is no word.
func (s Search) words(where *readmodel.Where) string {
	all := labels(s.Type, s.Verdict)
	words := strings.ToLower(strings.TrimSpace(s.Words))
	if _, isID := s.id(); isID {
		words = ""
	}
	if words == "" && len(all) == 0 {
		return ""
	}
	for i := range all {
		all[i] = "'" + strings.ReplaceAll(all[i], "'", "''") + "'"
	}
	return fmt.Sprintf(wordsSQL, where.Param(words), where.Param(prefixOf(words)), where.Param(strings.Join(all, " & ")))
}

func (s Search) id() (string, bool) {
	id, err := uuid.Parse(strings.TrimSpace(s.Words))
	return id.String(), err == nil
}

// and adds the conditions on the jobs themselves.
func (s Search) and(where *readmodel.Where) {
	if id, isID := s.id(); isID {
		where.And("j.id = %s", id)
	}
	if s.Status != "" {
		where.And("j.status = %s", s.Status)
	}
	if s.ProjectID != "" {
		// The second half is implied; it lets the planner use the partial index.
		where.And("j.project_id = %s AND j.project_id <> ''", s.ProjectID)
	}
	if !s.From.IsZero() {
		where.And("j.created_at >= %s", s.From)
	}
	if !s.Until.IsZero() {
		where.And("j.created_at < %s", s.Until)
	}
}

// count is the statement that says how many tests have the words; empty where the
// search has none.
func (s Search) count(where *readmodel.Where) string {
	words := s.words(where)
	if words == "" {
		return ""
	}
	return fmt.Sprintf(countWordsSQL, words, fewWords+1)
}

// page is the statement that reads a page, and one test of the next.
func (s Search) page(where *readmodel.Where, few bool) string {
	query := noWordsSQL
	if words := s.words(where); words != "" {
		query = fmt.Sprintf(manyWordsSQL, words)
		if few {
			query = fmt.Sprintf(fewWordsSQL, words)
		}
	}
	where.SQL = ""
	s.and(where)
	return query + where.SQL + fmt.Sprintf(orderFoundSQL, where.Param(s.Limit+1), where.Param(s.Offset))
}

// Find gives a page of the account's tests that fit the search, the newest first, and
// says whether more follow.
func (q *Reads) Find(ctx context.Context, accountID string, s Search) (page []Found, more bool, err error) {
	few := false
	counted := readmodel.WhereAccount(accountID)
	if count := s.count(counted); count != "" {
		var n int
		if err := q.db.GetContext(ctx, &n, count, counted.Args...); err != nil {
			return nil, false, fmt.Errorf("count the tests with the words of a search: %w", err)
		}
		few = n <= fewWords
	}
	where := readmodel.WhereAccount(accountID)
	query := s.page(where, few)
	if err := q.db.SelectContext(ctx, &page, query, where.Args...); err != nil {
		return nil, false, fmt.Errorf("find tests: %w", err)
	}
	more = len(page) > s.Limit
	page = page[:min(len(page), s.Limit)]
	for i := range page {
		readmodel.UTC(&page[i].CreatedAt, page[i].ClaimedAt, page[i].CompletedAt)
	}
	return page, more, nil
}

// Total is how many tests the account has in a state and a project, which the counts know.
func (q *Reads) Total(ctx context.Context, accountID string, status job.Status, projectID string) (total int, err error) {
	where := Filter{Status: status, ProjectID: projectID}.where(accountID)
	if err := q.db.GetContext(ctx, &total, totalJobsSQL+where.SQL, where.Args...); err != nil {
		return 0, fmt.Errorf("count jobs: %w", err)
	}
	return total, nil
}
