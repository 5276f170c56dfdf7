package httpapi

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"

	"humanqa/domain"
	"humanqa/domain/account"
	"humanqa/domain/command"
	v1 "humanqa/httpapi/v1"
	"humanqa/httpapi/wire"
	"humanqa/internal/tabular"
	"humanqa/internal/testing/must"
	"humanqa/internal/testing/process"
)

// An account takes away its own rows and no other's, in three formats that hold
// as many as /v1 counts.
func TestAnAccountTakesItsDataAway(t *testing.T) {
	t.Parallel()
	process.Build(t, "humanqa-parquet")
	s := shared(t)
	_, key := s.account(100)
	_, other := s.account(100)
	of := s.belongings(key, "a.example.com")
	theirs := s.belongings(other, "b.example.com")
	s.call(key, "POST", "/v1/jobs", strings.Replace(jobWith(`"credentials":{"username":"u","password":"pass-word"}`), `"Checkout"`, `"=1+1"`, 1)).want(http.StatusCreated)
	total, _ := s.call(key, "GET", "/v1/jobs", "").want(http.StatusOK)["total"].(float64)

	lines := strings.Split(strings.TrimSpace(s.export(key, "jobs").Body.String()), "\n")
	equal(t, len(lines), int(total))
	for _, line := range lines {
		var row map[string]any
		if err := json.Unmarshal([]byte(line), &row); err != nil || row["job_id"] == nil {
			t.Fatalf("%s: %v", line, err)
		}
	}
	cells, err := csv.NewReader(s.export(key, "jobs?format=csv").Body).ReadAll()
	if err != nil || len(cells) != 1+int(total) {
		t.Errorf("%d lines of CSV, %v", len(cells), err)
	}
	raw := s.export(key, "jobs?format=parquet").Body.Bytes()
	file, err := parquet.OpenFile(bytes.NewReader(raw), int64(len(raw)))
	if err != nil || file.NumRows() != int64(total) {
		t.Errorf("%v", err)
	}
	for _, table := range []string{"jobs", "items", "tests", "ledger", "projects"} {
		for _, format := range []string{"ndjson", "csv"} {
			text := s.export(key, table+"?format="+format).Body.String()
			for _, secret := range []string{"pass-word", theirs.job, theirs.project, "v1."} {
				if strings.Contains(text, secret) {
					t.Errorf("%s shows %s", table, secret)
				}
			}
			if table == "jobs" && format == "csv" && !strings.Contains(text, "'=1+1") {
				t.Error("a formula is not defused")
			}
			if table != "ledger" && !strings.Contains(text, of.project) {
				t.Errorf("%s does not show %s", table, of.project)
			}
		}
	}
	equal(t, s.export(key, "jobs?since=2999-01-01").Body.Len(), 0)
	equal(t, s.call(key, "GET", "/v1/exports/jobs?since=x&format=xls", "").paths(), []string{"format", "since"})
	s.call(key, "GET", "/v1/exports/keys", "").refused(http.StatusNotFound, domain.CodeNotFound)
	for path, marked := range map[string]bool{"format=csv": false, "format=csv&bom=1": true, "format=ndjson&bom=1": false} {
		equal(t, strings.HasPrefix(s.export(key, "jobs?"+path).Body.String(), "\ufeff"), marked)
	}
}

