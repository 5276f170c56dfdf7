package main

import (
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/jmoiron/sqlx"

	"humanqa/internal/testing/must"
	"humanqa/internal/testing/pagetest/alltest"
	"humanqa/internal/testing/pgtest"
	"humanqa/internal/testing/pooler"
)

func TestAKillBehindAPoolerLosesNothing(t *testing.T) {
	t.Parallel()
	for _, mode := range []pooler.Mode{pooler.Session, pooler.Transaction} {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			dsn := pgtest.NewOwned(t, 40)
			p := newProgram(t, "HUMANQA_DATABASE_URL="+pooler.Start(t, dsn, mode))
			if mode == pooler.Transaction {
				p.environ = append(p.environ, "HUMANQA_DATABASE_DIRECT_URL="+dsn)
				settled(t, dsn)
			}
			s := p.spawn()
			_, key := p.newAccount(10)
			job := p.call(http.StatusCreated, "POST", "/v1/jobs", key, submission(1)).text("jobId")
			_, checker := p.newChecker()
			p.call(http.StatusCreated, "POST", "/v1/checker/claims", checker, map[string]any{"jobId": job})
			s.kill()
			s = p.spawn()
			if got := p.call(http.StatusOK, "GET", "/v1/jobs/"+job, key, nil).text("status"); got != "claimed" {
				t.Errorf("the job is %s", got)
			}
			if stdout, stderr, err := p.tryCLI("fsck"); err != nil {
				t.Errorf("fsck: %v\n%s%s", err, stdout, stderr)
			}
			s.stop()
		})
	}
}

// settled gives the role the default of a server that is no test's.
func settled(t *testing.T, dsn string) {
	t.Helper()
	db, err := sqlx.Open("postgres", dsn)
	must.NoError(t, err)
	defer func() { must.NoError(t, db.Close()) }()
	_, err = db.ExecContext(t.Context(), "ALTER ROLE CURRENT_USER SET synchronous_commit = on")
	must.NoError(t, err)
}

func TestAPoolerInTransactionModeIsRefusedInOneSentence(t *testing.T) {
	t.Parallel()
	p := newProgram(t, "HUMANQA_DATABASE_URL="+pooler.Start(t, alltest.Database.NewDSN(t), pooler.Transaction))
	_, stderr, err := p.tryCLI("serve")
	if err == nil || !strings.Contains(stderr, "HUMANQA_DATABASE_URL: the address leads to a pooler in transaction mode") {
		t.Errorf("it ended with %v: %s", err, stderr)
	}
}

// The statements stand in docs/operations.md.
func TestARoleNeedsNoMoreRightsThanTheDocumentGives(t *testing.T) {
	t.Parallel()
	strangers, owners := pgtest.NewOwned(t, 30), pgtest.NewOwned(t, 30)
	owner, err := url.Parse(owners)
	must.NoError(t, err)
	stranger, err := url.Parse(strangers)
	must.NoError(t, err)
	db, role := strings.TrimPrefix(owner.Path, "/"), stranger.User.Username()
	stranger.Path = owner.Path
	p := newProgram(t, "HUMANQA_DATABASE_URL="+stranger.String())
	_, stderr, err := p.tryCLI("serve")
	if err == nil || !strings.Contains(stderr, "the role of HUMANQA_DATABASE_URL lacks rights, and docs/operations.md") {
		t.Fatalf("without rights it ended with %v: %s", err, stderr)
	}
	as, err := sqlx.Open("postgres", owners)
	must.NoError(t, err)
	defer func() { must.NoError(t, as.Close()) }()
	for _, statement := range leastRights(t) {
		if strings.HasPrefix(statement, "GRANT") {
			_, err := as.ExecContext(t.Context(), strings.NewReplacer("DATABASE humanqa", "DATABASE "+db, "TO humanqa", "TO "+role).Replace(statement))
			must.NoError(t, err)
		}
	}
	s := p.start()
	_, key := p.newAccount(10)
	p.call(http.StatusCreated, "POST", "/v1/jobs", key, submission(1))
	if stdout, stderr, err := p.tryCLI("fsck"); err != nil {
		t.Errorf("fsck: %v\n%s%s", err, stdout, stderr)
	}
	s.stop()
}

// leastRights are the statements of the document's block.
func leastRights(t *testing.T) (statements []string) {
	t.Helper()
	page, err := os.ReadFile("../../docs/operations.md")
	must.NoError(t, err)
	_, block, _ := strings.Cut(string(page), "```sql\n")
	block, _, _ = strings.Cut(block, "```")
	for line := range strings.Lines(block) {
		statement, _, _ := strings.Cut(line, "--")
		statements = append(statements, strings.TrimSpace(statement))
	}
	return statements
}
