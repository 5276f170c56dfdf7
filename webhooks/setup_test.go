package webhooks_test

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jmoiron/sqlx"
	"github.com/sirupsen/logrus"

	"humanqa/domain"
	"humanqa/domain/job"
	"humanqa/domain/project"
	"humanqa/eventstore/consumer"
	"humanqa/eventstore/logtest"
	"humanqa/internal/eventually"
	"humanqa/internal/guard"
	"humanqa/internal/must"
	"humanqa/internal/pgtest"
	"humanqa/webhooks"
)

// patience ends a wait that goes nowhere.
const patience = 15 * time.Second

// at is when everything in these tests happens.
var at = time.Date(2026, 3, 4, 5, 6, 7, 89_000_000, time.UTC)

// memoryLog is a log whose events are the account's.
type memoryLog struct{ *logtest.Memory }

func (l memoryLog) record(stream string, events ...domain.Event) {
	l.RecordAs(domain.Metadata{Time: at, AccountID: "acc"}, stream, events...)
}

// plainVault "seals" by writing down whom the secret belongs to, and opens
// nothing for anybody else.
type plainVault struct{}

func sealed(projectID, secret string) string {
	return "acc|" + domain.ProjectStream(projectID) + "|" + secret
}

func (plainVault) Unseal(_ context.Context, accountID, stream, sealed string) ([]byte, error) {
	secret, ok := strings.CutPrefix(sealed, accountID+"|"+stream+"|")
	if !ok {
		return nil, fmt.Errorf("%q is not sealed for %s of %s", sealed, stream, accountID)
	}
	return []byte(secret), nil
}

// bundle is one test's service.
type bundle struct {
	*testing.T
	db   *sqlx.DB
	log  memoryLog
	cfg  webhooks.Config
	told chan string // "project delivery reason" of each disable
}

// setup gives a database, a log and a configuration with short times. Nothing
// runs yet.
func setup(t *testing.T) *bundle {
	t.Helper()
	t.Parallel()
	dsn := pgtest.NewDSN(t)
	quiet := logrus.New()
	quiet.SetOutput(io.Discard)
	return &bundle{
		T: t, db: pgtest.NewDB(t, dsn), log: memoryLog{logtest.New()}, told: make(chan string, 100),
		cfg: webhooks.Config{
			DSN: dsn, Log: quiet,
			Allow:   guard.Allow{netip.MustParsePrefix("127.0.0.0/8")},
			Retries: []time.Duration{10 * time.Millisecond, 20 * time.Millisecond, 30 * time.Millisecond},
			Timeout: 2 * time.Second, Lease: 4 * time.Second, Drain: time.Second, Poll: time.Second,
		},
	}
}

// run starts a loop and gives what stops it, which also happens at the test's
// end.
func (b *bundle) run(loop func(context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- loop(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			b.Errorf("the loop ended with %v", err)
		}
	})
	b.Cleanup(stop)
	return stop
}

func (b *bundle) subscribe() (stop func()) {
	return b.run(subscriber(b.db, b.log).Run)
}

// subscriber is run as the service runs it, with shorter times.
func subscriber(db *sqlx.DB, log memoryLog) *consumer.Supervisor {
	quiet := logrus.New()
	quiet.SetOutput(io.Discard)
	s := consumer.New(db, log, quiet, webhooks.NewSubscriber(db, log, "https://qa.example"))
	s.SetLimits(consumer.Limits{
		Live: 500, Rebuild: 500, Lease: 2 * time.Second, StandBy: 10 * time.Millisecond, Store: 5 * time.Millisecond,
		Backoff: time.Millisecond, MaxBackoff: 10 * time.Millisecond, Retired: time.Hour, Report: time.Hour,
		Aside: 10, Again: time.Hour,
	})
	return s
}

// subscriberStatus is where the subscriber stands; zero before its first start.
func subscriberStatus(t testing.TB, db *sqlx.DB) consumer.Status {
	t.Helper()
	all, err := consumer.List(context.Background(), db)
	must.NoError(t, err)
	at := slices.IndexFunc(all, func(s consumer.Status) bool { return s.Name == webhooks.SubscriberName })
	if at < 0 {
		return consumer.Status{}
	}
	return all[at]
}

func (b *bundle) dispatch() (stop func()) { return b.dispatchOn(b.db) }

func (b *bundle) dispatchOn(db *sqlx.DB) (stop func()) {
	return b.run(webhooks.NewDispatcher(db, plainVault{}, b.report(), b.cfg).Run)
}

func (b *bundle) tell(_ context.Context, projectID, deliveryID, reason string) error {
	b.told <- projectID + " " + deliveryID + " " + reason
	return nil
}

func (b *bundle) report() webhooks.Report {
	return webhooks.Report{Disabled: b.tell, Confirmed: b.confirm}
}

// confirm ends a rotation, as the log is told to.
func (b *bundle) confirm(_ context.Context, projectID, _ string) error {
	b.on(projectID, &project.RotationFinished{At: at, By: project.ByReceiver})
	return nil
}

// project records a project with a webhook and the secret "secret of <id>".
func (b *bundle) project(id, url string, events *[]string) {
	b.Helper()
	b.log.record(domain.ProjectStream(id), withWebhook(id, url, events)...)
}

func withWebhook(id, url string, events *[]string) []domain.Event {
	return []domain.Event{
		&project.Created{AccountID: "acc", Name: id, At: at},
		&project.SecretSet{SecretID: "s1", Sealed: sealed(id, "secret of "+id), At: at},
		&project.WebhookSet{URL: url, Events: events, At: at},
	}
}

func (b *bundle) on(projectID string, events ...domain.Event) {
	b.log.record(domain.ProjectStream(projectID), events...)
}

