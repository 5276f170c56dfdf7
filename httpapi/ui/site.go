package ui

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"math"
	"net"
	"net/http"
	"net/url"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/sirupsen/logrus"

	"humanqa/domain"
	"humanqa/domain/person"
	"humanqa/httpapi/admit"
	"humanqa/httpapi/wire"
	"humanqa/internal/credential"
	"humanqa/internal/tracing"
	"humanqa/projections/changes"
	"humanqa/projections/people"
)

const (
	// pageTime bounds all steps of a page together (decisions, "One patience").
	pageTime = 10 * time.Second
	// uploadTime bounds a request that is still sending a file.
	uploadTime = 5 * time.Minute
	// maxForm bounds the body of a form, in bytes.
	maxForm = 256 << 10

	requestIDHeader = "X-Request-Id"

	// Requests a minute: of a session, and of an address without a session.
	sessionRate  = 600
	strangerRate = 300

	// pagesAtOnce is how many pages of a session, or of an address without one, are made at
	// the same time; the others of it wait. So nobody takes all connections of the database.
	pagesAtOnce = 4
)

// Config holds the dependencies of a Site. All fields but Tracer are required.
type Config struct {
	Credentials *credential.Store
	People      *people.Reads
	Changes     *changes.Changes
	// Admit asks for a place among a caller's requests of the last minute;
	// retryAfter, in seconds, is 0 when there is one.
	Admit func(ctx context.Context, caller string, limit int) (retryAfter int, err error)
	// WaitFor returns when every read model shows the position.
	WaitFor func(context.Context, domain.Position) error
	// Waiting is how many questions of checkers wait for an answer of the account.
	Waiting func(ctx context.Context, accountID string) (int, error)
	// Fresh waits where a page would deny what the read models do not show yet.
	Fresh *admit.Freshness
	// Address is the address of a connection's client, as limits count it.
	Address func(remote string) string
	// LogAddresses names it in the lines of the log.
	LogAddresses bool
	// PageTime bounds all steps of a page together; 0 for 10 seconds (decisions, "One
	// patience").
	PageTime time.Duration
	Log      logrus.FieldLogger
	Tracer   *tracing.Tracer // nil: no spans
	Now      func() time.Time
	BaseURL  string
	// Templates are those of the packages whose pages are in Pages.
	Templates []fs.FS
	Pages     []Page
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
	places   *wire.Quota // of pages that are made
}

// New makes a Site. It fails where a template cannot be parsed or two pages have
// one pattern.
func New(c Config) (*Site, error) {
	c.PageTime = cmp.Or(c.PageTime, pageTime)
	s := &Site{
		Config: c, mux: http.NewServeMux(),
		sameSite: http.NewCrossOriginProtection(), stopping: make(chan struct{}), watchers: newWatchers(),
		places: wire.NewQuota(math.MaxInt64, pagesAtOnce, c.PageTime),
	}
	// A proxy may pass another Host on.
	if err := s.sameSite.AddTrustedOrigin(Origin(c.BaseURL)); err != nil {
		return nil, err
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
	s.mux.HandleFunc("GET /robots.txt", serveRobots)
	return s, nil
}

// Serves says that the path is a page's, not the API's.
func (s *Site) Serves(path string) bool {
	first, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	return slices.Contains([]string{"", "signin", "join", "account", "dashboard", "workbench", "console", "shared", "mail", "live",
		"assets", "favicon.ico", "robots.txt"}, first)
}

// Stop ends the streams; pages are still answered.
func (s *Site) Stop() { s.stop.Do(func() { close(s.stopping) }) }

// ServeHTTP handles every request in the same way.
func (s *Site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w, r = wire.AsGet(w, r)
	secure(w.Header())
	w.Header().Set(requestIDHeader, uuid.NewString())
	if there, elsewhere := s.otherName(r); elsewhere {
		http.Redirect(w, r, there, http.StatusTemporaryRedirect)
		return
	}
	s.mux.ServeHTTP(w, r)
}

// accept makes the Request that a page gets.
func (s *Site) accept(w http.ResponseWriter, hr *http.Request) *Request {
	r := &Request{Request: hr, ID: w.Header().Get(requestIDHeader), Address: s.Address(hr.RemoteAddr), Writer: w, site: s}
	r.Log = tracing.Log(hr.Context(), s.Log).WithFields(logrus.Fields{"requestId": r.ID, "page": hr.Pattern})
	if s.LogAddresses {
		r.Log = r.Log.WithField("address", r.Address)
	}
	return r
}

// serve answers one request; page is nil where there is none.
func (s *Site) serve(w http.ResponseWriter, hr *http.Request, page *Page) {
	started := time.Now()
	parent, allowed := hr.Context(), s.PageTime
	if page != nil && page.Upload {
		allowed = uploadTime
	}
	if page != nil && page.Method == http.MethodPost {
		parent = context.WithoutCancel(parent) // a command cut in half would need repair
	}
	ctx, cancel := context.WithTimeout(parent, allowed)
	if page != nil && page.Takes {
		ctx, cancel = s.untilStop(hr.Context())
	}
	defer cancel()
	ctx, span := s.tracePage(ctx, w, hr, page)
	defer span.End()
	r := s.accept(w, hr.WithContext(ctx))
	ans := s.answer(w, r, page)
	if ans.Serve != nil {
		log := r.Log
		if ans.Status != 0 {
			span.Answered(ans.Status)
			log = log.WithField("status", ans.Status)
		}
		span.End() // Serve's time is not the page's
		log.Info("page")
		ans.Serve.ServeHTTP(w, hr) // without the page's time limit
		return
	}
	if was := refusedIn(ctx); was != nil && ans.Template != "" && ans.Status == 0 {
		ans.Status = StatusOf(was.err.Kind)
	} else if was != nil {
		r, ans = was.Request, s.refuse(was.Request, was.err)
	}
	status := http.StatusSwitchingProtocols
	if !ans.Taken {
		status = s.send(w, r, ans)
	}
	span.Answered(status)
	r.Log.WithFields(logrus.Fields{"status": status, "millis": float64(time.Since(started).Microseconds()) / 1000}).Info("page")
}

// tracePage begins the span of a page, named by its pattern: a path may hold a token.
func (s *Site) tracePage(ctx context.Context, w http.ResponseWriter, hr *http.Request, page *Page) (context.Context, tracing.Span) {
	method, route := http.MethodGet, "page"
	if page != nil {
		method, route = page.Method, page.Pattern
	}
	return s.Tracer.StartRequest(ctx, hr.Header, method, route, w.Header().Get(requestIDHeader))
}

// untilStop is the context of a page without an end of its own: it ends with the server.
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

// otherName leads from this machine's loopback address to its name: cookies and passkeys
// belong to one of them.
func (s *Site) otherName(r *http.Request) (string, bool) {
	host, _, err := net.SplitHostPort(r.Host)
	if err != nil {
		host = r.Host
	}
	ip, origin := net.ParseIP(host), Origin(s.BaseURL)
	if ip == nil || !ip.IsLoopback() || origin == s.BaseURL || r.Method != http.MethodGet {
		return "", false
	}
	// A request's target need not begin with a slash: "@" behind this service's name would
	// make it a name of another host.
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
		if again, ok := s.again(r, page, err); ok {
			return again
		}
		return s.refuse(r, err)
	}
	return ans
}

