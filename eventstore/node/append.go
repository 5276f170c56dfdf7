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
)

const (
	// MaxAppendSize is the most that the data of one append may be set to, and
	// what it is unless set: as in the original. The original's default is
	// MinAppendSize, less than the largest report.
	MaxAppendSize = 16_767_216
	MinAppendSize = 1 << 20
	// maxAppendEvents and maxAppendBytes bound what one append holds in memory,
	// metadata and names included, which the limit above does not count.
	maxAppendEvents = 512 * 1024
	maxAppendBytes  = 64 << 20
	// Names stand in an index whose entries Postgres bounds at 2.7 kB.
	maxStreamName = 1024
	maxEventType  = 1024
)

// streamsServer is the Streams service.
type streamsServer struct {
	streams.UnimplementedStreamsServer
	node *Node
}

// streamName checks a name on the way in. What Postgres can't store must not
// reach the writer, it would take its whole group down.
func streamName(id *shared.StreamIdentifier) (string, error) {
	name := string(id.GetStreamName())
	switch {
	case name == "" || name == metaPrefix:
		return "", invalid("the stream name is empty")
	case len(name) > maxStreamName:
		return "", invalid("the stream name is too long")
	case !storable(name):
		return "", invalid("the stream name is not valid UTF-8 or contains NUL")
	}
	return name, nil
}

func storable(s string) bool {
	return utf8.ValidString(s) && strings.IndexByte(s, 0) < 0
}

