package node_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/base64"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/shared"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/streams"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	"humanqa/eventstore/node"
	"humanqa/internal/testing/eventually"
	"humanqa/internal/testing/must"
	"humanqa/internal/testing/pgtest"
)

// forms are the ways to append one event to a stream; taken says whether the node did.
func forms(t *testing.T, n *node.Node) map[string]func(stream string, e esdb.EventData) (taken bool) {
	client := connect(t, socketConfig(n.Addr()))
	batches, err := streams.NewStreamsClient(dial(t, n.Addr(), insecure.NewCredentials())).BatchAppend(t.Context())
	must.NoError(t, err)
	return map[string]func(string, esdb.EventData) bool{
		"Append": func(stream string, e esdb.EventData) bool {
			return nil == settled(t, func() error {
				_, err := client.AppendToStream(t.Context(), stream, esdb.AppendToStreamOptions{ExpectedRevision: esdb.Any{}}, e)
				return err
			})
		},
		"BatchAppend": func(name string, e esdb.EventData) bool {
			id := &shared.UUID{Value: &shared.UUID_String_{String_: e.EventID.String()}}
			return nil == settled(t, func() error {
				must.NoError(t, batches.Send(&streams.BatchAppendReq{
					CorrelationId: id, IsFinal: true,
					ProposedMessages: []*streams.BatchAppendReq_ProposedMessage{{
						Id: id, Data: e.Data, CustomMetadata: e.Metadata,
						Metadata: map[string]string{"type": e.EventType, "content-type": "application/json"},
					}},
					Options: &streams.BatchAppendReq_Options{
						StreamIdentifier:       stream(name),
						ExpectedStreamPosition: &streams.BatchAppendReq_Options_Any{Any: &emptypb.Empty{}},
					},
				}))
				resp, err := batches.Recv()
				must.NoError(t, err)
				return status.ErrorProto(resp.GetError())
			})
		},
	}
}

// readAllWays reads a log of n events by every kind of read, and passes each event to see.
func readAllWays(t *testing.T, n *node.Node, names []string, count int, see func(how string, e *esdb.ResolvedEvent)) {
	t.Helper()
	client := connect(t, socketConfig(n.Addr()))
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	// On a busy machine Postgres needs longer for the longest events than the node waits for its
	// answer. Then they are asked for again, as every client does.
	again := func(how string, try func() error) {
		t.Helper()
		var err error
		eventually.True(t, how, func() bool {
			err = try()
			failed, ok := esdb.FromError(err)
			return ok || failed.Code() != esdb.ErrorUnavailable && status.Code(err) != codes.Unavailable
		})
		if err != nil {
			t.Errorf("%s: %v", how, err)
		}
	}
	read := func(how string, count int, open func() (*esdb.ReadStream, error)) {
		t.Helper()
		again(how, func() error {
			r, err := open()
			must.NoError(t, err)
			defer r.Close()
			for range count {
				e, err := r.Recv()
				if err != nil {
					return err
				}
				see(how, e)
			}
			return nil
		})
	}
	follow := func(how string, count int, open func() (*esdb.Subscription, error)) {
		t.Helper()
		again(how, func() error {
			s, err := open()
			must.NoError(t, err)
			defer func() { must.NoError(t, s.Close()) }()
			for left := count; left > 0; {
				switch got := s.Recv(); {
				case got.SubscriptionDropped != nil:
					return got.SubscriptionDropped.Error
				case got.EventAppeared != nil:
					see(how, got.EventAppeared)
					left--
				}
			}
			return nil
		})
	}
	for _, links := range []bool{false, true} {
		with := map[bool]string{true: ", links resolved"}[links]
		for direction, from := range map[esdb.Direction][2]any{
			esdb.Forwards: {esdb.Start{}, esdb.Start{}}, esdb.Backwards: {esdb.End{}, esdb.End{}},
		} {
			way := map[esdb.Direction]string{esdb.Forwards: " forwards", esdb.Backwards: " backwards"}[direction] + with
			read("$all"+way, count, func() (*esdb.ReadStream, error) {
				return client.ReadAll(ctx, esdb.ReadAllOptions{Direction: direction, From: from[0].(esdb.AllPosition), ResolveLinkTos: links}, uint64(count))
			})
			for _, name := range names {
				read(name+way, 1, func() (*esdb.ReadStream, error) {
					return client.ReadStream(ctx, name,
						esdb.ReadStreamOptions{Direction: direction, From: from[1].(esdb.StreamPosition), ResolveLinkTos: links}, 1)
				})
			}
		}
		follow("a subscription to $all"+with, count, func() (*esdb.Subscription, error) {
			return client.SubscribeToAll(ctx, esdb.SubscribeToAllOptions{From: esdb.Start{}, ResolveLinkTos: links})
		})
		for _, name := range names {
			follow("a subscription to "+name+with, 1, func() (*esdb.Subscription, error) {
				return client.SubscribeToStream(ctx, name, esdb.SubscribeToStreamOptions{From: esdb.Start{}, ResolveLinkTos: links})
			})
		}
	}
}

