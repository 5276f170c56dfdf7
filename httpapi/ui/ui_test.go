package ui

import (
	"bufio"
	"context"
	"errors"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/lib/pq"
	"github.com/sirupsen/logrus"
	logtest "github.com/sirupsen/logrus/hooks/test"

	"humanqa/domain"
	"humanqa/httpapi/wire"
	"humanqa/internal/inter"
	"humanqa/internal/testing/must"
)

// Where a sign-in leads is what a stranger's link may have said.
func TestASignInLeadsToOurPagesOnly(t *testing.T) {
	t.Parallel()
	for next, want := range map[string]string{
		"/dashboard/jobs?status=failed": "/dashboard/jobs?status=failed", "/": "/",
		"": "/home", "dashboard": "/home", "//evil.example": "/home", "/\\evil.example": "/home", "https://evil.example/": "/home",
		"javascript:alert(1)": "/home", "/\r\nSet-Cookie: a=b": "/home", "/\t/evil.example": "/home", "http:/dashboard": "/home",
	} {
		if got := LocalPath(next, "/home"); got != want {
			t.Errorf("%q leads to %q", next, got)
		}
	}
}

func TestThisMachineIsCalledByItsName(t *testing.T) {
	t.Parallel()
	for base, want := range map[string]string{
		"http://127.0.0.1:8080": "http://localhost:8080", "http://[::1]:8080": "http://localhost:8080", "http://127.0.0.1": "http://localhost",
		"http://localhost:8080": "http://localhost:8080", "https://qa.example": "https://qa.example", "http://192.0.2.1:8080": "http://192.0.2.1:8080",
	} {
		if got := Origin(base); got != want {
			t.Errorf("%s is called %s", base, got)
		}
	}
}

