package service

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lib/pq"

	"humanqa/domain"
	"humanqa/eventstore/node"
	"humanqa/internal/testing/eventually"
	"humanqa/internal/testing/must"
	"humanqa/internal/testing/pgtest"
	"humanqa/internal/testing/process"
)

// writerSQL names the session that holds the log's lock.
const writerSQL = `SELECT a.application_name FROM pg_locks l JOIN pg_stat_activity a USING (pid)
	WHERE l.locktype = 'advisory' AND l.classid = x'68756d61'::bigint AND l.objid = x'6e716165'::bigint AND l.granted
		AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())`

// endWriter ends that session, unless it is the other service's.
const endWriter = `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'humanqa-eventlog'
	AND pid IN (SELECT pid FROM pg_locks WHERE locktype = 'advisory')`

// A supervisor starts the first service anew.
func TestOfTwoServicesTheOneWithoutTheLogsLockStandsBy(t *testing.T) {
	t.Parallel()
	dsn := pgtest.NewDSN(t)
	db := pgtest.NewDB(t, dsn)
	cfg, log := serveConfig(t, "HUMANQA_DATABASE_URL="+dsn)
	cfg.Addr, cfg.Demo = process.Address(t), true
	other, _ := serveConfig(t, "HUMANQA_DATABASE_URL="+dsn+"&application_name=other", "HUMANQA_MASTER_KEY_FILE="+filepath.Join(cfg.DataDir, "master-keyset.json"))
	other.Addr = process.Address(t)
	serve := func(ctx context.Context, cfg Config) (serves <-chan *Service, ended <-chan error) {
		up, over := make(chan *Service, 1), make(chan error, 1)
		go func() {
			over <- Serve(ctx, cfg, log, func(s *Service) { up <- s })
			close(up)
		}()
		return up, over
	}
	standsBy := func(cfg Config) {
		t.Helper()
		eventually.Within(t, eventually.Patience, func() error {
			return answers("http://"+cfg.Addr, http.StatusServiceUnavailable, `{"part":"log","reason":"another process has its lock"}`)
		})
		must.NoError(t, asks(t.Context(), http.MethodGet, "http://"+cfg.Addr+"/healthz", "", "", http.StatusOK, nil))
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	serves, first := serve(ctx, cfg)
	s := <-serves
	if s == nil {
		t.Fatal(<-first)
	}
	key, jobs := s.demo.APIKey, []string{}
	// Each service takes commands, and reads what either has taken.
	works := func(cfg Config) {
		t.Helper()
		base := "http://" + cfg.Addr
		eventually.Within(t, eventually.Patience, func() error {
			id, err := submits(t.Context(), base, key, http.StatusCreated)
			if err == nil {
				jobs = append(jobs, id)
			}
			return err
		})
		for _, id := range jobs {
			eventually.Within(t, eventually.Patience, func() error {
				err := asks(t.Context(), http.MethodGet, base+"/v1/jobs/"+id, key, "", http.StatusOK, nil)
				if err != nil && !strings.Contains(err.Error(), string(domain.CodeUnavailable)) { // it is an old answer
					t.Fatal(err)
				}
				return err
			})
		}
		eventually.Within(t, eventually.Patience, func() error { return answers(base, http.StatusOK, "ready") })
	}
	works(cfg)

	otherCtx, stopOther := context.WithCancel(t.Context())
	defer stopOther()
	serves, second := serve(otherCtx, other)
	standsBy(other)
	eventually.True(t, "the other service has the lock", func() bool { // the first one may be faster, and have it again
		_, err := db.ExecContext(t.Context(), endWriter)
		must.NoError(t, err)
		var holders []string
		must.NoError(t, db.SelectContext(t.Context(), &holders, writerSQL))
		return slices.Contains(holders, "other")
	})
	lost := time.Now()
	works(other)
	t.Logf("the other service works %s after it has the lock", time.Since(lost))
	<-serves
	if err := <-first; !errors.Is(err, node.ErrLocked) || !strings.Contains(err.Error(), "HUMANQA_EVENTSTORE_URL") {
		t.Errorf("the first service ended with %v, want ErrLocked and the next step", err)
	}

	serves, first = serve(ctx, cfg)
	standsBy(cfg)
	works(other)
	stopOther()
	must.NoError(t, <-second)
	works(cfg)
	<-serves
	stop()
	must.NoError(t, <-first)
}

// asks sends a request, and reads the answer into said if it has the status.
func asks(ctx context.Context, method, at, key, body string, status int, said any) error {
	req, err := http.NewRequestWithContext(ctx, method, at, strings.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+key)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	text, err := io.ReadAll(res.Body)
	if err = errors.Join(err, res.Body.Close()); err != nil || res.StatusCode != status {
		return fmt.Errorf("%s: %d %s, %w; want %d", at, res.StatusCode, text, err, status)
	}
	if said == nil {
		return nil
	}
	return json.Unmarshal(text, said)
}

func submits(ctx context.Context, base, key string, status int) (id string, err error) {
	var said struct{ JobID string }
	err = asks(ctx, http.MethodPost, base+"/v1/jobs", key, `{"url": "https://example.com", "title": "t", "description": "d", "jobType": "Custom"}`, status, &said)
	return said.JobID, err
}

func answers(base string, status int, text string) error {
	var said json.RawMessage
	err := asks(context.Background(), http.MethodGet, base+"/readyz", "", "", status, &said)
	if err == nil && !strings.Contains(string(said), text) {
		err = fmt.Errorf("/readyz: %s, want %s", said, text)
	}
	return err
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
			_, err := submits(ctx, s.cfg.BaseURL, s.demo.APIKey, status)
			return err
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
