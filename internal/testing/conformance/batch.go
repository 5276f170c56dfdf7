package conformance

import (
	"crypto/tls"
	"encoding/base64"
	"slices"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/shared"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/streams"
	"github.com/google/uuid"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/emptypb"

	"humanqa/internal/testing/must"
)

// dial makes a plain gRPC connection: the client has no BatchAppend and no way to
// send an invalid request.
func (c *scenario) dial() *grpc.ClientConn {
	c.Helper()
	config := c.suite.config()
	address := config.Address
	if address == "" && len(config.GossipSeeds) > 0 {
		address = config.GossipSeeds[0].String()
	}
	creds := insecure.NewCredentials()
	if !config.DisableTLS {
		creds = credentials.NewTLS(&tls.Config{RootCAs: config.RootCAs,
			InsecureSkipVerify: config.SkipCertificateVerification})
	}
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(creds))
	must.NoError(c, err)
	c.Cleanup(func() {
		if err := conn.Close(); err != nil {
			c.Errorf("close the connection: %v", err)
		}
	})
	if config.Username != "" {
		basic := base64.StdEncoding.EncodeToString([]byte(config.Username + ":" + config.Password))
		c.ctx = metadata.AppendToOutgoingContext(c.ctx, "authorization", "Basic "+basic)
	}
	return conn
}

// batcher sends appends over one BatchAppend call.
type batcher struct {
	c    *scenario
	call streams.Streams_BatchAppendClient
}

func (c *scenario) batcher() *batcher {
	c.Helper()
	call, err := streams.NewStreamsClient(c.dial()).BatchAppend(c.ctx)
	must.NoError(c, err)
	return &batcher{c: c, call: call}
}

func protoID(id uuid.UUID) *shared.UUID {
	return &shared.UUID{Value: &shared.UUID_String_{String_: id.String()}}
}

func batchOptions(stream string) *streams.BatchAppendReq_Options {
	return &streams.BatchAppendReq_Options{
		StreamIdentifier:       &shared.StreamIdentifier{StreamName: []byte(stream)},
		ExpectedStreamPosition: &streams.BatchAppendReq_Options_Any{Any: &emptypb.Empty{}},
	}
}

func proposals(events ...esdb.EventData) []*streams.BatchAppendReq_ProposedMessage {
	var out []*streams.BatchAppendReq_ProposedMessage
	for _, e := range events {
		out = append(out, &streams.BatchAppendReq_ProposedMessage{
			Id: protoID(e.EventID), Data: e.Data, CustomMetadata: e.Metadata,
			Metadata: map[string]string{"type": e.EventType, "content-type": "application/json"},
		})
	}
	return out
}

func (b *batcher) send(id uuid.UUID, o *streams.BatchAppendReq_Options, final bool, events ...esdb.EventData) {
	b.c.Helper()
	must.NoError(b.c, b.call.Send(&streams.BatchAppendReq{
		CorrelationId: protoID(id), Options: o, ProposedMessages: proposals(events...), IsFinal: final,
	}))
}

// answer is the next answer and its correlation id.
func (b *batcher) answer() (*streams.BatchAppendResp, uuid.UUID) {
	b.c.Helper()
	resp, err := b.call.Recv()
	must.NoError(b.c, err)
	switch v := resp.GetCorrelationId().GetValue().(type) {
	case *shared.UUID_String_:
		return resp, uuid.MustParse(v.String_)
	case *shared.UUID_Structured_:
		id, err := esdb.ParseUUIDFromInt64(v.Structured.MostSignificantBits, v.Structured.LeastSignificantBits)
		must.NoError(b.c, err)
		return resp, id
	}
	b.c.Fatalf("no correlation id: %v", resp)
	return nil, uuid.Nil
}

func (b *batcher) refusedWith(code codes.Code) {
	b.c.Helper()
	if resp, _ := b.answer(); codes.Code(resp.GetError().GetCode()) != code {
		b.c.Fatalf("got %v, want %v", resp, code)
	}
}

