package logtest

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/sirupsen/logrus"

	"humanqa/eventstore"
	"humanqa/eventstore/node"
)

// Real is the real log: an embedded node on a database, the client that speaks
// to it, and the running feed. They end with the test.
type Real struct {
	*eventstore.Client
	Feed *eventstore.Feed
}

// Start starts a real log on an empty database.
func Start(t testing.TB, dsn string) Real {
	t.Helper()
	quiet := logrus.New()
	quiet.SetOutput(io.Discard)
	dir, err := os.MkdirTemp("", "es") //nolint:usetesting // a socket's path must be short, t.TempDir holds the test's name
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	socket := filepath.Join(dir, "node")
	n, err := node.Start(t.Context(), node.Config{DSN: dsn, Socket: socket, Log: quiet})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	client, err := eventstore.OpenSocket(socket, quiet)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	})
	feed := eventstore.NewFeed(client, quiet)
	ctx, cancel := context.WithCancel(context.Background())
	fed := make(chan error, 1)
	go func() { fed <- feed.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-fed; err != nil {
			t.Error(err)
		}
	})
	return Real{client, feed}
}
