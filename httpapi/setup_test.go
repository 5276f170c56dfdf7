package httpapi

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/jmoiron/sqlx"

	"humanqa/domain"
	"humanqa/domain/account"
	"humanqa/domain/command"
	"humanqa/httpapi/openapi"
	"humanqa/httpapi/wire"
	"humanqa/internal/testing/apicheck"
	"humanqa/internal/testing/apitest"
	"humanqa/internal/testing/eventually"
	"humanqa/internal/testing/logtest"
	"humanqa/internal/testing/must"
	"humanqa/projections/events"
	"humanqa/webhooks"
)

func TestMain(m *testing.M) { os.Exit(apitest.Main(m)) }

// service is the API over real commands, real read models, a real vault and a
// log in memory.
type service struct {
	*API
	t        *testing.T
	parts    *apitest.Service // that the API stands on
	log      *logtest.Memory
	db       *sqlx.DB
	commands *command.Service
	logged   *apitest.Words
	problems []Problem
	deps     Deps // of the API
}

// own is a service of the test's own (see apitest).
func own(t *testing.T) *service {
	t.Helper()
	return over(t, apitest.Own(t)).serve()
}

// shared is the service that tests share which need an account and nothing else. Its API is
// one for all of them: a test that changes it takes a node.
func shared(t *testing.T) *service {
	t.Helper()
	s := over(t, apitest.Shared(t))
	sharedAPI.once.Do(func() { sharedAPI.api, sharedAPI.deps = s.serve().API, s.deps })
	s.API, s.deps = sharedAPI.api, sharedAPI.deps
	return s
}

var sharedAPI struct {
	once sync.Once
	api  *API
	deps Deps // of that API
}

// over is the service on these parts, not served yet.
func over(t *testing.T, parts *apitest.Service) *service {
	t.Helper()
	s := &service{t: t, parts: parts, log: parts.Log, db: parts.DB, commands: parts.Commands, logged: parts.Words}
	s.deps = Deps{
		Shared: parts.Deps(), WaitFor: parts.WaitFor, Shown: parts.Consumers.Shown, FeedShown: parts.CatchUp(events.Name), WebhooksShown: parts.CatchUp(webhooks.SubscriberName),
		Ready: func(context.Context) []Problem { return s.problems },
		Vault: parts.Vault, Spool: parts.Spool, RequestTime: eventually.Patience,
		RateLimit: 1_000_000, // counted all the same; see ratelimit_test.go for the limit itself
	}
	return s
}

func (s *service) serve() *service {
	s.API = New(s.deps)
	return s
}

// node is another process on the same parts: an API with a state and a log of words of its
// own, which the test may change. change may be nil.
func (s *service) node(change func(*Deps)) *service {
	s.t.Helper()
	parts := *s.parts
	parts.Words, parts.Spool = new(apitest.Words), wire.NewSpool("")
	reads := *s.deps.Reads
	parts.Reads = &reads
	node := over(s.t, &parts)
	node.deps.Origin, node.deps.RateLimit = s.deps.Origin, s.deps.RateLimit
	if change != nil {
		change(&node.deps)
	}
	return node.serve()
}

// beneath is the service for a subtest, which sees only what it makes itself.
func (s *service) beneath(t *testing.T) *service {
	t.Helper()
	sub := *s
	sub.t, sub.parts = t, s.parts.Beneath(t)
	return &sub
}

// stored is all that the log holds of the test's events, as text.
func (s *service) stored() string {
	s.t.Helper()
	return s.parts.Stored()
}

// events are those of the test, written their number, and count that of a type.
func (s *service) events() []domain.Recorded  { return s.parts.Events() }
func (s *service) written() int               { return s.parts.Written() }
func (s *service) count(eventType string) int { return s.parts.Count(eventType) }

func operator(id uuid.UUID) command.Cause { return command.Cause{CommandID: id, Actor: "operator"} }

func (s *service) visible(at domain.Position, err error) {
	s.t.Helper()
	s.parts.Shown(at, err)
}

// account opens an account with credits and a full key.
func (s *service) account(amount domain.Credits) (accountID, key string) {
	s.t.Helper()
	accountID = s.parts.Account(amount, false)
	return accountID, s.key(accountID, command.IssueKey{Scope: account.ScopeFull})
}

func (s *service) key(accountID string, in command.IssueKey) string {
	s.t.Helper()
	return s.parts.Key(accountID, in)
}

