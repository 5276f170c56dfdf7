package node

import (
	"context"
	"errors"
	"io"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/EventStore/EventStore-Client-Go/v4/protos/shared"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/streams"

	"humanqa/eventstore/node/store"
)

const (
	// MaxAppendSize is the largest limit that an append may be set to, as in the original,
	// and MinAppendSize the least one and the default. Data, metadata and names count
	// together, as a reader gets them.
	MaxAppendSize = 16_767_216
	MinAppendSize = 1 << 20
	// maxLinkSize bounds a link: a reader may get it together with the largest event.
	maxLinkSize = MinAppendSize
	// maxAppendEvents bounds the events of one append.
	maxAppendEvents = 512 * 1024
	// The names of streams, and of their metadata's, stand in an index. Postgres bounds its
	// entries at 2,704 bytes. Types stand in none.
	maxStreamName = 2500
	maxEventType  = 64 << 10
)

// streamsServer is the Streams service.
type streamsServer struct {
	streams.UnimplementedStreamsServer
	node *Node
}

// streamName checks the name of a request. A name that Postgres can't store must
// not reach the writer: it would make its whole group fail.
func streamName(id *shared.StreamIdentifier) (string, error) {
	name := string(id.GetStreamName())
	switch {
	case name == "" || name == store.MetaPrefix:
		return "", invalid("the stream name is empty")
	case len(strings.TrimPrefix(name, store.MetaPrefix)) > maxStreamName:
		return "", invalid("the stream name is too long")
	case !storable(name):
		return "", invalid("the stream name is not valid UTF-8 or contains NUL")
	}
	return name, nil
}

func storable(s string) bool {
	return utf8.ValidString(s) && strings.IndexByte(s, 0) < 0
}

// writableStream also refuses the names under which only the node writes.
func writableStream(id *shared.StreamIdentifier) (string, error) {
	name, err := streamName(id)
	switch {
	case err != nil:
		return "", err
	case name == "$all":
		return "", invalid("$all can't be written")
	case strings.HasPrefix(name, store.MetaPrefix+store.MetaPrefix):
		return "", invalid("metadata has no metadata stream")
	}
	return name, nil
}

// proposal is an event as both kinds of append carry it.
type proposal interface {
	GetId() *shared.UUID
	GetMetadata() map[string]string
	GetCustomMetadata() []byte
	GetData() []byte
}

// pendingAppend is an append whose events are still arriving.
type pendingAppend struct {
	*store.Write

	limit int // in bytes
}

func (n *Node) newAppend(ctx context.Context, stream string, expected int64) *pendingAppend {
	return &pendingAppend{Write: store.NewWrite(ctx, store.OpAppend, stream, expected), limit: n.config.MaxAppendSize}
}

func (a *pendingAppend) propose(p proposal) error {
	id, ok := idFromProto(p.GetId())
	if !ok {
		return invalid("the event id is not a uuid")
	}
	meta := p.GetMetadata()
	kind, ok := meta["type"]
	if !ok {
		return requiredMetadataMissing("type")
	}
	contentType, ok := meta["content-type"]
	if !ok {
		return requiredMetadataMissing("content-type")
	}
	if kind == "" || len(kind) > maxEventType || !storable(kind) {
		return invalid("the event type is empty, too long or contains NUL")
	}
	own, bytes, events := a.Propose(store.Proposed{
		ID: id, JSON: contentType == contentTypeJSON, Type: kind, Data: p.GetData(), Metadata: p.GetCustomMetadata(),
	})
	switch {
	case bytes > a.limit, events > maxAppendEvents:
		return maxAppendSizeExceeded(a.limit)
	case kind == store.TypeLink && own > maxLinkSize:
		return maxAppendSizeExceeded(maxLinkSize)
	}
	return nil
}

// expectedRevision reads the revision that a client expects. Older clients send
// the maximum for "no stream".
func expectedRevision(v uint64) int64 {
	if v == math.MaxUint64 {
		return store.ExpectNoStream
	}
	return lastOf(v)
}

// expectation is the expected revision in appends, deletes and tombstones.
type expectation interface {
	GetRevision() uint64
	GetNoStream() *shared.Empty
	GetAny() *shared.Empty
	GetStreamExists() *shared.Empty
}

// expectedOf reads an expectation; given is false where a client named none.
func expectedOf(e expectation, given bool) (int64, error) {
	switch {
	case !given:
		return 0, invalid("the expected revision is required")
	case e.GetNoStream() != nil:
		return store.ExpectNoStream, nil
	case e.GetAny() != nil:
		return store.ExpectAny, nil
	case e.GetStreamExists() != nil:
		return store.ExpectStreamExists, nil
	}
	return expectedRevision(e.GetRevision()), nil
}

func (s *streamsServer) Append(in streams.Streams_AppendServer) error {
	resp, err := s.appendEvents(in)
	if err != nil {
		return answer(in.Context(), err)
	}
	return in.SendAndClose(resp)
}

