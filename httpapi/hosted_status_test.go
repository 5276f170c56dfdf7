package httpapi

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"humanqa/domain"
	"humanqa/domain/account"
	"humanqa/domain/command"
	"humanqa/httpapi/wire"
	"humanqa/internal/testing/must"
	"humanqa/internal/testing/pgtest"
	"humanqa/projections/jobs"
)

// Decisions, "Hosted status".
func TestTheHostedStatusThroughTheLifeOfAJob(t *testing.T) {
	t.Parallel()
	s := shared(t)
	_, key := s.account(100)
	id := s.submittedWith(key, checklistOf(10))
	path := "/v1/hosted/status/" + id
	list := func(checked, passed, failed, skipped float64) map[string]any {
		return map[string]any{
			"totalItems": 10.0, "checkedItems": checked, "passedItems": passed, "failedItems": failed, "skippedItems": skipped,
		}
	}
	status := func(status, message string, percent float64, checklist map[string]any) map[string]any {
		return map[string]any{
			"jobId": id, "status": status, "statusMessage": message, "progressPercent": percent,
			"url": "https://example.com/shop", "jobType": "Payment Flow", "jobTypeCode": "payment_flow",
			"projectId": nil, "isFinal": false, "aiReportStatus": nil, "checklist": checklist,
		}
	}

	equal(t, s.call(key, "GET", path, "").want(http.StatusOK), status("pending", "Waiting for a checker.", 0, list(0, 0, 0, 0)))

	w := s.claims(s.checker(), id).checks(passes, passes, passes, fails, skips)
	equal(t, s.call(key, "GET", path, "").want(http.StatusOK),
		status("in_progress", "A checker is testing: 5 of 10 items checked.", 50, list(5, 3, 1, 1)))

	for n := 5; n < 10; n++ {
		w.check(n, passes)
	}
	equal(t, s.call(key, "GET", path, "").want(http.StatusOK),
		status("in_progress", "A checker is testing: 10 of 10 items checked.", 99, list(10, 8, 1, 1)))

	w.completes("Almost.")
	body := s.call(key, "GET", path, "").want(http.StatusOK)
	result, _ := body["result"].(map[string]any)
	items, _ := result["items"].([]any)
	want := status("completed", "The test is completed: 8 passed, 1 failed, 1 skipped.", 100, list(10, 8, 1, 1))
	want["isFinal"], want["aiReportStatus"], want["result"] = true, "generating", map[string]any{
		"overallStatus": "fail", "passCount": 8.0, "failCount": 1.0, "skipCount": 1.0, "summary": "Almost.", "items": items,
	}
	equal(t, body, want)
	equal(t, len(items), 10)
	equal(t, items[3], any(map[string]any{"id": w.items[3], "description": "Step 4", "status": "fail", "note": "broken"}))
}

func TestAJobThatEndedWithoutAReportKeepsItsState(t *testing.T) {
	t.Parallel()
	s := shared(t)
	accountID, key := s.account(100)
	cancelled, failed := s.submitted(key), s.submitted(key)
	s.call(key, "POST", "/v1/jobs/"+cancelled+"/cancel", "").want(http.StatusOK)
	s.failed(accountID, failed)
	for id, status := range map[string]string{cancelled: "cancelled", failed: "failed"} {
		body := s.call(key, "GET", "/v1/hosted/status/"+id, "").want(http.StatusOK)
		equal(t, body["result"], nil)
		with(t, body, map[string]any{"status": status, "isFinal": true, "progressPercent": 0.0, "aiReportStatus": nil})
	}
}

func TestAHostedStatusIsRevalidatedByItsTag(t *testing.T) {
	t.Parallel()
	s := shared(t)
	_, key := s.account(100)
	id := s.submittedWith(key, checklistOf(2))
	path := "/v1/hosted/status/" + id
	first := s.call(key, "GET", path, "")
	first.want(http.StatusOK)
	tag := first.Header().Get("ETag")
	for _, known := range []string{tag, "W/" + tag, `"x", ` + tag, "*"} {
		r := s.call(key, "GET", path, "", "If-None-Match", known)
		equal(t, r.Code, http.StatusNotModified)
		equal(t, r.Body.Len(), 0)
		equal(t, r.Header().Get("ETag"), tag)
		equal(t, r.Header().Get("Content-Type"), "")
	}
	for _, other := range []string{`"x"`, strings.Trim(tag, `"`), ""} {
		equal(t, s.call(key, "GET", path, "", "If-None-Match", other).Code, http.StatusOK)
	}
	s.claims(s.checker(), id)
	changed := s.call(key, "GET", path, "", "If-None-Match", tag)
	equal(t, changed.want(http.StatusOK)["status"], "in_progress")
	if changed.Header().Get("ETag") == tag {
		t.Error("another status has the same tag")
	}
}

