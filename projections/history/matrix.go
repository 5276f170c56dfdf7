package history

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/lib/pq"

	"humanqa/domain/job"
	"humanqa/internal/pgpool"
)

// Matrix has the verdicts of the project's latest tests on each item that failed in one
// of them.
type Matrix struct {
	Tests  []MatrixTest // the oldest first
	Rows   []MatrixRow  // open failures come first
	Passed int          // items that never failed in these tests
}

// MatrixTest is a column. Commit is the deployed commit, empty where none was named.
type MatrixTest struct {
	JobID         string    `json:"job_id"`
	OverallStatus string    `json:"overall_status"`
	TestedAt      time.Time `json:"tested_at"`
	Commit        string    `json:"commit"`
}

// MatrixRow is an item, by its key. Verdicts are one a test, empty where the test
// did not have it. FailedFirst is the test with which its latest row of failures
// begins; a skip neither ends nor begins one.
type MatrixRow struct {
	Key         string
	Description string // in the words of the latest test
	Severity    job.Severity
	Verdicts    []job.ItemStatus
	FailedFirst int
	Open        bool // its latest verdict is fail
}

const matrixTestsSQL = `
SELECT t.job_id, t.overall_status, t.tested_at, COALESCE(d.commit, '') AS commit
FROM readmodel.history_tests t
LEFT JOIN readmodel.history_deploys d ON d.job_id = t.job_id
WHERE t.account_id = $1
  AND t.project_id = $2
ORDER BY t.n DESC
LIMIT $3`

// The query reads only the columns of a cell: the notes of a report can be long.
const matrixCellsSQL = `
SELECT r.job_id, i.value->>'key' AS key, i.value->>'description' AS description,
       i.value->>'severity' AS severity, i.value->>'status' AS status
FROM readmodel.job_reports r
CROSS JOIN LATERAL jsonb_array_elements(r.items) AS i
WHERE r.account_id = $1
  AND r.job_id = ANY($2)
ORDER BY array_position($2::text[], r.job_id)`

type matrixCell struct {
	JobID       string         `json:"job_id"`
	Key         string         `json:"key"`
	Description string         `json:"description"`
	Severity    job.Severity   `json:"severity"`
	Status      job.ItemStatus `json:"status"`
}

// Matrix gives the project's last tests, at most limit, and their items.
func (q *Reads) Matrix(ctx context.Context, accountID, projectID string, limit int) (m Matrix, err error) {
	m.Tests, err = pgpool.List[MatrixTest](ctx, q.db, "tests of project "+projectID, matrixTestsSQL, accountID, projectID, limit)
	if err != nil {
		return m, err
	}
	slices.Reverse(m.Tests)
	at := map[string]int{}
	ids := make([]string, len(m.Tests))
	for i := range m.Tests {
		ids[i], at[m.Tests[i].JobID] = m.Tests[i].JobID, i
	}
	cells, err := pgpool.List[matrixCell](ctx, q.db, "the items of project "+projectID, matrixCellsSQL, accountID, pq.Array(ids))
	if err != nil {
		return m, err
	}
	rows := map[string]*MatrixRow{}
	for _, c := range cells { // the tests in their order
		row := rows[c.Key]
		if row == nil {
			row = &MatrixRow{Key: c.Key, Verdicts: make([]job.ItemStatus, len(m.Tests)), FailedFirst: -1}
			rows[c.Key] = row
		}
		row.see(at[c.JobID], c.Status)
		row.Description, row.Severity = c.Description, c.Severity
	}
	for _, row := range rows {
		if row.FailedFirst >= 0 {
			m.Rows = append(m.Rows, *row)
		} else {
			m.Passed++
		}
	}
	slices.SortFunc(m.Rows, func(a, b MatrixRow) int {
		if a.Open != b.Open {
			if a.Open {
				return -1
			}
			return 1
		}
		return cmp.Or(cmp.Compare(b.FailedFirst, a.FailedFirst), cmp.Compare(a.Key, b.Key))
	})
	return m, nil
}

// see adds the verdict of a later test.
func (r *MatrixRow) see(test int, verdict job.ItemStatus) {
	r.Verdicts[test] = verdict
	switch verdict {
	case job.ItemFail:
		if !r.Open {
			r.Open, r.FailedFirst = true, test
		}
	case job.ItemPass:
		r.Open = false
	case job.ItemSkip, job.ItemPending: // no verdict
	}
}
