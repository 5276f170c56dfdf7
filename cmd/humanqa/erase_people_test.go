package main

import (
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"humanqa/cmd/humanqa/service/erase"
	"humanqa/internal/pgpool"
	"humanqa/internal/testing/eventually"
	"humanqa/internal/testing/must"
)

// printedErasure is what humanqa erase of a checker prints.
type printedErasure struct {
	Status string
	Plan   erase.CheckerPlan
	Search erase.Searched
}

// Decisions, "Erasure of one subject": a checker goes with name, profile and key; their
// pictures go if that is asked for, a hold keeps those of its tests, and the notes stay with
// the tests unless these are erased, too. Figures and proofs are the same.
func checkerErased(t *testing.T, p *instance) {
	c := newClient(p.program, "Staying Ltd")
	project := p.call(http.StatusCreated, "POST", "/v1/projects", c.key, map[string]any{"name": "Erasures"}).text("projectId")
	var made struct{ CheckerID, CheckerKey string }
	p.cli(&made, "checker", "create", "--name", "Canary Checkersdottir")
	by := checkedBy{made.CheckerID, made.CheckerKey}
	free, held := c.testsWithWordsBy(p.program, project, "free8d21aa", by), c.testsWithWordsBy(p.program, project, "held90c4e1", by)
	before := c.figures(p.program, project)
	kept := p.checkpoint(t)
	p.cli(nil, "evidence", "hold", "--job", held.id, "--reason", "a lawsuit")

	var told printedErasure
	p.cli(&told, "erase", "--checker", by.id, "--dry-run")
	if told.Plan.Texts != 1 || told.Plan.Tests != 2 || told.Plan.Made.Files != 2 || len(told.Search.Left) == 0 {
		t.Errorf("the dry run says %+v", told)
	}
	p.refuses("not found", "erase", "--checker", "nobody", "--by", "Ann", "--reason", "asked for")
	p.refuses("kept by a hold", "erase", "--checker", by.id, "--pictures", "--by", "Ann", "--reason", "asked for")
	p.call(http.StatusUnauthorized, "GET", "/v1/checker/claims", by.key, nil)
	if in := p.holding(t, "Canary Checkersdottir"); len(in) > 0 {
		t.Errorf("the name stands in %v", in)
	}
	p.call(http.StatusGone, "GET", free.picture, "", nil)
	p.call(http.StatusOK, "GET", held.picture, "", nil)
	report := string(p.call(http.StatusOK, "GET", "/v1/jobs/"+free.id+"/report", c.key, nil).body)
	if !strings.Contains(report, "canary note of "+free.mark) {
		t.Errorf("the notes went with the checker: %s", report)
	}
	p.refuses("a hold keeps", "erase", "--job", held.id, "--by", "Ann", "--reason", "asked for")
	p.cli(nil, "evidence", "release", "--job", held.id, "--reason", "it ended")
	for range 2 { // what is finished is finished
		p.cli(&told, "erase", "--checker", by.id, "--pictures", "--tests", "--by", "Ann", "--reason", "asked for")
		if len(told.Search.Left)+len(told.Search.InClear) > 0 || !told.Plan.ErasedAgain {
			t.Errorf("it says %+v", told)
		}
	}
	if in := p.holding(t, append(free.all, held.all...)...); len(in) > 0 {
		t.Errorf("words stand in %v", in)
	}
	for _, id := range []string{free.id, held.id} {
		if n := countFiles(t, filepath.Join(p.dir, "evidence", c.account, id)); n != 0 {
			t.Errorf("%d files of job %s are left", n, id)
		}
	}
	if after := c.figures(p.program, project); !slices.Equal(after, before) {
		t.Errorf("the figures are\n%s\nand were\n%s", strings.Join(after, "\n"), strings.Join(before, "\n"))
	}
	p.verifies(t, kept)
}

// A person goes with their name, their mails and what they test as; the log names them by id.
func personErased(t *testing.T, p *instance) {
	var made struct{ CheckerID, CheckerKey string }
	p.cli(&made, "checker", "create", "--name", "Canary Checkersdottir")
	var invited struct{ PersonID string }
	p.cli(&invited, "person", "invite", "--checker", "--checker-id", made.CheckerID, "--name", "Canary Personsdottir", "--by", "Ann", "--reason", "a tester")
	names := []string{"Canary Checkersdottir", "Canary Personsdottir"}
	if in := p.holding(t, names...); len(in) != len(names) {
		t.Errorf("the names stand in %v: the test shows nothing", in)
	}
	p.erasesBesideADrop("--person", invited.PersonID)
	var told struct {
		Plan   erase.PersonPlan
		Search erase.Searched
	}
	for n := range 2 {
		p.cli(&told, "erase", "--person", invited.PersonID, "--by", "Ann", "--reason", "asked for")
		if len(told.Search.Left) > 0 || n == 0 && (told.Plan.Texts != 1 || told.Plan.Checker == nil) {
			t.Errorf("it says %+v", told)
		}
	}
	if in := p.holding(t, names...); len(in) > 0 {
		t.Errorf("names stand in %v", in)
	}
	p.call(http.StatusUnauthorized, "GET", "/v1/checker/claims", made.CheckerKey, nil)
}

// erasesBesideADrop has the search of an erasure come to a table that is just being dropped, as
// the service drops older generations of read models.
func (p *program) erasesBesideADrop(subject ...string) {
	p.t.Helper()
	db, err := pgpool.Open(p.t.Context(), p.dsn())
	must.NoError(p.t, err)
	defer func() { _ = db.Close() }()
	_, err = db.ExecContext(p.t.Context(), `CREATE TABLE older_generation ()`)
	must.NoError(p.t, err)
	drop, err := db.BeginTxx(p.t.Context(), nil)
	must.NoError(p.t, err)
	defer func() { _ = drop.Rollback() }() // it was committed
	_, err = drop.ExecContext(p.t.Context(), `DROP TABLE older_generation`)
	must.NoError(p.t, err)
	done := make(chan string, 1)
	go func() {
		_, stderr, err := p.tryCLI(append([]string{"erase", "--dry-run"}, subject...)...)
		if err == nil {
			stderr = ""
		}
		done <- stderr
	}()
	eventually.True(p.t, "the search waits for the table", func() bool {
		var waits bool
		must.NoError(p.t, db.GetContext(p.t.Context(), &waits,
			`SELECT EXISTS (SELECT FROM pg_locks WHERE relation = 'older_generation'::regclass AND NOT granted)`))
		return waits
	})
	must.NoError(p.t, drop.Commit())
	if complaint := <-done; complaint != "" {
		p.t.Errorf("an erasure beside the drop of a table: %s", complaint)
	}
}
