package node_test

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"
	"github.com/google/uuid"
	"github.com/jmoiron/sqlx"

	"humanqa/eventstore/node"
	"humanqa/internal/testing/eventually"
	"humanqa/internal/testing/must"
	"humanqa/internal/testing/pgtest"
	"humanqa/internal/testing/process"
)

// endWriter ends the session that holds the log's lock, unless it is the other node's.
const endWriter = `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'humanqa-eventlog'
	AND pid IN (SELECT pid FROM pg_locks WHERE locktype = 'advisory')`

// takeOver starts another node on the database, and ends the writer's session until that one
// has the lock: the first may be faster, and have it again.
func takeOver(t *testing.T, db *sqlx.DB, c node.Config) *node.Node {
	t.Helper()
	c.DSN, c.Log = c.DSN+"&application_name=other", quiet()
	took := make(chan *node.Node, 1)
	go func() {
		n, err := node.Start(t.Context(), c)
		for err != nil && t.Context().Err() == nil { // it is locked, or the machine is busy
			n, err = node.Start(t.Context(), c)
		}
		took <- n
	}()
	eventually.True(t, "the other node has the lock", func() bool {
		_, err := db.ExecContext(t.Context(), endWriter)
		must.NoError(t, err)
		return len(took) > 0
	})
	n := <-took
	if n == nil {
		t.FailNow()
	}
	t.Cleanup(func() { stop(t, n) })
	return n
}

func TestANodeThatLosesItsLockAnswersNothingUntilItHasItAgain(t *testing.T) {
	t.Parallel()
	dsn := pgtest.NewDSN(t)
	db := pgtest.NewDB(t, dsn)
	first := start(t, node.Config{DSN: dsn, Socket: filepath.Join(socketDir(t), "s")})
	config := socketConfig(first.Addr())
	config.MaxDiscoverAttempts = 1
	client := connect(t, config)
	old := event()
	_, err := client.AppendToStream(t.Context(), "s", esdb.AppendToStreamOptions{}, old)
	must.NoError(t, err)
	all, err := client.SubscribeToAll(t.Context(), esdb.SubscribeToAllOptions{From: esdb.Start{}})
	must.NoError(t, err)
	one, err := client.SubscribeToStream(t.Context(), "s", esdb.SubscribeToStreamOptions{})
	must.NoError(t, err)

	second := takeOver(t, db, node.Config{DSN: dsn, Socket: filepath.Join(socketDir(t), "s")})
	for _, sub := range []*esdb.Subscription{all, one} {
		eventually.True(t, "the subscription ends", func() bool { return sub.Recv().SubscriptionDropped != nil })
	}
	eventually.True(t, "it knows that another node has the lock", func() bool { return errors.Is(context.Cause(first.Term()), node.ErrLocked) })
	written, err := connect(t, socketConfig(second.Addr())).AppendToStream(t.Context(), "s", esdb.AppendToStreamOptions{}, event())
	must.NoError(t, err)
	if _, err := readAll(t, client); !isUnavailable(err) {
		t.Errorf("$all: %v, want unavailable", err)
	}
	client = connect(t, config)
	if _, err := client.AppendToStream(t.Context(), "s", esdb.AppendToStreamOptions{}, event()); !isUnavailable(err) {
		t.Errorf("an append: %v, want unavailable", err)
	}

	stop(t, second)
	eventually.True(t, "it has the lock again", func() bool { return first.Term().Err() == nil })
	events, err := readAll(t, connect(t, config))
	if err != nil || len(events) != 2 || events[1].Position.Commit != written.CommitPosition {
		t.Errorf("the log reads %+v, %v", events, err)
	}
}

func readAll(t *testing.T, client *esdb.Client) (events []*esdb.RecordedEvent, err error) {
	t.Helper()
	read, err := client.ReadAll(t.Context(), esdb.ReadAllOptions{From: esdb.Start{}}, 100)
	if err != nil {
		return nil, err
	}
	defer read.Close()
	for {
		e, err := read.Recv()
		if err != nil {
			if code := (*esdb.Error)(nil); errors.As(err, &code) {
				return events, err
			}
			return events, nil
		}
		events = append(events, e.Event)
	}
}