var batchTests = []test{
	{"many appends over one call are answered by correlation id", func(c *scenario) {
		b := c.batcher()
		open := map[uuid.UUID]int{}
		for i := range 50 {
			id := uuid.New()
			open[id] = i
			b.send(id, batchOptions(c.stream("a")), true, event(i))
		}
		var got []uint64
		for range 50 {
			resp, id := b.answer()
			if _, ok := open[id]; !ok || resp.GetSuccess() == nil || resp.GetSuccess().GetPosition() == nil {
				c.Fatalf("got %v", resp)
			}
			delete(open, id)
			got = append(got, resp.GetSuccess().GetCurrentRevision())
		}
		slices.Sort(got)
		c.equal(got, sequence(0, 49))
		must.NoError(c, b.call.CloseSend()) // the server decides about the call after that
		c.equal(c.revisionsOf(c.stream("a")), sequence(0, 49))
	}},
	{"one append may come in several messages", func(c *scenario) {
		b := c.batcher()
		one, other := uuid.New(), uuid.New()
		b.send(one, batchOptions(c.stream("a")), false, event(0), event(1))
		b.send(other, batchOptions(c.stream("b")), true, event(0))
		if _, id := b.answer(); id != other {
			c.Fatalf("got %s, want %s", id, other)
		}
		b.send(one, nil, true, event(2))
		if resp, id := b.answer(); id != one || resp.GetSuccess().GetCurrentRevision() != 2 {
			c.Fatalf("got %v", resp)
		}
	}},
	{"a conflict is told with the current revision", func(c *scenario) {
		c.written(c.stream("a"), esdb.NoStream{}, events(3)...)
		b := c.batcher()
		o := batchOptions(c.stream("a"))
		o.ExpectedStreamPosition = &streams.BatchAppendReq_Options_StreamPosition{StreamPosition: 0}
		b.send(uuid.New(), o, true, event(9))
		resp, _ := b.answer()
		if codes.Code(resp.GetError().GetCode()) != codes.AlreadyExists || len(resp.GetError().GetDetails()) != 1 {
			c.Fatalf("got %v", resp)
		}
		var wrong shared.WrongExpectedVersion
		must.NoError(c, resp.GetError().GetDetails()[0].UnmarshalTo(&wrong))
		if wrong.GetCurrentStreamRevision() != 2 || wrong.GetExpectedStreamPosition() != 0 {
			c.Fatalf("got %v", &wrong)
		}
	}},
	{"a repeat is a success", func(c *scenario) {
		e := events(2)
		first := c.written(c.stream("a"), esdb.NoStream{}, e...)
		b := c.batcher()
		o := batchOptions(c.stream("a"))
		o.ExpectedStreamPosition = &streams.BatchAppendReq_Options_NoStream{NoStream: &emptypb.Empty{}}
		b.send(uuid.New(), o, true, e...)
		if resp, _ := b.answer(); resp.GetSuccess().GetPosition().GetCommitPosition() != first.CommitPosition {
			c.Fatalf("got %v", resp)
		}
	}},
	{"a tombstoned stream is refused", func(c *scenario) {
		must.NoError(c, c.tombstone(c.stream("a"), esdb.Any{}))
		b := c.batcher()
		b.send(uuid.New(), batchOptions(c.stream("a")), true, event(0))
		b.refusedWith(codes.NotFound)
	}},
	{"too much is refused, and the call goes on unless one message was too large", func(c *scenario) {
		b := c.batcher()
		big := event(0)
		big.Data = make([]byte, 16<<20+1)
		b.send(uuid.New(), batchOptions(c.stream("a")), true, big)
		switch resp, err := b.call.Recv(); {
		case status.Code(err) == codes.ResourceExhausted:
			b = c.batcher()
		case err != nil:
			c.Fatal(err)
		case codes.Code(resp.GetError().GetCode()) != codes.InvalidArgument:
			c.Fatalf("got %v", resp)
		}
		b.send(uuid.New(), batchOptions(c.stream("a")), true, event(0))
		if resp, _ := b.answer(); resp.GetSuccess() == nil {
			c.Fatalf("got %v", resp)
		}
	}},
	{"a deadline in the past is a time-out", func(c *scenario) {
		b := c.batcher()
		o := batchOptions(c.stream("a"))
		o.DeadlineOption = &streams.BatchAppendReq_Options_Deadline{Deadline: durationpb.New(-time.Second)}
		b.send(uuid.New(), o, true, event(0))
		b.refusedWith(codes.DeadlineExceeded)
		c.notFound(c.stream("a"))
	}},
}
