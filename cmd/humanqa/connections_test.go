package main

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"humanqa/internal/testing/eventually"
	"humanqa/internal/testing/pgtest"
	"humanqa/internal/testing/process"
)

// crowd is an installation on a Postgres with few connections, and its clients.
type crowd struct{ apis, workers, connections, clients, requests int }

// A Postgres takes 100 connections unless it is told otherwise, and keeps three for superusers.
var crowds = map[bool][]crowd{ // in a torture
	false: {{apis: 1, workers: 1, connections: 30, clients: 24, requests: 300}},
	true:  {{2, 2, 97, 96, 5000}, {3, 3, 97, 96, 5000}},
}

// Every request is answered, a third of them writes, and so are the operator's commands.
func TestProcessesLeaveConnectionsToEachOtherAndToCommands(t *testing.T) {
	t.Parallel()
	for _, c := range crowds[*torture] {
		t.Run(fmt.Sprintf("%d and %d processes", c.apis, c.workers), c.test)
	}
}

func (c crowd) test(t *testing.T) {
	apis := c.start(t)
	keys := make([]string, c.clients/3)
	for i := range keys {
		_, keys[i] = apis[0].newAccount(1_000_000)
	}
	var (
		clients         sync.WaitGroup
		asked, answered atomic.Int64
		began           = time.Now()
	)
	for n := range c.clients {
		clients.Go(func() {
			p, key := apis[n%len(apis)], keys[n%len(keys)]
			for asked.Add(1) <= int64(c.requests) {
				method, path, body := http.MethodGet, "/v1/jobs", any(nil)
				if n%3 == 0 {
					method, body = http.MethodPost, submission(1)
				}
				r, err := p.try(method, path, key, body)
				if err != nil || r.status >= http.StatusInternalServerError {
					t.Errorf("%s: %d %s %v", method, r.status, r.body, err)
					continue
				}
				answered.Add(1)
			}
		})
	}
	over := make(chan struct{})
	go func() { clients.Wait(); close(over) }()
	for commands := 1; ; commands++ {
		if stdout, stderr, err := apis[0].tryCLI("account", "list"); err != nil {
			t.Errorf("account list: %v\n%s%s", err, stdout, stderr)
		}
		select {
		case <-over:
			t.Logf("%d of %d requests were answered, and %d commands, in %s", answered.Load(), c.requests, commands,
				time.Since(began).Round(time.Millisecond))
			return
		default:
		}
	}
}

// start gives the processes of the API. The first one runs the log.
func (c crowd) start(t *testing.T) (apis []*instance) {
	t.Helper()
	dsn, log := pgtest.NewOwned(t, c.connections), process.Address(t)
	first := newProgram(t, "HUMANQA_DATABASE_URL="+dsn, "HUMANQA_ROLES=api", "HUMANQA_EVENTSTORE_LISTEN_INSECURE="+log)
	apis = append(apis, first.launch())
	keyset := filepath.Join(first.dir, "master-keyset.json")
	eventually.True(t, "there is a keyset", func() bool { _, err := os.Stat(keyset); return err == nil })
	for n := 1; n < c.apis+c.workers; n++ {
		p := newProgram(t, "HUMANQA_DATABASE_URL="+dsn, "HUMANQA_EVENTSTORE_URL=esdb://"+log+"?tls=false", "HUMANQA_MASTER_KEY_FILE="+keyset)
		if n < c.apis {
			p.environ = append(p.environ, "HUMANQA_ROLES=api")
			apis = append(apis, p.launch())
		} else {
			p.environ = append(p.environ, "HUMANQA_ROLES=projector,webhooks,policy")
			p.launch()
		}
	}
	for _, p := range apis {
		p.waitReady()
	}
	return apis
}