func TestAStatusThatWaitsEndsWithItsKey(t *testing.T) {
	t.Parallel()
	s := shared(t).node(nil)
	accountID, key := s.account(100)
	id := s.submitted(key)
	k, err := s.commands.IssueKey(t.Context(), operator(uuid.New()), accountID, command.IssueKey{Scope: account.ScopeRead})
	s.visible(k.Position, err)
	tag := s.call(k.Token, "GET", "/v1/hosted/status/"+id, "").Header().Get("ETag")
	var r result
	answered := s.held(func() { r = s.call(k.Token, "GET", "/v1/hosted/status/"+id+"?wait=25", "", "If-None-Match", tag) })
	at, err := s.commands.RevokeKey(t.Context(), operator(uuid.New()), accountID, k.KeyID)
	s.visible(at, err)
	<-answered
	r.refused(http.StatusUnauthorized, domain.CodeUnauthorized)
}

// looks is a way to Postgres that tells of every query.
type looks struct {
	driver.Connector
	each chan struct{}
}

func (l looks) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := l.Connector.Connect(ctx)
	return lookingConn{conn, l.each}, err
}

type lookingConn struct {
	driver.Conn
	each chan struct{}
}

func (c lookingConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	select {
	case c.each <- struct{}{}:
	default:
	}
	return c.Conn.(driver.QueryerContext).QueryContext(ctx, query, args)
}

// held runs a request and returns once it is being held: it has looked at the
// job a second time.
func (s *service) held(run func()) (answered <-chan struct{}) {
	s.t.Helper()
	connector, err := pq.NewConnector(pgtest.DSN(s.t, s.db))
	must.NoError(s.t, err)
	each, done := make(chan struct{}), make(chan struct{})
	db := sqlx.NewDb(sql.OpenDB(looks{connector, each}), "postgres")
	s.t.Cleanup(func() { _ = db.Close() })
	s.deps.Reads.Jobs = jobs.NewReads(db)
	go func() {
		defer close(done)
		run()
	}()
	<-each
	<-each
	return done
}

func TestAHeldStatusIsAnsweredWhenSomethingChanges(t *testing.T) {
	t.Parallel()
	s := shared(t).node(nil)
	_, key := s.account(100)
	id := s.submittedWith(key, checklistOf(2))
	var r result
	answered := s.held(func() { r = s.call(key, "GET", "/v1/hosted/status/"+id+"?wait=25", "") })
	w := s.claims(s.checker(), id)
	<-answered
	equal(t, r.want(http.StatusOK)["status"], "in_progress")

	tag := r.Header().Get("ETag")
	answered = s.held(func() { r = s.call(key, "GET", "/v1/hosted/status/"+id+"?wait=25", "", "If-None-Match", tag) })
	w.check(0, passes)
	<-answered
	equal(t, r.want(http.StatusOK)["progressPercent"], any(50.0))
}

// One that missed a change between two requests hears of it at once.
func TestAStatusThatTheClientDoesNotHaveIsNotHeld(t *testing.T) {
	t.Parallel()
	s := shared(t)
	accountID, key := s.account(100)
	id := s.submitted(key)
	before := s.call(key, "GET", "/v1/hosted/status/"+id, "").Header().Get("ETag")
	s.claims(s.checker(), id)
	started := time.Now()
	equal(t, s.call(key, "GET", "/v1/hosted/status/"+id+"?wait=25", "", "If-None-Match", before).Code, http.StatusOK)

	// Nor is one that cannot change any more.
	failed := s.submitted(key)
	s.failed(accountID, failed)
	last := s.call(key, "GET", "/v1/hosted/status/"+failed+"?wait=25", "")
	equal(t, last.want(http.StatusOK)["status"], "failed")
	equal(t, s.call(key, "GET", "/v1/hosted/status/"+failed+"?wait=25", "", "If-None-Match", last.Header().Get("ETag")).Code, http.StatusNotModified)
	if took := time.Since(started); took > 20*time.Second {
		t.Errorf("it took %s", took)
	}
}

