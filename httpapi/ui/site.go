package ui

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/sirupsen/logrus"

	"humanqa/domain"
	"humanqa/domain/person"
	"humanqa/httpapi/wire"
	"humanqa/internal/credential"
	"humanqa/projections/people"
)

const (
	// pageTime bounds a request once it is read.
	pageTime = 40 * time.Second
	// uploadTime bounds one that is still sending a file.
	uploadTime = 5 * time.Minute
	// maxForm bounds what a form may hold.
	maxForm = 256 << 10

	requestIDHeader = "X-Request-Id"

	// Requests a minute: of a session, of an address that has none.
	sessionRate  = 600
	strangerRate = 300
)

// Config is what a Site stands on. All fields are required.
type Config struct {
	Credentials *credential.Store
	People      PeopleReads
	Changes     Changes
	// Admit asks for a place among a caller's requests of the last minute;
	// retryAfter, in seconds, is 0 when there is one.
	Admit func(ctx context.Context, caller string, limit int) (retryAfter int, err error)
	// WaitFor returns when every read model shows the position.
	WaitFor func(context.Context, domain.Position) error
	// Address is where a connection comes from, as limits count it.
	Address func(remote string) string
	Log     logrus.FieldLogger
	Now     func() time.Time
	BaseURL string
	// Templates are those of the packages whose pages are in Pages.
	Templates []fs.FS
	Pages     []Page
}

// PeopleReads is *projections.People.
type PeopleReads interface {
	Person(ctx context.Context, id string) (people.Person, error)
}

// Changes is *projections.Changes.
type Changes interface {
	Follow(accounts ...string) (<-chan []string, func())
}

// Site answers every request for a page.
type Site struct {
	Config
	assets   *assets
	renderer *renderer
	mux      *http.ServeMux
	sameSite *http.CrossOriginProtection
	stop     sync.Once
	stopping chan struct{}
	watchers *watchers
}

// New makes a Site. It fails where a template cannot be parsed or two pages have
// one pattern.
func New(c Config) (*Site, error) {
	s := &Site{
		Config: c, mux: http.NewServeMux(),
		sameSite: http.NewCrossOriginProtection(), stopping: make(chan struct{}), watchers: newWatchers(),
	}
	var err error
	if s.assets, err = loadAssets(); err != nil {
		return nil, err
	}
	if s.renderer, err = newRenderer(s.assets, c.Now, c.Templates...); err != nil {
		return nil, err
	}
	for i := range c.Pages {
		page := &c.Pages[i]
		if page.Fresh && page.Upload {
			return nil, fmt.Errorf("%s asks for a proof, and no file is kept until it is given", page.Pattern)
		}
		s.mux.HandleFunc(page.Method+" "+page.Pattern, func(w http.ResponseWriter, r *http.Request) { s.serve(w, r, page) })
	}
	s.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) { s.serve(w, r, nil) })
	s.mux.HandleFunc("GET /live", s.live)
	s.mux.HandleFunc("GET "+assetsPath, s.assets.serve)
	s.mux.HandleFunc("GET /favicon.ico", s.assets.serveIcon)
	return s, nil
}

// Table lists the pages, for tests that walk them.
func (s *Site) Table() []Page { return s.Pages }

// Serves says that the path is a page's, not the API's.
func (s *Site) Serves(path string) bool {
	first, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	return slices.Contains([]string{"", "signin", "join", "account", "dashboard", "workbench", "console", "shared", "mail", "live",
		"assets", "favicon.ico"}, first)
}

// Stop ends the streams; pages are still answered.
func (s *Site) Stop() { s.stop.Do(func() { close(s.stopping) }) }

// ServeHTTP takes every request the same way.
func (s *Site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	secure(w.Header())
	w.Header().Set(requestIDHeader, uuid.NewString())
	if there, elsewhere := s.otherName(r); elsewhere {
		http.Redirect(w, r, there, http.StatusTemporaryRedirect)
		return
	}
	s.mux.ServeHTTP(w, r)
}

// accept makes what a page is given of a request.
func (s *Site) accept(w http.ResponseWriter, hr *http.Request) *Request {
	r := &Request{Request: hr, ID: w.Header().Get(requestIDHeader), Address: s.Address(hr.RemoteAddr), Writer: w, site: s}
	r.Log = s.Log.WithFields(logrus.Fields{"requestId": r.ID, "page": hr.Pattern})
	return r
}

