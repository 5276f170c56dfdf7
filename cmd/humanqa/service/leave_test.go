package service

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"humanqa/internal/testing/eventually"
	"humanqa/internal/testing/must"
	"humanqa/internal/testing/pgtest"
)

// A proxy learns of a stop by /readyz, and the requests that it still sends are answered.
func TestAStopIsToldBeforeItBegins(t *testing.T) {
	t.Parallel()
	cfg, log := serveConfig(t, "HUMANQA_DATABASE_URL="+pgtest.NewDSN(t), "HUMANQA_STOP_DELAY=10") // far longer than two requests take on a slow machine
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	seen := make(chan error, 1)
	must.NoError(t, Serve(ctx, cfg, log, func(s *Service) {
		stop()
		go func() { seen <- seenByProxy(s.cfg.BaseURL) }()
	}))
	must.NoError(t, <-seen)
}

// seenByProxy asks until it is told of the stop, and then sends one more request.
func seenByProxy(url string) error {
	client := &http.Client{Timeout: eventually.Patience}
	defer client.CloseIdleConnections()
	ask := func(path string) (status int, body string, closes bool, err error) {
		res, err := client.Get(url + path) //nolint:noctx // the client has a time-out
		if err != nil {
			return 0, "", false, err
		}
		defer func() { _ = res.Body.Close() }() // read to its end
		raw, err := io.ReadAll(res.Body)
		return res.StatusCode, string(raw), res.Close, err
	}
	for status := http.StatusOK; status == http.StatusOK; {
		var body string
		var err error
		if status, body, _, err = ask("/readyz"); err != nil {
			return fmt.Errorf("refused before /readyz said so: %w", err)
		}
		if status != http.StatusOK && (status != http.StatusServiceUnavailable || !strings.Contains(body, "it is stopping")) {
			return fmt.Errorf("/readyz: %d %s", status, body)
		}
	}
	status, body, closes, err := ask("/healthz")
	if err != nil || status != http.StatusOK || !closes {
		return fmt.Errorf("a request after that: %d %s, closes the connection: %t, %w", status, body, closes, err)
	}
	return nil
}