func TestWhateverIsTakenIsGivenBackByEveryRead(t *testing.T) {
	t.Parallel()
	n := start(t, node.Config{DSN: pgtest.NewDSN(t), Socket: filepath.Join(socketDir(t), "s"), MaxAppendSize: node.MaxAppendSize})
	many := bytes.Repeat([]byte("x"), 17<<20)
	const names = len("data") + len("t")
	taken := map[string]esdb.EventData{}
	for form, appends := range forms(t, n) {
		for _, c := range []struct {
			stream, kind   string
			data, metadata int
			taken          bool
		}{
			{"data", "t", node.MaxAppendSize - names, 0, form == "Append"},
			{"meta", "t", 0, node.MaxAppendSize - names, form == "BatchAppend"},
			{"many", "t", node.MaxAppendSize - names + 1, 0, false},
			{"many", "t", 0, node.MaxAppendSize - names + 1, false},
			{"many", "t", node.MaxAppendSize / 2, node.MaxAppendSize / 2, false},
			{"many", "t", 0, 17<<20 - 150, false}, // it came in a message, and would not fit into a reader's
			{"link", "$>", len("0@data"), node.MinAppendSize - len("0@data") - len("link") - len("$>"), form == "BatchAppend"},
			{"many", "$>", len("0@data"), node.MinAppendSize - len("0@data") - len("link") - len("$>") + 1, false},
		} {
			if _, there := taken[c.stream]; there || !c.taken && c.stream != "many" {
				continue
			}
			e := event()
			e.EventType, e.Data, e.Metadata = c.kind, many[:c.data], many[:c.metadata]
			if c.kind == "$>" {
				e.Data = []byte("0@data")
			}
			switch is := appends(c.stream, e); {
			case is != c.taken:
				t.Errorf("%s of %d and %d bytes to %s: taken is %t", form, c.data, c.metadata, c.stream, is)
			case is:
				taken[c.stream] = e
			}
		}
	}
	if t.Failed() {
		return
	}
	readAllWays(t, n, []string{"link"}, 3, func(how string, e *esdb.ResolvedEvent) {
		for _, r := range []*esdb.RecordedEvent{e.Event, e.Link} {
			if r != nil && (!bytes.Equal(r.Data, taken[r.StreamID].Data) || !bytes.Equal(r.UserMetadata, taken[r.StreamID].Metadata)) {
				t.Errorf("%s: the event of %s is another", how, r.StreamID)
			}
		}
	})
}

