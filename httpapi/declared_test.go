package httpapi

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"testing"

	"github.com/sirupsen/logrus"

	"humanqa/domain"
	"humanqa/domain/account"
	"humanqa/domain/command"
	"humanqa/internal/testing/eventually"
	"humanqa/internal/testing/must"
	"humanqa/projections/declared"
)

const servedFile = `
name: served
version: 1
events: [job.created]
tables: |
  CREATE TABLE served (account_id text, n bigint, job text, PRIMARY KEY (account_id, n));
apply: |
  INSERT INTO served SELECT account_id, position, job_id FROM batch
serve: {table: served, columns: [job], order: [n]}
`

// serving keeps tests that share a database from making the table at once.
var serving sync.Mutex

// serves has the projection of a file serve rows of a table that stays empty.
func (s *service) serves(text string) {
	s.t.Helper()
	serving.Lock()
	defer serving.Unlock()
	f, err := declared.Parse([]byte(text))
	must.NoError(s.t, err)
	_, err = s.db.ExecContext(s.t.Context(), "CREATE TABLE IF NOT EXISTS declared."+f.Serve.Table+" (account_id text, n bigint, job text)")
	must.NoError(s.t, err)
	_, err = declared.Add(s.t.Context(), s.db, f)
	must.NoError(s.t, err)
}

func TestAnAccountReadsItsOwnRowsOfADeclaredProjectionPageByPage(t *testing.T) {
	t.Parallel()
	s := own(t)
	id, key := s.sandbox()
	_, other := s.sandbox()
	var jobs []any
	for range 3 {
		jobs = append(jobs, s.submitted(key))
		s.submitted(other)
	}
	for _, text := range []string{servedFile, "name: quiet\nversion: 1\nevents: [job.created]\ntables: CREATE TABLE quiet (x int)\napply: SELECT\n"} {
		f, err := declared.Parse([]byte(text))
		must.NoError(t, err)
		_, err = declared.Add(t.Context(), s.db, f)
		must.NoError(t, err)
	}
	s.call(key, "GET", "/v1/analytics/served", "").refused(http.StatusServiceUnavailable, domain.CodeUnavailable)
	ctx, stop := context.WithCancel(context.Background())
	kept := make(chan error, 1)
	go func() { kept <- declared.NewKeeper(s.db, s.log, logrus.New()).Run(ctx) }()
	t.Cleanup(func() {
		stop()
		must.NoError(t, <-kept)
	})

	page := func(query string) (rows []any, next any) {
		t.Helper()
		got := s.call(key, "GET", "/v1/analytics/served"+query, "").want(http.StatusOK)
		for _, row := range got["rows"].([]any) {
			rows = append(rows, row.(map[string]any)["job"])
		}
		return rows, got["nextOffset"]
	}
	eventually.True(t, "all rows are there", func() bool {
		r := s.call(key, "GET", "/v1/analytics/served?offset=2", "")
		return r.Code == http.StatusOK && len(r.want(http.StatusOK)["rows"].([]any)) == 1
	})
	first, next := page("?limit=2")
	equal(t, first, jobs[:2])
	equal(t, next, any(2.0))
	last, next := page(fmt.Sprint("?limit=2&offset=", next))
	equal(t, last, jobs[2:])
	equal(t, next, any(nil))
	none, _ := page("?offset=3")
	equal(t, len(none), 0)

	equal(t, s.call(key, "GET", "/v1/analytics/served?limit=1001&offset=-1", "").paths(), []string{"limit", "offset"})
	for _, name := range []string{"quiet", "nothing", "pass-rates"} {
		s.call(key, "GET", "/v1/analytics/"+name, "").refused(http.StatusNotFound, domain.CodeNotFound)
	}
	bound := s.key(id, command.IssueKey{Scope: account.ScopeFull, ProjectID: s.project(key, `{"name":"p"}`)})
	s.call(bound, "GET", "/v1/analytics/served", "").refused(http.StatusForbidden, domain.CodeForbidden)
}