func (s *service) checker(accounts ...string) string {
	s.t.Helper()
	return s.parts.Checker(accounts...)
}

// result is an answer as a client sees it.
type result struct {
	*httptest.ResponseRecorder
	t *testing.T
}

// call sends a request straight to the handler. headers are pairs.
func (s *service) call(key, method, target, body string, headers ...string) result {
	s.t.Helper()
	return s.callWith(s.t.Context(), key, method, target, body, headers...)
}

func (s *service) callWith(ctx context.Context, key, method, target, body string, headers ...string) result {
	s.t.Helper()
	var reader io.Reader
	if body != "" {
		reader = strings.NewReader(body)
	}
	r := httptest.NewRequestWithContext(ctx, method, target, reader)
	if key != "" {
		r.Header.Set("Authorization", "Bearer "+key)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	s.parts.Claimable(r, body)
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	checkEnvelope(s.t, method+" "+target, w)
	checkDocumented(s.t, r, w)
	s.parts.Apart(r, body, w.Body.String())
	return result{w, s.t}
}

// checkEnvelope holds for every answer whatsoever.
func checkEnvelope(t *testing.T, what string, w *httptest.ResponseRecorder) {
	t.Helper()
	id := w.Header().Get("X-Request-Id")
	if !wire.ValidRequestID(id) {
		t.Errorf("%s: x-request-id is %q", what, id)
	}
	if w.Code == http.StatusInternalServerError {
		t.Errorf("%s: 500: %s", what, w.Body)
	}
	if w.Code < 400 || strings.HasPrefix(what, "HEAD ") { // which has no body
		return
	}
	var e struct{ Error, Code, RequestID string }
	if err := json.Unmarshal(w.Body.Bytes(), &e); err != nil || e.Error == "" || e.Code == "" || e.RequestID != id {
		t.Errorf("%s: %d without an envelope: %s", what, w.Code, w.Body)
	}
}

var documented = sync.OnceValues(func() (*apicheck.Checker, error) { return apicheck.New(openapi.Document()) })

// checkDocumented holds an answer against the API's document: every test is one
// of the document, too.
func checkDocumented(t *testing.T, r *http.Request, w *httptest.ResponseRecorder) {
	t.Helper()
	if r.Context().Err() != nil { // the client hung up, and nothing was sent
		return
	}
	checker, err := documented()
	must.NoError(t, err)
	if err := checker.Response(r.Method, r.URL.EscapedPath(), w.Code, w.Header(), w.Body.Bytes()); err != nil {
		t.Errorf("%s %s: %d is not in the document: %v", r.Method, r.URL, w.Code, err)
	}
}

// want checks the status and gives the body.
func (r result) want(status int) map[string]any {
	r.t.Helper()
	if r.Code != status {
		r.t.Fatalf("got %d, want %d: %s", r.Code, status, r.Body)
	}
	if r.Body.Len() == 0 {
		return nil
	}
	var body map[string]any
	if err := json.Unmarshal(r.Body.Bytes(), &body); err != nil {
		r.t.Fatalf("%v: %s", err, r.Body)
	}
	return body
}

// refused checks status and code.
func (r result) refused(status int, code domain.Code) map[string]any {
	r.t.Helper()
	body := r.want(status)
	if body["code"] != string(code) {
		r.t.Fatalf("got %v, want %s", body["code"], code)
	}
	return body
}

// paths are the offending paths of a 400.
func (r result) paths() []string {
	r.t.Helper()
	var out []string
	list, _ := r.refused(http.StatusBadRequest, domain.CodeInvalidRequest)["details"].([]any)
	for _, d := range list {
		detail, _ := d.(map[string]any)
		out = append(out, fmt.Sprint(detail["path"]))
	}
	return out
}

const aJob = `{"url":"https://example.com/shop","title":"Checkout","description":"Buy a thing","jobType":"Payment Flow"}`

// submitted submits aJob and gives its id.
func (s *service) submitted(key string) string {
	s.t.Helper()
	id, _ := s.call(key, "POST", "/v1/jobs", aJob).want(http.StatusCreated)["jobId"].(string)
	return id
}

func equal(t *testing.T, got, want any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%v\nwant\n%v", got, want)
	}
}

// routes is the table, to be walked.
var routes = routesOf(new(API))
