package main

import (
	"database/sql"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"humanqa/internal/testing/eventually"
	"humanqa/internal/testing/must"
)

// docs/analytics.md tells the same steps.
func TestAProjectionIsDeclaredTestedServedAndDropped(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) string {
		file := filepath.Join(dir, name)
		must.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		return file
	}
	const example = "docs/projections/pass_rates.yaml"
	file := "../../" + example
	text, err := os.ReadFile(file)
	must.NoError(t, err)
	broken := write("broken.yaml", strings.NewReplacer("pass_rates", "broken", "FROM batch", "FROM public.vault").Replace(string(text)))
	write("others.yaml", strings.ReplaceAll(string(text), "pass_rates", "others"))
	p := newProgram(t, "HUMANQA_PROJECTIONS="+dir)
	s := p.start()
	_, key := p.newSandbox(50)
	jobID := p.call(http.StatusCreated, "POST", "/v1/jobs", key, submission(1)).text("jobId")
	p.call2xx("POST", "/v1/sandbox/jobs/"+jobID+"/play", key)

	var out struct{ Status string }
	for _, line := range [][]string{
		asArgs(p.asWritten(`bin/humanqa projections check docs/projections/pass_rates.yaml`, example, file)),
		asArgs(p.asWritten(`bin/humanqa projections test docs/projections/pass_rates.yaml`, example, file)),
		asArgs(p.asWritten(`bin/humanqa projections add docs/projections/pass_rates.yaml`, example, file)),
		asArgs(p.asWritten(`bin/humanqa projections list`)),
	} {
		p.cli(&out, line...)
	}
	if out.Status != "added" {
		t.Errorf("it is %q", out.Status)
	}
	for _, name := range []string{"pass_rates", "others"} { // the second one stood in the folder
		eventually.Within(t, eventually.Patience, func() error {
			answer, err := p.try("GET", "/v1/analytics/"+name, key, nil)
			if rows, _ := answer.field("rows").([]any); err != nil || answer.status != http.StatusOK || len(rows) != 1 {
				return fmt.Errorf("the API shows no row of %s yet: %s, %w", name, answer.body, err)
			}
			return nil
		})
	}
	for _, c := range []struct {
		code int
		want string
		args []string
	}{
		{exitDone, "pass_rates, version 1: 1 of the last 1000 events", []string{"check", file}},
		{exitDone, "pass_rates, version 1: 1 events, in large batches and in small ones: 0 rows differ", []string{"test", file}},
		{exitDone, "pass_rates: unchanged", []string{"add", file}},
		{exitDone, "declared_pass_rates: 0 rows are not what the log says", []string{"rebuild", "declared_pass_rates", "--dry-run"}},
		{exitDone, "declared_pass_rates: rebuilt, it serves from now on", []string{"rebuild", "declared_pass_rates"}},
		{exitFailed, `line 18: apply: pq: relation "public.vault" does not exist`, []string{"add", broken}},
		{exitFailed, "declared_pass_rates is not stopped", []string{"retry", "declared_pass_rates"}},
	} {
		stdout, stderr, err := p.tryCLI(append([]string{"projections"}, c.args...)...)
		if exitCode(err) != c.code || !strings.Contains(stdout+stderr, c.want) {
			t.Errorf("%v: %v\n%s%s\nwant %q", c.args, err, stdout, stderr, c.want)
		}
	}
	if logged := s.Said(); !strings.Contains(logged, "a declared projection is refused") || !strings.Contains(logged, "broken.yaml") {
		t.Errorf("the log does not name the file that was refused:\n%s", logged)
	}

	var analyst struct{ URL string }
	p.cli(&analyst, "analyst", "create", "--name", fmt.Sprint("declared", os.Getpid()))
	db, err := sql.Open("postgres", analyst.URL)
	must.NoError(t, err)
	defer func() { _ = db.Close() }() // it only reads
	var tests int
	must.NoError(t, db.QueryRowContext(t.Context(), "SELECT sum(tests) FROM pass_rates").Scan(&tests))
	if tests != 1 {
		t.Errorf("the analyst reads %d tests", tests)
	}

	p.cli(nil, "projections", "drop", "pass_rates")
	p.call(http.StatusNotFound, "GET", "/v1/analytics/pass_rates", key, nil)
	var list listing
	if p.cli(&list, "projections", "list"); list.generation("declared_pass_rates") != 0 {
		t.Errorf("it is listed: %+v", list)
	}
	if _, _, err := p.tryCLI("projections", "drop", "pass_rates"); exitCode(err) != exitFailed {
		t.Error("it was dropped twice")
	}
}

// asArgs leaves out what a command sets.
func asArgs(_, args []string) []string { return args }
