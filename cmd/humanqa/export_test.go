package main

import (
	"crypto/sha256"
	"database/sql"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"

	"humanqa/cmd/humanqa/service"
	"humanqa/internal/pgpool"
	"humanqa/internal/testing/must"
	"humanqa/internal/testing/process"
)

// What is taken away is as much as there is, without what is sealed, and an
// analyst reads it and can do nothing else.
func TestTheDataIsTakenAwayAndReadByAnAnalyst(t *testing.T) {
	t.Parallel()
	process.Build(t, "humanqa-parquet")
	p := newEmbedded(t)
	listen := process.Address(t)
	listens, serve := p.asWritten(`HUMANQA_EVENTSTORE_LISTEN=127.0.0.1:2113 bin/humanqa serve`, "127.0.0.1:2113", listen)
	p.environ = append(p.environ, listens...)
	p.plant()
	admin := p.chooseLogPassword("changeit", listen)
	s := p.start(serve[1:]...)
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
		must.NoError(t, err)
		if strings.Contains(string(text), "hunter2") || strings.Contains(string(text), key) || strings.Contains(string(text), "v1.") {
			t.Errorf("%v shows a secret", args)
		}
		if c.account && strings.Contains(string(text), other) {
			t.Errorf("%v tells of another account", args)
		}
		if c.format == "csv" && c.table == "jobs" && (!strings.Contains(string(text), jobID) || !strings.Contains(string(text), "'=1+1")) {
			t.Errorf("%s", text)
		}
		if c.format == "ndjson" && c.table == "events" && !regexp.MustCompile(`^\{"position":[0-9]+,"prepare_position":[0-9]+,.*,"data":\{.*\}\}\n`).Match(text) {
			t.Errorf("positions are no numbers, or data no objects:\n%s", text)
		}
		if c.format == "parquet" {
			if read, err := parquet.ReadFile[struct{}](file); err != nil || int64(len(read)) != c.rows {
				t.Errorf("%v: %d rows are read, %v", args, len(read), err)
			}
		}
	}
	for period, rows := range map[string]int64{"--since=2001-01-01": 2, "--until=2001-01-01": 0, "--since=2999-01-01T00:00:00Z": 0} {
		for _, table := range []string{"jobs", "events"} {
			var out struct{ Rows int64 }
			p.cli(&out, "export", table, period, "--out", filepath.Join(dir, table+period))
			if out.Rows != rows && (table == "jobs" || rows == 0) {
				t.Errorf("%s %s: %d rows", table, period, out.Rows)
			}
		}
	}
	if _, stderr, err := p.tryCLI("export", "jobs", "--until", "noon"); exitCode(err) != exitUsage || !strings.Contains(stderr, `"noon" is no time`) {
		t.Errorf("a time that is none: %v %s", err, stderr)
	}
	if _, stderr, err := p.tryCLI("export", "jobs", "--out", filepath.Join(dir, "jobs.csv")); exitCode(err) != exitFailed || !strings.Contains(stderr, "file exists") {
		t.Errorf("a file is written over: %v %s", err, stderr)
	}

	var made struct{ Role, URL string }
	_, create := p.asWritten(`bin/humanqa analyst create --name ann`)
	p.cli(&made, create...)
	first := made.URL
	p.cli(&made, create...)
	for url, works := range map[string]bool{first: false, made.URL: true} {
		db, err := sql.Open("postgres", url)
		must.NoError(t, err)
		var n int
		if err := db.QueryRowContext(t.Context(), `SELECT count(*) FROM jobs`).Scan(&n); (err == nil) != works || works && n != 2 {
			t.Errorf("%d jobs, %v, want it to work: %t", n, err, works)
		}
		if works {
			askAll(t, db)
			p.endsLongQueries(db)
			var idle string
			if err := db.QueryRowContext(t.Context(), `SHOW idle_in_transaction_session_timeout`).Scan(&idle); err != nil || idle != "1min" {
				t.Errorf("an idle transaction lasts %q, %v", idle, err)
			}
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
	p.readByOthers(admin, listen)
	p.fsck()
	s.stop()
}

// endsLongQueries has an analyst lift the limits of the role, and the service end the session.
func (p *program) endsLongQueries(analyst *sql.DB) {
	p.t.Helper()
	conn, err := analyst.Conn(p.t.Context())
	must.NoError(p.t, err)
	defer func() { _ = conn.Close() }() // it was ended
	_, err = conn.ExecContext(p.t.Context(), `SET statement_timeout = 0; SET idle_in_transaction_session_timeout = 0; BEGIN; SELECT 1`)
	must.NoError(p.t, err)
	db, err := pgpool.Open(p.t.Context(), p.dsn())
	must.NoError(p.t, err)
	defer func() { _ = db.Close() }()
	var groups int // members of such a group may come from other machines
	must.NoError(p.t, db.GetContext(p.t.Context(), &groups, `SELECT count(*) FROM pg_auth_members WHERE member = current_user::regrole`))
	if groups > 0 {
		p.t.Errorf("the service's role is a member of %d others", groups)
	}
	must.NoError(p.t, service.EndAnalysts(p.t.Context(), db, time.Hour))
	_, err = conn.ExecContext(p.t.Context(), `SELECT 1`)
	must.NoError(p.t, err) // that is not long
	must.NoError(p.t, service.EndAnalysts(p.t.Context(), db, 0))
	if _, err := conn.ExecContext(p.t.Context(), `SELECT pg_sleep(3600)`); err == nil {
		p.t.Error("an analyst's query goes on beyond its limit")
	}
}

// askAll asks the questions of docs/analytics.md as who is connected.
func askAll(t *testing.T, db *sql.DB) {
	t.Helper()
	text, err := os.ReadFile("../../docs/analytics.md")
	must.NoError(t, err)
	for _, q := range regexp.MustCompile("(?s)```sql\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
		if _, err := db.ExecContext(t.Context(), q[1]); err != nil {
			t.Errorf("an analyst asks:\n%s\n%v", q[1], err)
		}
	}
}

// chooseLogPassword chooses the password of the log's TLS address before the first start, which
// would make one and print it. It gives the address for the admin.
func (p *program) chooseLogPassword(password, listen string) (admin string) {
	p.t.Helper()
	dir := filepath.Join(p.dir, "eventstore")
	must.NoError(p.t, os.MkdirAll(dir, 0o700))
	must.NoError(p.t, os.WriteFile(filepath.Join(dir, "node.password.sha256"), fmt.Appendf(nil, "%x\n", sha256.Sum256([]byte(password))), 0o600))
	return "esdb://admin:" + password + "@" + listen + "?tlsCaFile=" + filepath.Join(dir, "ca.crt")
}

// readByOthers opens the log at its TLS address as docs/event-zero.md and
// docs/eventstore.md say: to its admin, who may everything, and to a reader.
func (p *program) readByOthers(admin, listen string) {
	p.t.Helper()
	var checked struct {
		Findings []struct {
			What string
			OK   bool
		}
	}
	_, check := p.asWritten(`bin/humanqa eventstore check "esdb://admin:changeit@log.example.com:2113?tlsCaFile=/etc/ssl/log-ca.crt"`,
		"esdb://admin:changeit@log.example.com:2113?tlsCaFile=/etc/ssl/log-ca.crt", admin)
	p.cli(&checked, check...)
	_, grant := p.asWritten(`bin/humanqa eventstore grant humanqa "esdb://admin:changeit@log.example.com:2113?tlsCaFile=/etc/ssl/log-ca.crt"`,
		"esdb://admin:changeit@log.example.com:2113?tlsCaFile=/etc/ssl/log-ca.crt", admin)
	for _, want := range []bool{true, false} { // the second one finds it done
		var granted struct{ Granted bool }
		if p.cli(&granted, grant...); granted.Granted != want {
			p.t.Errorf("granted %t, want %t", granted.Granted, want)
		}
	}
	var reader struct{ URL string }
	environ, args := p.asWritten(`HUMANQA_EVENTSTORE_LISTEN=127.0.0.1:2113 bin/humanqa eventstore reader`, "127.0.0.1:2113", listen)
	p.written(&reader, environ, args)
	reads := func() string {
		stdout, _, err := p.tryCLI("--json", "eventstore", "check", reader.URL)
		checked.Findings = nil
		if json.Unmarshal([]byte(stdout), &checked) != nil || err == nil {
			p.t.Errorf("the reader's check: %v, %s", err, stdout)
		}
		var may []string
		for _, f := range checked.Findings {
			if f.OK {
				may = append(may, f.What)
			}
		}
		return strings.Join(may, ", ")
	}
	if may := reads(); !strings.Contains(may, "read $all") || strings.Contains(may, "append") {
		p.t.Errorf("a reader may %s", may)
	}
	_, end := p.asWritten(`bin/humanqa eventstore reader --end`)
	p.cli(nil, end...)
	if may := reads(); strings.Contains(may, "read $all") {
		p.t.Errorf("whose password has ended may %s", may)
	}
}
