package kurrentdb_test

import (
	"slices"
	"testing"

	"github.com/kurrent-io/KurrentDB-Client-Go/kurrentdb"
)

func TestTheClientWritesAndReads(t *testing.T) {
	client, ctx := connect(t, settings(t)), t.Context()
	appends := func(stream string, expected kurrentdb.StreamState, events ...kurrentdb.EventData) (*kurrentdb.WriteResult, error) {
		return client.AppendToStream(ctx, stream, kurrentdb.AppendToStreamOptions{StreamState: expected}, events...)
	}
	three := []kurrentdb.EventData{event("one"), event("two"), event("three")}
	first, err := appends("s", kurrentdb.NoStream{}, three...)
	noError(t, err)
	if again, err := appends("s", kurrentdb.NoStream{}, three...); err != nil || *again != *first {
		t.Errorf("a repeat: got %+v, %v, want %+v", again, err, first)
	}
	if _, err := appends("s", kurrentdb.StreamRevision{Value: 1}, event("late")); code(err) != kurrentdb.ErrorCodeWrongExpectedVersion {
		t.Errorf("at a wrong revision: %v", err)
	}
	_, err = appends("links", kurrentdb.Any{}, kurrentdb.EventData{EventType: "$>", Data: []byte("1@s")})
	noError(t, err)

	back := kurrentdb.ReadStreamOptions{Direction: kurrentdb.Backwards, From: kurrentdb.End{}}
	if got, err := types(client.ReadStream(ctx, "s", back, 2)); err != nil || !slices.Equal(got, []string{"three", "two"}) {
		t.Errorf("backwards: got %v, %v", got, err)
	}
	if got, err := types(client.ReadStream(ctx, "links", kurrentdb.ReadStreamOptions{ResolveLinkTos: true}, 9)); err != nil || !slices.Equal(got, []string{"two"}) {
		t.Errorf("a link: got %v, %v", got, err)
	}
	all := kurrentdb.ReadAllOptions{Direction: kurrentdb.Backwards, From: kurrentdb.End{}}
	if got, err := types(client.ReadAll(ctx, all, 4)); err != nil || !slices.Equal(got, []string{"$>", "three", "two", "one"}) {
		t.Errorf("$all: got %v, %v", got, err)
	}
	if _, err := types(client.ReadStream(ctx, "none", kurrentdb.ReadStreamOptions{}, 9)); code(err) != kurrentdb.ErrorCodeResourceNotFound {
		t.Errorf("a stream that is not there: %v", err)
	}

	var meta kurrentdb.StreamMetadata
	meta.SetMaxCount(1)
	_, err = client.SetStreamMetadata(ctx, "s", kurrentdb.AppendToStreamOptions{StreamState: kurrentdb.Any{}}, meta)
	noError(t, err)
	read, err := client.GetStreamMetadata(ctx, "s", kurrentdb.ReadStreamOptions{})
	noError(t, err)
	if most := read.MaxCount(); most == nil || *most != 1 {
		t.Errorf("got the metadata %+v", read)
	}
	if got, err := types(client.ReadStream(ctx, "s", kurrentdb.ReadStreamOptions{}, 9)); err != nil || !slices.Equal(got, []string{"three"}) {
		t.Errorf("one event of the stream at most: got %v, %v", got, err)
	}

	_, err = client.DeleteStream(ctx, "s", kurrentdb.DeleteStreamOptions{StreamState: kurrentdb.StreamRevision{Value: 2}})
	noError(t, err)
	if _, err := types(client.ReadStream(ctx, "s", kurrentdb.ReadStreamOptions{}, 9)); code(err) != kurrentdb.ErrorCodeResourceNotFound {
		t.Errorf("a deleted stream: %v", err)
	}
	_, err = client.TombstoneStream(ctx, "s", kurrentdb.TombstoneStreamOptions{StreamState: kurrentdb.Any{}})
	noError(t, err)
	if _, err := types(client.ReadStream(ctx, "s", kurrentdb.ReadStreamOptions{}, 9)); code(err) != kurrentdb.ErrorCodeStreamDeleted {
		t.Errorf("a tombstoned stream: %v", err)
	}
}

func TestTheClientSubscribes(t *testing.T) {
	client, ctx := connect(t, settings(t)), t.Context()
	appends := func(stream string, kinds ...string) {
		t.Helper()
		for _, kind := range kinds {
			_, err := client.AppendToStream(ctx, stream, kurrentdb.AppendToStreamOptions{StreamState: kurrentdb.Any{}}, event(kind))
			noError(t, err)
		}
	}
	// hears takes events up to the last of them, and counts the checkpoints and the times it
	// caught up.
	hears := func(s *kurrentdb.Subscription, want ...string) (checkpoints, caughtUp int) {
		t.Helper()
		for len(want) > 0 {
			switch got := s.Recv(); {
			case got.SubscriptionDropped != nil:
				t.Fatal(got.SubscriptionDropped.Error)
			case got.CheckPointReached != nil:
				checkpoints++
			case got.CaughtUp != nil:
				caughtUp++
				appends("followed", "xyz") // live from here
			case got.EventAppeared != nil:
				if kind := got.EventAppeared.Event.EventType; kind != want[0] {
					t.Fatalf("got %s, want %s", kind, want[0])
				}
				want = want[1:]
			}
		}
		return checkpoints, caughtUp
	}
	appends("followed", "bcd", "aei", "häuser")
	one, err := client.SubscribeToStream(ctx, "followed", kurrentdb.SubscribeToStreamOptions{From: kurrentdb.Start{}})
	noError(t, err)
	t.Cleanup(func() { noError(t, one.Close()) })
	if _, caughtUp := hears(one, "bcd", "aei", "häuser", "xyz"); caughtUp != 1 {
		t.Errorf("the stream's subscription caught up %d times", caughtUp)
	}
	all, err := client.SubscribeToAll(ctx, kurrentdb.SubscribeToAllOptions{From: kurrentdb.Start{}, Filter: &kurrentdb.SubscriptionFilter{
		Type: kurrentdb.EventFilterType, Regex: `^([a-z-[aeiou]]+|h\w+)$`,
	}})
	noError(t, err)
	t.Cleanup(func() { noError(t, all.Close()) })
	if checkpoints, caughtUp := hears(all, "bcd", "häuser", "xyz", "xyz"); checkpoints == 0 || caughtUp != 1 {
		t.Errorf("$all: %d checkpoints, and it caught up %d times", checkpoints, caughtUp)
	}
}

// A call that the node does not offer fails by itself, and the client goes on.
func TestTheClientIsToldWhatIsNotOffered(t *testing.T) {
	client, ctx := connect(t, settings(t)), t.Context()
	if _, err := client.AppendRecords(ctx, []kurrentdb.AppendRecord{{Stream: "offered", Record: event("one")}}); code(err) != kurrentdb.ErrorCodeUnsupportedFeature {
		t.Errorf("an append to several streams: %v", err)
	}
	err := client.CreatePersistentSubscription(ctx, "offered", "group", kurrentdb.PersistentStreamSubscriptionOptions{})
	if code(err) == -1 || err == nil {
		t.Errorf("a persistent subscription: %v", err)
	}
	_, err = client.AppendToStream(ctx, "offered", kurrentdb.AppendToStreamOptions{}, event("one"))
	noError(t, err)
}
