package service

import (
	"context"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/prometheus/client_golang/prometheus"

	"humanqa/eventstore"
	"humanqa/eventstore/binding"
	"humanqa/httpapi"
	"humanqa/internal/pgclock"
	"humanqa/internal/testing/eventually"
	"humanqa/internal/testing/must"
	"humanqa/internal/testing/pgtest"
)

// A page that somebody's browser has open may have its own name lead here: it reads
// nothing (DNS rebinding).
func TestOperatorsPagesAnswerByTheirOwnNamesOnly(t *testing.T) {
	t.Parallel()
	health := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	loopback := map[string]bool{
		"localhost:9090": true, "LOCALHOST": true, "127.0.0.1:9090": true, "127.0.0.1": true, "[::1]:9090": true, "[::1]": true, "": true,
		"evil.example:9090": false, "localhost.evil.example:9090": false, "127.0.0.1.evil.example": false, "metrics.internal:9090": false,
	}
	with := func(more map[string]bool) map[string]bool {
		out := maps.Clone(loopback)
		maps.Copy(out, more)
		return out
	}
	for address, hosts := range map[string]map[string]bool{
		"127.0.0.1:9090":        with(map[string]bool{"10.0.0.5:9090": false, "[fd00::5]:9090": false}),
		"10.0.0.5:9090":         with(map[string]bool{"10.0.0.5:9090": true, "10.0.0.6:9090": false}),
		"metrics.internal:9090": with(map[string]bool{"metrics.internal:9090": true, "Metrics.Internal": true, "10.0.0.5:9090": false}),
		"0.0.0.0:9090":          with(map[string]bool{"10.0.0.5:9090": true, "[fd00::5]:9090": true}),
		":9090":                 with(map[string]bool{"10.0.0.5:9090": true}),
	} {
		h := adminHandler(address, prometheus.NewRegistry(), health)
		for host, ok := range hosts {
			for _, path := range []string{"/metrics", "/healthz", "/debug/pprof/cmdline"} {
				r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, http.NoBody)
				r.Host = host
				w := httptest.NewRecorder()
				h.ServeHTTP(w, r)
				if want := map[bool]int{true: http.StatusOK, false: http.StatusMisdirectedRequest}[ok]; w.Code != want {
					t.Errorf("%s of %q at %s: %d, want %d", path, host, address, w.Code, want)
				}
			}
		}
	}
}

// A hundred connections with a megabyte of headers each would be a hundred megabytes.
func TestTheOperatorsAddressTakesNoLargeHeaders(t *testing.T) {
	t.Parallel()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	must.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- serveAdmin(ctx, l, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	}()
	for size, want := range map[int]int{1 << 10: http.StatusOK, 100 << 10: http.StatusRequestHeaderFieldsTooLarge} {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+l.Addr().String(), http.NoBody)
		must.NoError(t, err)
		req.Header.Set("X-Large", strings.Repeat("x", size))
		res, err := http.DefaultClient.Do(req)
		must.NoError(t, err)
		_ = res.Body.Close() // its status says enough
		if res.StatusCode != want {
			t.Errorf("%d bytes of headers: %d, want %d", size, res.StatusCode, want)
		}
	}
	stop()
	must.NoError(t, <-ended)
}

// Anybody may read why the service is not ready: the errors, which name
// addresses, are for the log.
func TestWhatIsNotReadyIsSaidWithoutTheErrors(t *testing.T) {
	t.Parallel()
	_, quiet := serveConfig(t)
	nowhere := filepath.Join(t.TempDir(), "nowhere")
	log, err := eventstore.OpenSocket(nowhere, eventstore.Patience, quiet)
	must.NoError(t, err)
	db, err := sqlx.Open("postgres", "sslmode=disable user=nobody host="+nowhere)
	must.NoError(t, err)
	t.Cleanup(func() { _, _ = db.Close(), log.Close() })
	var clock *pgclock.Clock // ten seconds apart from Postgres'
	postgres := pgtest.NewEmpty(t)
	eventually.True(t, "Postgres says soon enough what time it is", func() bool {
		clock, err = pgclock.Open(t.Context(), postgres, quiet, func() time.Time { return time.Now().Add(-10 * time.Second) })
		return err == nil && strings.HasSuffix(clock.Problem(), "s ahead of this machine's")
	})
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	s := &Service{core: &Core{DB: db, Log: log, Clock: clock, Binding: binding.New(db, log, time.Now)}}
	var told []httpapi.Problem
	for _, p := range s.problems(ctx) {
		if (p.Part == "postgres" || p.Part == "log") && p.Cause == nil {
			t.Errorf("%s: nothing for the log", p.Part)
		}
		told = append(told, httpapi.Problem{Part: p.Part, Reason: p.Reason})
	}
	want := []httpapi.Problem{{Part: "service", Reason: "it is starting"}, {Part: "postgres", Reason: "it does not answer"},
		{Part: "clock", Reason: clock.Problem()}, {Part: "log", Reason: "it does not answer"}}
	if !slices.Equal(told, want) {
		t.Errorf("got %v, want %v", told, want)
	}
}
