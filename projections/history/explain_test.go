package history

import (
	"strings"
	"testing"
	"time"

	"github.com/lib/pq"

	"humanqa/internal/testing/must"
)

const longPastSQL = `
INSERT INTO {history}.history_projects
SELECT 'p' || n, 'acc' || (n % 3), 'name', 10000, 5000, 5000, 0, 0, '[]', '[]', '[]'
FROM generate_series(1, 500) n;
INSERT INTO {history}.history_tests
SELECT 'job' || n, 'acc1', CASE WHEN n % 10 = 0 THEN 'p' || (n % 500) ELSE 'p1' END, n, 'fail', n % 100, 1, 1, now()
FROM generate_series(1, 11000) n;
INSERT INTO {history}.history_items
SELECT 'acc1', 'p' || (n % 20), 'key' || n, n, 'fail', n % 2 = 0, 'job', 'item', 'job', 'd', '', 'minor', n, 1, now(), now(), 1, NULL, '{}', '[]'
FROM generate_series(1, 12000) n;
INSERT INTO {activity}.activity
SELECT n, 0, now(), 'acc1', 'p1', 'job-job' || n, 'job.created', 'key:k', ''
FROM generate_series(1, 11000) n;
ANALYZE;`

// What a project with ten thousand tests answers costs what a young one's does.
func TestAHistoryIsReadThroughIndexesHoweverLongItIs(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.Exec(longPastSQL)
	w.Walks("history", getHistorySQL, []any{"acc1", "p1"}, "history_projects_pkey", "history_by_test")
	w.Walks("open failures", openFailuresSQL, []any{"acc1", "p4", 20}, "history_open")
	w.Walks("last failures", lastFailuresSQL, []any{"acc1", "p1"}, "history_projects_pkey")
	plan := w.Plan(standingsSQL, "acc1", pq.Array([]string{"p4", "p6"}), 20, time.Now())
	if !strings.Contains(plan, "history_open") || !strings.Contains(plan, "history_by_test") || !strings.Contains(plan, "activity_pkey") || strings.Contains(plan, "Seq Scan") {
		t.Errorf("what projects fail is not found through the indexes:\n%s", plan)
	}
	started := time.Now()
	const reads = 200
	for range reads {
		_, err := w.reads.Project(w.Ctx(), "acc1", "p1")
		must.NoError(t, err)
	}
	t.Logf("a history of 10,000 tests takes %s", time.Since(started)/reads)
}
