// Package hooktest is a webhook subscriber and a dispatcher over a log in memory, with HTTPS
// endpoints that note the requests that they get.
package hooktest

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
	"humanqa/internal/guard"
	"humanqa/internal/testing/eventually"
	"humanqa/internal/testing/logtest"
	"humanqa/internal/testing/must"
	"humanqa/internal/testing/pgtest"
	"humanqa/webhooks"
	"humanqa/webhooks/send"
)

// At is the time of every event in these tests.
var At = time.Date(2026, 3, 4, 5, 6, 7, 89_000_000, time.UTC)

// Log is a log whose events are the account's.
type Log struct{ *logtest.Memory }

// NewLog makes an empty log.
func NewLog() Log { return Log{logtest.New()} }

func (l Log) Add(stream string, events ...domain.Event) {
	l.RecordAs(domain.Metadata{Time: At, AccountID: "acc"}, stream, events...)
}

// Vault "seals" a secret by adding its owner in the clear, and opens it for that
// owner only.
type Vault struct{}

func Seal(projectID, secret string) string {
	return "acc|" + domain.ProjectStream(projectID) + "|" + secret
}

func (Vault) Unseal(_ context.Context, accountID, stream, sealed string) ([]byte, error) {
	secret, ok := strings.CutPrefix(sealed, accountID+"|"+stream+"|")
	if !ok {
		return nil, fmt.Errorf("%q is not sealed for %s of %s", sealed, stream, accountID)
	}
	return []byte(secret), nil
}

// Bundle is one test's service.
type Bundle struct {
	*testing.T
	DB     *sqlx.DB
	Events Log
	Config send.Config
	Told   chan string // "project delivery reason" of each disable
}

// Setup gives a database, a log and a configuration with short times, but for those that
// end an attempt on a busy machine. Nothing runs yet.
func Setup(t *testing.T) *Bundle {
	t.Helper()
	t.Parallel()
	dsn := pgtest.NewDSN(t)
	quiet := logrus.New()
	quiet.SetOutput(io.Discard)
	return &Bundle{
		T: t, DB: pgtest.NewDB(t, dsn), Events: NewLog(), Told: make(chan string, 100),
		Config: send.Config{
			DSN: dsn, Log: quiet,
			Allow:   guard.Allow{netip.MustParsePrefix("127.0.0.0/8")},
			Retries: []time.Duration{10 * time.Millisecond, 20 * time.Millisecond, 30 * time.Millisecond},
			Timeout: 30 * time.Second, Lease: time.Minute, Drain: time.Second, Poll: time.Second,
		},
	}
}

