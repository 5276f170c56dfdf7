package node_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"

	"humanqa/eventstore/node"
	"humanqa/internal/testing/must"
	"humanqa/internal/testing/pgtest"
)

func codeOf(err error) esdb.ErrorCode {
	var e *esdb.Error
	if errors.As(err, &e) {
		return e.Code()
	}
	return -1
}

func TestTheSocketIsPrivate(t *testing.T) {
	t.Parallel()
	n := onSocket(t)
	path, ok := strings.CutPrefix(n.Addr(), "unix:")
	if !ok {
		t.Fatalf("got %q", n.Addr())
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("got %v, %v", info.Mode(), err)
	}
}

func TestWithoutTLSOnlyLoopbackIsServed(t *testing.T) {
	t.Parallel()
	dsn := pgtest.NewDSN(t)
	for _, address := range []string{":0", "0.0.0.0:0", "[::]:0", "192.0.2.1:0", "example.com:0"} {
		if _, err := node.Start(t.Context(), node.Config{DSN: dsn, InsecureListen: address, Log: quiet()}); err == nil || !strings.Contains(err.Error(), "loopback") {
			t.Errorf("%s: got %v", address, err)
		}
	}
	n := start(t, node.Config{DSN: dsn, InsecureListen: "127.0.0.1:0"})
	config, err := esdb.ParseConnectionString(n.ConnectionStrings()[0])
	must.NoError(t, err)
	config.Logger = nil
	_, err = connect(t, config).AppendToStream(t.Context(), "s", esdb.AppendToStreamOptions{}, event())
	must.NoError(t, err)
}

func TestTheTLSAddressWantsThePassword(t *testing.T) {
	t.Parallel()
	c := node.Config{DSN: pgtest.NewDSN(t), Listen: "127.0.0.1:0", CertDir: filepath.Join(t.TempDir(), "certs"), Log: quiet()}
	n := start(t, c)
	password := n.GeneratedPassword()
	if len(password) < 40 {
		t.Fatalf("got a password of %d characters", len(password))
	}
	attempt := func(n *node.Node, user, password string) error {
		t.Helper()
		config, err := esdb.ParseConnectionString(n.ConnectionStrings()[0])
		must.NoError(t, err)
		config.Logger, config.Username, config.Password = nil, user, password
		read, err := connect(t, config).ReadAll(t.Context(), esdb.ReadAllOptions{}, 1)
		if err != nil {
			return err
		}
		defer read.Close()
		if _, err = read.Recv(); errors.Is(err, io.EOF) {
			return nil
		}
		return err
	}
	must.NoError(t, attempt(n, node.Username, password))
	for _, wrong := range [][2]string{{"", ""}, {node.Username, "changeit"}, {node.Username, ""}, {"ops", password}} {
		if err := attempt(n, wrong[0], wrong[1]); codeOf(err) != esdb.ErrorCodeUnauthenticated {
			t.Fatalf("%v: got %v", wrong, err)
		}
	}
	stop(t, n)

	// Certificate and password outlive the process, the password's text does not.
	n = start(t, c)
	if n.GeneratedPassword() != "" {
		t.Fatal("the password was made again")
	}
	must.NoError(t, attempt(n, node.Username, password))
	files, err := filepath.Glob(filepath.Join(c.CertDir, "*"))
	if err != nil || len(files) != 5 {
		t.Fatalf("got %v, %v", files, err)
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil || strings.Contains(string(content), password) {
			t.Fatalf("%s holds the password, or %v", file, err)
		}
		if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
			t.Fatalf("%s: %v, %v", file, info.Mode(), err)
		}
	}
}

