package node_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"testing"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"

	"humanqa/eventstore/node"
	"humanqa/internal/testing/must"
	"humanqa/internal/testing/pgtest"
)

// A stream that is begun is believed to be new, and the insert proves it. What stands
// there all the same has to be found.
func TestANodeThatKnowsNoStreamBeginsOnlyThoseThatAreNotThere(t *testing.T) {
	t.Parallel()
	dsn := pgtest.NewDSN(t)
	db := pgtest.NewDB(t, dsn)
	config := node.Config{DSN: dsn, Socket: filepath.Join(socketDir(t), "s"), Log: quiet()}
	n := start(t, config)
	client := connect(t, socketConfig(n.Addr()))
	begin := esdb.AppendToStreamOptions{ExpectedRevision: esdb.NoStream{}}
	lookedUp := func() (n int) {
		must.NoError(t, db.Get(&n, `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()
			AND application_name = 'humanqa-eventlog' AND query LIKE '%SELECT s.name, e.revision, e.is_json%'`))
		return n
	}
	there := event()
	first, err := client.AppendToStream(t.Context(), "there", begin, there, event())
	must.NoError(t, err)
	_, err = client.AppendToStream(t.Context(), "gone", begin, event())
	must.NoError(t, err)
	if n := lookedUp(); n > 0 {
		t.Error("streams are looked up though they are begun")
	}
	_, err = client.DeleteStream(t.Context(), "gone", esdb.DeleteStreamOptions{ExpectedRevision: esdb.Revision(0)})
	must.NoError(t, err)
	// Neither has an event of revision 0.
	_, err = client.TombstoneStream(t.Context(), "never", esdb.TombstoneStreamOptions{ExpectedRevision: esdb.NoStream{}})
	must.NoError(t, err)
	meta := esdb.StreamMetadata{}
	meta.SetMaxCount(1)
	_, err = client.SetStreamMetadata(t.Context(), "described", esdb.AppendToStreamOptions{ExpectedRevision: esdb.Any{}}, meta)
	must.NoError(t, err)
	stop(t, n)

	n = start(t, config)
	client = connect(t, socketConfig(n.Addr()))
	code := func(err error) esdb.ErrorCode {
		var e *esdb.Error
		if !errors.As(err, &e) {
			t.Fatalf("got %v", err)
		}
		return e.Code()
	}
	// All at once, so that some of it is decided together.
	var all sync.WaitGroup
	for i := range 16 {
		all.Go(func() {
			if r, err := client.AppendToStream(t.Context(), fmt.Sprintf("new-%d", i), begin, event(), event()); err != nil || r.NextExpectedVersion != 1 {
				t.Errorf("a new stream: %+v, %v", r, err)
			}
		})
	}
	all.Go(func() {
		if _, err := client.AppendToStream(t.Context(), "there", begin, event()); code(err) != esdb.ErrorCodeWrongExpectedVersion {
			t.Errorf("a stream that is there: %v", err)
		}
		r, err := client.AppendToStream(t.Context(), "there", esdb.AppendToStreamOptions{ExpectedRevision: esdb.NoStream{}}, there)
		if err != nil || r.CommitPosition != first.CommitPosition-1 {
			t.Errorf("a repeat: %+v, %v", r, err)
		}
	})
	all.Go(func() {
		if r, err := client.AppendToStream(t.Context(), "gone", begin, event()); err != nil || r.NextExpectedVersion != 1 {
			t.Errorf("a stream that was deleted goes on behind what it had: %+v, %v", r, err)
		}
	})
	all.Go(func() {
		if _, err := client.AppendToStream(t.Context(), "never", begin, event()); code(err) != esdb.ErrorCodeStreamDeleted {
			t.Errorf("a tombstone: %v", err)
		}
	})
	all.Go(func() {
		if r, err := client.AppendToStream(t.Context(), "described", begin, event()); err != nil || r.NextExpectedVersion != 0 {
			t.Errorf("a stream that has only metadata: %+v, %v", r, err)
		}
	})
	all.Wait()
	if lookedUp() == 0 {
		t.Error("what stands in the way was not looked up")
	}
	// Nothing was left out, and nothing is there twice.
	var rows, head int64
	must.NoError(t, db.QueryRowContext(t.Context(), `SELECT count(*), max(position) FROM eventlog.events`).Scan(&rows, &head))
	// there 2, gone 1 and its deletion, never, described; 16 times 2; gone and its revival, described
	if want := int64(6 + 32 + 3); rows != want || head != want {
		t.Errorf("%d events up to %d, want %d", rows, head, want)
	}
}
