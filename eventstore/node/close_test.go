package node_test

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/streams"
	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"humanqa/eventstore/node"
	"humanqa/internal/testing/eventually"
	"humanqa/internal/testing/must"
	"humanqa/internal/testing/pgtest"
)

// Not parallel: other tests' goroutines would count.
func TestCloseLeavesNoGoroutine(t *testing.T) {
	dsn, dir := pgtest.NewDSN(t), socketDir(t)
	before := goleak.IgnoreCurrent()
	registry := prometheus.NewRegistry()
	n, err := node.Start(t.Context(), node.Config{
		DSN: dsn, Socket: filepath.Join(dir, "s"), InsecureListen: "127.0.0.1:0", Log: quiet(), Registerer: registry,
	})
	must.NoError(t, err)
	config := socketConfig(n.Addr())
	config.DefaultDeadline = new(patience)
	client, err := esdb.NewClient(config)
	must.NoError(t, err)
	ctx := t.Context()
	_, err = client.AppendToStream(ctx, "s", esdb.AppendToStreamOptions{}, event())
	must.NoError(t, err)
	all, err := client.SubscribeToAll(ctx, esdb.SubscribeToAllOptions{From: esdb.Start{}})
	must.NoError(t, err)
	one, err := client.SubscribeToStream(ctx, "s", esdb.SubscribeToStreamOptions{})
	must.NoError(t, err)
	conn, err := grpc.NewClient(n.Addr(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	must.NoError(t, err)
	batch, err := streams.NewStreamsClient(conn).BatchAppend(ctx)
	must.NoError(t, err)
	stop(t, n)
	for _, sub := range []*esdb.Subscription{all, one} {
		for sub.Recv().SubscriptionDropped == nil {
			continue
		}
	}
	if _, err := batch.Recv(); err == nil || errors.Is(err, io.EOF) {
		t.Fatalf("the batch call ended with %v", err)
	}
	must.NoError(t, errors.Join(client.Close(), conn.Close()))
	goleak.VerifyNone(t, before)
	if left, err := registry.Gather(); err != nil || len(left) != 0 {
		t.Fatalf("metrics are left: %v, %v", left, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "s")); !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("the socket is left: %v", err)
	}
}

func TestAFailedStartLeavesNothing(t *testing.T) {
	dsn := pgtest.NewDSN(t)
	before := goleak.IgnoreCurrent()
	taken, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	must.NoError(t, err)
	defer func() { _ = taken.Close() }() // read-only
	config := node.Config{DSN: dsn, Socket: filepath.Join(socketDir(t), "s"), InsecureListen: taken.Addr().String(), Log: quiet()}
	if _, err := node.Start(t.Context(), config); err == nil {
		t.Fatal("it started on a taken port")
	}
	goleak.VerifyNone(t, before)
	config.InsecureListen = ""
	start(t, config) // the lock and the socket are free
}

func TestCloseWhileWritersWrite(t *testing.T) {
	t.Parallel()
	dsn := pgtest.NewDSN(t)
	n := start(t, node.Config{DSN: dsn, Socket: filepath.Join(socketDir(t), "s")})
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var wg sync.WaitGroup
	var acked atomic.Int64
	var mu sync.Mutex
	var ids []uuid.UUID
	for range 32 {
		// Callers that share a client hang in it once it has given up.
		config := socketConfig(n.Addr())
		config.MaxDiscoverAttempts = 1
		client := connect(t, config)
		wg.Go(func() {
			for {
				e := event()
				if _, err := client.AppendToStream(ctx, uniqueStream("s"), esdb.AppendToStreamOptions{}, e); err != nil {
					return
				}
				acked.Add(1)
				mu.Lock()
				ids = append(ids, e.EventID)
				mu.Unlock()
			}
		})
	}
	eventually.True(t, "load", func() bool { return acked.Load() > 200 })
	stop(t, n)
	wg.Wait()
	var found int
	must.NoError(t, pgtest.NewDB(t, dsn).GetContext(t.Context(), &found, `SELECT count(*) FROM eventlog.events`))
	// A graceful close answers everything it has written.
	if found != len(ids) {
		t.Fatalf("%d events acknowledged, %d in the log", len(ids), found)
	}
}
