package node_test

import (
	"context"
	"testing"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"

	"humanqa/internal/testing/must"
)

// The tail holds 8192 events: a subscriber that does not read for longer than
// that has to go back to pages, and to the tail again.
func TestASlowSubscriberMissesNothing(t *testing.T) {
	t.Parallel()
	const events, perAppend = 12_000, 1000
	n := onSocket(t)
	client, writer := connect(t, socketConfig(n.Addr())), connect(t, socketConfig(n.Addr()))
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	sub, err := client.SubscribeToAll(ctx, esdb.SubscribeToAllOptions{From: esdb.Start{}})
	must.NoError(t, err)
	for range events / perAppend {
		batch := make([]esdb.EventData, perAppend)
		for i := range batch {
			batch[i] = event()
			batch[i].Data = make([]byte, 500)
		}
		_, err := writer.AppendToStream(ctx, "s", esdb.AppendToStreamOptions{}, batch...)
		must.NoError(t, err)
	}
	if n.Head() != events {
		t.Fatalf("the head is at %d", n.Head())
	}
	for next := uint64(0); next < events; {
		got := sub.Recv()
		if got.SubscriptionDropped != nil {
			t.Fatal(got.SubscriptionDropped.Error)
		}
		if e := got.EventAppeared; e != nil {
			if e.Event.EventNumber != next || e.Event.Position.Commit != next+1 {
				t.Fatalf("revision %d at %d, want %d", e.Event.EventNumber, e.Event.Position.Commit, next)
			}
			next++
		}
	}
	if err := sub.Close(); err != nil {
		t.Error(err)
	}
}

func TestAnAppendWhoseTimeIsUpIsNotWritten(t *testing.T) {
	t.Parallel()
	client := connect(t, socketConfig(onSocket(t).Addr()))
	ctx, cancel := context.WithTimeout(t.Context(), time.Nanosecond)
	defer cancel()
	if _, err := client.AppendToStream(ctx, "s", esdb.AppendToStreamOptions{}, event()); err == nil {
		t.Fatal("it was accepted")
	}
	read, err := client.ReadStream(t.Context(), "s", esdb.ReadStreamOptions{}, 1)
	must.NoError(t, err)
	defer read.Close()
	if _, err := read.Recv(); codeOf(err) != esdb.ErrorCodeResourceNotFound {
		t.Fatalf("got %v", err)
	}
}
