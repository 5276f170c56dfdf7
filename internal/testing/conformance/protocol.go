package conformance

import (
	"fmt"
	"math"
	"strings"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/shared"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/streams"
	"github.com/google/uuid"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"humanqa/internal/testing/must"
)

func identifier(stream string) *shared.StreamIdentifier {
	return &shared.StreamIdentifier{StreamName: []byte(stream)}
}

// fromRevision reads a stream from a revision on, like a client that understands the
// messages about the stream's bounds.
func fromRevision(stream string, revision uint64) *streams.ReadReq_Options {
	return &streams.ReadReq_Options{
		StreamOption: &streams.ReadReq_Options_Stream{Stream: &streams.ReadReq_Options_StreamOptions{
			StreamIdentifier: identifier(stream),
			RevisionOption:   &streams.ReadReq_Options_StreamOptions_Revision{Revision: revision},
		}},
		CountOption:   &streams.ReadReq_Options_Count{Count: math.MaxInt32},
		FilterOption:  &streams.ReadReq_Options_NoFilter{NoFilter: &shared.Empty{}},
		UuidOption:    &streams.ReadReq_Options_UUIDOption{Content: &streams.ReadReq_Options_UUIDOption_String_{String_: &shared.Empty{}}},
		ControlOption: &streams.ReadReq_Options_ControlOption{Compatibility: 1},
	}
}

// told writes the answers of a read as text.
func told(answers []*streams.ReadResp) string {
	var said []string
	events := 0
	for _, a := range answers {
		if a.GetEvent() != nil {
			events++
			continue
		}
		if events > 0 {
			said, events = append(said, fmt.Sprintf("events=%d", events)), 0
		}
		switch content := a.GetContent().(type) {
		case *streams.ReadResp_FirstStreamPosition:
			said = append(said, fmt.Sprintf("first=%d", content.FirstStreamPosition))
		case *streams.ReadResp_LastStreamPosition:
			said = append(said, fmt.Sprintf("last=%d", content.LastStreamPosition))
		default:
			said = append(said, fmt.Sprintf("%T", content))
		}
	}
	return strings.Join(said, " ")
}

// Tests of answers that the client's own interface hides.
var protocolTests = []test{
	{"a read tells the bounds of its stream as the original pages", func(c *scenario) {
		for _, bounds := range []struct {
			truncate, from uint64
			want           string
		}{
			{32, 0, "first=32 events=32 last=63"},
			{20, 0, "events=44 last=63"}, // the first page reaches into the stream
			{32, 64, "last=63"},
			{32, 100, "first=64 last=63"},
			{100, 0, "first=100 first=64 last=63"},
		} {
			stream := c.stream(fmt.Sprintf("%d-%d", bounds.truncate, bounds.from))
			c.written(stream, esdb.NoStream{}, events(64)...)
			c.setMetadata(stream, func(m *esdb.StreamMetadata) { m.SetTruncateBefore(bounds.truncate) })
			if got := told(c.rawRead(fromRevision(stream, bounds.from))); got != bounds.want {
				c.Errorf("truncated before %d, from %d: got %q, want %q", bounds.truncate, bounds.from, got, bounds.want)
			}
		}
	}},
	{"a read of a stream names the position of each event", func(c *scenario) {
		c.written(c.stream("other"), esdb.NoStream{}, event(0))
		at := c.written(c.stream("a"), esdb.NoStream{}, event(0))
		got := c.rawRead(fromRevision(c.stream("a"), 0))
		if len(got) == 0 || got[0].GetEvent().GetCommitPosition() != at.CommitPosition {
			c.Fatalf("got %v, want position %d", got, at.CommitPosition)
		}
	}},
	{"a delete and a tombstone at a wrong revision say the same", func(c *scenario) {
		c.written(c.stream("a"), esdb.NoStream{}, events(3)...)
		client := streams.NewStreamsClient(c.dial())
		_, deleted := client.Delete(c.ctx, &streams.DeleteReq{Options: &streams.DeleteReq_Options{
			StreamIdentifier:       identifier(c.stream("a")),
			ExpectedStreamRevision: &streams.DeleteReq_Options_Revision{Revision: 1},
		}})
		_, tombstoned := client.Tombstone(c.ctx, &streams.TombstoneReq{Options: &streams.TombstoneReq_Options{
			StreamIdentifier:       identifier(c.stream("a")),
			ExpectedStreamRevision: &streams.TombstoneReq_Options_Revision{Revision: 1},
		}})
		want := "Delete failed due to WrongExpectedVersion. Stream: " + c.stream("a") + ", Expected version: 1, Actual version: 2"
		for _, err := range []error{deleted, tombstoned} {
			if status.Code(err) != codes.FailedPrecondition || status.Convert(err).Message() != want {
				c.Errorf("got %v, want %q", err, want)
			}
		}
	}},
	{"the greatest revision is no stream", func(c *scenario) {
		client := streams.NewStreamsClient(c.dial())
		appends := func() *streams.AppendResp {
			call, err := client.Append(c.ctx)
			must.NoError(c, err)
			must.NoError(c, call.Send(&streams.AppendReq{Content: &streams.AppendReq_Options_{Options: &streams.AppendReq_Options{
				StreamIdentifier:       identifier(c.stream("a")),
				ExpectedStreamRevision: &streams.AppendReq_Options_Revision{Revision: math.MaxUint64},
			}}}))
			must.NoError(c,
				call.Send(
					&streams.AppendReq{Content: &streams.AppendReq_ProposedMessage_{ProposedMessage: &streams.AppendReq_ProposedMessage{
						Id: protoID(uuid.New()), Metadata: map[string]string{"type": "tested", "content-type": "application/json"},
						Data: []byte("{}"),
					}}}))
			resp, err := call.CloseAndRecv()
			must.NoError(c, err)
			return resp
		}
		if resp := appends(); resp.GetSuccess() == nil {
			c.Fatalf("got %v", resp)
		}
		if resp := appends(); resp.GetWrongExpectedVersion() == nil {
			c.Fatalf("of a stream that is there: got %v", resp)
		}
		_, err := client.Delete(c.ctx, &streams.DeleteReq{Options: &streams.DeleteReq_Options{
			StreamIdentifier:       identifier(c.stream("a")),
			ExpectedStreamRevision: &streams.DeleteReq_Options_Revision{Revision: math.MaxUint64},
		}})
		if status.Code(err) != codes.FailedPrecondition {
			c.Errorf("delete: got %v", err)
		}
		_, err = client.Tombstone(c.ctx, &streams.TombstoneReq{Options: &streams.TombstoneReq_Options{
			StreamIdentifier:       identifier(c.stream("new")),
			ExpectedStreamRevision: &streams.TombstoneReq_Options_Revision{Revision: math.MaxUint64},
		}})
		must.NoError(c, err)
	}},
}
