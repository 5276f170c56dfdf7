package node_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"
	"github.com/google/uuid"
	"github.com/jmoiron/sqlx"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"humanqa/eventstore/node"
	"humanqa/internal/testing/eventually"
	"humanqa/internal/testing/must"
	"humanqa/internal/testing/pgtest"
)

// persistentWriter appends n events to one stream and, like the service, sends
// the same bytes again while the outcome is unknown.
func persistentWriter(ctx context.Context, t *testing.T, config *esdb.Configuration, stream string, n int, acked *atomic.Int64) []uuid.UUID {
	return persistentWriterAt(ctx, t, config, stream, n, acked, func(i int) esdb.ExpectedRevision {
		if i == 0 {
			return esdb.NoStream{}
		}
		return esdb.Revision(uint64(i - 1))
	})
}

func expectAny(int) esdb.ExpectedRevision { return esdb.Any{} }

// persistentWriterAt is persistentWriter for appends that expect other revisions.
func persistentWriterAt(
	ctx context.Context, t *testing.T, config *esdb.Configuration, stream string, n int, acked *atomic.Int64, expected func(i int) esdb.ExpectedRevision,
) []uuid.UUID {
	client, err := esdb.NewClient(config)
	if err != nil {
		t.Error(err)
		return nil
	}
	defer func() { _ = client.Close() }() // never fails
	var ids []uuid.UUID
	for i := range n {
		e := event()
		for {
			_, err := client.AppendToStream(ctx, stream, esdb.AppendToStreamOptions{ExpectedRevision: expected(i)}, e)
			if err == nil {
				break
			}
			var refused *esdb.Error
			if ctx.Err() != nil || errors.As(err, &refused) && refused.IsErrorCode(esdb.ErrorCodeWrongExpectedVersion) {
				t.Errorf("append %d to %s: %v", i, stream, err)
				return ids
			}
			if errors.As(err, &refused) && refused.IsErrorCode(esdb.ErrorCodeConnectionClosed) {
				// The client gives up for good after enough attempts.
				if client, err = esdb.NewClient(config); err != nil {
					t.Error(err)
					return ids
				}
			}
		}
		ids = append(ids, e.EventID)
		acked.Add(1)
	}
	return ids
}

// requireWhole checks the log in Postgres: positions without a hole, each
// stream's revisions too, no event twice, and every acknowledged one there.
func requireWhole(t *testing.T, db *sqlx.DB, acked []uuid.UUID) {
	t.Helper()
	var rows []struct {
		Position int64
		Revision int64
		Stream   string
		ID       uuid.UUID `db:"event_id"`
	}
	must.NoError(t, db.SelectContext(t.Context(), &rows, `SELECT position, revision, stream, event_id FROM eventlog.events ORDER BY position`))
	found := map[uuid.UUID]bool{}
	next := map[string]int64{}
	for i, r := range rows {
		switch {
		case r.Position != int64(i+1):
			t.Fatalf("position %d stands at place %d", r.Position, i+1)
		case r.Revision != next[r.Stream]:
			t.Fatalf("revision %d of %s, want %d", r.Revision, r.Stream, next[r.Stream])
		case found[r.ID]:
			t.Fatalf("event %s is there twice", r.ID)
		}
		found[r.ID] = true
		next[r.Stream]++
	}
	for _, id := range acked {
		if !found[id] {
			t.Fatalf("event %s was acknowledged and is not there", id)
		}
	}
	if len(acked) != len(rows) {
		t.Fatalf("%d events acknowledged, %d in the log", len(acked), len(rows))
	}
}

const terminateNode = `SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'humanqa-eventlog'`