// An account's own events are rows with a position to count with and data to look
// into, and each has a proof; nobody else's has.
func TestAnAccountTakesItsEventsAndTheirProofs(t *testing.T) {
	t.Parallel()
	process.Build(t, "humanqa-parquet")
	s := shared(t)
	_, key := s.account(10)
	_, other := s.account(10)
	lines := strings.Split(strings.TrimSpace(s.export(key, "events").Body.String()), "\n")
	var row struct {
		Position, PreparePosition, Revision int64
		ID                                  string
		Data                                struct{ Sealed string }
	}
	must.NoError(t, json.Unmarshal([]byte(lines[0]), &row))
	if len(lines) != 2 || row.Position < 1 || row.Revision != 0 || row.Data.Sealed != "[sealed]" {
		t.Errorf("got %s", lines)
	}
	cells, err := csv.NewReader(s.export(key, "events?format=csv").Body).ReadAll()
	if err != nil || len(cells) != 3 || cells[1][10] != `{"sealed":"[sealed]"}` {
		t.Errorf("%q, %v", cells, err)
	}
	raw := s.export(key, "events?format=parquet").Body.Bytes()
	type column struct {
		Position *int64  `parquet:"position,optional"`
		Data     *string `parquet:"data,optional"`
	}
	read, err := parquet.Read[column](bytes.NewReader(raw), int64(len(raw)))
	if err != nil || len(read) != 2 || *read[0].Position != row.Position || *read[0].Data != `{"sealed":"[sealed]"}` {
		t.Errorf("%v, %v", read, err)
	}
	equal(t, s.export(key, "events?asOf=2001-01-01").Body.Len(), 0)
	equal(t, s.call(key, "GET", "/v1/exports/events?since=x&format=xls", "").paths(), []string{"format", "since"})

	proof := s.call(key, "GET", "/v1/audit/proof?event="+row.ID, "").want(http.StatusOK)
	equal(t, proof["checkpoint"], any("note"))
	r := s.call(other, "GET", "/v1/audit/proof?event="+row.ID, "")
	r.refused(http.StatusNotFound, domain.CodeNotFound)
	equal(t, r.Header().Get("Retry-After"), "60")
	for _, wrong := range []string{"", "?event=x", "?event="} {
		equal(t, s.call(key, "GET", "/v1/audit/proof"+wrong, "").paths(), []string{"event"})
	}
}

// Two periods that meet have every row once, and rows without a time are not asked for one.
func TestAnExportOfAPeriodMeetsTheNextOne(t *testing.T) {
	t.Parallel()
	s := shared(t)
	_, key := s.account(100)
	project := s.project(key, `{"name":"p"}`)
	for range 3 {
		s.complete(s.submittedWith(key, checklistOf(2)+`,"projectId":"`+project+`"`))
	}
	rows := func(what string) []string {
		t.Helper()
		return strings.FieldsFunc(s.export(key, what).Body.String(), func(r rune) bool { return r == '\n' })
	}
	for table, column := range map[string]string{"jobs": "created_at", "items": "created_at", "tests": "tested_at", "ledger": "at", "events": "time"} {
		all := rows(table)
		for _, row := range all {
			var fields map[string]any
			must.NoError(t, json.Unmarshal([]byte(row), &fields))
			at := fmt.Sprint(fields[column])
			before, behind := rows(table+"?until="+at), rows(table+"?since="+at)
			if !slices.Contains(behind, row) || len(before)+len(behind) != len(all) {
				t.Errorf("%s: of %d rows %d lie before %s, and %d behind", table, len(all), len(before), at, len(behind))
			}
			equal(t, len(rows(table+"?since="+at+"&until="+at)), 0)
		}
	}
	for _, table := range []string{"projects", "accounts"} {
		r := s.export(key, table+"?since=2999-01-01&until=2001-01-01")
		if warned := r.Header().Get("X-Warnings"); !strings.Contains(warned, "since") || !strings.Contains(warned, "until") || r.Body.Len() == 0 {
			t.Errorf("%s: %q, %s", table, warned, r.Body)
		}
	}
	equal(t, s.call(key, "GET", "/v1/exports/jobs?until=x", "").paths(), []string{"until"})
}

// An export of events says where it ends, and the next one goes on from there, though events
// came meanwhile.
func TestAnExportOfEventsGoesOnWhereTheLastOneEnded(t *testing.T) {
	t.Parallel()
	s := shared(t)
	accountID, key := s.account(10)
	all, after := s.export(key, "events").Body.String(), ""
	var parts strings.Builder
	for n := range 4 {
		r := s.export(key, "events?after="+after)
		after = r.Header().Get("X-Log-Position")
		parts.WriteString(r.Body.String())
		if n > 0 {
			equal(t, strings.Count(r.Body.String(), "\n"), 1)
		}
		equal(t, s.export(key, "events?asOf="+after).Body.String(), parts.String())
		s.key(accountID, command.IssueKey{Scope: account.ScopeRead})
	}
	if !strings.HasPrefix(parts.String(), all) {
		t.Errorf("got %s, which does not begin with %s", &parts, all)
	}
	equal(t, s.call(key, "GET", "/v1/exports/events?after=x", "").paths(), []string{"after"})
	s.call(key, "GET", "/v1/exports/events?after=999999999-999999999", "").refused(http.StatusConflict, domain.CodeCursorAhead)
}