// serve answers one request; page is nil where there is none.
func (s *Site) serve(w http.ResponseWriter, hr *http.Request, page *Page) {
	started := time.Now()
	allowed := pageTime
	if page != nil && page.Upload {
		allowed = uploadTime
	}
	ctx, cancel := context.WithTimeout(hr.Context(), allowed)
	if page != nil && page.Takes {
		ctx, cancel = s.untilStop(hr.Context())
	}
	defer cancel()
	r := s.accept(w, hr.WithContext(ctx))
	ans := s.answer(w, r, page)
	if ans.Serve != nil {
		r.Log.Info("page")
		ans.Serve.ServeHTTP(w, hr) // in its own time, not the page's
		return
	}
	status := http.StatusSwitchingProtocols
	if !ans.Taken {
		status = s.send(w, r, ans)
	}
	r.Log.WithFields(logrus.Fields{"status": status, "millis": float64(time.Since(started).Microseconds()) / 1000}).Info("page")
}

// untilStop is for what has no end of its own.
func (s *Site) untilStop(parent context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(parent)
	go func() {
		defer cancel()
		select {
		case <-s.stopping:
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

// otherName leads from this machine's number to its name: cookies and passkeys
// belong to one of them.
func (s *Site) otherName(r *http.Request) (string, bool) {
	host, _, err := net.SplitHostPort(r.Host)
	if err != nil {
		host = r.Host
	}
	ip, origin := net.ParseIP(host), Origin(s.BaseURL)
	if ip == nil || !ip.IsLoopback() || origin == s.BaseURL || r.Method != http.MethodGet && r.Method != http.MethodHead {
		return "", false
	}
	// A request's target need not begin with a slash: "@" behind our name would make it
	// somebody else's.
	path := LocalPath(r.URL.RequestURI(), "")
	return origin + path, path != ""
}

// answer never fails: a refusal and a panic are answers, too.
func (s *Site) answer(w http.ResponseWriter, r *Request, page *Page) (ans Answer) {
	defer func() {
		if p := recover(); p != nil {
			r.Log.WithField("stack", string(debug.Stack())).Error("panic")
			ans = s.refuse(r, fmt.Errorf("panic: %v", p))
		}
	}()
	ans, err := s.handle(w, r, page)
	if err != nil {
		if filled, ok := s.refill(r, err); ok {
			return filled
		}
		return s.refuse(r, err)
	}
	return ans
}

// maxPath bounds a page's path, in bytes: no id that a service makes is so long.
const maxPath = 1000

// possible says that the path may hold ids of ours: neither the log nor Postgres is asked
// for what they cannot hold.
func possible(path string) bool {
	return len(path) <= maxPath && utf8.ValidString(path) && !strings.ContainsFunc(path, unicode.IsControl)
}

var errNoPage = domain.NotFound("page").WithHint("it may have moved, or belong to another account")

func (s *Site) handle(w http.ResponseWriter, r *Request, page *Page) (Answer, error) {
	if err := s.sameSite.Check(r.Request); err != nil {
		return Answer{}, domain.Forbidden("the form was sent from another site").WithHint("open the page here, and send it again")
	}
	if err := s.identify(r); err != nil {
		return Answer{}, err
	}
	if err := s.limit(r); err != nil {
		return Answer{}, err
	}
	if page == nil || !possible(r.URL.Path) {
		return Answer{}, errNoPage
	}
	if led, err := s.admit(r, page); err != nil || led.Redirect != "" {
		return led, err
	}
	if form, again := resentIn(r.Context()); again && r.Account.ID != form.accountID {
		return Answer{}, errNoPage // they left the account since
	}
	if !page.Upload {
		r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	}
	if page.Fresh && !r.Proven() {
		return s.askForProof(r)
	}
	if r.Method == http.MethodPost {
		if err := r.readForm(page.Upload); err != nil {
			return Answer{}, err
		}
	}
	ans, err := page.Handle(r)
	s.carriedOut(r, err)
	if err == nil && r.Method == http.MethodPost {
		ans = noted(page, ans)
	}
	if err == nil && r.Method == http.MethodGet && r.beyond != "" {
		return Go(r.beyond)
	}
	return ans, err
}

// identify finds who is asking. A cookie that is no session any more is as good
// as none.
func (s *Site) identify(r *Request) error {
	token := r.SessionToken()
	if token == "" {
		return nil // a visitor
	}
	session, ok, err := s.Credentials.Session(r.Context(), token)
	if err != nil || !ok {
		return err
	}
	who, err := s.People.Person(r.Context(), session.PersonID)
	switch {
	case domain.IsKind(err, domain.KindNotFound): // not shown yet, or gone
		return nil
	case err != nil:
		return err
	case who.Disabled:
		return nil
	}
	names, err := s.Credentials.Names(r.Context(), who.ID)
	if err != nil {
		return err
	}
	form, again := resentIn(r.Context())
	if again {
		session.AccountID = form.accountID // another tab may have chosen another one since
	}
	r.Session = &session
	r.Person = &Person{ID: who.ID, Name: names[who.ID].Name, Roles: who.Roles}
	return nil
}

func (s *Site) limit(r *Request) error {
	caller, limit := "pages:address:"+r.Address, strangerRate
	if r.Session != nil {
		caller, limit = "pages:session:"+r.Session.ID.String(), sessionRate
	}
	retryAfter, err := s.Admit(r.Context(), caller, limit)
	if err != nil || retryAfter == 0 {
		return err
	}
	return &domain.Error{
		Kind: domain.KindRateLimited, Code: domain.CodeRateLimited,
		Message: "too many requests", Hint: fmt.Sprintf("wait %d s, then load the page again", retryAfter),
	}
}

// admit holds the page's audience against the person who asks (decisions, "Pages"). Without a
// sign-in it leads to where that is done.
func (s *Site) admit(r *Request, page *Page) (Answer, error) {
	if page.For == Anybody {
		s.choose(r, Viewers)
		return Answer{}, nil
	}
	if r.Person == nil {
		return Answer{Redirect: "/signin?next=" + url.QueryEscape(s.back(r))}, nil
	}
	switch page.For {
	case Operators:
		if !r.Person.Has(person.Operator) {
			return Answer{}, errNoPage
		}
		if s.Now().Sub(r.Session.CreatedAt) > credential.OperatorFor {
			return Answer{Redirect: "/signin?next=" + url.QueryEscape(s.back(r))}, nil
		}
	case Checkers:
		if r.Person.CheckerID() == "" {
			return Answer{}, errNoPage
		}
	case SignedIn:
		s.choose(r, Viewers)
	case Viewers, Developers, Owners:
		if !s.choose(r, Viewers) {
			return Answer{}, errNoPage
		}
		// Whom the page is not for is told so: they know that it exists.
		if !s.choose(r, page.For) {
			return Answer{}, domain.Forbidden("your role in %s does not include this", r.Account.Name).
				WithHint("ask an owner of the account")
		}
	case Anybody:
	}
	return Answer{}, nil
}

// back is the page to return to: a form that was posted is opened again, at the
// page it stood on.
func (s *Site) back(r *Request) string {
	if r.Method == http.MethodGet {
		return r.URL.RequestURI()
	}
	if from, err := url.Parse(r.Referer()); err == nil && from.Host == r.Host {
		return from.RequestURI()
	}
	return "/"
}

// choose finds the accounts in which the person has what the audience needs, and
// looks at the one their session chose.
func (s *Site) choose(r *Request, a Audience) bool {
	if r.Person == nil {
		return false
	}
	var fit []people.PersonRole
	for _, m := range r.Person.Memberships() {
		if !m.Role.Includes(a.role()) {
			continue
		}
		if m.AccountID == r.Session.AccountID {
			fit = append([]people.PersonRole{m}, fit...)
		} else {
			fit = append(fit, m)
		}
	}
	if len(fit) == 0 {
		return false
	}
	r.Accounts = fit
	r.In(fit[0])
	return true
}

// Sentence makes of an error's words what a page can show.
func Sentence(words string) string {
	if words == "" {
		return ""
	}
	first := []rune(words)
	return strings.ToUpper(string(first[:1])) + string(first[1:]) + "."
}

// send puts the answer on the wire and gives its status.
func (s *Site) send(w http.ResponseWriter, r *Request, a Answer) int {
	h := w.Header()
	status := max(a.Status, http.StatusOK)
	for _, c := range a.Cookies {
		http.SetCookie(w, c)
	}
	h.Set("Cache-Control", "no-store")
	switch {
	case a.Redirect != "":
		h.Set("Location", a.Redirect)
		w.WriteHeader(http.StatusSeeOther)
		return http.StatusSeeOther
	case a.JSON != nil:
		h.Set("Content-Type", "application/json; charset=utf-8")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(a.JSON) // the client is gone
		return status
	case a.page != nil:
		h.Set("Content-Type", "text/html; charset=utf-8")
		w.WriteHeader(status)
		_, _ = w.Write(a.page) // the client is gone
		return status
	case a.File != nil:
		h.Set("Content-Type", a.File.Type)
		h.Set("Content-Disposition", "attachment; filename="+strconv.Quote(a.File.Name))
		w.WriteHeader(status)
		_, _ = w.Write(a.File.Content) // the client is gone
		return status
	}
	if a.Bare {
		r.Account, r.Role = people.Account{}, ""
	}
	if status != http.StatusOK || r.Method != http.MethodGet || refilling(r.Context()) {
		a.Live, a.Every = nil, 0 // its URL shows another page
	}
	note, gone := s.note(r)
	if gone != nil {
		http.SetCookie(w, gone)
	}
	body, err := s.renderer.render(a.Template, Frame{
		Note:  note,
		Title: a.Title, Path: r.URL.Path, Person: r.Person, Account: r.Account, Role: r.Role,
		Accounts: r.Accounts, Live: strings.Join(a.Live, " "), Every: int(a.Every.Seconds()), Home: home(r.Person), View: a.View,
	})
	if err != nil {
		r.Log.WithError(err).Error("page not rendered")
		http.Error(w, "internal error", http.StatusInternalServerError)
		return http.StatusInternalServerError
	}
	h.Set("Content-Type", "text/html; charset=utf-8")
	if a.For > 0 {
		h.Set("Refresh", fmt.Sprintf("%d; url=%s", int(a.For.Seconds()), a.Then))
	}
	if status >= http.StatusBadRequest && r.Method == http.MethodPost {
		body = focused(body)
	}
	tag := ""
	if !a.Secret && (len(a.Live) > 0 || a.Every > 0) {
		sum := sha256.Sum256(bytes.ReplaceAll(body, []byte(commandMark), nil))
		tag = hex.EncodeToString(sum[:16])
		h.Set("Cache-Control", "private, no-cache")
		h.Set("Etag", `W/"`+tag+`"`) // weak: compressed or not, it is one page
		if wire.Matches(r.Header.Values("If-None-Match"), `"`+tag+`"`) {
			w.WriteHeader(http.StatusNotModified)
			return http.StatusNotModified
		}
	}
	body = bytes.ReplaceAll(body, []byte(tagMark), []byte(tag))
	body = bytes.ReplaceAll(body, []byte(commandMark), []byte(uuid.NewString()))
	if !a.Secret && r.Method == http.MethodGet { // the answer to a form may show a secret once (wire.Gzip)
		h.Add("Vary", "Accept-Encoding")
		if len(body) >= compressed && wire.TakesGzip(r.Header.Values("Accept-Encoding")) {
			h.Set("Content-Encoding", "gzip")
			body = wire.Gzip(body)
		}
	}
	w.WriteHeader(status)
	_, _ = w.Write(body) // the client is gone
	return status
}

// compressed is from how many bytes on a page is compressed: less is one packet anyway.
const compressed = 1400

// home is a person's place.
func home(p *Person) string {
	switch {
	case p == nil:
		return "/"
	case len(p.Memberships()) > 0:
		return "/dashboard"
	case p.CheckerID() != "":
		return "/workbench"
	case p.Has(person.Operator):
		return "/console"
	}
	return "/account"
}

// Home is where the person belongs.
func (r *Request) Home() string { return home(r.Person) }

// visibleWithin bounds the wait for the read models after a command.
const visibleWithin = 2 * time.Second

// Visible waits until the read models show what was written; the page that
// follows may then only be early, never wrong.
func (r *Request) Visible(at domain.Position) {
	ctx, cancel := context.WithTimeout(r.Context(), visibleWithin)
	defer cancel()
	if err := r.site.WaitFor(ctx, at); err != nil {
		r.Log.WithError(err).Warn("answered before the read models caught up")
	}
}

// Done answers a form: with its error, or by going on to a path of ours once pages
// show what was written.
func (r *Request) Done(at domain.Position, err error, path string) (Answer, error) {
	if err != nil {
		return Answer{}, err
	}
	r.Visible(at)
	return Go(path)
}

// LocalPath gives a path of ours to go on to: what a link brought along, or the
// other one if that leads elsewhere.
func LocalPath(next, otherwise string) string {
	u, err := url.Parse(next)
	if err != nil || u.Scheme != "" || u.Host != "" || !strings.HasPrefix(next, "/") || strings.HasPrefix(next, "//") ||
		strings.ContainsAny(next, "\\\r\n\t") {
		return otherwise
	}
	return next
}
