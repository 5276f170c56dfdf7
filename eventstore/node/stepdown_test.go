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
)

// endWriter ends the session that holds the log's lock, unless it is the other node's.
const endWriter = `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'humanqa-eventlog'
	AND pid IN (SELECT pid FROM pg_locks WHERE locktype = 'advisory')`

// takeOver starts another node on the database, and ends the writer's session until that one
// has the lock: the first may be faster, and have it again.
func takeOver(t *testing.T, db *sqlx.DB, dsn string) *node.Node {
	t.Helper()
	c := node.Config{DSN: dsn + "&application_name=other", Socket: filepath.Join(socketDir(t), "s"), Log: quiet()}
	took := make(chan *node.Node, 1)
	go func() {
		n, err := node.Start(t.Context(), c)
		for errors.Is(err, node.ErrLocked) {
			n, err = node.Start(t.Context(), c)
		}
		if err != nil {
			t.Error(err)
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

	second := takeOver(t, db, dsn)
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
	second := takeOver(t, db, dsn)
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
