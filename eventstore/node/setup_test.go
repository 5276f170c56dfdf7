package node_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"
	"github.com/google/uuid"
	"github.com/sirupsen/logrus"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"humanqa/eventstore/node"
	"humanqa/internal/testing/eventually"
	"humanqa/internal/testing/must"
	"humanqa/internal/testing/pgtest"
)

func TestMain(m *testing.M) {
	if os.Getenv(nodeEnv) != "" {
		os.Exit(beNode())
	}
	os.Exit(pgtest.Main(m))
}

// patience is how long a test waits for anything before it fails.
const patience = eventually.Patience

func quiet() logrus.FieldLogger {
	log := logrus.New()
	log.SetLevel(logrus.PanicLevel)
	return log
}

// socketDir is short: a socket path has room for 103 bytes.
func socketDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "node") //nolint:usetesting // t.TempDir is too long for a socket
	must.NoError(t, err)
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

func start(t testing.TB, c node.Config) *node.Node {
	t.Helper()
	if c.Log == nil {
		c.Log = quiet()
	}
	n, err := node.Start(t.Context(), c)
	must.NoError(t, err)
	t.Cleanup(func() { stop(t, n) })
	return n
}

func stop(t testing.TB, n *node.Node) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := n.Close(ctx); err != nil {
		t.Errorf("close the node: %v", err)
	}
}

// settled appends, again and again while the node says that it did not reach its database in
// time: a busy machine is no reason to fail.
func settled(t testing.TB, appends func() error) (err error) {
	t.Helper()
	eventually.Within(t, patience, func() error {
		err = appends()
		switch status.Code(err) {
		case codes.ResourceExhausted, codes.Unavailable, codes.DeadlineExceeded:
			return err
		default:
			return nil
		}
	})
	return err
}

// onSocket starts a node on a database of its own and a socket.
func onSocket(t testing.TB) *node.Node {
	t.Helper()
	return start(t, node.Config{DSN: pgtest.NewDSN(t), Socket: filepath.Join(socketDir(t), "s")})
}

func socketConfig(address string) *esdb.Configuration {
	return &esdb.Configuration{
		Address: address, DisableTLS: true, NodePreference: esdb.NodePreferenceLeader,
		MaxDiscoverAttempts: 20, DiscoveryInterval: 100, GossipTimeout: 5,
		KeepAliveInterval: 10 * time.Second, KeepAliveTimeout: 10 * time.Second,
	}
}

func connect(t testing.TB, config *esdb.Configuration) *esdb.Client {
	t.Helper()
	config.DefaultDeadline = new(patience) // the library's own is 10 s, which a busy machine needs for one call
	client, err := esdb.NewClient(config)
	must.NoError(t, err)
	t.Cleanup(func() {
		if err := client.Close(); err != nil {
			t.Errorf("close the client: %v", err)
		}
	})
	return client
}

func event() esdb.EventData {
	return esdb.EventData{EventID: uuid.New(), EventType: "tested", ContentType: esdb.ContentTypeJson, Data: []byte(`{"n":1}`)}
}

func uniqueStream(prefix string) string { return fmt.Sprintf("%s-%s", prefix, uuid.NewString()) }