// The address of the one that has the lock is in the answers of the other.
func TestANodeThatAnotherOneHasReplacedSendsItsClientsThere(t *testing.T) {
	t.Parallel()
	dsn := pgtest.NewDSN(t)
	db := pgtest.NewDB(t, dsn)
	c := node.Config{DSN: dsn, Listen: process.Address(t), CertDir: filepath.Join(t.TempDir(), "certs")}
	first := start(t, c)
	config, err := esdb.ParseConnectionString(first.ConnectionStrings()[0])
	must.NoError(t, err)
	config.Logger, config.Username, config.Password = nil, node.Username, first.GeneratedPassword()
	c.Listen = process.Address(t)
	second := takeOver(t, db, c)
	eventually.True(t, "it knows that another node has the lock", func() bool { return errors.Is(context.Cause(first.Term()), node.ErrLocked) })

	client := connect(t, config)
	e := event()
	if _, err := client.AppendToStream(t.Context(), "s", esdb.AppendToStreamOptions{}, e); codeOf(err) != esdb.ErrorCodeNotLeader {
		t.Fatalf("the append ended with %v, want that this is not the leader", err)
	}
	written, err := client.AppendToStream(t.Context(), "s", esdb.AppendToStreamOptions{}, e)
	if err != nil || second.Head() != 1 || written.CommitPosition != 1 {
		t.Errorf("the client wrote %+v, %v, and the other node has %d events", written, err, second.Head())
	}
	third := connect(t, config)
	if _, err := readAll(t, third); codeOf(err) != esdb.ErrorCodeNotLeader {
		t.Errorf("a read ended with %v, want that this is not the leader", err)
	}
	if events, err := readAll(t, third); err != nil || len(events) != 1 {
		t.Errorf("the client reads %d events, %v", len(events), err)
	}
}

// Whether the group was written is not known. The holder of the lock tells a repeat.
func TestAnAppendInFlightWhenTheLockIsLostEndsAndIsWrittenOnce(t *testing.T) {
	t.Parallel()
	dsn := pgtest.NewDSN(t)
	db := pgtest.NewDB(t, dsn)
	first := start(t, node.Config{DSN: dsn, Socket: filepath.Join(socketDir(t), "s")})
	hold, err := db.BeginTxx(t.Context(), nil)
	must.NoError(t, err)
	// A row that is not committed, where the group's first event wants to stand.
	_, err = hold.ExecContext(t.Context(), `INSERT INTO eventlog.events (position, revision, created, event_id, is_json, stream, type, data, metadata)
		VALUES (1, 0, 0, $1, false, 'held', 'x', '', '')`, uuid.New())
	must.NoError(t, err)
	client := connect(t, socketConfig(first.Addr()))
	again := []esdb.EventData{event(), event()}
	opts := esdb.AppendToStreamOptions{ExpectedRevision: esdb.NoStream{}}
	ended := make(chan error, 1)
	go func() {
		_, err := client.AppendToStream(t.Context(), "s", opts, again...)
		ended <- err
	}()
	eventually.True(t, "the group is in flight", func() bool {
		var waits int
		must.NoError(t, db.GetContext(t.Context(), &waits, `SELECT count(*) FROM pg_stat_activity
			WHERE datname = current_database() AND wait_event = 'transactionid'`))
		return waits == 1
	})
	second := takeOver(t, db, node.Config{DSN: dsn, Socket: filepath.Join(socketDir(t), "s")})
	if err := <-ended; !isUnavailable(err) {
		t.Errorf("the append ended with %v", err)
	}
	must.NoError(t, hold.Rollback())
	client = connect(t, socketConfig(second.Addr()))
	for range 2 {
		written, err := client.AppendToStream(t.Context(), "s", opts, again...)
		if err != nil || written.NextExpectedVersion != 1 {
			t.Fatalf("the repeat: %+v, %v", written, err)
		}
	}
	if events, err := readAll(t, client); err != nil || len(events) != 2 {
		t.Errorf("the log has %d events, %v", len(events), err)
	}
}
