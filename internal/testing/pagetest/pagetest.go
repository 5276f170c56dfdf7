// Package pagetest runs the whole service under the pages of a test: a real log,
// real read models, the policies, and a server on this machine that browsers
// can reach.
package pagetest

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/sirupsen/logrus"

	"humanqa/domain"
	"humanqa/domain/command"
	"humanqa/domain/person"
	"humanqa/domain/policy"
	"humanqa/eventstore"
	"humanqa/eventstore/consumer"
	"humanqa/eventstore/node"
	"humanqa/httpapi"
	"humanqa/httpapi/admit"
	"humanqa/httpapi/evidence"
	"humanqa/httpapi/signin"
	"humanqa/httpapi/ui"
	v1 "humanqa/httpapi/v1"
	"humanqa/httpapi/wire"
	"humanqa/internal/ai"
	"humanqa/internal/blob"
	"humanqa/internal/credential"
	"humanqa/internal/scheduler"
	"humanqa/internal/testing/browsertest"
	"humanqa/internal/testing/commandtest"
	"humanqa/internal/testing/eventually"
	"humanqa/internal/testing/must"
	"humanqa/internal/testing/pagetest/alltest"
	"humanqa/internal/testing/pgtest"
	"humanqa/internal/vault"
	"humanqa/projections"
	"humanqa/projections/changes"
	"humanqa/projections/events"
	"humanqa/projections/timers"
	"humanqa/webhooks"
)

const (
	// CookieName is the session's.
	CookieName = "__Host-humanqa"
	patience   = eventually.Patience
)

// Main runs a package's tests, with one database server and one browser.
func Main(m *testing.M) int { return browsertest.Main(func() int { return pgtest.Main(m) }) }

// Service is the running service. Its steps fail the test.
type Service struct {
	T           *testing.T
	DB          *sqlx.DB
	Commands    *command.Service
	Reads       *projections.Reads
	Credentials *credential.Store
	API         *httpapi.API
	Evidence    *evidence.Service
	Vault       *vault.Vault
	Site        *ui.Site
	Changes     *changes.Changes
	WaitFor     func(context.Context, domain.Position) error
	Log         *eventstore.Client
	Consumers   *consumer.Supervisor
	BaseURL     string // of the API
	Origin      string // of the pages

	away *atomic.Bool
}

// Pages gives the pages that a package adds to those of signing in.
type Pages func(*Service) ([]fs.FS, []ui.Page)