func TestAHeldStatusIsAnsweredAsItIsWhenTheSecondsAreOver(t *testing.T) {
	t.Parallel()
	s := shared(t)
	_, key := s.account(100)
	id := s.submitted(key)
	first := s.call(key, "GET", "/v1/hosted/status/"+id+"?wait=1", "")
	equal(t, first.want(http.StatusOK)["status"], "pending")
	same := s.call(key, "GET", "/v1/hosted/status/"+id+"?wait=1", "", "If-None-Match", first.Header().Get("ETag"))
	equal(t, same.Code, http.StatusNotModified)
	for _, wait := range []string{"26", "-1", "x", "1.5"} {
		equal(t, s.call(key, "GET", "/v1/hosted/status/"+id+"?wait="+wait, "").paths(), []string{"wait"})
	}
}

func TestAHeldStatusEndsWithItsClient(t *testing.T) {
	t.Parallel()
	s := shared(t).node(nil)
	_, key := s.account(100)
	ctx, hangUp := context.WithCancel(t.Context())
	r := httptest.NewRequestWithContext(ctx, "GET", "/v1/hosted/status/"+s.submitted(key)+"?wait=25", nil)
	r.Header.Set("Authorization", "Bearer "+key)
	answered := s.held(func() { s.ServeHTTP(httptest.NewRecorder(), r) })
	hangUp()
	<-answered
	if logged := s.logged.String(); !strings.Contains(logged, fmt.Sprintf("status=%d", wire.StatusClientGone)) {
		t.Errorf("the log says %s", logged)
	}
}

func TestAHeldStatusIsAnsweredWhenTheServiceStops(t *testing.T) {
	t.Parallel()
	s := shared(t).node(nil)
	_, key := s.account(100)
	id := s.submitted(key)
	var lc net.ListenConfig
	ln, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	must.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	stopped := make(chan error, 1)
	go func() { stopped <- Serve(ctx, NewServer(s.API, quiet()), ln, time.Minute) }()

	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+ln.Addr().String()+"/v1/hosted/status/"+id+"?wait=25", nil)
	must.NoError(t, err)
	r.Header.Set("Authorization", "Bearer "+key)
	code := 0
	answered := s.held(func() {
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Error(err)
			return
		}
		code = res.StatusCode
		_ = res.Body.Close()
	})
	started := time.Now()
	stop()
	<-answered
	equal(t, code, http.StatusOK)
	if err := <-stopped; err != nil {
		t.Error(err)
	}
	if took := time.Since(started); took > 20*time.Second {
		t.Errorf("the stop took %s", took)
	}
}

func TestAHostedStatusIsForItsAccountAndProject(t *testing.T) {
	t.Parallel()
	s := shared(t)
	accountID, key := s.account(100)
	_, other := s.account(100)
	project, _ := s.call(key, "POST", "/v1/projects", `{"name":"Shop"}`).want(http.StatusCreated)["projectId"].(string)
	bound := s.key(accountID, command.IssueKey{Scope: account.ScopeRead, ProjectID: project})
	id := s.submitted(key)
	within := s.submittedWith(key, `"projectId":"`+project+`"`)
	s.call(other, "GET", "/v1/hosted/status/"+id, "").refused(http.StatusNotFound, domain.CodeNotFound)
	s.call(key, "GET", "/v1/hosted/status/"+uuid.NewString(), "").refused(http.StatusNotFound, domain.CodeNotFound)
	s.call(key, "GET", "/v1/hosted/status/a%20b", "").refused(http.StatusNotFound, domain.CodeNotFound)
	s.call(bound, "GET", "/v1/hosted/status/"+id, "").refused(http.StatusForbidden, domain.CodeForbidden)
	equal(t, s.call(bound, "GET", "/v1/hosted/status/"+within, "").want(http.StatusOK)["projectId"], any(project))
}