func TestNoAcknowledgedAppendIsLostWhenPostgresDropsTheNode(t *testing.T) {
	t.Parallel()
	const writers, each, cuts = 16, 120, 6
	dsn := pgtest.NewDSN(t)
	db := pgtest.NewDB(t, dsn)
	n := start(t, node.Config{DSN: dsn, Socket: filepath.Join(socketDir(t), "s")})
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()

	client := connect(t, socketConfig(n.Addr()))
	live, err := client.SubscribeToAll(ctx, esdb.SubscribeToAllOptions{From: esdb.Start{}})
	must.NoError(t, err)
	var acked atomic.Int64
	ids := make([][]uuid.UUID, writers)
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			ids[w] = persistentWriter(ctx, t, socketConfig(n.Addr()), fmt.Sprintf("load-%d", w), each, &acked)
		})
	}
	for cut := range cuts {
		want := int64((cut + 1) * writers * each / (cuts + 1))
		eventually.True(t, "load", func() bool { return acked.Load() >= want || t.Failed() })
		_, err := db.ExecContext(ctx, terminateNode)
		must.NoError(t, err)
	}
	wg.Wait()
	requireWhole(t, db, slices.Concat(ids...))

	// The subscription lives through it, or ends; what it has delivered is a
	// prefix of the log, and one that resumes behind it sees the rest.
	last := uint64(0)
	for last < writers*each {
		got := live.Recv()
		switch {
		case got.EventAppeared != nil:
			if p := got.EventAppeared.Event.Position.Commit; p != last+1 {
				t.Fatalf("position %d after %d", p, last)
			}
			last++
		case got.SubscriptionDropped != nil:
			eventually.True(t, "the node serves again", func() bool {
				live, err = client.SubscribeToAll(ctx, esdb.SubscribeToAllOptions{From: esdb.Position{Commit: last, Prepare: last}})
				return !isUnavailable(err)
			})
			must.NoError(t, err)
		}
	}
	if err := live.Close(); err != nil {
		t.Error(err)
	}
}

func TestAFailedGroupLeavesNoTraceInMemory(t *testing.T) {
	t.Parallel()
	dsn := pgtest.NewDSN(t)
	db := pgtest.NewDB(t, dsn)
	n := start(t, node.Config{DSN: dsn, Socket: filepath.Join(socketDir(t), "s")})
	client := connect(t, socketConfig(n.Addr()))
	written := func(expected esdb.ExpectedRevision, e ...esdb.EventData) (*esdb.WriteResult, error) {
		return client.AppendToStream(t.Context(), "s", esdb.AppendToStreamOptions{ExpectedRevision: expected}, e...)
	}
	_, err := written(esdb.NoStream{}, event())
	must.NoError(t, err)
	// A row where the writer wants to put its next event: the INSERT fails.
	_, err = db.ExecContext(t.Context(), `INSERT INTO eventlog.events SELECT 2, 0, created, $1, false, 'foreign', 'x', '', '' FROM eventlog.events`, uuid.New())
	must.NoError(t, err)
	lost := event()
	if _, err := written(esdb.Revision(0), lost); status.Code(err) != codes.ResourceExhausted { // it is certainly not written
		t.Fatalf("got %v, want a refusal", err)
	}
	// The writer comes back with the head of the log as it is.
	var result *esdb.WriteResult
	eventually.True(t, "the writer", func() bool {
		var err error
		result, err = written(esdb.Revision(0), lost)
		return err == nil
	})
	if result.NextExpectedVersion != 1 || result.CommitPosition != 3 {
		t.Fatalf("got %+v", result)
	}
	if _, err := written(esdb.Revision(2), event()); err == nil {
		t.Fatal("a revision that was never written was accepted")
	}
}

func isUnavailable(err error) bool {
	var e *esdb.Error
	return errors.As(err, &e) && e.IsErrorCode(esdb.ErrorUnavailable)
}

func TestASecondNodeIsRefusedUntilTheFirstIsGone(t *testing.T) {
	t.Parallel()
	dsn := pgtest.NewDSN(t)
	first := start(t, node.Config{DSN: dsn, Socket: filepath.Join(socketDir(t), "s")})
	second := node.Config{DSN: dsn, Socket: filepath.Join(socketDir(t), "s"), Log: quiet()}
	if _, err := node.Start(t.Context(), second); !errors.Is(err, node.ErrLocked) {
		t.Fatalf("got %v, want ErrLocked", err)
	}
	stop(t, first)
	n := start(t, second)
	client := connect(t, socketConfig(n.Addr()))
	_, err := client.AppendToStream(t.Context(), "s", esdb.AppendToStreamOptions{}, event())
	must.NoError(t, err)
}