// Start runs the service until the test ends.
func Start(t *testing.T, pages Pages) *Service {
	t.Helper()
	s := &Service{T: t, DB: alltest.Database.New(t), away: new(atomic.Bool)}
	log := logrus.New()
	log.SetOutput(io.Discard)
	dir, err := os.MkdirTemp("", "ui") //nolint:usetesting // a socket's path must be short, t.TempDir holds the test's name
	s.Must(err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	socket := filepath.Join(dir, "node")
	n, err := node.Start(t.Context(), node.Config{DSN: pgtest.DSN(t, s.DB), Socket: socket, MaxAppendSize: node.MinAppendSize,
		Log: log}) // as a service does by default
	s.Must(err)
	t.Cleanup(func() { s.Must(n.Close(context.Background())) })
	client, err := eventstore.OpenSocket(socket, log)
	s.Must(err)
	t.Cleanup(func() { s.Must(client.Close()) })

	feed := eventstore.NewFeed(client, log)
	v, err := vault.Open(t.Context(), vault.Config{KeyFile: filepath.Join(dir, "key"), DB: s.DB})
	s.Must(err)
	s.Vault = v
	files, err := blob.Open(t.Context(), blob.Directory(filepath.Join(dir, "evidence")))
	s.Must(err)
	s.Reads = projections.NewReads(s.DB)
	s.Commands = command.New(command.Deps{
		Log: client, Sealer: v, Tokens: v, Statuses: commandtest.CodeHost{}, AI: ai.New(ai.Config{Log: log}),
		Reads: projections.CommandReads{Reads: s.Reads},
		Now:   time.Now, ClaimsPerChecker: 1,
	})
	supervisor := consumer.New(s.DB, feed, log,
		append(projections.All(), webhooks.NewSubscriber(s.DB, client, "https://qa.example"))...)
	s.WaitFor, s.Log, s.Consumers = supervisor.WaitFor, client, supervisor
	news := changes.New(feed, s.DB, supervisor.WaitFor, log)
	s.Changes = news

	ln, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	s.Must(err)
	s.BaseURL = "http://" + ln.Addr().String()
	s.Origin = ui.Origin(s.BaseURL)
	s.Credentials, err = credential.Open(credential.Config{DB: s.DB, Now: time.Now, BaseURL: s.BaseURL, Grants: s.Commands.Grants,
		Sealer: v, HashMemory: 64})
	s.Must(err)
	spool := wire.NewSpool("")
	s.Evidence = evidence.New(evidence.Deps{
		DB: s.DB, Files: files, Commands: s.Commands, Vault: v, Spool: spool, BaseURL: s.BaseURL, Log: log, Now: time.Now,
	})
	s.API = httpapi.New(httpapi.Deps{
		Shared: v1.Shared{
			Commands: s.Commands, Reads: s.Reads, DB: s.DB, Evidence: s.Evidence, Head: client.Head,
			Log: log, Now: time.Now, BaseURL: s.BaseURL,
		},
		WaitFor: supervisor.WaitFor, FeedShown: func(ctx context.Context) error { return supervisor.CatchUp(ctx, events.Name) },
		WebhooksShown: func(ctx context.Context) error { return supervisor.CatchUp(ctx, webhooks.SubscriberName) },
		Ready:         func(context.Context) []httpapi.Problem { return nil },
		Vault:         v, Spool: spool,
	})
	templates, table := pages(s)
	s.Site, err = ui.New(ui.Config{
		Credentials: s.Credentials, People: s.Reads.People, Changes: news,
		Admit: s.API.Admit, Address: admit.Address, WaitFor: supervisor.WaitFor, Log: log, Now: time.Now, BaseURL: s.BaseURL,
		Templates: append([]fs.FS{signin.Templates}, templates...),
		Pages: slices.Concat(
			signin.Pages(signin.Deps{Credentials: s.Credentials, People: s.Reads.People, Join: s.Commands.JoinPerson, BaseURL: s.BaseURL}),
			table,
		),
	})
	s.Must(err)

	t.Cleanup(s.Commands.Drain) // it runs once the parts started below have ended
	s.background(s.API.Run)
	s.background(s.Evidence.Run)
	s.background(feed.Run)
	s.background(supervisor.Run)
	s.background(func(ctx context.Context) error { return news.Run(ctx, domain.Position{}) })
	s.background(func(ctx context.Context) error {
		scheduler.New(timers.New(s.DB, pgtest.DSN(t, s.DB)), log, policy.All(s.Commands)...).Run(ctx)
		return nil
	})
	front := gate{ui.Front{Site: s.Site, API: s.API, Settle: httpapi.Reach{}.Settle}, s.away}
	s.background(func(ctx context.Context) error {
		return httpapi.Serve(ctx, httpapi.NewServer(front, log), ln, 5*time.Second)
	})
	return s
}

// gate cuts connections off while the service is away.
type gate struct {
	ui.Front
	away *atomic.Bool
}

func (g gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if g.away.Load() {
		panic(http.ErrAbortHandler)
	}
	g.Front.ServeHTTP(w, r)
}

// Away makes the service answer no request, until it is back.
func (s *Service) Away(away bool) { s.away.Store(away) }

// background runs a part of the service until the test ends.
func (s *Service) background(run func(context.Context) error) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(s.T.Context()))
	ended := make(chan error, 1)
	go func() { ended <- run(ctx) }()
	s.T.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
			s.T.Errorf("a part of the service: %v", err)
		}
	})
}

// In is the service for a subtest.
func (s *Service) In(t *testing.T) *Service {
	return &Service{
		T: t, DB: s.DB, Commands: s.Commands, Reads: s.Reads, Credentials: s.Credentials, API: s.API, Evidence: s.Evidence, Site: s.Site,
		Changes: s.Changes,
		WaitFor: s.WaitFor, Log: s.Log, Consumers: s.Consumers, BaseURL: s.BaseURL, Origin: s.Origin, away: s.away,
	}
}

// Must fails the test for an error.
func (s *Service) Must(err error) {
	s.T.Helper()
	must.NoError(s.T, err)
}

// Shown waits until every read model shows the events up to the position.
func (s *Service) Shown(at domain.Position, err error) {
	s.T.Helper()
	s.Must(err)
	ctx, cancel := context.WithTimeout(s.T.Context(), patience)
	defer cancel()
	s.Must(s.WaitFor(ctx, at))
}

// Operator is the cause of an operator's command.
func Operator() command.Cause {
	return command.Cause{CommandID: domain.NewCommandID(), Actor: "operator"}
}

// Client is the cause of a command by a client of the account.
func Client(accountID string) command.Cause {
	return command.Cause{CommandID: domain.NewCommandID(), Actor: "key:test", AccountID: accountID}
}