// Rows behind the end of an earlier export are those that changed since: an account that
// takes them each night has the rows of today.
func TestAnExportOfRowsGoesOnWhereTheLastOneEnded(t *testing.T) {
	t.Parallel()
	s := shared(t)
	accountID, key := s.account(500)
	project := s.project(key, `{"name":"p"}`)
	submit := func() string { return s.submittedWith(key, checklistOf(2)+`,"projectId":"`+project+`"`) }
	tables := map[string]string{"jobs": "job_id", "items": "item_id", "tests": "job_id", "ledger": "entry"}
	kept, after := map[string]map[string]string{}, map[string]string{}
	night := func() (rows map[string]int) {
		t.Helper()
		rows = map[string]int{}
		for table, id := range tables {
			row := func(line string) (key string) {
				var fields map[string]any
				must.NoError(t, json.Unmarshal([]byte(line), &fields))
				return fmt.Sprint(fields["job_id"], fields[id])
			}
			r := s.export(key, table+"?after="+after[table])
			if after[table] = r.Header().Get("X-Log-Position"); kept[table] == nil {
				kept[table] = map[string]string{}
			}
			for line := range strings.Lines(r.Body.String()) {
				kept[table][row(line)] = line
				rows[table]++
			}
			now := map[string]string{}
			for line := range strings.Lines(s.export(key, table).Body.String()) {
				now[row(line)] = line
			}
			equal(t, kept[table], now)
		}
		return rows
	}
	first, second, third := submit(), submit(), submit()
	submit()
	equal(t, night(), map[string]int{"jobs": 4, "items": 8, "ledger": 5})
	s.complete(first)
	w := s.claims(s.checker(), second)
	w.check(0, passes)
	s.call(key, "POST", "/v1/jobs/"+third+"/cancel", "").want(http.StatusOK)
	equal(t, night(), map[string]int{"jobs": 3, "items": 6, "tests": 1, "ledger": 1})
	w.check(1, passes)
	equal(t, w.call("POST", "/release", "").Code, http.StatusOK)
	s.analysed(accountID, first)
	equal(t, night(), map[string]int{"jobs": 2, "items": 4, "tests": 1})
	equal(t, night(), map[string]int{"jobs": 1, "items": 2})
	for _, table := range []string{"projects", "accounts"} {
		equal(t, s.export(key, table+"?after="+after["jobs"]).Header().Get("X-Warnings") != "", true)
	}
}

// Reads of the past, exports and statements have places: two an account, and a few
// a node.
func TestAnAccountHasTwoPlaces(t *testing.T) {
	t.Parallel()
	s := shared(t).node(nil)
	accountID, key := s.account(10)
	_, other := s.account(10)
	for of, targets := range map[*wire.Quota][]string{
		s.clients.ExportQuota: {"/v1/exports/jobs", "/v1/credits/statement"},
		s.PastReads:           {"/v1/credits?asOf=2026-01-01", "/v1/jobs?asOf=2026-01-01", "/v1/exports/jobs?asOf=2026-01-01"},
	} {
		ask := func(key string, full bool) {
			t.Helper()
			for _, target := range targets {
				r := s.call(key, "GET", target, "")
				if !full {
					equal(t, r.Code, http.StatusOK)
					continue
				}
				r.refused(http.StatusTooManyRequests, domain.CodeRateLimited)
				equal(t, r.Header().Get("Retry-After"), "2")
			}
		}
		var leave []func()
		take := func(owner string) {
			give, err := of.Enter("x", owner)
			must.NoError(t, err)
			leave = append(leave, give)
		}
		take(accountID)
		ask(key, false)
		take(accountID)
		ask(key, true)
		ask(other, false)
		for i := range v1.QuotaOfNode - v1.QuotaOfAccount {
			take(fmt.Sprint("account ", i))
		}
		ask(other, true)
		for _, give := range leave {
			give()
			give() // once is enough
		}
		for range 2 * v1.QuotaOfAccount { // each is given back with its answer
			ask(key, false)
		}
	}
	equal(t, s.call(key, "GET", "/v1/credits", "").Code, http.StatusOK)
}

