package conformance

import (
	"fmt"
	"slices"
	"sync"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/gossip"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/persistent"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/shared"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/streams"
	"github.com/google/uuid"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"humanqa/internal/testing/must"
)

var serverTests = []test{
	{"it tells its version", func(c *scenario) {
		version, err := c.client.GetServerVersion()
		must.NoError(c, err)
		if version.Major < 20 {
			c.Fatalf("got %+v", version)
		}
	}},
	{"gossip names a leader that is alive", func(c *scenario) {
		info, err := gossip.NewGossipClient(c.dial()).Read(c.ctx, &shared.Empty{})
		must.NoError(c, err)
		if !slices.ContainsFunc(info.GetMembers(), func(m *gossip.MemberInfo) bool {
			return m.GetIsAlive() && m.GetState() == gossip.MemberInfo_Leader
		}) {
			c.Fatalf("got %v", info)
		}
	}},
	{"ids come back as strings when asked", func(c *scenario) {
		e := event(0)
		c.written(c.stream("a"), esdb.NoStream{}, e)
		got := c.rawRead(&streams.ReadReq_Options{
			StreamOption: &streams.ReadReq_Options_Stream{Stream: &streams.ReadReq_Options_StreamOptions{
				StreamIdentifier: &shared.StreamIdentifier{StreamName: []byte(c.stream("a"))},
				RevisionOption:   &streams.ReadReq_Options_StreamOptions_Start{Start: &shared.Empty{}},
			}},
			CountOption:  &streams.ReadReq_Options_Count{Count: 1},
			FilterOption: &streams.ReadReq_Options_NoFilter{NoFilter: &shared.Empty{}},
			UuidOption: &streams.ReadReq_Options_UUIDOption{
				Content: &streams.ReadReq_Options_UUIDOption_String_{String_: &shared.Empty{}}},
		})
		if len(got) != 1 || got[0].GetEvent().GetEvent().GetId().GetString_() != e.EventID.String() {
			c.Fatalf("got %v", got)
		}
	}},
	{"a read of $all may be filtered, both ways", func(c *scenario) {
		for i := range 6 {
			c.written(c.stream(fmt.Sprintf("%c", 'x'+i%2)), esdb.Any{}, event(i))
		}
		options := &streams.ReadReq_Options{
			StreamOption: &streams.ReadReq_Options_All{All: &streams.ReadReq_Options_AllOptions{
				AllOption: &streams.ReadReq_Options_AllOptions_Start{Start: &shared.Empty{}},
			}},
			CountOption: &streams.ReadReq_Options_Count{Count: 2},
			FilterOption: &streams.ReadReq_Options_Filter{Filter: &streams.ReadReq_Options_FilterOptions{
				Filter: &streams.ReadReq_Options_FilterOptions_StreamIdentifier{
					StreamIdentifier: &streams.ReadReq_Options_FilterOptions_Expression{Prefix: []string{c.stream("x")}},
				},
				Window:                       &streams.ReadReq_Options_FilterOptions_Max{Max: 1000},
				CheckpointIntervalMultiplier: 1,
			}},
			UuidOption: &streams.ReadReq_Options_UUIDOption{
				Content: &streams.ReadReq_Options_UUIDOption_Structured{Structured: &shared.Empty{}}},
		}
		c.equal(rawRevisions(c.rawRead(options)), sequence(0, 1))
		options.ReadDirection = streams.ReadReq_Options_Backwards
		options.StreamOption = &streams.ReadReq_Options_All{All: &streams.ReadReq_Options_AllOptions{
			AllOption: &streams.ReadReq_Options_AllOptions_End{End: &shared.Empty{}},
		}}
		c.equal(rawRevisions(c.rawRead(options)), sequence(2, 1))
	}},
	{"ids that are no uuids are refused", func(c *scenario) {
		call, err := streams.NewStreamsClient(c.dial()).Append(c.ctx)
		must.NoError(c, err)
		must.NoError(c, call.Send(&streams.AppendReq{Content: &streams.AppendReq_Options_{Options: &streams.AppendReq_Options{
			StreamIdentifier:       &shared.StreamIdentifier{StreamName: []byte(c.stream("a"))},
			ExpectedStreamRevision: &streams.AppendReq_Options_Any{Any: &shared.Empty{}},
		}}}))
		must.NoError(c,
			call.Send(&streams.AppendReq{Content: &streams.AppendReq_ProposedMessage_{ProposedMessage: &streams.AppendReq_ProposedMessage{
				Id:       &shared.UUID{Value: &shared.UUID_String_{String_: "not a uuid"}},
				Metadata: map[string]string{"type": "tested", "content-type": "application/json"},
			}}}))
		_, err = call.CloseAndRecv()
		c.fails(err)
		c.notFound(c.stream("a"))
	}},
	{"an event without a type is refused", func(c *scenario) {
		call, err := streams.NewStreamsClient(c.dial()).Append(c.ctx)
		must.NoError(c, err)
		must.NoError(c, call.Send(&streams.AppendReq{Content: &streams.AppendReq_Options_{Options: &streams.AppendReq_Options{
			StreamIdentifier:       &shared.StreamIdentifier{StreamName: []byte(c.stream("a"))},
			ExpectedStreamRevision: &streams.AppendReq_Options_Any{Any: &shared.Empty{}},
		}}}))
		must.NoError(c,
			call.Send(&streams.AppendReq{Content: &streams.AppendReq_ProposedMessage_{ProposedMessage: &streams.AppendReq_ProposedMessage{
				Id: protoID(uuid.New()), Metadata: map[string]string{"content-type": "application/json"},
			}}}))
		_, err = call.CloseAndRecv()
		if status.Code(err) != codes.InvalidArgument ||
			!slices.Contains(call.Trailer().Get("exception"), "missing-required-metadata-property") {
			c.Fatalf("got %v, %v", err, call.Trailer())
		}
	}},
	{"what is not offered is unimplemented", func(c *scenario) {
		version, err := c.client.GetServerVersion()
		must.NoError(c, err)
		_, err = persistent.NewPersistentSubscriptionsClient(c.dial()).GetInfo(c.ctx,
			&persistent.GetInfoReq{Options: &persistent.GetInfoReq_Options{
				StreamOption: &persistent.GetInfoReq_Options_StreamIdentifier{
					StreamIdentifier: &shared.StreamIdentifier{StreamName: []byte(c.stream("a"))}},
				GroupName: "none",
			}})
		// The original offers it and finds no such group.
		if code := status.Code(err); code != codes.Unimplemented && code != codes.NotFound {
			c.Fatalf("version %+v answers %v", version, err)
		}
	}},
}

