package node_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"
	"github.com/google/uuid"
	"github.com/jmoiron/sqlx"

	"humanqa/eventstore/node"
	"humanqa/internal/backoff"
	"humanqa/internal/pgdev"
	"humanqa/internal/pgpool"
	"humanqa/internal/testing/eventually"
	"humanqa/internal/testing/must"
	"humanqa/internal/testing/pgtest"
	"humanqa/internal/testing/process"
	"humanqa/internal/tied"
)

var (
	torture     = flag.Bool("torture", false, "torture for long instead of briefly")
	tortureSeed = flag.Uint64("torture.seed", 0, "repeat the order of this torture")
)

// nodeEnv has this test binary be a node, with this configuration as JSON.
const nodeEnv = "HUMANQA_TEST_NODE"

// beNode serves until another node has the lock, as the service does.
func beNode() int {
	c := node.Config{Log: quiet()}
	if err := json.Unmarshal([]byte(os.Getenv(nodeEnv)), &c); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	ctx := context.Background()
	n, err := node.Start(ctx, c)
	for err == nil && !errors.Is(context.Cause(n.Term()), node.ErrLocked) {
		err = backoff.Wait(ctx, 50*time.Millisecond)
	}
	return 1 // its supervisor starts it anew
}

// cluster is two nodes in processes of their own, which want the log of one Postgres.
type cluster struct {
	t        *testing.T
	dir      string
	postgres *pgdev.Server
	db       *sqlx.DB
	config   *esdb.Configuration
	running  map[string]*atomic.Pointer[os.Process] // by the application name of the node's sessions
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{t: t, dir: pgtest.NewDataDir(t), running: map[string]*atomic.Pointer[os.Process]{}}
	pgtest.Plant(t, c.dir)
	c.startPostgres()
	t.Cleanup(c.stopPostgres)
	dsn := c.postgres.DSN(pgdev.Database)
	var err error
	c.db, err = pgpool.Open(t.Context(), dsn)
	must.NoError(t, err)
	t.Cleanup(func() { _ = c.db.Close() }) // nothing to save

	one := node.Config{DSN: dsn, Listen: process.Address(t), CertDir: filepath.Join(t.TempDir(), "certs"), Log: quiet()}
	first, err := node.Start(t.Context(), one) // it makes the password of both
	must.NoError(t, err)
	password, address := first.GeneratedPassword(), first.ConnectionStrings()[0]
	must.NoError(t, first.Close(t.Context()))
	two := one
	two.Listen = process.Address(t)
	address = strings.Replace(address, one.Listen, one.Listen+","+two.Listen, 1)
	c.config, err = esdb.ParseConnectionString(address + "&gossipTimeout=2&discoveryInterval=100&maxDiscoverAttempts=50")
	must.NoError(t, err)
	c.config.Logger, c.config.Username, c.config.Password = nil, node.Username, password

	ctx, cancel := context.WithCancel(context.Background())
	var supervisors sync.WaitGroup
	for name, own := range map[string]node.Config{"node-one": one, "node-two": two} {
		own.DSN, own.Log = dsn+"&application_name="+url.QueryEscape(name), nil
		said, err := json.Marshal(own)
		must.NoError(t, err)
		current := &atomic.Pointer[os.Process]{}
		c.running[name] = current
		supervisors.Go(func() {
			for ctx.Err() == nil {
				cmd := exec.CommandContext(ctx, os.Args[0])
				cmd.Env = append(os.Environ(), nodeEnv+"="+string(said))
				p, err := tied.Start(cmd, syscall.SIGKILL)
				if err != nil {
					t.Errorf("start a node: %v", err)
					return
				}
				current.Store(cmd.Process)
				<-p.Exited()
			}
		})
	}
	t.Cleanup(func() { cancel(); supervisors.Wait() })
	return c
}

func (c *cluster) startPostgres() {
	var err error
	c.postgres, err = pgdev.Start(c.t.Context(), pgdev.Config{Dir: c.dir})
	must.NoError(c.t, err)
}

