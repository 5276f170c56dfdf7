package logtest

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"
	"github.com/sirupsen/logrus"

	"humanqa/eventstore"
	"humanqa/eventstore/node"
	"humanqa/internal/testing/eventually"
	"humanqa/internal/testing/must"
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
	must.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	socket := filepath.Join(dir, "node")
	n, err := node.Start(t.Context(), node.Config{DSN: dsn, Socket: socket, Log: quiet})
	must.NoError(t, err)
	t.Cleanup(func() {
		if err := n.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	client, err := eventstore.OpenSocket(socket, eventually.Patience, quiet)
	must.NoError(t, err)
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

// Server is a log on which no service has run, at an address. It begins with some of
// the server's own events, as an original server's log does.
func Server(t testing.TB, dsn string) (url string) {
	t.Helper()
	quiet := logrus.New()
	quiet.SetOutput(io.Discard)
	n, err := node.Start(t.Context(), node.Config{DSN: dsn, InsecureListen: "127.0.0.1:0", Log: quiet})
	must.NoError(t, err)
	t.Cleanup(func() { _ = n.Close(t.Context()) }) // it cuts calls off, since the context has ended
	url = n.ConnectionStrings()[0]
	config, err := esdb.ParseConnectionString(url)
	must.NoError(t, err)
	config.Logger, config.DefaultDeadline = nil, new(eventually.Patience)
	client, err := esdb.NewClient(config)
	must.NoError(t, err)
	defer func() { _ = client.Close() }() // it was only written to
	own := esdb.EventData{EventType: "$started", ContentType: esdb.ContentTypeJson, Data: []byte("{}")}
	_, err = client.AppendToStream(t.Context(), "$server", esdb.AppendToStreamOptions{}, own, own, own)
	must.NoError(t, err)
	return url
}
