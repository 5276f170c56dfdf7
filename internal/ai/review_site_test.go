package ai

import (
	"crypto/x509"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"humanqa/domain/command"
	"humanqa/domain/job"
	"humanqa/internal/guard"
	"humanqa/internal/testing/must"
)

// here is the one private address that most tests allow.
var here = guard.Allow{netip.MustParsePrefix("127.0.0.1/32")}

// site is a web site on this machine that counts what it is asked for.
type site struct {
	*httptest.Server
	mu   sync.Mutex
	hits map[string]int // "GET /path"
}

type routes map[string]http.HandlerFunc

func (s *site) seen() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.hits)
}

func newSite(t *testing.T, addr string, secure bool, pages routes) *site {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", addr)
	must.NoError(t, err)
	s := &site{hits: make(map[string]int)}
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.hits[r.Method+" "+r.URL.Path]++
		s.mu.Unlock()
		if page, ok := pages[r.URL.Path]; ok {
			page(w, r)
			return
		}
		http.NotFound(w, r)
	}))
	must.NoError(t, s.Listener.Close())
	s.Listener = listener
	if secure {
		s.StartTLS()
	} else {
		s.Start()
	}
	t.Cleanup(s.Close)
	return s
}

func secureSite(t *testing.T, pages routes) *site {
	t.Helper()
	return newSite(t, "127.0.0.1:0", true, pages)
}

func plainSite(t *testing.T, pages routes) *site {
	t.Helper()
	return newSite(t, "127.0.0.1:0", false, pages)
}

func serve(html string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = io.WriteString(w, html)
	}
}

func status(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
}

func redirect(to string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, to, http.StatusFound) }
}

// reviewer trusts the sites' certificates.
func reviewer(t *testing.T, allow guard.Allow, trusted ...*site) *Rules {
	t.Helper()
	roots := x509.NewCertPool()
	for _, s := range trusted {
		if c := s.Certificate(); c != nil {
			roots.AddCert(c)
		}
	}
	rules, ok := New(Config{Pages: guard.Pages{Allow: guard.Targets{Networks: allow}}, Roots: roots}).(*Rules)
	if !ok {
		t.Fatal("no model is configured, but one is asked")
	}
	return rules
}

func review(t *testing.T, r *Rules, url string) command.Review {
	t.Helper()
	got, err := r.Review(t.Context(), url)
	must.NoError(t, err)
	if got.By != "rules" || len(got.Items) != len(catalogue.Review) {
		t.Fatalf("%d items by %q", len(got.Items), got.By)
	}
	bounded(t, "summary", got.Summary, 1500)
	for i, item := range got.Items {
		if item.ID != fmt.Sprintf("item-%d", i+1) || item.Key != catalogue.Review[i].Key {
			t.Errorf("item %d is %s with the key %s", i, item.ID, item.Key)
		}
		bounded(t, "note", item.Note, 500)
		if (item.Status == job.ItemSkip) != slices.Contains(job.SkipReasons(), item.Reason) {
			t.Errorf("%s is %s with the reason %q", item.Key, item.Status, item.Reason)
		}
	}
	return got
}

// line is one item's outcome: "fail: There is no title."
func line(t *testing.T, r command.Review, key string) string {
	t.Helper()
	for _, i := range r.Items {
		if i.Key == key {
			return string(i.Status) + ": " + i.Note
		}
	}
	t.Fatalf("no item %s", key)
	return ""
}

func wantLine(t *testing.T, r command.Review, key, want string) {
	t.Helper()
	if got := line(t, r, key); got != want {
		t.Errorf("%s is\n%q, want\n%q", key, got, want)
	}
}

var volatile = regexp.MustCompile(`\d+ ms|ends on [0-9-]+, in \d+ days|127\.0\.0\.1:\d+`)

// goldenReview compares the review without what differs from run to run.
func goldenReview(t *testing.T, name string, r command.Review) {
	t.Helper()
	mask := func(s string) string {
		return volatile.ReplaceAllStringFunc(s, func(s string) string {
			switch {
			case strings.HasSuffix(s, "ms"):
				return "N ms"
			case strings.HasSuffix(s, "days"):
				return "ends on DATE, in N days"
			}
			return "SITE"
		})
	}
	r.Summary = mask(r.Summary)
	for i := range r.Items {
		r.Items[i].Note = mask(r.Items[i].Note)
	}
	golden(t, name, r)
}