// RunLoop starts a loop, and gives a function that stops it. The test's end stops it,
// too.
func (b *Bundle) RunLoop(loop func(context.Context) error) (stop func()) {
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

func (b *Bundle) Subscribe() (stop func()) {
	return b.RunLoop(Subscriber(b.DB, b.Events).Run)
}

// Subscriber is run as the service runs it, with shorter times.
func Subscriber(db *sqlx.DB, log Log) *consumer.Supervisor {
	quiet := logrus.New()
	quiet.SetOutput(io.Discard)
	s := consumer.New(db, log, quiet, webhooks.NewSubscriber(db, log, "https://qa.example"))
	s.SetLimits(consumer.Limits{
		Shared: time.Second,
		Live:   500, Rebuild: 500, Lease: 15 * time.Second, Take: 2 * time.Second,
		StandBy: 100 * time.Millisecond, Store: 20 * time.Millisecond,
		Backoff: time.Millisecond, MaxBackoff: 10 * time.Millisecond, Retired: time.Hour, Report: time.Hour,
		Aside: 10, Again: time.Hour,
	})
	return s
}

// SubscriberStatus is the status of the subscriber; zero before its first start.
func SubscriberStatus(t testing.TB, db *sqlx.DB) consumer.Status {
	t.Helper()
	all, err := consumer.List(context.Background(), db)
	must.NoError(t, err)
	at := slices.IndexFunc(all, func(s consumer.Status) bool { return s.Name == webhooks.SubscriberName })
	if at < 0 {
		return consumer.Status{}
	}
	return all[at]
}

func (b *Bundle) Dispatch() (stop func()) { return b.DispatchOn(b.DB) }

func (b *Bundle) DispatchOn(db *sqlx.DB) (stop func()) {
	return b.RunLoop(send.NewDispatcher(db, Vault{}, b.Report(), b.Config).Run)
}

func (b *Bundle) Tell(_ context.Context, projectID, deliveryID, reason string) error {
	b.Told <- projectID + " " + deliveryID + " " + reason
	return nil
}

func (b *Bundle) Report() send.Report {
	return send.Report{Disabled: b.Tell, Confirmed: b.Confirm}
}

// Confirm records in the log that a rotation has ended.
func (b *Bundle) Confirm(_ context.Context, projectID, _ string) error {
	b.Change(projectID, &project.RotationFinished{At: At, By: project.ByReceiver})
	return nil
}

// Project records a project with a webhook and the secret "secret of <id>".
func (b *Bundle) Project(id, url string, events *[]string) {
	b.Helper()
	b.Events.Add(domain.ProjectStream(id), WithWebhook(id, url, events)...)
}

func WithWebhook(id, url string, events *[]string) []domain.Event {
	return []domain.Event{
		&project.Created{AccountID: "acc", Name: id, At: At},
		&project.SecretSet{SecretID: "s1", Sealed: Seal(id, "secret of "+id), At: At},
		&project.WebhookSet{URL: url, Events: events, At: At},
	}
}

func (b *Bundle) Change(projectID string, events ...domain.Event) {
	b.Events.Add(domain.ProjectStream(projectID), events...)
}

// Submit records job.created.
func (b *Bundle) Submit(projectID, jobID string) {
	b.Events.Add(domain.JobStream(jobID), Created(projectID))
}

func Created(projectID string) *job.Created {
	return &job.Created{
		Submission: job.Submission{
			AccountID: "acc", ProjectID: projectID, URL: "https://app.example/?a=1&b=<2>", Title: "Checkout",
			Description: "buy something", Type: job.PaymentFlow, TypeEcho: "Payment Flow", SLAMinutes: 30, Price: 5,
			Source: "api",
		}, Items: []job.Item{{ID: "i1"}, {ID: "i2"}}, CreatedAt: At,
		Credentials: "sealed-credentials", AccessInstructions: "sealed-instructions",
	}
}

func Claimed() *job.Claimed {
	return &job.Claimed{CheckerID: "ann-the-checker", Token: 1, DueAt: At.Add(time.Hour), At: At.Add(time.Minute)}
}

func Completed() *job.Completed {
	item := func(severity job.Severity, status job.ItemStatus, note string) job.ReportItem {
		return job.ReportItem{Item: job.Item{Description: "a " + string(severity) + " one", Severity: severity}, Status: status, Note: note}
	}
	return &job.Completed{
		ReportID: "rep", OverallStatus: "fail", PassCount: 1, FailCount: 3, SkipCount: 1, Summary: "Mostly broken.",
		Items: []job.ReportItem{
			item(job.Critical, job.ItemFail, "crashes"), item(job.Major, job.ItemFail, ""), item(job.Minor, job.ItemFail, ""),
			item(job.Critical, job.ItemPass, ""), item(job.Major, job.ItemSkip, ""),
		},
		At: At.Add(time.Hour),
	}
}

// Request is a request that an endpoint got.
type Request struct {
	Path   string
	Header http.Header
	Body   string
	At     time.Time
}

func (r Request) Event() string    { return r.Header.Get("X-Service-Event") }
func (r Request) Delivery() string { return r.Header.Get("X-Service-Delivery") }

// Endpoint is an HTTPS server that notes every request before it answers.
type Endpoint struct {
	*httptest.Server
	t        *testing.T
	Requests chan Request
}

// Endpoint starts a server and has the dispatcher trust it. Every server has
// httptest's one certificate.
func (b *Bundle) Endpoint(answer http.HandlerFunc) *Endpoint {
	b.Helper()
	e := &Endpoint{t: b.T, Requests: make(chan Request, 10_000)}
	e.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // the sender went away
		}
		e.Requests <- Request{Path: r.URL.Path, Header: r.Header.Clone(), Body: string(body), At: time.Now()}
		answer(w, r)
	}))
	e.Config.ErrorLog = nil
	b.Cleanup(e.Close)
	b.Config.CAFile = filepath.Join(b.TempDir(), "ca.pem")
	WriteCA(b.T, b.Config.CAFile, e.Certificate())
	return e
}

