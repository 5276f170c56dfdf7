// Package pagetest runs the whole service under the pages of a test: a real log,
// real read models, the policies, and a server on this machine that browsers
// can reach.
package pagetest

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/jmoiron/sqlx"

	"humanqa/domain"
	"humanqa/domain/command"
	"humanqa/domain/person"
	"humanqa/eventstore"
	"humanqa/eventstore/consumer"
	"humanqa/httpapi"
	"humanqa/httpapi/evidence"
	"humanqa/httpapi/ui"
	"humanqa/internal/credential"
	"humanqa/internal/testing/browsertest"
	"humanqa/internal/testing/eventually"
	"humanqa/internal/testing/must"
	"humanqa/internal/testing/pgtest"
	"humanqa/internal/vault"
	"humanqa/projections"
	"humanqa/projections/changes"
)

const (
	// CookieName is the session's.
	CookieName = "__Host-humanqa"
	patience   = eventually.Patience
)

// Main runs a package's tests, with one database server, one browser and one shared service.
func Main(m *testing.M) int { return browsertest.Main(func() int { return pgtest.Main(tests{m}) }) }

// tests are those of a package, and the end of the service that they share.
type tests struct{ *testing.M }

func (t tests) Run() int { return whole.end(t.M.Run()) }

// Service is the running service. Its steps fail the test.
type Service struct {
	T           *testing.T
	Owner       testing.TB // lives as long as the service
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

	away, refuses *atomic.Bool
}

// In is the service for another test, such as a subtest.
func (s *Service) In(t *testing.T) *Service {
	its := *s
	its.T = t
	return &its
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
	return s.SignsIn(id)
}

// SignsIn is a person who has joined before, with a session more.
func (s *Service) SignsIn(id string) Guest {
	s.T.Helper()
	token, err := s.Credentials.Begin(s.T.Context(), id, "127.0.0.1", "Mozilla/5.0 (X11; Linux x86_64) Chrome/156.0", "")
	s.Must(err)
	return Guest{id, token}
}

// JoinedByPassword is Joined with a password, and a login that is the name.
func (s *Service) JoinedByPassword(name string, g person.Grant) Guest {
	s.T.Helper()
	id, path := s.Invited(name, g)
	in := credential.Joining{Name: name, Login: name, Password: "correct horse battery"}
	_, err := s.Credentials.JoinWithPassword(s.T.Context(), strings.TrimPrefix(path, "/join/"), in, "127.0.0.1")
	s.Must(err)
	s.Shown(s.Commands.JoinPerson(s.T.Context(), Operator(), id))
	return s.SignsIn(id)
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