func (c *scenario) rawRead(o *streams.ReadReq_Options) []*streams.ReadResp {
	c.Helper()
	call, err := streams.NewStreamsClient(c.dial()).Read(c.ctx, &streams.ReadReq{Options: o})
	must.NoError(c, err)
	var out []*streams.ReadResp
	for {
		resp, err := call.Recv()
		if err != nil {
			if len(out) == 0 {
				c.Logf("the read ended with %v", err)
			}
			return out
		}
		out = append(out, resp)
	}
}

func rawRevisions(answers []*streams.ReadResp) []uint64 {
	var out []uint64
	for _, a := range answers {
		out = append(out, a.GetEvent().GetEvent().GetStreamRevision())
	}
	return out
}

const (
	appenders       = 32
	appendsEach     = 200
	sharedStreams   = 4
	concurrentTotal = appenders * appendsEach
)

var concurrencyTests = []test{
	{"a live reader sees every event of many appenders once and in order", func(c *scenario) {
		h := c.subscribeAll(esdb.SubscribeToAllOptions{
			From: esdb.End{}, Filter: &esdb.SubscriptionFilter{Type: esdb.StreamFilterType, Prefixes: []string{c.prefix()}},
		})
		var wg sync.WaitGroup
		defer wg.Wait() // also of a test that has failed
		ids := make([][]uuid.UUID, appenders)
		for a := range appenders {
			wg.Go(func() {
				for i := range appendsEach {
					e := event(i)
					if _, err := c.client.AppendToStream(c.ctx, c.stream(fmt.Sprint(a%sharedStreams)), expecting(esdb.Any{}), e); err !=
						nil {
						c.Errorf("append: %v", err)
						return
					}
					ids[a] = append(ids[a], e.EventID)
				}
			})
		}
		seen := map[uuid.UUID]bool{}
		nextRevision := map[string]uint64{}
		last := uint64(0)
		for range concurrentTotal {
			e := h.events(1)[0]
			switch {
			case seen[e.Event.EventID]:
				c.Fatalf("%s came twice", e.Event.EventID)
			case position(e).Commit <= last:
				c.Fatalf("position %d after %d", position(e).Commit, last)
			case e.Event.EventNumber != nextRevision[e.Event.StreamID]:
				c.Fatalf("revision %d of %s, want %d", e.Event.EventNumber, e.Event.StreamID, nextRevision[e.Event.StreamID])
			}
			seen[e.Event.EventID], last = true, position(e).Commit
			nextRevision[e.Event.StreamID]++
		}
		wg.Wait()
		for _, id := range slices.Concat(ids...) {
			if !seen[id] {
				c.Fatalf("%s was acknowledged and never came", id)
			}
		}
	}},
	{"of many writers at one revision exactly one wins", func(c *scenario) {
		for round := range 10 {
			var wg sync.WaitGroup
			won := make(chan struct{}, appenders)
			for range appenders {
				wg.Go(func() {
					_, err := c.client.AppendToStream(c.ctx, c.stream("a"), expecting(expectedBefore(round)), event(round))
					switch {
					case err == nil:
						won <- struct{}{}
					case codeOf(err) != esdb.ErrorCodeWrongExpectedVersion:
						c.Errorf("append: %v", err)
					}
				})
			}
			wg.Wait()
			if len(won) != 1 {
				c.Fatalf("%d writers won round %d", len(won), round)
			}
		}
		c.equal(c.revisionsOf(c.stream("a")), sequence(0, 9))
	}},
	{"a reader reads its own writes", func(c *scenario) {
		reader := c.connect()
		for i := range 100 {
			written := c.written(c.stream("a"), expectedBefore(i), event(i))
			got, err := drain(reader.ReadStream(c.ctx, c.stream("a"), esdb.ReadStreamOptions{Direction: esdb.Backwards, From: esdb.End{}},
				1))
			must.NoError(c, err)
			if len(got) != 1 || position(got[0]) != at(written) {
				c.Fatalf("got %+v, want %+v", got, written)
			}
		}
	}},
}
