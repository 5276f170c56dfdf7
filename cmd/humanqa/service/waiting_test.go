package service

import (
	"context"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"humanqa/eventstore/node"
	"humanqa/internal/testing/eventually"
	"humanqa/internal/testing/must"
	"humanqa/internal/testing/pgtest"
	"humanqa/internal/testing/process"
)

// The database is there first, and then the log.
func TestAStartWhosePartsDoNotAnswerSaysSoAndGoesOnOnceTheyDo(t *testing.T) {
	t.Parallel()
	dsn, database, log := pgtest.NewDSN(t), process.Address(t), process.Address(t)
	var network, server string
	through := pgtest.Through(t, dsn, func(n, address string) string { network, server = n, address; return database })
	cfg, quiet := serveConfig(t, "HUMANQA_DATABASE_URL="+through, "HUMANQA_EVENTSTORE_URL=esdb://"+log+"?tls=false")
	cfg.Addr = process.Address(t)
	base := "http://" + cfg.Addr
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- Serve(ctx, cfg, quiet, func(*Service) {}) }()

	eventually.Within(t, eventually.Patience, func() error {
		return answers(base, http.StatusServiceUnavailable, `{"part":"postgres","reason":"it does not answer"}`)
	})
	res, err := http.Get(base + "/healthz") //nolint:noctx // of this test's service
	must.NoError(t, err)
	must.NoError(t, res.Body.Close())
	if res.StatusCode != http.StatusOK || res.Header.Get("X-Request-Id") == "" {
		t.Errorf("/healthz: %d %v", res.StatusCode, res.Header)
	}
	res, err = http.Get(base + "/v1/jobs") //nolint:noctx // of this test's service
	must.NoError(t, err)
	must.NoError(t, res.Body.Close())
	if res.StatusCode != http.StatusServiceUnavailable || res.Header.Get("Retry-After") == "" || res.Header.Get("X-Request-Id") == "" {
		t.Errorf("/v1/jobs: %d %v", res.StatusCode, res.Header)
	}

	lead(t, database, network, server)
	eventually.Within(t, eventually.Patience, func() error {
		return answers(base, http.StatusServiceUnavailable, `{"part":"log","reason":"it does not answer"}`)
	})
	n, err := node.Start(t.Context(), node.Config{DSN: dsn, InsecureListen: log, Log: quiet})
	must.NoError(t, err)
	defer func() { _ = n.Close(context.Background()) }() // the service has ended
	eventually.Within(t, eventually.Patience, func() error { return answers(base, http.StatusOK, "ready") })
	stop()
	must.NoError(t, <-ended)
}

// lead makes an address lead to a server.
func lead(t *testing.T, at, network, server string) {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", at)
	must.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			far, err := new(net.Dialer).DialContext(context.Background(), network, server)
			if err != nil {
				_ = near.Close()
				continue
			}
			pass := func(to, from net.Conn) { _, _ = io.Copy(to, from); _ = to.Close() }
			go pass(near, far)
			go pass(far, near)
		}
	}()
}

func TestAPartThatDoesNotAnswerIsNamedWithItsSetting(t *testing.T) {
	t.Parallel()
	cfg, log := serveConfig(t, "HUMANQA_DATABASE_URL=postgres://ann:hidden@"+process.Address(t)+"/qa?sslmode=disable")
	_, err := Start(t.Context(), cfg, log, nil)
	if err == nil || !strings.HasPrefix(err.Error(), "postgres does not answer: does it run, and is HUMANQA_DATABASE_URL right?") ||
		strings.Contains(err.Error(), "hidden") {
		t.Errorf("%v", err)
	}
}

// Not parallel: it sets the process's environment.
func TestSystemdGivesAStartThatWaitsMoreTime(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "notify")
	systemd, err := new(net.ListenConfig).ListenPacket(t.Context(), "unixgram", socket)
	must.NoError(t, err)
	defer func() { _ = systemd.Close() }() // it said enough
	t.Setenv("NOTIFY_SOCKET", socket)
	cfg, log := serveConfig(t, "HUMANQA_DATABASE_URL=postgres://"+process.Address(t)+"/qa?sslmode=disable")
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- Serve(ctx, cfg, log, func(*Service) {}) }()
	must.NoError(t, systemd.SetReadDeadline(time.Now().Add(eventually.Patience)))
	said := make([]byte, 64)
	n, _, err := systemd.ReadFrom(said)
	if err != nil || string(said[:n]) != "EXTEND_TIMEOUT_USEC=300000000" {
		t.Errorf("it says %q, %v", said[:n], err)
	}
	stop()
	must.NoError(t, <-ended)
}
