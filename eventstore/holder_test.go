package eventstore

import (
	"errors"
	"testing"

	"humanqa/eventstore/node"
	"humanqa/internal/testing/eventually"
	"humanqa/internal/testing/must"
	"humanqa/internal/testing/pgtest"
	"humanqa/internal/testing/process"
)

// endWriter ends the first node's session that holds the log's lock.
const endWriter = `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'humanqa-eventlog'
	AND pid IN (SELECT pid FROM pg_locks WHERE locktype = 'advisory')`

func TestAClientWithTheAddressesOfTwoNodesFollowsTheHolderOfTheLock(t *testing.T) {
	t.Parallel()
	dsn := pgtest.NewDSN(t)
	db := pgtest.NewDB(t, dsn)
	at, other := process.Address(t), process.Address(t)
	start := func(dsn, address string) (*testNode, error) {
		started, err := node.Start(t.Context(), node.Config{DSN: dsn, InsecureListen: address, Log: quietLog()})
		return &testNode{t: t, node: started}, err
	}
	first, err := start(dsn, at)
	must.NoError(t, err)
	t.Cleanup(first.stop)
	client, err := Open("esdb://"+at+","+other+"?tls=false", quietLog())
	must.NoError(t, err)
	client.limits = patientLimits
	t.Cleanup(func() { must.NoError(t, client.Close()) })
	feed := run(t, client, 0)
	grow(t, client, "job-1", 0, 3)

	took := make(chan *testNode, 1)
	go func() {
		second, err := start(dsn+"&application_name=other", other)
		for errors.Is(err, node.ErrLocked) {
			second, err = start(dsn+"&application_name=other", other)
		}
		if err != nil {
			t.Error(err)
		}
		took <- second
	}()
	eventually.True(t, "the other node has the lock", func() bool { // the first one may be faster, and have it again
		_, err := db.ExecContext(t.Context(), endWriter)
		must.NoError(t, err)
		return len(took) > 0
	})
	second := <-took
	t.Cleanup(second.stop)
	grow(t, client, "job-1", 3, 3)
	if second.node.Head() != 6 || first.node.Term().Err() == nil {
		t.Errorf("the other node's log ends at %d, want 6", second.node.Head())
	}

	second.stop()
	grow(t, client, "job-1", 6, 3)
	c := consumer{at: Checkpoint{Start: true}}
	must.NoError(t, c.read(t.Context(), feed, 9, 10))
	c.expect(t, "job-1", 9)
}