// writableStream also refuses the names under which nobody writes.
func writableStream(id *shared.StreamIdentifier) (string, error) {
	name, err := streamName(id)
	switch {
	case err != nil:
		return "", err
	case name == "$all":
		return "", invalid("$all can't be written")
	case strings.HasPrefix(name, metaPrefix+metaPrefix):
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

func (w *write) propose(p proposal) error {
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
	// Like the original's, the limit counts data only.
	w.data += len(p.GetData())
	w.size += len(p.GetData()) + len(p.GetCustomMetadata()) + len(kind)
	if w.data > w.limit || w.size > maxAppendBytes || len(w.events) >= maxAppendEvents {
		return maxAppendSizeExceeded(w.limit)
	}
	w.events = append(w.events, proposed{
		id: id, json: contentType == contentTypeJSON, kind: kind, data: p.GetData(), metadata: p.GetCustomMetadata(),
	})
	return nil
}

func newWrite(ctx context.Context, op operation, stream string, expected int64) *write {
	return &write{ctx: ctx, op: op, stream: stream, expected: expected, done: make(chan outcome, 1)}
}

// newAppend is a write that events are proposed to.
func (n *Node) newAppend(ctx context.Context, stream string, expected int64) *write {
	w := newWrite(ctx, opAppend, stream, expected)
	w.limit = n.config.MaxAppendSize
	return w
}

// expectedRevision reads the revision that a client expects. Its maximum is how
// older clients spell "no stream".
func expectedRevision(v uint64) int64 {
	if v == math.MaxUint64 {
		return expectNoStream
	}
	return lastOf(v)
}

// submit hands a write to the writer and waits for its outcome. A caller that
// gives up does not undo anything: the outcome is then unknown to it.
func (n *Node) submit(w *write) (outcome, error) {
	if err := n.enqueue(w); err != nil {
		return outcome{}, err
	}
	select {
	case out := <-w.done:
		return out, out.err
	case <-w.ctx.Done():
		return outcome{}, w.ctx.Err()
	case <-n.writer.done:
		return outcome{}, errClosing
	}
}

func (n *Node) enqueue(w *write) error {
	select {
	case n.writer.queue <- w:
		return nil
	case <-w.ctx.Done():
		return w.ctx.Err()
	case <-n.writer.done:
		return errClosing
	}
}

func (s *streamsServer) Append(in streams.Streams_AppendServer) error {
	resp, err := s.append(in)
	if err != nil {
		return answer(in.Context(), err)
	}
	return in.SendAndClose(resp)
}

func (s *streamsServer) append(in streams.Streams_AppendServer) (*streams.AppendResp, error) {
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
	var expected int64
	switch e := options.GetExpectedStreamRevision().(type) {
	case *streams.AppendReq_Options_Revision:
		expected = expectedRevision(e.Revision)
	case *streams.AppendReq_Options_NoStream:
		expected = expectNoStream
	case *streams.AppendReq_Options_Any:
		expected = expectAny
	case *streams.AppendReq_Options_StreamExists:
		expected = expectStreamExists
	default:
		return nil, invalid("the expected revision is required")
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
	out, err := s.node.submit(w)
	if err != nil {
		return nil, err
	}
	switch out.kind {
	case deleted:
		return nil, streamDeleted(stream)
	case wrongVersion:
		return &streams.AppendResp{Result: &streams.AppendResp_WrongExpectedVersion_{
			WrongExpectedVersion: wrongVersionResp(expected, out.revision),
		}}, nil
	}
	return &streams.AppendResp{Result: &streams.AppendResp_Success_{Success: successResp(out)}}, nil
}

func successResp(out outcome) *streams.AppendResp_Success {
	success := &streams.AppendResp_Success{}
	if out.revision == noStream {
		success.CurrentRevisionOption = &streams.AppendResp_Success_NoStream{NoStream: &shared.Empty{}}
	} else {
		success.CurrentRevisionOption = &streams.AppendResp_Success_CurrentRevision{CurrentRevision: uint64(out.revision)}
	}
	if out.position == 0 {
		success.PositionOption = &streams.AppendResp_Success_NoPosition{NoPosition: &shared.Empty{}}
	} else {
		success.PositionOption = &streams.AppendResp_Success_Position{Position: &streams.AppendResp_Position{
			CommitPosition: uint64(out.position), PreparePosition: uint64(out.position),
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
	case expectAny:
		r.ExpectedRevisionOption = &streams.AppendResp_WrongExpectedVersion_ExpectedAny{ExpectedAny: &shared.Empty{}}
		r.ExpectedRevisionOption_20_6_0 = &streams.AppendResp_WrongExpectedVersion_Any_20_6_0{Any_20_6_0: &shared.Empty{}}
	case expectStreamExists:
		r.ExpectedRevisionOption = &streams.AppendResp_WrongExpectedVersion_ExpectedStreamExists{ExpectedStreamExists: &shared.Empty{}}
		r.ExpectedRevisionOption_20_6_0 = &streams.AppendResp_WrongExpectedVersion_StreamExists_20_6_0{StreamExists_20_6_0: &shared.Empty{}}
	case expectNoStream:
		r.ExpectedRevisionOption = &streams.AppendResp_WrongExpectedVersion_ExpectedNoStream{ExpectedNoStream: &shared.Empty{}}
		r.ExpectedRevisionOption_20_6_0 = &streams.AppendResp_WrongExpectedVersion_ExpectedRevision_20_6_0{ExpectedRevision_20_6_0: noRevision}
	default:
		r.ExpectedRevisionOption = &streams.AppendResp_WrongExpectedVersion_ExpectedRevision{ExpectedRevision: uint64(expected)}
		r.ExpectedRevisionOption_20_6_0 = &streams.AppendResp_WrongExpectedVersion_ExpectedRevision_20_6_0{ExpectedRevision_20_6_0: uint64(expected)}
	}
	if current == noStream {
		r.CurrentRevisionOption = &streams.AppendResp_WrongExpectedVersion_CurrentNoStream{CurrentNoStream: &shared.Empty{}}
		r.CurrentRevisionOption_20_6_0 = &streams.AppendResp_WrongExpectedVersion_NoStream_20_6_0{NoStream_20_6_0: &shared.Empty{}}
	} else {
		r.CurrentRevisionOption = &streams.AppendResp_WrongExpectedVersion_CurrentRevision{CurrentRevision: uint64(current)}
		r.CurrentRevisionOption_20_6_0 = &streams.AppendResp_WrongExpectedVersion_CurrentRevision_20_6_0{CurrentRevision_20_6_0: uint64(current)}
	}
	return r
}