// A reader's password is made while the node runs, and ended; with it everything
// is read and nothing is written.
func TestTheReaderMayReadAndNotAppend(t *testing.T) {
	t.Parallel()
	c := node.Config{DSN: pgtest.NewDSN(t), Listen: "127.0.0.1:0", CertDir: filepath.Join(t.TempDir(), "certs"), Log: quiet()}
	if _, err := node.MakeReader(c.CertDir, "127.0.0.1:2113"); err == nil || !strings.Contains(err.Error(), "has not served 127.0.0.1:2113 yet") {
		t.Errorf("a reader of a node that never ran: %v", err)
	}
	n := start(t, c)
	own, err := esdb.ParseConnectionString(n.ConnectionStrings()[0])
	must.NoError(t, err)
	own.Logger, own.Username, own.Password = nil, node.Username, n.GeneratedPassword()
	_, err = connect(t, own).AppendToStream(t.Context(), "s", esdb.AppendToStreamOptions{}, event(), event())
	must.NoError(t, err)
	reader := func() *esdb.Client {
		t.Helper()
		address, err := node.MakeReader(c.CertDir, own.Address)
		must.NoError(t, err)
		config, err := esdb.ParseConnectionString(address)
		must.NoError(t, err)
		config.Logger = nil
		return connect(t, config)
	}
	events := func(client *esdb.Client) (n int, err error) {
		t.Helper()
		read, err := client.ReadAll(t.Context(), esdb.ReadAllOptions{}, 100)
		if err != nil {
			return 0, err
		}
		defer read.Close()
		for {
			if _, err := read.Recv(); errors.Is(err, io.EOF) {
				return n, nil
			} else if err != nil {
				return n, err
			}
			n++
		}
	}
	client := reader()
	if n, err := events(client); err != nil || n != 2 {
		t.Fatalf("%d events, %v", n, err)
	}
	subscription, err := client.SubscribeToAll(t.Context(), esdb.SubscribeToAllOptions{From: esdb.Start{}})
	must.NoError(t, err)
	if seen := subscription.Recv(); seen.EventAppeared == nil {
		t.Errorf("got %+v", seen)
	}
	if err := subscription.Close(); err != nil {
		t.Error(err)
	}
	many := make([]esdb.EventData, 1000)
	for i := range many {
		many[i] = event()
	}
	for what, write := range map[string]func() error{
		"append": func() error {
			_, err := client.AppendToStream(t.Context(), "s", esdb.AppendToStreamOptions{}, event())
			return err
		},
		// It is refused by its first message; its client hears why all the same.
		"append of many": func() error {
			_, err := client.AppendToStream(t.Context(), "s", esdb.AppendToStreamOptions{}, many...)
			return err
		},
		"delete": func() error {
			_, err := client.DeleteStream(t.Context(), "s", esdb.DeleteStreamOptions{})
			return err
		},
		"tombstone": func() error {
			_, err := client.TombstoneStream(t.Context(), "s", esdb.TombstoneStreamOptions{})
			return err
		},
		"metadata": func() error {
			var meta esdb.StreamMetadata
			meta.SetMaxCount(1)
			_, err := client.SetStreamMetadata(t.Context(), "s", esdb.AppendToStreamOptions{}, meta)
			return err
		},
	} {
		if err := write(); codeOf(err) != esdb.ErrorCodeAccessDenied {
			t.Errorf("%s: %v", what, err)
		}
	}
	again := reader()
	if _, err := events(client); codeOf(err) != esdb.ErrorCodeUnauthenticated {
		t.Errorf("the password of before: %v", err)
	}
	if n, err := events(again); err != nil || n != 2 {
		t.Errorf("%d events, %v", n, err)
	}
	for _, want := range []bool{true, false} {
		if was, err := node.DropReader(c.CertDir); err != nil || was != want {
			t.Errorf("dropped %t, %v", was, err)
		}
	}
	if _, err := events(again); codeOf(err) != esdb.ErrorCodeUnauthenticated {
		t.Errorf("the password that was ended: %v", err)
	}
}

func TestAStaleSocketIsReplacedAndALiveOneIsNot(t *testing.T) {
	t.Parallel()
	path := filepath.Join(socketDir(t), "s")
	first := start(t, node.Config{DSN: pgtest.NewDSN(t), Socket: path})
	second := node.Config{DSN: pgtest.NewDSN(t), Socket: path, Log: quiet()}
	if _, err := node.Start(t.Context(), second); err == nil || !strings.Contains(err.Error(), "in use") {
		t.Fatalf("got %v", err)
	}
	stop(t, first)
	if err := os.WriteFile(path, nil, 0o600); err != nil { // as a killed process leaves it
		t.Fatal(err)
	}
	start(t, second)
}
