package httpapi

import (
	"net/http"
	"testing"

	"humanqa/domain"
	"humanqa/internal/testing/must"
)

// After an upgrade a read model shows the rows of the version before until its
// own are built: what they cannot answer is away for a moment, not broken.
func TestWhatTheRowsOfTheVersionBeforeCannotAnswerIsUnavailable(t *testing.T) {
	t.Parallel()
	s := own(t)
	_, key := s.account(100)
	id := s.submitted(key)
	exec := func(statement string) {
		t.Helper()
		_, err := s.db.ExecContext(t.Context(), statement)
		must.NoError(t, err)
	}
	away := func() {
		t.Helper()
		r := s.call(key, "GET", "/v1/jobs", "")
		r.refused(http.StatusServiceUnavailable, domain.CodeUnavailable)
		if r.Header().Get("Retry-After") == "" {
			t.Error("the answer does not say when to ask again")
		}
	}
	exec("ALTER VIEW readmodel.jobs RENAME TO new_jobs")
	away() // a table is missing
	exec("CREATE VIEW readmodel.jobs AS SELECT id, account_id, project_id, status, created_at FROM readmodel.new_jobs")
	away() // columns are
	exec("DROP VIEW readmodel.jobs")
	exec("ALTER VIEW readmodel.new_jobs RENAME TO jobs")
	jobs, _ := s.call(key, "GET", "/v1/jobs", "").want(http.StatusOK)["jobs"].([]any)
	if job, _ := jobs[0].(map[string]any); len(jobs) != 1 || job["id"] != id {
		t.Errorf("got %v, want the job %s", jobs, id)
	}
}
