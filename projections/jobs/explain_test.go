package jobs

import (
	"strings"
	"testing"
	"time"

	"github.com/lib/pq"

	"humanqa/domain/job"
	"humanqa/internal/cursor"
	"humanqa/internal/testing/modeltest"
)

const manyJobsSQL = `
INSERT INTO {jobs}.jobs
SELECT r.*
FROM generate_series(1, 12000) n,
     jsonb_populate_record(NULL::{jobs}.jobs, jsonb '{"batch_name": "", "commit_sha": "", "branch": "", "environment": "", "disputes": []}' || jsonb_build_object(
        'id', 'job' || n, 'account_id', 'acc' || (n % 3), 'project_id', CASE WHEN n % 2 = 0 THEN '' ELSE 'p' || (n % 50) END,
        'status', CASE WHEN n % 100 = 0 THEN 'pending' WHEN n % 7 = 0 THEN 'claimed' ELSE 'completed' END,
        'title', 'title', 'url', 'https://app.example', 'description', repeat('d', 200), 'feature', '',
        'type', 'custom', 'type_echo', 'Custom', 'urgent', n % 9 = 0, 'sla_minutes', 60, 'price', 5, 'refunded', 0,
        'source', 'api', 'parent_id', '', 'batch_id', CASE WHEN n % 10 = 0 THEN 'b' || (n / 100) ELSE '' END, 'batch_index', n % 100, 'session_id', '', 'loop_id', '', 'hosted_app', false,
        'sandbox', false, 'target', '{}'::json, 'generated_by', '',
        'in_queue', true, 'checker_id', CASE WHEN n % 7 < 5 THEN 'c' || (n % 40) ELSE '' END, 'untestable_by', '[]'::json, 'report_id', '', 'overall_status', '', 'analysed', false, 'cancel_reason', '', 'fail_reason', '', 'fail_note', '', 'returns', '[]'::json, 'requeue_count', 0,
        'created_at', now() - n * interval '1 second', 'due_at', now(), 'queue_due_at', now(), 'claimed_at', now(), 'completed_at', now() - n * interval '1 second', 'items', '[]'::json, 'recordings', '[]'::json, 'questions', '[]'::json,
        'report_pass', 1, 'report_fail', 0, 'report_skip', 0, 'report_summary', '', 'report_url', '', 'report_note', '', 'ai_report', '{}')) r`

// The hot queries walk an index in the order of the answer: they read a page,
// not an account.
func TestHotQueriesWalkTheirIndexes(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.Exec(manyJobsSQL)
	w.Exec("ANALYZE {jobs}.jobs")
	list := func(f Filter) (string, []any) {
		where := f.Where("acc1")
		f.Limit = 100
		return f.page(where), where.Args
	}
	deep := cursor.Cursor{At: time.Now().Add(-11_000 * time.Second), ID: "job11000"}
	tests := []struct {
		name, index string
		query       func() (string, []any)
	}{
		{"list", "jobs_by_account", func() (string, []any) { return list(Filter{}) }},
		{"list behind a place", "jobs_by_account", func() (string, []any) { return list(Filter{After: deep}) }},
		{"list by status behind a place", "jobs_by_status", func() (string, []any) {
			return list(Filter{After: deep, Status: job.StatusPending})
		}},
		{"list by status", "jobs_by_status", func() (string, []any) { return list(Filter{Status: job.StatusPending}) }},
		{"list by project", "jobs_by_project", func() (string, []any) { return list(Filter{ProjectID: "p7"}) }},
		{"list since", "jobs_by_account", func() (string, []any) { return list(Filter{Since: &modeltest.Noon}) }},
		{"total", "job_counts_pkey", func() (string, []any) { return totalJobsSQL, []any{"acc1"} }},
		{"first address", "jobs_by_project", func() (string, []any) { return firstURLSQL, []any{"acc1", "p7"} }},
		{"job", "jobs_pkey", func() (string, []any) { return getJobSQL, []any{"acc1", "job7"} }},
		{"batch", "jobs_by_batch", func() (string, []any) { return batchSQL, []any{"acc1", "b7"} }},
		{"AI report", "jobs_pkey", func() (string, []any) { return getAIReportSQL, []any{"acc1", "job7"} }},
		{"queue", "jobs_queue", func() (string, []any) {
			return listQueueSQL, []any{"ann", time.Now(), pq.Array([]string{"phone"}), false, "", 20, 0}
		}},
		{"head of the queue", "jobs_queue", func() (string, []any) { return nextInQueueSQL, []any{"ann", time.Now(), pq.Array([]string{"job1"})} }},
	}
	for _, test := range tests {
		query, args := test.query()
		plan := w.Plan(query, args...)
		if !strings.Contains(plan, test.index) || strings.Contains(plan, "Sort") || strings.Contains(plan, "Seq Scan on jobs") {
			t.Errorf("%s does not walk %s:\n%s", test.name, test.index, plan)
		}
	}
	// What a day brought is summed, from its own rows alone.
	if plan := w.Plan(daySQL, "acc1", time.Now().Add(-time.Minute), 8); !strings.Contains(plan, "jobs_by_account") || strings.Contains(plan, "Seq Scan on jobs") {
		t.Errorf("the tests of a day do not walk their index:\n%s", plan)
	}
	if plan := w.Plan(checklistsSQL, "acc1", "p7", listsWalked, 5, job.AIReview); !strings.Contains(plan, "jobs_by_project") || strings.Contains(plan, "Seq Scan on jobs") {
		t.Errorf("the lists of a project do not walk its newest tests:\n%s", plan)
	}
	// Chosen jobs, and a checker's own work, are few, and may be sorted.
	if plan := w.Plan(chosenSQL, "acc1", pq.StringArray{"job7", "job70"}); !strings.Contains(plan, "jobs_pkey") {
		t.Errorf("chosen jobs do not walk their index:\n%s", plan)
	}
	if plan := w.Plan(listWorkSQL, "c7", 20); !strings.Contains(plan, "jobs_by_checker") {
		t.Errorf("the work of a checker does not walk its index:\n%s", plan)
	}
}