// Postgres' index holds a name of 2.5 kB however little it can be compressed.
func TestLongNamesAreGivenBackByEveryRead(t *testing.T) {
	t.Parallel()
	const streamLength, typeLength = 2500, 64 << 10
	name := func(length int) string { // the same each time
		random := make([]byte, length)
		_, err := rand.NewChaCha8([32]byte{}).Read(random)
		must.NoError(t, err)
		return base64.RawURLEncoding.EncodeToString(random)[:length]
	}
	n := onSocket(t)
	client := connect(t, socketConfig(n.Addr()))
	long := name(streamLength)
	for form, appends := range forms(t, n) {
		for _, c := range []struct {
			stream string
			kind   int
			taken  bool
		}{
			{long, typeLength, true}, {"$$" + long, 60_000, true},
			{name(streamLength + 1), 1, false}, {"$$" + name(streamLength+1), 1, false}, {"other", typeLength + 1, false},
		} {
			e := event()
			e.EventType = name(c.kind)
			if is := appends(c.stream, e); is != c.taken {
				t.Errorf("%s to a name of %d bytes, with a type of %d: taken is %t", form, len(c.stream), c.kind, is)
			}
		}
	}
	link := event()
	link.EventType, link.Data = "$>", []byte("0@"+long)
	_, err := client.AppendToStream(t.Context(), "link", esdb.AppendToStreamOptions{}, link)
	must.NoError(t, err)
	if t.Failed() {
		return
	}
	readAllWays(t, n, []string{long, "link"}, 5, func(how string, e *esdb.ResolvedEvent) {
		if got := e.Event; got.StreamID == long && got.EventType != name(typeLength) {
			t.Errorf("%s: the type has %d bytes", how, len(got.EventType))
		}
	})
	_, err = client.DeleteStream(t.Context(), long, esdb.DeleteStreamOptions{ExpectedRevision: esdb.Any{}})
	must.NoError(t, err)
	_, err = client.TombstoneStream(t.Context(), long, esdb.TombstoneStreamOptions{ExpectedRevision: esdb.Any{}})
	must.NoError(t, err)
	if _, err = client.AppendToStream(t.Context(), long, esdb.AppendToStreamOptions{}, event()); codeOf(err) != esdb.ErrorCodeStreamDeleted {
		t.Errorf("an append to the tombstoned stream: %v", err)
	}
}

// setupUnreadable is the database of a log with events that an older version took, and that no
// message can carry.
func setupUnreadable(t *testing.T) (dsn string) {
	t.Helper()
	dsn = pgtest.NewDSN(t)
	const insert = `INSERT INTO eventlog.events VALUES ($1, 0, 0, gen_random_uuid(), true, $2, $3, convert_to($4, 'UTF8'), convert_to(repeat('m', $5), 'UTF8'))`
	for i, e := range []struct {
		stream, kind, data string
		metadata           int
	}{
		{"large", "t", "{}", 17 << 20},
		{"small", "t", "{}", 2},
		{"link", "$>", "0@large", 2},
		{"large link", "$>", "0@small", 17 << 20},
		{"both", "$>", "0@large", 17 << 20},
		{"last", "t", "{}", 2},
	} {
		execute(t, dsn, insert, i+1, e.stream, e.kind, e.data, e.metadata)
	}
	return dsn
}

// execute runs a statement in a session of its own.
func execute(t *testing.T, dsn, statement string, args ...any) {
	t.Helper()
	db, err := sql.Open("postgres", dsn)
	must.NoError(t, err)
	_, err = db.ExecContext(t.Context(), statement, args...)
	must.NoError(t, errors.Join(err, db.Close()))
}

func TestAnEventThatNoMessageCanCarryIsShownByItsPlace(t *testing.T) {
	t.Parallel()
	n := start(t, node.Config{DSN: setupUnreadable(t), Socket: filepath.Join(socketDir(t), "s")})
	sum := func(b []byte) string { return fmt.Sprintf("%x", sha256.Sum256(b)) }
	shown := fmt.Sprintf(`{"$unreadable":{"bytes":%d,"data":"%s","metadata":"%s"}}`, 17<<20+2, sum([]byte("{}")), sum(bytes.Repeat([]byte("m"), 17<<20)))
	readAllWays(t, n, []string{"both"}, 6, func(how string, e *esdb.ResolvedEvent) {
		for _, r := range []*esdb.RecordedEvent{e.Event, e.Link} {
			switch {
			case r == nil:
			case r.StreamID == "large":
				if string(r.Data) != shown || string(r.UserMetadata) != "{}" {
					t.Errorf("%s: got %s, %s", how, r.Data, r.UserMetadata)
				}
			case r.StreamID == "large link", r.StreamID == "both":
				if !strings.HasPrefix(string(r.Data), `{"$unreadable":{"bytes":1782579`) {
					t.Errorf("%s: %s: got %s", how, r.StreamID, r.Data)
				}
			case string(r.UserMetadata) != "mm":
				t.Errorf("%s: %s: the metadata are %.20s", how, r.StreamID, r.UserMetadata)
			}
		}
	})
}

