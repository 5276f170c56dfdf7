package main

import (
	"database/sql"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
)

// What is taken away is as much as there is, without what is sealed, and an
// analyst reads it and can do nothing else.
func TestTheDataIsTakenAwayAndReadByAnAnalyst(t *testing.T) {
	t.Parallel()
	p := newProgram(t)
	s := p.start()
	account, key := p.newAccount(50)
	jobID := p.call(http.StatusCreated, "POST", "/v1/jobs", key, submission(2, "title", "=1+1",
		"credentials", map[string]any{"username": "shopper", "password": "hunter2"})).text("jobId")
	other, otherKey := p.newAccount(50)
	p.call(http.StatusCreated, "POST", "/v1/jobs", otherKey, submission(1))

	dir := t.TempDir()
	for _, c := range []struct {
		table, format string
		account       bool
		rows          int64
	}{
		{"jobs", "ndjson", false, 2}, {"jobs", "csv", true, 1}, {"jobs", "parquet", false, 2}, {"items", "parquet", false, 3},
		{"ledger", "csv", true, 2}, {"events", "ndjson", true, 6}, {"events", "parquet", true, 6}, {"tests", "csv", false, 0}, {"projects", "csv", false, 0},
	} {
		file := filepath.Join(dir, c.table+"."+c.format)
		args := []string{"export", c.table, "--format", c.format, "--out", file}
		if c.account {
			args = append(args, "--account", account)
		}
		var out struct{ Rows int64 }
		p.cli(&out, args...)
		if out.Rows != c.rows {
			t.Errorf("%v: %d rows, want %d", args, out.Rows, c.rows)
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "hunter2") || strings.Contains(string(text), key) || strings.Contains(string(text), "v1.") {
			t.Errorf("%v shows a secret", args)
		}
		if c.account && strings.Contains(string(text), other) {
			t.Errorf("%v tells of another account", args)
		}
		if c.format == "csv" && c.table == "jobs" && (!strings.Contains(string(text), jobID) || !strings.Contains(string(text), "'=1+1")) {
			t.Errorf("%s", text)
		}
		if c.format == "parquet" {
			if read, err := parquet.ReadFile[struct{}](file); err != nil || int64(len(read)) != c.rows {
				t.Errorf("%v: %d rows are read, %v", args, len(read), err)
			}
		}
	}
	if _, stderr, err := p.tryCLI("export", "jobs", "--out", filepath.Join(dir, "jobs.csv")); exitCode(err) != exitFailed || !strings.Contains(stderr, "file exists") {
		t.Errorf("a file is written over: %v %s", err, stderr)
	}

	var made struct{ Role, URL string }
	p.cli(&made, "analyst", "create", "--name", "ann")
	first := made.URL
	p.cli(&made, "analyst", "create", "--name", "ann")
	for url, works := range map[string]bool{first: false, made.URL: true} {
		db, err := sql.Open("postgres", url)
		if err != nil {
			t.Fatal(err)
		}
		var n int
		if err := db.QueryRowContext(t.Context(), `SELECT count(*) FROM jobs`).Scan(&n); (err == nil) != works || works && n != 2 {
			t.Errorf("%d jobs, %v, want it to work: %t", n, err, works)
		}
		for _, forbidden := range []string{
			`SELECT * FROM readmodel.jobs`, `SELECT * FROM eventlog.events`, `SELECT * FROM vault.data_keys`, `SELECT * FROM signin.people`,
			`DELETE FROM analytics.jobs`, `CREATE TABLE analytics.mine (n int)`, `SET default_transaction_read_only = off; DELETE FROM analytics.jobs`,
		} {
			if _, err := db.ExecContext(t.Context(), forbidden); err == nil {
				t.Errorf("an analyst may %s", forbidden)
			}
		}
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}
	p.fsck()
	s.stop()
}
