package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"humanqa/internal/testing/must"
)

// askEvery is how often the balancer asks /readyz, and giveUp how long it waits for the answer
// and for a connection.
const (
	askEvery = 250 * time.Millisecond
	giveUp   = 3 * time.Second
)

// balancer is a proxy as an operator has it: it takes a process out when its /readyz is not
// 200, and sends no request a second time.
type balancer struct {
	backends []*backend
	turn     atomic.Uint64
}

type backend struct {
	url   *url.URL
	ready atomic.Bool
}

// newBalancer serves at the address until the test ends.
func newBalancer(t testing.TB, address string, targets ...string) {
	t.Helper()
	b := &balancer{}
	for _, target := range targets {
		parsed, err := url.Parse(target)
		must.NoError(t, err)
		b.backends = append(b.backends, &backend{url: parsed})
	}
	listener, err := net.Listen("tcp", address) //nolint:noctx // at once
	must.NoError(t, err)
	srv := httptest.NewUnstartedServer(b.proxy())
	must.NoError(t, srv.Listener.Close())
	srv.Listener = listener
	srv.Start()
	t.Cleanup(srv.Close)
	ctx, stop := context.WithCancel(t.Context())
	var asking sync.WaitGroup
	for _, one := range b.backends {
		asking.Go(func() { one.ask(ctx) })
	}
	t.Cleanup(func() { stop(); asking.Wait() })
}

// ask follows a backend's health, by connections of its own.
func (b *backend) ask(ctx context.Context) {
	client := &http.Client{Timeout: giveUp, Transport: &http.Transport{DisableKeepAlives: true}}
	for {
		res, err := client.Get(b.url.String() + "/readyz") //nolint:noctx // the client has a time-out
		if err == nil {
			_ = res.Body.Close() // nothing more is read
		}
		b.ready.Store(err == nil && res.StatusCode == http.StatusOK)
		select {
		case <-ctx.Done():
			return
		case <-time.After(askEvery):
		}
	}
}

// next is a backend that is ready, in turn; nil: none is.
func (b *balancer) next() *backend {
	turn := int(b.turn.Add(1))
	for i := range b.backends {
		if one := b.backends[(turn+i)%len(b.backends)]; one.ready.Load() {
			return one
		}
	}
	return nil
}

// byProxy marks the proxy's own answers.
const byProxy = "X-Answered-By-Proxy"

func (b *balancer) proxy() http.Handler {
	forward := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			target, _ := r.In.Context().Value(backendKey{}).(*backend)
			r.SetURL(target.url)
			r.Out.Host = r.In.Host
		},
		Transport: &http.Transport{
			DialContext: (&net.Dialer{Timeout: giveUp}).DialContext, ResponseHeaderTimeout: 10 * time.Second, MaxIdleConnsPerHost: 32,
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			w.Header().Set(byProxy, reason(err))
			w.WriteHeader(http.StatusBadGateway)
		},
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		target := b.next()
		if target == nil {
			w.Header().Set(byProxy, "no backend is ready")
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		forward.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), backendKey{}, target)))
	})
}

// reason is an error without the addresses, which are different each time.
func reason(err error) string {
	if at := (*net.OpError)(nil); errors.As(err, &at) {
		return at.Op + ": " + at.Err.Error()
	}
	return strings.ReplaceAll(err.Error(), "\n", " ")
}

// backendKey is that of a request's backend.
type backendKey struct{}

// tally counts the requests of a client, and measures the time without any success.
type tally struct {
	next http.RoundTripper
	pace time.Duration // before each request: the machine belongs to others too

	mu sync.Mutex
	counts
}

// counts are those of one part of a trial.
type counts struct {
	requests, failures int
	kinds              map[string]int // of failures
	since              time.Time      // the first failure after a success; zero: none
	longest, slowest   time.Duration
}

// RoundTrip reads the answer to its end, so that one which breaks off is a failure too.
func (t *tally) RoundTrip(r *http.Request) (*http.Response, error) {
	time.Sleep(t.pace)
	began := time.Now()
	res, err := t.next.RoundTrip(r)
	if err == nil {
		var body []byte
		body, err = io.ReadAll(res.Body)
		err = errors.Join(err, res.Body.Close())
		res.Body = io.NopCloser(bytes.NewReader(body))
	}
	t.count(res, err, time.Since(began))
	return res, err
}

func (t *tally) count(res *http.Response, err error, took time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.requests++
	t.slowest = max(t.slowest, took)
	kind := ""
	switch {
	case err != nil:
		kind = "no answer"
	case res.StatusCode >= http.StatusInternalServerError && res.Header.Get(byProxy) != "":
		kind = fmt.Sprintf("%d of the proxy (%s)", res.StatusCode, res.Header.Get(byProxy))
	case res.StatusCode >= http.StatusInternalServerError:
		kind = fmt.Sprintf("%d of the service", res.StatusCode)
	}
	if kind == "" {
		t.longest = max(t.longest, t.gap())
		t.since = time.Time{}
		return
	}
	t.failures++
	t.kinds[kind]++
	if t.since.IsZero() {
		t.since = time.Now()
	}
}

// gap is the time without a success until now. The caller holds the lock.
func (t *tally) gap() time.Duration {
	if t.since.IsZero() {
		return 0
	}
	return time.Since(t.since)
}

// begin counts from zero.
func (t *tally) begin() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.counts = counts{kinds: map[string]int{}}
}

// so far gives what was counted since begin.
func (t *tally) sofar() counts {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.counts
	c.kinds = maps.Clone(c.kinds)
	c.longest = max(c.longest, t.gap())
	return c
}

func (c counts) String() string {
	var kinds []string
	for _, kind := range slices.Sorted(maps.Keys(c.kinds)) {
		kinds = append(kinds, fmt.Sprintf("%d× %s", c.kinds[kind], kind))
	}
	return fmt.Sprintf("%5d requests, %4d failed, longest time without a success %6s, slowest request %6s  %s", c.requests, c.failures,
		c.longest.Round(10*time.Millisecond), c.slowest.Round(10*time.Millisecond), strings.Join(kinds, ", "))
}