// A place is not held by who does not read: the connection is cut off.
func TestAReaderThatIsTooSlowIsCutOff(t *testing.T) {
	t.Parallel()
	s := shared(t).node(nil)
	s.clients.ReadGrace = 50 * time.Millisecond
	ended := make(chan int, 1)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, hr *http.Request) {
		r := &wire.Request{Request: hr, Caller: wire.Caller{AccountID: "acc"}, Log: s.Log}
		ans, err := s.clients.TableOf(r, tabular.NDJSON, "endless", []tabular.Column{{Name: "text"}}, func(_ context.Context, each func([]any) error) error {
			for {
				if err := each([]any{strings.Repeat("x", 1<<10)}); err != nil {
					return err
				}
			}
		})
		must.NoError(t, err)
		defer func() {
			ended <- len(s.clients.ExportQuota.Holders())
			panic(recover()) // as net/http wants it
		}()
		ans.SendStream(r, w)
	}))
	const little = 4 << 10 // what the kernel holds counts as read
	server.Config.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		must.NoError(t, c.(*net.TCPConn).SetWriteBuffer(little))
		return ctx
	}
	server.Start()
	defer server.Close()
	conn, err := net.Dial("tcp", server.Listener.Addr().String()) //nolint:noctx // a test's own
	must.NoError(t, err)
	defer func() { _ = conn.Close() }() // nothing was read of it
	must.NoError(t, conn.(*net.TCPConn).SetReadBuffer(little))
	_, err = conn.Write([]byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n")) // and reads nothing
	must.NoError(t, err)
	equal(t, <-ended, 0)
}

func (s *service) export(key, what string) result {
	s.t.Helper()
	r := s.call(key, "GET", "/v1/exports/"+what, "")
	if r.Code != http.StatusOK {
		s.t.Fatalf("%s: %d %s", what, r.Code, r.Body)
	}
	return r
}

func TestPassRates(t *testing.T) {
	t.Parallel()
	s := shared(t)
	_, key := s.sandbox()
	_, other := s.sandbox()
	project := s.project(key, `{"name":"p"}`)
	play := func(key, extra, results string) {
		id, _ := s.call(key, "POST", "/v1/jobs", jobWith(`"checklistItems":[{"description":"a"}]`+extra)).want(http.StatusCreated)["jobId"].(string)
		s.call(key, "POST", "/v1/sandbox/jobs/"+id+"/play", `{"results":[`+results+`]}`).want(http.StatusOK)
	}
	const failed = `{"item":"item-1","status":"fail","note":"no"}`
	play(key, `,"projectId":"`+project+`"`, "")
	play(key, `,"projectId":"`+project+`"`, failed)
	play(key, "", "")
	play(other, "", failed)
	s.submitted(key) // not completed

	all := s.call(key, "GET", "/v1/analytics/pass-rate", "").want(http.StatusOK)
	equal(t, all["groups"], any([]any{map[string]any{"completedCount": 3.0, "passCount": 2.0, "failCount": 1.0, "passRate": 2.0 / 3}}))
	by := s.call(key, "GET", "/v1/analytics/pass-rate?by=project,jobType", "").want(http.StatusOK)
	equal(t, by["groups"], any([]any{
		map[string]any{"projectId": "", "jobTypeCode": "payment_flow", "completedCount": 1.0, "passCount": 1.0, "failCount": 0.0, "passRate": 1.0},
		map[string]any{"projectId": project, "jobTypeCode": "payment_flow", "completedCount": 2.0, "passCount": 1.0, "failCount": 1.0, "passRate": 0.5},
	}))
	week, _ := s.call(key, "GET", "/v1/analytics/pass-rate?by=week", "").want(http.StatusOK)["groups"].([]any)
	if group, _ := week[0].(map[string]any); len(week) != 1 || !strings.HasSuffix(group["week"].(string), "T00:00:00.000Z") {
		t.Errorf("by week: %v", week)
	}
	equal(t, s.call(key, "GET", "/v1/analytics/pass-rate?by=week,week", "").paths(), []string{"by"})
	equal(t, s.call(key, "GET", "/v1/analytics/pass-rate?by=secret", "").paths(), []string{"by"})
}