// ByChecker is the cause of a checker's command.
func ByChecker(id string) command.Cause {
	return command.Cause{CommandID: domain.NewCommandID(), Actor: "checker:" + id}
}

// Form makes the form that a browser sends, from pairs of name and value.
func Form(pairs ...string) url.Values {
	v := url.Values{}
	for i := 0; i < len(pairs); i += 2 {
		v.Set(pairs[i], pairs[i+1])
	}
	return v
}

// Account makes an account with so many credits.
func (s *Service) Account(name string, amount domain.Credits, sandbox bool) string {
	s.T.Helper()
	id, at, err := s.Commands.CreateAccount(s.T.Context(), Operator(), name, sandbox)
	s.Shown(at, err)
	if amount > 0 {
		_, at, err = s.Commands.GrantCredits(s.T.Context(), Operator(), id, amount, nil, "Welcome")
		s.Shown(at, err)
	}
	return id
}

// Checker makes a checker.
func (s *Service) Checker(name string) string {
	s.T.Helper()
	c, err := s.Commands.CreateChecker(s.T.Context(), Operator(), name, nil)
	s.Shown(c.Position, err)
	return c.CheckerID
}

// Checks is a signed-in person who tests, with the checker's id.
func (s *Service) Checks(name string) (Guest, string) {
	s.T.Helper()
	id := s.Checker(name)
	return s.Joined(name, person.Grant{Role: person.Checker, CheckerID: id}), id
}

// Guest is a person with a session; the zero Guest is a visitor.
type Guest struct {
	ID, Token string
}

// Invited gives the id of a person who has not joined, and the path of the invitation's link.
func (s *Service) Invited(name string, g person.Grant) (id, path string) {
	s.T.Helper()
	id, at, err := s.Commands.InvitePerson(s.T.Context(), Operator(), g)
	s.Shown(at, err)
	token, err := s.Credentials.Invite(s.T.Context(), id, name, []person.Grant{g}, credential.LinkFor)
	s.Must(err)
	return id, "/join/" + token
}

// Joined is a person who has joined, without a password, whose hashing would take time.
func (s *Service) Joined(name string, g person.Grant) Guest {
	s.T.Helper()
	id, _ := s.Invited(name, g)
	s.Shown(s.Commands.JoinPerson(s.T.Context(), Operator(), id))
	_, err := s.DB.ExecContext(s.T.Context(), `INSERT INTO signin.people (person_id, name) VALUES ($1, $2)`, id, name)
	s.Must(err)
	token, err := s.Credentials.Begin(s.T.Context(), id, "127.0.0.1", "Mozilla/5.0 (X11; Linux x86_64) Chrome/156.0", "")
	s.Must(err)
	return Guest{id, token}
}

// Response is an answer as a browser would get it.
type Response struct {
	Status int
	Header http.Header
	Body   string
}

// Call sends a request as a guest's browser. form makes it a POST of this site.
func (s *Service) Call(g Guest, method, path string, form url.Values, headers ...string) Response {
	s.T.Helper()
	var body io.Reader
	if form != nil {
		body = strings.NewReader(form.Encode())
		headers = append([]string{"Content-Type", "application/x-www-form-urlencoded", "Sec-Fetch-Site", "same-origin"}, headers...)
	}
	return s.Send(g, method, path, body, headers...)
}

// Send sends any request as a guest's browser.
func (s *Service) Send(g Guest, method, path string, body io.Reader, headers ...string) Response {
	s.T.Helper()
	r, err := http.NewRequestWithContext(s.T.Context(), method, s.Origin+path, body)
	s.Must(err)
	if g.Token != "" {
		r.Header.Set("Cookie", CookieName+"="+g.Token)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	got, err := client.Do(r)
	s.Must(err)
	defer got.Body.Close()
	text, err := io.ReadAll(got.Body)
	s.Must(err)
	return Response{got.StatusCode, got.Header, string(text)}
}

// Tab opens a browser's tab that is signed in as the guest.
func (s *Service) Tab(g Guest) *browsertest.Tab {
	s.T.Helper()
	return s.signedIn(browsertest.New(s.T), g)
}

// NotifiedTab is Tab whose pages may show notifications, once they ask.
func (s *Service) NotifiedTab(g Guest) *browsertest.Tab {
	s.T.Helper()
	return s.signedIn(browsertest.NewNotified(s.T), g)
}

func (s *Service) signedIn(tab *browsertest.Tab, g Guest) *browsertest.Tab {
	s.T.Helper()
	if g.Token != "" {
		tab.Cookie(s.Origin, CookieName, g.Token)
	}
	return tab
}
