package projections

import (
	"strings"
	"testing"
	"time"
)

const longPastSQL = `
INSERT INTO history_v2_g1.history_projects
SELECT 'p' || n, 'acc' || (n % 3), 'name', 10000, 5000, 5000, 0, 0, '[]', '[]', '[]'
FROM generate_series(1, 500) n;
INSERT INTO history_v2_g1.history_tests
SELECT 'job' || n, 'acc1', CASE WHEN n % 10 = 0 THEN 'p' || (n % 500) ELSE 'p1' END, n, 'fail', n % 100, 1, 1, now()
FROM generate_series(1, 11000) n;
INSERT INTO history_v2_g1.history_items
SELECT 'acc1', 'p' || (n % 20), 'key' || n, n, 'fail', n % 2 = 0, 'job', 'item', 'd', '', 'minor', n, 1, now(), now(), 1, NULL
FROM generate_series(1, 12000) n;
INSERT INTO projects_v3_g1.projects (id, account_id, name, default_url, default_host, hook_hash, webhook_url, disabled, disabled_by, disabled_reason, rotations, created_at, updated_at)
SELECT 'p' || n, 'acc' || (n % 3), 'n', 'https://a.example', CASE WHEN n % 4 = 0 THEN '' ELSE 'h' || (n % 40) END, 'hash' || n, '', false, '', '', '[]', now() - n * interval '1 second', now()
FROM generate_series(1, 6000) n;
INSERT INTO access_v1_g1.accounts
SELECT 'acc' || n, 'a', false, false
FROM generate_series(0, 2000) n;
ANALYZE;`

// What a project with ten thousand tests answers costs what a young one's does.
func TestAHistoryIsReadThroughIndexesHoweverLongItIs(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.exec(longPastSQL)
	for _, test := range []struct {
		name, query string
		args        []any
		indexes     []string
	}{
		{"history", getHistorySQL, []any{"acc1", "p1"}, []string{"history_projects_pkey", "history_by_test"}},
		{"open failures", openFailuresSQL, []any{"acc1", "p4", 20}, []string{"history_open"}},
		{"last failures", lastFailuresSQL, []any{"acc1", "p1"}, []string{"history_projects_pkey"}},
		{"project of a host", projectForHostSQL, []any{"acc1", "h7"}, []string{"projects_by_host"}},
		{"deploy hook", byHookSQL, []any{"hash7"}, []string{"projects_hook_hash_key", "accounts_pkey"}},
	} {
		plan := w.plan(test.query, test.args...)
		for _, index := range test.indexes {
			if !strings.Contains(plan, index) {
				t.Errorf("%s does not use %s:\n%s", test.name, index, plan)
			}
		}
		if strings.Contains(plan, "Sort") || strings.Contains(plan, "Seq Scan") {
			t.Errorf("%s reads more than it shows:\n%s", test.name, plan)
		}
	}
	started := time.Now()
	const reads = 200
	for range reads {
		if _, err := w.reads.History.Project(w.ctx(), "acc1", "p1"); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("a history of 10,000 tests takes %s", time.Since(started)/reads)
}

// plan is how Postgres would run the query.
func (w *world) plan(query string, args ...any) string {
	w.t.Helper()
	var lines []string
	if err := w.db.SelectContext(w.ctx(), &lines, "EXPLAIN "+query, args...); err != nil {
		w.t.Fatal(err)
	}
	return strings.Join(lines, "\n")
}