// kill ends a node without patience: calls are cut off in the middle.
func kill(n *node.Node) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_ = n.Close(ctx) // says that it was cut off, as asked
}

func TestASubscriptionResumesOnARestartedNode(t *testing.T) {
	t.Parallel()
	const writers, each, restarts = 8, 100, 3
	config := node.Config{DSN: pgtest.NewDSN(t), Socket: filepath.Join(socketDir(t), "s"), Log: quiet()}
	n := start(t, config)
	address := n.Addr()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()

	var acked atomic.Int64
	ids := make([][]uuid.UUID, writers)
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			ids[w] = persistentWriter(ctx, t, socketConfig(address), fmt.Sprintf("load-%d", w), each, &acked)
		})
	}
	var seen []uuid.UUID
	wg.Go(func() { seen = follow(ctx, t, socketConfig(address), "", writers*each) })
	for r := range restarts {
		want := int64((r + 1) * writers * each / (restarts + 1))
		eventually.True(t, "load", func() bool { return acked.Load() >= want || t.Failed() })
		kill(n)
		n = start(t, config)
	}
	wg.Wait()
	got := map[uuid.UUID]bool{}
	for _, id := range seen {
		if got[id] {
			t.Fatalf("event %s came twice", id)
		}
		got[id] = true
	}
	for _, id := range slices.Concat(ids...) {
		if !got[id] {
			t.Fatalf("event %s was acknowledged and never came", id)
		}
	}
}

// follow subscribes to a stream, or to $all without one, and again behind the last event
// whenever the subscription is lost, until it has seen n events, each once and in order.
func follow(ctx context.Context, t *testing.T, config *esdb.Configuration, stream string, n int) (seen []uuid.UUID) {
	for len(seen) < n && ctx.Err() == nil {
		client, err := esdb.NewClient(config)
		if err != nil {
			t.Error(err)
			return seen
		}
		sub, err := subscribe(ctx, client, stream, uint64(len(seen)))
		for err == nil && len(seen) < n {
			e := sub.Recv()
			if e.SubscriptionDropped != nil {
				break
			}
			if e.EventAppeared != nil {
				place := e.EventAppeared.Event.EventNumber
				if stream == "" {
					place = e.EventAppeared.Event.Position.Commit - 1
				}
				if place != uint64(len(seen)) {
					t.Errorf("event %d of %q comes as its event %d", place, stream, len(seen))
					return seen
				}
				seen = append(seen, e.EventAppeared.Event.EventID)
			}
		}
		if err == nil {
			_ = sub.Close() // never fails
		}
		_ = client.Close() // never fails
	}
	return seen
}

// subscribe begins behind so many events of a stream, or of $all without one.
func subscribe(ctx context.Context, client *esdb.Client, stream string, behind uint64) (*esdb.Subscription, error) {
	if stream == "" {
		return client.SubscribeToAll(ctx, esdb.SubscribeToAllOptions{From: esdb.Position{Commit: behind, Prepare: behind}})
	}
	from := esdb.StreamPosition(esdb.Start{})
	if behind > 0 {
		from = esdb.Revision(behind - 1)
	}
	return client.SubscribeToStream(ctx, stream, esdb.SubscribeToStreamOptions{From: from})
}

func TestARepeatWithAnyIsRecognisedAfterARestart(t *testing.T) {
	t.Parallel()
	config := node.Config{DSN: pgtest.NewDSN(t), Socket: filepath.Join(socketDir(t), "s"), Log: quiet()}
	e := []esdb.EventData{event(), event()}
	n := start(t, config)
	first, err := connect(t, socketConfig(n.Addr())).AppendToStream(t.Context(), "s", esdb.AppendToStreamOptions{}, e...)
	must.NoError(t, err)
	stop(t, n)
	again, err := connect(t, socketConfig(start(t, config).Addr())).AppendToStream(t.Context(), "s", esdb.AppendToStreamOptions{}, e...)
	if err != nil || *again != *first {
		t.Fatalf("got %+v, %v, want %+v", again, err, first)
	}
}