func WriteCA(t testing.TB, path string, cert *x509.Certificate) {
	t.Helper()
	must.NoError(t, os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Raw}), 0o600))
}

func Status(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
}

// Hang never answers, not even when the sender has given up.
func Hang(_ http.ResponseWriter, r *http.Request) {
	<-r.Context().Done()
	panic(http.ErrAbortHandler)
}

// Next waits for a request.
func (e *Endpoint) Next() Request {
	e.t.Helper()
	select {
	case r := <-e.Requests:
		return r
	case <-time.After(eventually.Patience):
		e.t.Fatal("no request came")
	}
	return Request{}
}

// None makes sure that no request has come.
func (e *Endpoint) None() {
	e.t.Helper()
	select {
	case r := <-e.Requests:
		e.t.Fatalf("%s came to %s: %s", r.Event(), r.Path, r.Body)
	default:
	}
}

// Eventually waits for a condition.
func (b *Bundle) Eventually(what string, met func() bool) {
	b.Helper()
	eventually.True(b, what, met)
}

// Subscribed waits until the subscriber has read the whole log.
func (b *Bundle) Subscribed() {
	b.Helper()
	b.Eventually("the subscriber has read the log", func() bool {
		return SubscriberStatus(b, b.DB).Position.Commit == b.Events.Head().Commit
	})
}

// States counts the deliveries of a project by state.
func (b *Bundle) States(projectID string) map[string]int {
	b.Helper()
	var rows []struct {
		State string `db:"state"`
		Count int    `db:"count"`
	}
	err := b.DB.Select(&rows, `SELECT state, count(*) AS count FROM webhooks.deliveries WHERE project_id = $1 GROUP BY state`, projectID)
	must.NoError(b, err)
	counts := map[string]int{}
	for _, r := range rows {
		counts[r.State] = r.Count
	}
	return counts
}

func (b *Bundle) Settled(projectID string, want map[string]int) {
	b.Helper()
	eventually.Within(b, eventually.Patience, func() error {
		if got := b.States(projectID); !maps.Equal(got, want) {
			return fmt.Errorf("deliveries are %v, want %v", got, want)
		}
		return nil
	})
}

// Deliveries lists a project's deliveries, the oldest first.
func (b *Bundle) Deliveries(projectID string) []webhooks.Delivery {
	b.Helper()
	list, _, err := b.DeliveryLog().Deliveries(context.Background(), "acc", projectID, webhooks.DeliveryFilter{Limit: 100})
	must.NoError(b, err)
	slices.Reverse(list)
	return list
}

func (b *Bundle) Attempts(projectID, id string) []webhooks.Attempt {
	b.Helper()
	whole, err := b.DeliveryLog().Delivery(context.Background(), "acc", projectID, uuid.MustParse(id))
	must.NoError(b, err)
	return whole.Attempts
}

func (b *Bundle) DeliveryLog() *webhooks.Log { return webhooks.NewLog(b.DB) }

func (b *Bundle) Exec(query string, args ...any) {
	b.Helper()
	_, err := b.DB.Exec(query, args...)
	must.NoError(b, err)
}

func (b *Bundle) NewDispatcher() *send.Dispatcher {
	return send.NewDispatcher(b.DB, Vault{}, send.Report{}, b.Config)
}

func SecretOf(owner string) *project.SecretSet {
	return &project.SecretSet{SecretID: "s", Sealed: Seal(owner, "a secret"), At: At}
}