// submit records job.created.
func (b *bundle) submit(projectID, jobID string) {
	b.log.record(domain.JobStream(jobID), created(projectID))
}

func created(projectID string) *job.Created {
	return &job.Created{
		Submission: job.Submission{
			AccountID: "acc", ProjectID: projectID, URL: "https://app.example/?a=1&b=<2>", Title: "Checkout",
			Description: "buy something", Type: job.PaymentFlow, TypeEcho: "Payment Flow", SLAMinutes: 30, Price: 5,
			Source: "api",
		}, Items: []job.Item{{ID: "i1"}, {ID: "i2"}}, CreatedAt: at,
		Credentials: "sealed-credentials", AccessInstructions: "sealed-instructions",
	}
}

func claimed() *job.Claimed {
	return &job.Claimed{CheckerID: "ann-the-checker", Token: 1, DueAt: at.Add(time.Hour), At: at.Add(time.Minute)}
}

func completed() *job.Completed {
	item := func(severity job.Severity, status job.ItemStatus, note string) job.ReportItem {
		return job.ReportItem{Item: job.Item{Description: "a " + string(severity) + " one", Severity: severity}, Status: status, Note: note}
	}
	return &job.Completed{
		ReportID: "rep", OverallStatus: "fail", PassCount: 1, FailCount: 3, SkipCount: 1, Summary: "Mostly broken.",
		Items: []job.ReportItem{
			item(job.Critical, job.ItemFail, "crashes"), item(job.Major, job.ItemFail, ""), item(job.Minor, job.ItemFail, ""),
			item(job.Critical, job.ItemPass, ""), item(job.Major, job.ItemSkip, ""),
		},
		At: at.Add(time.Hour),
	}
}

// request is what an endpoint got.
type request struct {
	path   string
	header http.Header
	body   string
	at     time.Time
}

func (r request) event() string    { return r.header.Get("X-Service-Event") }
func (r request) delivery() string { return r.header.Get("X-Service-Delivery") }

// endpoint is an HTTPS server that notes every request before it answers.
type endpoint struct {
	*httptest.Server
	t        *testing.T
	requests chan request
}

// endpoint starts a server and has the dispatcher trust it. Every server has
// httptest's one certificate.
func (b *bundle) endpoint(answer http.HandlerFunc) *endpoint {
	b.Helper()
	e := &endpoint{t: b.T, requests: make(chan request, 10_000)}
	e.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // the sender went away
		}
		e.requests <- request{path: r.URL.Path, header: r.Header.Clone(), body: string(body), at: time.Now()}
		answer(w, r)
	}))
	e.Config.ErrorLog = nil
	b.Cleanup(e.Close)
	b.cfg.CAFile = filepath.Join(b.TempDir(), "ca.pem")
	writeCA(b.T, b.cfg.CAFile, e.Certificate())
	return e
}

func writeCA(t testing.TB, path string, cert *x509.Certificate) {
	t.Helper()
	must.NoError(t, os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Raw}), 0o600))
}

func status(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
}

// hang answers never, not even when the sender has given up.
func hang(_ http.ResponseWriter, r *http.Request) {
	<-r.Context().Done()
	panic(http.ErrAbortHandler)
}

// next waits for a request.
func (e *endpoint) next() request {
	e.t.Helper()
	select {
	case r := <-e.requests:
		return r
	case <-time.After(patience):
		e.t.Fatal("no request came")
	}
	return request{}
}

// none makes sure that no request has come.
func (e *endpoint) none() {
	e.t.Helper()
	select {
	case r := <-e.requests:
		e.t.Fatalf("%s came to %s: %s", r.event(), r.path, r.body)
	default:
	}
}

// eventually waits for a condition.
func (b *bundle) eventually(what string, met func() bool) {
	b.Helper()
	eventually.True(b, what, met)
}

// subscribed waits until the subscriber has read the whole log.
func (b *bundle) subscribed() {
	b.Helper()
	b.eventually("the subscriber has read the log", func() bool {
		return subscriberStatus(b, b.db).Position.Commit == b.log.Head().Commit
	})
}

// states counts the deliveries of a project by state.
func (b *bundle) states(projectID string) map[string]int {
	b.Helper()
	var rows []struct {
		State string `db:"state"`
		Count int    `db:"count"`
	}
	err := b.db.Select(&rows, `SELECT state, count(*) AS count FROM webhooks.deliveries WHERE project_id = $1 GROUP BY state`, projectID)
	must.NoError(b, err)
	counts := map[string]int{}
	for _, r := range rows {
		counts[r.State] = r.Count
	}
	return counts
}

func (b *bundle) settled(projectID string, want map[string]int) {
	b.Helper()
	eventually.Within(b, eventually.Patience, func() error {
		if got := b.states(projectID); !maps.Equal(got, want) {
			return fmt.Errorf("deliveries are %v, want %v", got, want)
		}
		return nil
	})
}

// deliveries lists a project's deliveries, the oldest first.
func (b *bundle) deliveries(projectID string) []webhooks.Delivery {
	b.Helper()
	list, _, err := b.record().Deliveries(context.Background(), "acc", projectID, webhooks.DeliveryFilter{Limit: 100})
	must.NoError(b, err)
	slices.Reverse(list)
	return list
}

func (b *bundle) attempts(projectID, id string) []webhooks.Attempt {
	b.Helper()
	whole, err := b.record().Delivery(context.Background(), "acc", projectID, uuid.MustParse(id))
	must.NoError(b, err)
	return whole.Attempts
}

func (b *bundle) record() *webhooks.Log { return webhooks.NewLog(b.db) }