// Each of these events has 17 MiB, and each reader of the log meets them.
func TestTheBytesThatNoMessageCanCarryAreReadOnce(t *testing.T) {
	t.Parallel()
	dsn := setupUnreadable(t)
	db := pgtest.NewDB(t, dsn)
	read := 0
	// blocks gives those of large values that Postgres has read since the last call, once each
	// session has ended: then it has told what it read.
	blocks := func() int {
		t.Helper()
		eventually.True(t, "the sessions end", func() (ended bool) {
			must.NoError(t, db.GetContext(t.Context(), &ended, `SELECT count(*) = 1 FROM pg_stat_activity WHERE datname = current_database() AND backend_type = 'client backend'`))
			return ended
		})
		before := read
		must.NoError(t, db.GetContext(t.Context(), &read, `SELECT toast_blks_read + toast_blks_hit FROM pg_statio_user_tables WHERE relname = 'events'`))
		return read - before
	}
	blocks()
	execute(t, dsn, `SELECT sha256(metadata) FROM eventlog.events`)
	once := blocks()
	n := start(t, node.Config{DSN: dsn, Socket: filepath.Join(socketDir(t), "s")})
	readAllWays(t, n, []string{"both"}, 6, func(string, *esdb.ResolvedEvent) {})
	stop(t, n)
	if got := blocks(); once == 0 || got >= 2*once {
		t.Errorf("%d blocks were read, want %d", got, once)
	}
}

// A node that runs shows what a row holds now.
func TestAChangeOfAnEventThatNoMessageCanCarryIsShown(t *testing.T) {
	t.Parallel()
	dsn := setupUnreadable(t)
	n := start(t, node.Config{DSN: dsn, Socket: filepath.Join(socketDir(t), "s")})
	seen := map[string]bool{}
	for _, change := range []string{"'mm'", "'nn'"} {
		execute(t, dsn, `UPDATE eventlog.events SET metadata = overlay(metadata PLACING `+change+`::bytea FROM 1) WHERE stream = 'both'`)
		readAllWays(t, n, []string{"both"}, 6, func(_ string, e *esdb.ResolvedEvent) {
			if own := e.OriginalEvent(); own.StreamID == "both" {
				seen[string(own.Data)] = true
			}
		})
	}
	if len(seen) != 2 {
		t.Errorf("shown were %v", seen)
	}
}

// The node writes the metadata of a deleted stream anew when the stream is continued.
func TestMetadataThatTheNodeWritesAnewDoNotGrow(t *testing.T) {
	t.Parallel()
	n := onSocket(t)
	client := connect(t, socketConfig(n.Addr()))
	for name, filling := range map[string]string{"html": "<", "not UTF-8": "\xff"} {
		meta := event()
		meta.EventType = "$metadata"
		meta.Data = []byte(`{"$tb":9223372036854775807,"` + strings.Repeat(filling, 1<<20-200) + `":1}`)
		for _, one := range []struct {
			stream string
			event  esdb.EventData
		}{{name, event()}, {"$$" + name, meta}, {name, event()}} {
			_, err := client.AppendToStream(t.Context(), one.stream, esdb.AppendToStreamOptions{ExpectedRevision: esdb.Any{}}, one.event)
			must.NoError(t, err)
		}
		r, err := client.ReadStream(t.Context(), "$$"+name, esdb.ReadStreamOptions{Direction: esdb.Backwards, From: esdb.End{}}, 1)
		must.NoError(t, err)
		defer r.Close()
		e, err := r.Recv()
		must.NoError(t, err)
		if size := len(e.Event.Data); size > 1<<20 {
			t.Errorf("%s: the metadata have %d bytes", name, size)
		}
	}
}