// A request for this machine's number is led to its name, and nowhere else: what stands
// behind the method need not be a path.
func TestARequestIsLedToThisMachineOnly(t *testing.T) {
	t.Parallel()
	log := logrus.New()
	log.SetOutput(io.Discard)
	s, err := New(Config{
		BaseURL: "http://127.0.0.1:8080", Now: time.Now, Log: log, Address: func(string) string { return "192.0.2.1" },
		Admit: func(context.Context, string, int) (int, error) { return 0, nil },
	})
	must.NoError(t, err)
	for target, want := range map[string]string{
		"/signin?next=%2F": "http://localhost:8080/signin?next=%2F", "http://127.0.0.1:8080/signin": "http://localhost:8080/signin", "/": "http://localhost:8080/",
		"x:@evil.example/": "/", "x:.evil.example/": "/", "//evil.example/": "/evil.example/", "/\\evil.example": "http://localhost:8080/%5Cevil.example",
	} {
		r, err := http.ReadRequest(bufio.NewReader(strings.NewReader("GET " + target + " HTTP/1.1\r\nHost: 127.0.0.1:8080\r\n\r\n")))
		must.NoError(t, err)
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		if got := w.Header().Get("Location"); got != want {
			t.Errorf("%s: %d, to %q", target, w.Code, got)
		}
		if uuid.Validate(w.Header().Get("X-Request-Id")) != nil {
			t.Errorf("%s: the request's id is %q", target, w.Header().Get("X-Request-Id"))
		}
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://localhost:8080/favicon.ico", nil))
	if w.Code != 200 || w.Header().Get("Content-Type") != "image/svg+xml" || !s.Serves("/favicon.ico") || !strings.Contains(w.Body.String(), "<svg") {
		t.Errorf("the icon: %d, %v", w.Code, w.Header())
	}
	w = httptest.NewRecorder()
	s.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://localhost:8080/robots.txt", nil))
	if w.Code != 200 || !s.Serves("/robots.txt") || !strings.Contains(w.Body.String(), "\nAllow: /docs\n") || !strings.HasSuffix(w.Body.String(), "\nDisallow: /\n") {
		t.Errorf("for search engines: %d, %q", w.Code, w.Body)
	}
}

func TestTimesAndAmountsInWords(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for d, want := range map[time.Duration]string{
		0: "just now", time.Minute: "1 minute ago", 59 * time.Minute: "59 minutes ago", 90 * time.Minute: "2 hours ago",
		35 * time.Hour: "35 hours ago", 48 * time.Hour: "2 days ago", 100 * 24 * time.Hour: "3 months ago",
	} {
		if got := Ago(now, now.Add(-d)); got != want {
			t.Errorf("%v: %q", d, got)
		}
	}
	for d, want := range map[time.Duration]string{
		-time.Second: "overdue", 0: "overdue", 30 * time.Second: "in less than a minute", time.Hour: "in 1 hour",
	} {
		if got := Until(now, now.Add(d)); got != want {
			t.Errorf("%v: %q", d, got)
		}
	}
	if p := NewPlot([]Column{{Parts: []ColumnPart{{Of: 4900}}}}, 0, " %"); p.Max != "5\u202f000 %" || p.Half != "2\u202f500 %" || NewPlot([]Column{{}}, 5, "").Half != "2.5" {
		t.Errorf("the axis of a plot is %s, %s", p.Max, p.Half)
	}
	if got := Credits(1) + ", " + Credits(-12345) + ", " + Count(1000, "test"); got != "1 credit, −12\u202f345 credits, 1\u202f000 tests" {
		t.Error(got)
	}
}

// What a page loads is small, named by its bytes, and never asked for twice.
func TestAssetsAreSmallAndKept(t *testing.T) {
	t.Parallel()
	all, err := loadAssets()
	must.NoError(t, err)
	font, err := all.url(inter.Name)
	must.NoError(t, err)
	if style := string(all.byName["page.css"].plain); !strings.Contains(style, `url(`+font+`)`) {
		t.Errorf("the style does not name the font as %s", font)
	}
	if size := len(inter.File); size > 100_000 {
		t.Errorf("the font has %d bytes", size)
	}
	total := 0
	for name, one := range all.byName {
		if one.zipped != nil {
			total += len(one.zipped())
		}
		for _, zip := range []string{"", "br, gzip"} {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, one.url, nil)
			r.Header.Set("Accept-Encoding", zip)
			w := httptest.NewRecorder()
			all.serve(w, r)
			h := w.Header()
			if w.Code != 200 || !strings.Contains(h.Get("Cache-Control"), "immutable") || (h.Get("Content-Encoding") == "gzip") != (zip != "" && name != inter.Name) {
				t.Errorf("%s, %q: %d %v", name, zip, w.Code, h)
			}
		}
	}
	if total > 60<<10 {
		t.Errorf("a page loads %d bytes", total)
	}
	if _, err := all.url("nothing.js"); err == nil {
		t.Error("an asset that is not there has a URL")
	}
	w := httptest.NewRecorder()
	all.serve(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/assets/0/page.js", nil))
	if w.Code != 404 {
		t.Errorf("a wrong hash: %d", w.Code)
	}
}

// Streams that were opened in one moment are not looked after in one.
func TestStreamsOpenedAtOnceAreLookedAfterApart(t *testing.T) {
	t.Parallel()
	const streams = 2000
	var seconds [30]int
	for range streams {
		d := nextBeat()
		if d < beatEvery/2 || d >= 3*beatEvery/2 {
			t.Fatalf("a stream is looked after %s later", d)
		}
		seconds[d/time.Second]++
	}
	for second, n := range seconds {
		if n > streams/10 {
			t.Errorf("%d of %d streams are looked after in second %d", n, streams, second)
		}
	}
}

// A set is parsed at its first use, so a start would not notice a template that does not
// parse.
func TestEveryTemplateParses(t *testing.T) {
	t.Parallel()
	all, err := loadAssets()
	must.NoError(t, err)
	var sources []fs.FS
	must.NoError(t, filepath.WalkDir("..", func(dir string, d fs.DirEntry, err error) error {
		if err == nil && d.Name() == "templates" && dir != "../ui/templates" {
			sources = append(sources, os.DirFS(filepath.Dir(dir)))
		}
		return err
	}))
	r, err := newRenderer(all, time.Now, sources...)
	must.NoError(t, err)
	if len(r.pages) < 50 {
		t.Errorf("only %d templates were found", len(r.pages))
	}
	for name, parsed := range r.pages {
		if _, err := parsed(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A browser that goes to another page ends the request for the one before, at any place.
func TestWhoeverLeavesAPageIsNoFaultOfTheService(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		left   bool
		err    error
		status int
		logged int
	}{
		"in the middle of a session's set-up": {true, &net.OpError{Op: "read", Err: os.ErrDeadlineExceeded}, wire.StatusClientGone, 0},
		"in the middle of a statement":        {true, &pq.Error{Code: "57014"}, wire.StatusClientGone, 0},
		"in the middle of a command":          {true, domain.Unavailable(context.Canceled), http.StatusServiceUnavailable, 0},
		"a Postgres that is away":             {false, &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}, http.StatusServiceUnavailable, 1},
		"a fault":                             {false, errors.New("a bug"), http.StatusInternalServerError, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, leave := context.WithCancel(t.Context())
			defer leave()
			if c.left {
				leave()
			}
			log, logged := logtest.NewNullLogger()
			r := &Request{Request: httptest.NewRequestWithContext(ctx, http.MethodGet, "/live", nil), Log: log, Writer: httptest.NewRecorder()}
			if got := new(Site).refuse(r, c.err); got.Status != c.status || len(logged.AllEntries()) != c.logged {
				t.Errorf("%d, and logged %d times, want %d and %d", got.Status, len(logged.AllEntries()), c.status, c.logged)
			}
		})
	}
}

// Whoever presses a button and closes the tab gets what the button says, or nothing at all.
func TestACommandGoesOnWhenItsBrowserLeaves(t *testing.T) {
	t.Parallel()
	for method, want := range map[string]error{http.MethodPost: nil, http.MethodGet: context.Canceled} {
		ctx, leave := context.WithCancel(t.Context())
		var seen error
		quiet, _ := logtest.NewNullLogger()
		site, err := New(Config{
			Log: quiet, BaseURL: "http://qa.example", Now: time.Now, Address: func(at string) string { return at },
			Admit: func(context.Context, string, int) (int, error) { return 0, nil },
			Pages: []Page{{Method: method, Pattern: "/join", For: Anybody, Handle: func(r *Request) (Answer, error) {
				leave()
				seen = r.Context().Err()
				_, limited := r.Context().Deadline()
				return Answer{Redirect: "/"}, map[bool]error{false: errors.New("it may last for ever")}[limited]
			}}},
		})
		must.NoError(t, err)
		w := httptest.NewRecorder()
		site.ServeHTTP(w, httptest.NewRequestWithContext(ctx, method, "http://qa.example/join", nil))
		if !errors.Is(seen, want) || w.Code != http.StatusSeeOther {
			t.Errorf("%s: %v, %d %s", method, seen, w.Code, w.Body)
		}
	}
}