func (s *streamsServer) appendEvents(in streams.Streams_AppendServer) (*streams.AppendResp, error) {
	first, err := in.Recv()
	if err != nil {
		return nil, err
	}
	options := first.GetOptions()
	if options == nil {
		return nil, invalid("the first message must carry options")
	}
	stream, err := writableStream(options.GetStreamIdentifier())
	if err != nil {
		return nil, err
	}
	expected, err := expectedOf(options, options.GetExpectedStreamRevision() != nil)
	if err != nil {
		return nil, err
	}
	w := s.node.newAppend(in.Context(), stream, expected)
	for {
		next, err := in.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		message := next.GetProposedMessage()
		if message == nil {
			return nil, invalid("every message after the first must propose an event")
		}
		if err := w.propose(message); err != nil {
			return nil, err
		}
	}
	out, err := s.node.store.Submit(w.Write)
	if err != nil {
		return nil, storeError(err)
	}
	switch out.Kind {
	case store.Deleted:
		return nil, streamDeleted(stream)
	case store.WrongVersion:
		return &streams.AppendResp{Result: &streams.AppendResp_WrongExpectedVersion_{
			WrongExpectedVersion: wrongVersionResp(expected, out.Revision),
		}}, nil
	}
	return &streams.AppendResp{Result: &streams.AppendResp_Success_{Success: successResp(out)}}, nil
}

func successResp(out store.Outcome) *streams.AppendResp_Success {
	success := &streams.AppendResp_Success{}
	if out.Revision == store.NoStream {
		success.CurrentRevisionOption = &streams.AppendResp_Success_NoStream{NoStream: &shared.Empty{}}
	} else {
		success.CurrentRevisionOption = &streams.AppendResp_Success_CurrentRevision{CurrentRevision: uint64(out.Revision)}
	}
	if out.Position == 0 {
		success.PositionOption = &streams.AppendResp_Success_NoPosition{NoPosition: &shared.Empty{}}
	} else {
		success.PositionOption = &streams.AppendResp_Success_Position{Position: &streams.AppendResp_Position{
			CommitPosition: uint64(out.Position), PreparePosition: uint64(out.Position),
		}}
	}
	return success
}

// wrongVersionResp fills both generations of the fields, as the original does
// for clients older than 20.6.1.
func wrongVersionResp(expected, current int64) *streams.AppendResp_WrongExpectedVersion {
	const noRevision = ^uint64(0)
	r := &streams.AppendResp_WrongExpectedVersion{}
	switch expected {
	case store.ExpectAny:
		r.ExpectedRevisionOption = &streams.AppendResp_WrongExpectedVersion_ExpectedAny{ExpectedAny: &shared.Empty{}}
		r.ExpectedRevisionOption_20_6_0 = &streams.AppendResp_WrongExpectedVersion_Any_20_6_0{Any_20_6_0: &shared.Empty{}}
	case store.ExpectStreamExists:
		r.ExpectedRevisionOption = &streams.AppendResp_WrongExpectedVersion_ExpectedStreamExists{ExpectedStreamExists: &shared.Empty{}}
		r.ExpectedRevisionOption_20_6_0 = &streams.AppendResp_WrongExpectedVersion_StreamExists_20_6_0{StreamExists_20_6_0: &shared.Empty{}}
	case store.ExpectNoStream:
		r.ExpectedRevisionOption = &streams.AppendResp_WrongExpectedVersion_ExpectedNoStream{ExpectedNoStream: &shared.Empty{}}
		r.ExpectedRevisionOption_20_6_0 = &streams.AppendResp_WrongExpectedVersion_ExpectedRevision_20_6_0{
			ExpectedRevision_20_6_0: noRevision}
	default:
		r.ExpectedRevisionOption = &streams.AppendResp_WrongExpectedVersion_ExpectedRevision{ExpectedRevision: uint64(expected)}
		r.ExpectedRevisionOption_20_6_0 = &streams.AppendResp_WrongExpectedVersion_ExpectedRevision_20_6_0{
			ExpectedRevision_20_6_0: uint64(expected)}
	}
	if current == store.NoStream {
		r.CurrentRevisionOption = &streams.AppendResp_WrongExpectedVersion_CurrentNoStream{CurrentNoStream: &shared.Empty{}}
		r.CurrentRevisionOption_20_6_0 = &streams.AppendResp_WrongExpectedVersion_NoStream_20_6_0{NoStream_20_6_0: &shared.Empty{}}
	} else {
		r.CurrentRevisionOption = &streams.AppendResp_WrongExpectedVersion_CurrentRevision{CurrentRevision: uint64(current)}
		r.CurrentRevisionOption_20_6_0 = &streams.AppendResp_WrongExpectedVersion_CurrentRevision_20_6_0{
			CurrentRevision_20_6_0: uint64(current)}
	}
	return r
}
