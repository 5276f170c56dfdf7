package node_test

import (
	"bytes"
	"context"
	"path/filepath"
	"testing"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/shared"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/streams"
	"google.golang.org/grpc/credentials/insecure"

	"humanqa/eventstore/node"
	"humanqa/internal/testing/must"
	"humanqa/internal/testing/pgtest"
)

func TestASubscriptionToAStreamThatFallsBehindReadsThatStreamOnly(t *testing.T) {
	t.Parallel()
	dsn := pgtest.NewDSN(t)
	n := start(t, node.Config{DSN: dsn, Socket: filepath.Join(socketDir(t), "s")})
	client := connect(t, socketConfig(n.Addr()))
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	call, err := streams.NewStreamsClient(dial(t, n.Addr(), insecure.NewCredentials())).Read(ctx, &streams.ReadReq{Options: &streams.ReadReq_Options{
		StreamOption: &streams.ReadReq_Options_Stream{Stream: &streams.ReadReq_Options_StreamOptions{
			StreamIdentifier: stream("followed"), RevisionOption: &streams.ReadReq_Options_StreamOptions_Start{Start: &shared.Empty{}},
		}},
		CountOption:  &streams.ReadReq_Options_Subscription{Subscription: &streams.ReadReq_Options_SubscriptionOptions{}},
		FilterOption: &streams.ReadReq_Options_NoFilter{NoFilter: &shared.Empty{}},
		UuidOption:   &streams.ReadReq_Options_UUIDOption{Content: &streams.ReadReq_Options_UUIDOption_String_{}},
	}})
	must.NoError(t, err)
	for live := false; !live; {
		got, err := call.Recv()
		must.NoError(t, err)
		live = got.GetCaughtUp() != nil
	}
	write := func(stream string, e ...esdb.EventData) {
		t.Helper()
		_, err := client.AppendToStream(ctx, stream, esdb.AppendToStreamOptions{ExpectedRevision: esdb.Any{}}, e...)
		must.NoError(t, err)
	}
	// More than the connection holds for a reader that does not read.
	large := event()
	large.Data = bytes.Repeat([]byte("x"), 1<<19)
	const followed, others, each = 12, 20, 500
	for range followed - 1 {
		large.EventID = event().EventID
		write("followed", large)
	}
	for range others {
		write("other", filler(each)...)
	}
	write("followed", event())
	for next := uint64(0); next < followed; {
		got, err := call.Recv()
		must.NoError(t, err)
		if e := got.GetEvent().GetEvent(); e != nil {
			if e.GetStreamRevision() != next {
				t.Fatalf("revision %d comes where %d should", e.GetStreamRevision(), next)
			}
			next++
		}
	}
	cancel()
	stop(t, n) // its sessions tell Postgres what they read
	var read int
	must.NoError(t, pgtest.NewDB(t, dsn).GetContext(t.Context(), &read, `SELECT idx_tup_read FROM pg_stat_user_indexes WHERE indexrelname = 'events_pkey'`))
	if read >= others*each/4 {
		t.Errorf("%d events were read by their positions", read)
	}
}
