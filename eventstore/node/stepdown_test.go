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

// endWriter ends the session that holds the log's lock.
const endWriter = `SELECT count(pg_terminate_backend(pid)) FROM pg_locks
	WHERE locktype = 'advisory' AND classid = x'68756d61'::bigint AND objid = x'6e716165'::bigint AND granted
		AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`

// takeOver ends the writer's session until another node has taken the lock.
func takeOver(t *testing.T, db *sqlx.DB, c node.Config) *node.Node {
	t.Helper()
	for {
		started := make(chan *node.Node, 1)
		go func() {
			n, err := node.Start(t.Context(), c)
			if err != nil && !errors.Is(err, node.ErrLocked) {
				t.Error(err)
			}
			started <- n
		}()
		eventually.True(t, "the other node waits for the lock", func() bool {
			var waits bool
			must.NoError(t, db.GetContext(t.Context(), &waits, `SELECT count(*) > 1 FROM pg_stat_activity
				WHERE datname = current_database() AND query LIKE '%pg_try_advisory_lock%'`))
			return waits
		})
		_, err := db.ExecContext(t.Context(), endWriter)
		must.NoError(t, err)
		if n := <-started; n != nil {
			t.Cleanup(func() { stop(t, n) })
			return n
		}
		if t.Failed() {
			t.FailNow()
		}
	}
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

	second := takeOver(t, db, node.Config{DSN: dsn, Socket: filepath.Join(socketDir(t), "s"), Log: quiet()})
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
	second := takeOver(t, db, node.Config{DSN: dsn, Socket: filepath.Join(socketDir(t), "s"), Log: quiet()})
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
