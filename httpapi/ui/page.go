package ui

import (
	"context"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/sirupsen/logrus"

	"humanqa/domain"
	"humanqa/domain/command"
	"humanqa/domain/person"
	"humanqa/internal/credential"
	"humanqa/internal/tracing"
	"humanqa/projections/people"
)

// Audience says who may open a page.
type Audience int

// The audiences. The three of an account need that role, or one that includes
// it, in the account that is looked at.
const (
	Anybody Audience = iota
	SignedIn
	Viewers
	Developers
	Owners
	Operators
	Checkers
)

// role is the role that an account's audience needs.
func (a Audience) role() person.Role {
	switch a {
	case Viewers:
		return person.Viewer
	case Developers:
		return person.Developer
	case Owners:
		return person.Owner
	case Anybody, SignedIn, Operators, Checkers:
	}
	return ""
}

// Page is one row of a table of pages.
type Page struct {
	Method  string
	Pattern string // of net/http
	For     Audience
	// Fresh pages need a proof that is a few minutes old at most.
	Fresh bool
	// Says is a sentence for the page to which a form of this one leads, such as
	// "Saved."; empty: none.
	Says string
	// Upload pages read the body themselves (Request.Writer); the fields of their
	// forms are in the URL.
	Upload bool
	// Takes pages take the connection over, for as long as it lasts
	// (Request.Writer), and answer Taken.
	Takes  bool
	Handle func(*Request) (Answer, error)
}

// Answer is the answer of a page: one kind of content, and a status, which is 200 unless it
// is set.
type Answer struct {
	Status int
	// View is shown by the template, within the layout.
	Template string
	View     any
	Title    string
	// Rows gives a long page's rows, which are sent as they are read: the template ranges
	// over Frame.Rows. Such a page is not Live.
	Rows func(ctx context.Context, each func(part any) error) error
	// Live are the streams whose changes the page shows; Everything: all of the
	// account's.
	Live []string
	// Every is the interval at which an open page fetches itself anew, because its content
	// changes also with time; zero: never. Whole seconds.
	Every time.Duration
	// Refused is the error of a form that a POST shows again by itself (Frame.Form); the
	// status is the error's.
	Refused *domain.Error
	// Secret pages are kept by no cache, not even the browser's.
	Secret bool
	// Bare pages belong to no account, even if the reader has one.
	Bare bool
	// For is the time after which the browser leaves the page for Then, a path of this
	// service; zero: the page stays.
	For  time.Duration
	Then string
	// Redirect is a path of this service, answered by 303.
	Redirect string
	// File is a download.
	File *File
	// Serve answers the request itself, without the page's time limit: a film that is asked
	// for in parts.
	Serve http.Handler
	// JSON is for the scripts of the service's pages.
	JSON any
	// Silent JSON is for a script that shows the result itself: no page shows Page.Says.
	Silent bool
	// Cookies go out beside any of them.
	Cookies []*http.Cookie
	// Taken says that the page has taken the connection: nothing more is sent.
	Taken bool
}

// Everything follows all streams of an account.
const Everything = "*"

// File is a download.
type File struct {
	Name, Type string
	Content    []byte
}

// Show answers with a page.
func Show(template, title string, view any, live ...string) Answer {
	return Answer{Template: template, Title: title, View: view, Live: live}
}

// Go answers with a redirect to a path of this service.
func Go(path string) Answer { return Answer{Redirect: path} }

// Person is the person who asks.
type Person struct {
	ID    string
	Name  string
	Roles []people.PersonRole
}

// Has says that the person holds a role that belongs to no account.
func (p *Person) Has(role person.Role) bool {
	return slices.ContainsFunc(p.Roles, func(r people.PersonRole) bool { return r.Role == role })
}

// CheckerID is the checker that the person works as; empty: the person is no checker.
func (p *Person) CheckerID() string {
	for _, r := range p.Roles {
		if r.Role == person.Checker {
			return r.CheckerID
		}
	}
	return ""
}

// Memberships are the person's accounts with their role there.
func (p *Person) Memberships() (of []people.PersonRole) {
	for _, r := range p.Roles {
		if r.Role.OfAccount() {
			of = append(of, r)
		}
	}
	return of
}

// Request is a request on its way to a page.
type Request struct {
	*http.Request
	ID      string // x-request-id
	Log     logrus.FieldLogger
	Address string // where it comes from
	// Person and Session are nil for a visitor who has not signed in.
	Person  *Person
	Session *credential.Session
	// Writer is for pages that take files, or the connection.
	Writer http.ResponseWriter
	// Account is the account that the page is about, and Role the person's role there;
	// both are zero on pages that belong to no account.
	Account people.Account
	Role    person.Role
	// Accounts are the accounts in which the person may open the page, the current one
	// first. A page with an id in its path searches the id in each.
	Accounts []people.PersonRole

	site   *Site
	beyond string            // the URL to which a page beyond the end of its list leads; empty: it is no such page
	fields map[string]string // the names of form fields by the API's path
}

// In makes the account the one that the page is about.
func (r *Request) In(m people.PersonRole) { r.Account, r.Role = m.Account, m.Role }

// May says that the person's role in the account includes the other one, and
// that the account is not suspended.
func (r *Request) May(role person.Role) bool { return r.Role.Includes(role) && !r.Account.Suspended }

// WantsJSON says that a script of the service's pages asks, which gets JSON.
func (r *Request) WantsJSON() bool {
	return strings.Contains(r.Header.Get("Accept"), "application/json")
}

// CommandField is the hidden field that makes a form one command, however often
// it is sent.
const CommandField = "command"

// Again finds the person anew, for a connection that lasts longer than an answer: a session
// may have been ended, or a role taken back. Without a valid session it gives Unauthorized.
func (r *Request) Again(page Audience) error {
	r.Person, r.Session, r.Accounts = nil, nil, nil
	if err := r.site.identify(r); err != nil {
		return err
	}
	led, err := r.site.admit(r, &Page{For: page})
	if err == nil && led.Redirect != "" {
		err = domain.Unauthorized("you are not signed in")
	}
	return err
}

// Cause is the command that a form asks for: the same form of the same person,
// sent twice, is one command.
func (r *Request) Cause() command.Cause {
	id := domain.NewCommandID()
	if form, err := uuid.Parse(r.FormValue(CommandField)); err == nil {
		id = domain.CommandIDFor("form", r.Person.ID, r.Pattern, r.URL.Path, form.String())
	}
	actor := "person:" + r.Person.ID
	if r.Account.ID == "" && r.Person.CheckerID() != "" { // an account's exports name no person that tests
		actor = "checker:" + r.Person.CheckerID()
	}
	return command.Cause{
		CommandID: id, CorrelationID: r.ID, Trace: tracing.Of(r.Context()), Actor: actor,
		AccountID: r.Account.ID, Sandbox: r.Account.Sandbox,
	}
}

// Origin is the origin of the pages of a service with this base URL. A loopback address
// becomes localhost, because browsers refuse passkeys at an IP address.
func Origin(base string) string {
	u, err := url.Parse(base)
	if err != nil {
		return base
	}
	if ip := net.ParseIP(u.Hostname()); ip == nil || !ip.IsLoopback() {
		return base
	}
	host := "localhost"
	if port := u.Port(); port != "" {
		host += ":" + port
	}
	return u.Scheme + "://" + host
}

// Origin is the origin of the pages, and the start of the links that people hand on.
func (r *Request) Origin() string { return Origin(r.site.BaseURL) }
