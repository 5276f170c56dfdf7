package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jmoiron/sqlx"
	_ "github.com/lib/pq"
	"github.com/sirupsen/logrus"

	"humanqa/domain"
	"humanqa/domain/account"
	"humanqa/domain/command"
	"humanqa/eventstore/consumer"
	"humanqa/httpapi/evidence"
	"humanqa/httpapi/openapi"
	v1 "humanqa/httpapi/v1"
	"humanqa/httpapi/wire"
	"humanqa/internal/blob"
	"humanqa/internal/testing/apicheck"
	"humanqa/internal/testing/commandtest"
	"humanqa/internal/testing/logtest"
	"humanqa/internal/testing/must"
	"humanqa/internal/testing/pagetest/alltest"
	"humanqa/internal/testing/pgtest"
	"humanqa/internal/vault"
	"humanqa/projections"
	"humanqa/projections/auditlog"
	"humanqa/projections/events"
	"humanqa/webhooks"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

// service is the API over real commands, real read models, a real vault and a
// log in memory.
type service struct {
	*API
	t        *testing.T
	log      *logtest.Memory
	db       *sqlx.DB
	commands *command.Service
	waitFor  func(context.Context, domain.Position) error
	logged   *buffer
	problems []Problem
	bucket   string // its directory
	deps     Deps   // of the API, for another node beside it
}

type buffer struct {
	mu sync.Mutex
	b  strings.Builder
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// tellWhatWentWrong shows a failed test's warnings and errors: an answer does not say why
// the service was not available.
func (s *service) tellWhatWentWrong() {
	if !s.t.Failed() {
		return
	}
	for line := range strings.Lines(s.logged.String()) {
		if strings.Contains(line, "level=warning") || strings.Contains(line, "level=error") {
			s.t.Log(line)
		}
	}
}

func setup(t *testing.T) *service {
	t.Helper()
	db := alltest.Database.New(t)
	s := &service{t: t, log: logtest.New(), db: db, logged: new(buffer)}
	logger := logrus.New()
	logger.SetOutput(s.logged)
	logger.SetLevel(logrus.DebugLevel)
	t.Cleanup(s.tellWhatWentWrong)
	v, err := vault.Open(t.Context(), vault.Config{KeyFile: filepath.Join(t.TempDir(), "key"), DB: db})
	must.NoError(t, err)
	s.bucket = t.TempDir()
	files, err := blob.Open(t.Context(), blob.Directory(s.bucket))
	must.NoError(t, err)
	reads := projections.NewReads(db)
	s.commands = command.New(command.Deps{
		Log: s.log, Sealer: v, Tokens: v, Statuses: commandtest.CodeHost{}, AI: commandtest.AI{}, Reads: projections.CommandReads{Reads: reads},
		Now: time.Now, ClaimsPerChecker: 1,
	})
	supervisor := consumer.New(db, s.log, logger, append(projections.All(), webhooks.NewSubscriber(db, s.log, "https://qa.example"))...)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	stopped := make(chan error, 1)
	go func() { stopped <- supervisor.Run(ctx) }()
	t.Cleanup(func() {
		s.commands.Drain()
		cancel()
		if err := <-stopped; err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("projections: %v", err)
		}
	})
	s.waitFor = func(ctx context.Context, at domain.Position) error { // however busy the machine is
		patient, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		defer cancel()
		return supervisor.WaitFor(patient, at)
	}
	spool := wire.NewSpool("")
	kept := evidence.New(evidence.Deps{
		DB: db, Files: files, Commands: s.commands, Vault: v, Spool: spool, BaseURL: "https://qa.example", Log: logger, Now: time.Now,
	})
	s.deps = Deps{
		Shared: v1.Shared{
			Commands: s.commands, Reads: reads, DB: db, Evidence: kept, PastLog: s.log, OwnLog: ownLog{s.log},
			Head: func(context.Context) (domain.Position, error) { return s.log.Head(), nil },
			Checkpoint: func(context.Context) (note, verifier string, err error) {
				return "humanqa/1\n3\ncm9vdA==\n\n— humanqa/1 c2lnbmVk\n", "humanqa/1+0a1b2c3d+a2V5", nil
			},
			Log: logger, Now: time.Now, BaseURL: "https://qa.example",
		},
		WaitFor: s.waitFor, FeedShown: func(ctx context.Context) error { return supervisor.CatchUp(ctx, "events") },
		WebhooksShown: func(ctx context.Context) error { return supervisor.CatchUp(ctx, webhooks.SubscriberName) },
		Ready:         func(context.Context) []Problem { return s.problems },
		Vault:         v, Spool: spool,
		RateLimit: 1_000_000, // counted all the same; see ratelimit_test.go for the limit itself
	}
	s.API = New(s.deps)
	return s
}