// maxPath bounds a page's path, in bytes: no id that a service makes is so long.
const maxPath = 1000

// possible says that the path may hold ids of this service. The log and Postgres are not
// asked for texts that they cannot hold.
func possible(path string) bool {
	return len(path) <= maxPath && utf8.ValidString(path) && !strings.ContainsFunc(path, unicode.IsControl)
}

var errNoPage = domain.NotFound("page").WithHint("it may have moved, or belong to another account")

func (s *Site) handle(w http.ResponseWriter, r *Request, page *Page) (Answer, error) {
	if err := s.sameSite.Check(r.Request); err != nil {
		return Answer{}, domain.Forbidden("the form was sent from another site").WithHint("open the page here, and send it again")
	}
	if err := s.enter(r); err != nil {
		return Answer{}, err
	}
	leave, err := s.takePlace(r, page)
	if err != nil {
		return Answer{}, err
	}
	defer leave()
	if page == nil || !possible(r.URL.Path) {
		return Answer{}, errNoPage
	}
	if led, err := s.admit(r, page); err != nil || led.Redirect != "" {
		return led, err
	}
	if form, again := resentIn(r.Context()); again && r.Account.ID != form.accountID {
		return Answer{}, errNoPage // the person has left the account since
	}
	if !page.Upload {
		r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	}
	if page.Fresh && !r.Proven() {
		return s.askForProof(r, page)
	}
	if r.Method == http.MethodPost {
		if err := r.readForm(page.Upload); err != nil {
			return Answer{}, err
		}
		if err := r.sameAccount(page); err != nil {
			return Answer{}, err
		}
	}
	ans, err := admit.AtHead(r.Context(), s.Fresh, func() (Answer, error) { return page.Handle(r) },
		func(_ Answer, err error) bool {
			return r.Person != nil && r.Method == http.MethodGet && domain.IsKind(err, domain.KindNotFound)
		})
	s.carriedOut(r, err)
	if err == nil && r.Method == http.MethodPost {
		ans = noted(page, ans)
	}
	if err == nil && r.Method == http.MethodGet && r.beyond != "" {
		return Go(r.beyond), nil
	}
	return ans, err
}

// Sentence turns an error's words into a sentence for a page.
func Sentence(words string) string {
	if words == "" {
		return ""
	}
	first := []rune(words)
	return strings.ToUpper(string(first[:1])) + string(first[1:]) + "."
}

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

// Home is the person's place.
func (r *Request) Home() string { return home(r.Person) }

// visibleWithin bounds the wait for the read models after a command.
const visibleWithin = 2 * time.Second

// Visible waits until the read models show the written events, for visibleWithin at most.
// After that time, the next page may show an earlier state.
func (r *Request) Visible(at domain.Position) {
	ctx, cancel := context.WithTimeout(r.Context(), visibleWithin)
	defer cancel()
	if err := r.site.WaitFor(ctx, at); err != nil {
		r.Log.WithError(err).Warn("answered before the read models caught up")
	}
}

// Done answers a form: with its error, or with a redirect to a path of this service once
// pages show the written events.
func (r *Request) Done(at domain.Position, err error, path string) (Answer, error) {
	if err != nil {
		return Answer{}, err
	}
	r.Visible(at)
	return Go(path), nil
}

// LocalPath gives next if it is a path of this service, else the other path.
func LocalPath(next, otherwise string) string {
	u, err := url.Parse(next)
	if err != nil || u.Scheme != "" || u.Host != "" || !strings.HasPrefix(next, "/") || strings.HasPrefix(next, "//") ||
		strings.ContainsAny(next, "\\\r\n\t") {
		return otherwise
	}
	return next
}
