package service

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/lib/pq"

	"humanqa/eventstore/node"
	"humanqa/internal/testing/eventually"
	"humanqa/internal/testing/must"
	"humanqa/internal/testing/pgtest"
)

// writerSQL names the session that holds the log's lock.
const writerSQL = `SELECT a.application_name FROM pg_locks l JOIN pg_stat_activity a USING (pid)
	WHERE l.locktype = 'advisory' AND l.classid = x'68756d61'::bigint AND l.objid = x'6e716165'::bigint AND l.granted
		AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())`

// endWriter ends that session, unless it is the other service's.
const endWriter = `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'humanqa-eventlog'
	AND pid IN (SELECT pid FROM pg_locks WHERE locktype = 'advisory')`

// A supervisor starts the second service again and again, until it gets the lock.
func TestAServiceWhoseLockAnotherOneHasTakenEndsAndTheOtherServes(t *testing.T) {
	t.Parallel()
	dsn := pgtest.NewDSN(t)
	db := pgtest.NewDB(t, dsn)
	cfg, log := serveConfig(t, "HUMANQA_DATABASE_URL="+dsn)
	other, _ := serveConfig(t, "HUMANQA_DATABASE_URL="+dsn+"&application_name=other", "HUMANQA_MASTER_KEY_FILE="+filepath.Join(cfg.DataDir, "master-keyset.json"))
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	first, second := make(chan error, 1), make(chan error, 1)
	serves, took := make(chan struct{}), make(chan *Service, 1)
	go func() { first <- Serve(ctx, cfg, log, func(*Service) { close(serves) }) }()
	select {
	case <-serves:
	case err := <-first:
		t.Fatal(err)
	}
	go func() {
		err := node.ErrLocked
		for errors.Is(err, node.ErrLocked) {
			err = Serve(ctx, other, log, func(s *Service) { took <- s })
		}
		second <- err
	}()
	eventually.True(t, "the other service has the lock", func() bool { // the first one may be faster, and have it again
		_, err := db.ExecContext(t.Context(), endWriter)
		must.NoError(t, err)
		var holders []string
		must.NoError(t, db.SelectContext(t.Context(), &holders, writerSQL))
		return slices.Contains(holders, "other")
	})
	if err := <-first; !errors.Is(err, node.ErrLocked) || !strings.Contains(err.Error(), "HUMANQA_EVENTSTORE_URL") {
		t.Errorf("the first service ended with %v, want ErrLocked and the next step", err)
	}
	s := <-took
	eventually.Within(t, eventually.Patience, func() error { return answers(s.cfg.BaseURL, http.StatusOK, "ready") })
	stop()
	must.NoError(t, <-second)
}

func answers(base string, status int, text string) error {
	res, err := http.Get(base + "/readyz") //nolint:noctx,gosec // of this test's service
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }() // read to its end
	body, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != status || !strings.Contains(string(body), text) {
		return fmt.Errorf("/readyz: %d %s, %w; want %d %s", res.StatusCode, body, err, status, text)
	}
	return nil
}

// The writer of the log cannot connect for a while, though all else goes on.
func TestAServiceWithoutTheLogsLockSaysSoAndRefusesCommands(t *testing.T) {
	t.Parallel()
	dsn := pgtest.NewDSN(t)
	db := pgtest.NewDB(t, dsn)
	cfg, log := serveConfig(t, "HUMANQA_DATABASE_URL="+dsn)
	cfg.Demo = true
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	must.NoError(t, Serve(ctx, cfg, log, func(s *Service) {
		defer stop()
		submit := func(status int) error {
			req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.cfg.BaseURL+"/v1/jobs", strings.NewReader(
				`{"url": "https://example.com", "title": "t", "description": "d", "jobType": "Custom"}`))
			must.NoError(t, err)
			req.Header.Set("Authorization", "Bearer "+s.demo.APIKey)
			res, err := http.DefaultClient.Do(req)
			if err != nil {
				return err
			}
			body, err := io.ReadAll(res.Body)
			if err = errors.Join(err, res.Body.Close()); err != nil || res.StatusCode != status {
				return fmt.Errorf("a submission: %d %s, %w; want %d", res.StatusCode, body, err, status)
			}
			return nil
		}
		must.NoError(t, submit(http.StatusCreated))
		letIn(t, dsn, false)
		_, err := db.ExecContext(t.Context(), `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
			WHERE datname = current_database() AND application_name = 'humanqa-eventlog'`)
		must.NoError(t, err)
		eventually.Within(t, eventually.Patience, func() error {
			return answers(s.cfg.BaseURL, http.StatusServiceUnavailable, `{"part":"log","reason":"its lock is lost"}`)
		})
		must.NoError(t, submit(http.StatusServiceUnavailable))
		letIn(t, dsn, true)
		eventually.Within(t, eventually.Patience, func() error { return answers(s.cfg.BaseURL, http.StatusOK, "ready") })
		must.NoError(t, submit(http.StatusCreated))
	}))
}

// letIn lets further sessions into the database, or none.
func letIn(t *testing.T, dsn string, allowed bool) {
	t.Helper()
	u, err := url.Parse(dsn)
	must.NoError(t, err)
	name := strings.TrimPrefix(u.Path, "/")
	u.Path = "/postgres"
	_, err = pgtest.NewDB(t, u.String()).ExecContext(t.Context(), fmt.Sprintf("ALTER DATABASE %s ALLOW_CONNECTIONS %t", pq.QuoteIdentifier(name), allowed))
	must.NoError(t, err)
}