// ownLog knows of the accounts' own streams, in memory.
type ownLog struct{ log *logtest.Memory }

func (o ownLog) Events(_ context.Context, accountID string, since *time.Time, until *events.Until, each func([]any) error) error {
	for _, e := range o.log.Stream(domain.AccountStream(accountID)) {
		if since != nil && e.Meta.Time.Before(*since) || until != nil && until.Passed(e) {
			continue
		}
		row := []any{int64(e.Position.Commit), int64(e.Position.Prepare), e.Stream, int64(e.Revision), e.ID.String(), e.Type, e.Meta.Time, "operator", "", "", json.RawMessage(`{"sealed":"[sealed]"}`)} //nolint:gosec // few events
		if err := each(row); err != nil {
			return err
		}
	}
	return nil
}

func (o ownLog) Proof(_ context.Context, accountID string, id uuid.UUID) (auditlog.Proof, error) {
	for _, e := range o.log.Stream(domain.AccountStream(accountID)) {
		if e.ID == id {
			return auditlog.Proof{Event: auditlog.BoundEvent{ID: id, Stream: e.Stream}, Path: []string{}, Checkpoint: "note"}, nil
		}
	}
	return auditlog.Proof{}, domain.NotFound("event " + id.String())
}

// stored is all that the log holds of events, as text.
func (s *service) stored() string {
	s.t.Helper()
	var b strings.Builder
	for _, e := range s.log.All() {
		data, err := json.Marshal(e.Event)
		must.NoError(s.t, err)
		b.Write(data)
	}
	return b.String()
}

func operator(id uuid.UUID) command.Cause { return command.Cause{CommandID: id, Actor: "operator"} }

func (s *service) visible(at domain.Position, err error) {
	s.t.Helper()
	must.NoError(s.t, err)
	must.NoError(s.t, s.waitFor(s.t.Context(), at))
}

// account opens an account with credits and a full key.
func (s *service) account(amount domain.Credits) (accountID, key string) {
	s.t.Helper()
	accountID, at, err := s.commands.CreateAccount(s.t.Context(), operator(uuid.New()), "acme", false)
	s.visible(at, err)
	if amount > 0 {
		_, at, err = s.commands.GrantCredits(s.t.Context(), operator(uuid.New()), accountID, amount, nil, "test")
		s.visible(at, err)
	}
	return accountID, s.key(accountID, command.IssueKey{Scope: account.ScopeFull})
}

func (s *service) key(accountID string, in command.IssueKey) string {
	s.t.Helper()
	k, err := s.commands.IssueKey(s.t.Context(), operator(uuid.New()), accountID, in)
	s.visible(k.Position, err)
	return k.Token
}

func (s *service) checker(accounts ...string) string {
	s.t.Helper()
	c, err := s.commands.CreateChecker(s.t.Context(), operator(uuid.New()), "ann", accounts)
	s.visible(c.Position, err)
	return c.Token
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
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	checkEnvelope(s.t, method+" "+target, w)
	checkDocumented(s.t, r, w)
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
	if w.Code < 400 {
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