func (c *cluster) stopPostgres() {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := c.postgres.Stop(ctx); err != nil {
		c.t.Error(err)
	}
}

const (
	// holderSQL names the session that holds the log's lock.
	holderSQL = `SELECT a.application_name FROM pg_locks l JOIN pg_stat_activity a USING (pid)
	WHERE l.locktype = 'advisory' AND l.classid = x'68756d61'::bigint AND l.objid = x'6e716165'::bigint AND l.granted
		AND a.application_name LIKE 'node-%' AND a.datname = current_database()`
	endHolderSQL = `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = $1
	AND pid IN (SELECT pid FROM pg_locks WHERE locktype = 'advisory')`
)

// holder waits for a node that has the lock.
func (c *cluster) holder() (name string) {
	c.t.Helper()
	eventually.True(c.t, "a node has the lock", func() bool {
		return c.db.GetContext(c.t.Context(), &name, holderSQL) == nil
	})
	return name
}

// kill ends the holder of the lock as kill -9 does. The other node takes the lock, or the same
// one when it is back.
func (c *cluster) kill() {
	if p := c.running[c.holder()].Load(); p != nil {
		_ = p.Kill() // it may be ending by itself
	}
	c.holder()
}

// changeHolder ends the session of the holder until the other node has the lock.
func (c *cluster) changeHolder() {
	before := c.holder()
	eventually.True(c.t, "the other node has the lock", func() bool {
		_, _ = c.db.ExecContext(c.t.Context(), endHolderSQL, before) // there may be none just now
		return c.holder() != before
	})
}

func (c *cluster) restartPostgres() {
	c.stopPostgres()
	c.startPostgres()
	c.holder()
}

// The writers send an event again, with the same id, until it is acknowledged. Half of them
// expect the revision, and half any.
func TestNoAppendIsLostOrDoubledThroughChangesOfTheHolder(t *testing.T) {
	t.Parallel()
	writers, each, kills, changes, restarts := 16, 20, 1, 1, 1
	limit := eventually.Patience
	if *torture {
		each, kills, changes, restarts, limit = 400, 10, 10, 3, time.Hour
	}
	seed := *tortureSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("seed %d", seed)
	c := newCluster(t)
	blows := slices.Concat(slices.Repeat([]func(){c.kill}, kills), slices.Repeat([]func(){c.changeHolder}, changes),
		slices.Repeat([]func(){c.restartPostgres}, restarts))
	rand.New(rand.NewPCG(seed, 0)).Shuffle(len(blows), func(i, j int) { blows[i], blows[j] = blows[j], blows[i] })
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()

	var acked atomic.Int64
	ids := make([][]uuid.UUID, writers)
	total := writers * each
	var all []uuid.UUID
	followed := make([][]uuid.UUID, 2) // streams: one whose writer expects the revision, one any
	var wg sync.WaitGroup
	for w := range writers {
		stream := fmt.Sprintf("load-%d", w)
		wg.Go(func() {
			if w%2 == 0 {
				ids[w] = persistentWriter(ctx, t, c.config, stream, each, &acked)
			} else {
				ids[w] = persistentWriterAt(ctx, t, c.config, stream, each, &acked, expectAny)
			}
		})
	}
	wg.Go(func() { all = follow(ctx, t, c.config, "", total) })
	for w := range followed {
		wg.Go(func() { followed[w] = follow(ctx, t, c.config, fmt.Sprintf("load-%d", w), each) })
	}
	for i, blow := range blows {
		want := int64((i + 1) * total / (len(blows) + 1))
		eventually.Within(t, limit, func() error {
			if acked.Load() < want && !t.Failed() {
				return fmt.Errorf("%d of %d appends", acked.Load(), want)
			}
			return nil
		})
		blow()
	}
	wg.Wait()
	requireWhole(t, c.db, slices.Concat(ids...))
	if len(all) != total {
		t.Errorf("the subscription saw %d events, want %d", len(all), total)
	}
	for w, seen := range followed {
		if !slices.Equal(seen, ids[w]) {
			t.Errorf("the subscription to load-%d saw other events than were written, or in another order", w)
		}
	}
}
