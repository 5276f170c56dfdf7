package node_test

import (
	"path/filepath"
	"testing"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"
	"github.com/google/uuid"

	"humanqa/eventstore/node"
	"humanqa/internal/testing/must"
	"humanqa/internal/testing/pgtest"
)

// filler is an append of so many events.
func filler(n int) []esdb.EventData {
	events := make([]esdb.EventData, n)
	for i := range events {
		events[i] = event()
	}
	return events
}

func TestARepeatWithAnyIsRecognisedAmongTheLogsLastEvents(t *testing.T) {
	t.Parallel()
	config := node.Config{DSN: pgtest.NewDSN(t), Socket: filepath.Join(socketDir(t), "s"), Log: quiet()}
	n := start(t, config)
	client := connect(t, socketConfig(n.Addr()))
	write := func(stream string, expected esdb.ExpectedRevision, e ...esdb.EventData) esdb.WriteResult {
		t.Helper()
		r, err := client.AppendToStream(t.Context(), stream, esdb.AppendToStreamOptions{ExpectedRevision: expected}, e...)
		must.NoError(t, err)
		return *r
	}
	e := filler(2)
	first := write("s", esdb.Any{}, e...)
	repeated := func(when string) {
		t.Helper()
		if again := write("s", esdb.Any{}, e...); again != first {
			t.Errorf("%s: got %+v, want %+v", when, again, first)
		}
		if again := write("s", esdb.StreamExists{}, e...); again != first {
			t.Errorf("%s, with StreamExists: got %+v, want %+v", when, again, first)
		}
	}
	write("s", esdb.Any{}, filler(500)...)
	repeated("behind 500 events of its stream")
	write("other", esdb.Any{}, filler(500)...)
	repeated("behind 500 events of another")
	stop(t, n)
	client = connect(t, socketConfig(start(t, config).Addr()))
	repeated("after a restart")
}

// As in the original, an id belongs to the stream that took it first.
func TestAnIDThatAnotherStreamTookFirstIsNoRepeat(t *testing.T) {
	t.Parallel()
	client := connect(t, socketConfig(onSocket(t).Addr()))
	e := event()
	for i, want := range []struct {
		stream   string
		expected esdb.ExpectedRevision
		revision uint64
	}{
		{"first", esdb.Any{}, 0},
		{"second", esdb.NoStream{}, 0},
		{"second", esdb.NoStream{}, 0}, // a repeat at its place
		{"second", esdb.Any{}, 1},
		{"second", esdb.StreamExists{}, 2},
		{"first", esdb.Any{}, 0},
		{"second", esdb.Revision(1), 2}, // a repeat at its place
	} {
		r, err := client.AppendToStream(t.Context(), want.stream, esdb.AppendToStreamOptions{ExpectedRevision: want.expected}, e)
		if err != nil || r.NextExpectedVersion != want.revision {
			t.Errorf("append %d: got %+v, %v, want revision %d", i, r, err, want.revision)
		}
	}
}

// The place of an older event is looked up in Postgres.
func TestARepeatAtItsPlaceIsRecognisedHoweverOldItIs(t *testing.T) {
	t.Parallel()
	dsn := pgtest.NewDSN(t)
	db := pgtest.NewDB(t, dsn)
	ids := make([]uuid.UUID, 3)
	for i := range ids {
		ids[i] = uuid.New()
		_, err := db.ExecContext(t.Context(), `INSERT INTO eventlog.events VALUES ($1, $2, 0, $3, true, 'old', 't', '{}', '')`, i+1, i, ids[i])
		must.NoError(t, err)
	}
	_, err := db.ExecContext(t.Context(), `INSERT INTO eventlog.events
		SELECT i, i - 4, 0, gen_random_uuid(), true, 'others', 't', '{}', '' FROM generate_series(4, 100100) AS i`)
	must.NoError(t, err)
	client := connect(t, socketConfig(start(t, node.Config{DSN: dsn, Socket: filepath.Join(socketDir(t), "s")}).Addr()))
	e := filler(2)
	e[0].EventID, e[1].EventID = ids[1], ids[2]
	appends := func(expected esdb.ExpectedRevision, events ...esdb.EventData) (r *esdb.WriteResult, err error) {
		err = settled(t, func() error { // the look-up is among 100,000 events
			r, err = client.AppendToStream(t.Context(), "old", esdb.AppendToStreamOptions{ExpectedRevision: expected}, events...)
			return err
		})
		return r, err
	}
	if r, err := appends(esdb.Revision(0), e...); err != nil || r.NextExpectedVersion != 2 || r.CommitPosition != 3 {
		t.Errorf("a repeat: got %+v, %v", r, err)
	}
	if _, err := appends(esdb.Revision(0), event()); codeOf(err) != esdb.ErrorCodeWrongExpectedVersion {
		t.Errorf("another event: %v", err)
	}
	if r, err := appends(esdb.Any{}, e...); err != nil || r.NextExpectedVersion != 4 {
		t.Errorf("with Any it is too old: got %+v, %v", r, err)
	}
}

func TestMetadataThatAreNoObjectDoNotReviveADeletedStream(t *testing.T) {
	t.Parallel()
	client := connect(t, socketConfig(onSocket(t).Addr()))
	write := func(stream string, e esdb.EventData) (*esdb.WriteResult, error) {
		return client.AppendToStream(t.Context(), stream, esdb.AppendToStreamOptions{ExpectedRevision: esdb.Any{}}, e)
	}
	_, err := write("s", event())
	must.NoError(t, err)
	_, err = client.DeleteStream(t.Context(), "s", esdb.DeleteStreamOptions{ExpectedRevision: esdb.Any{}})
	must.NoError(t, err)
	meta := event()
	meta.EventType, meta.Data = "$metadata", []byte("null")
	if r, err := write("$$s", meta); err != nil || r.NextExpectedVersion != 1 {
		t.Errorf("got %+v, %v", r, err)
	}
	if r, err := write("s", event()); err != nil || r.NextExpectedVersion != 1 {
		t.Errorf("the next event: got %+v, %v", r, err)
	}
}
