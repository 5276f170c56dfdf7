package node

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/protos/shared"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/streams"
	"github.com/google/uuid"
	rpc "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/emptypb"
)

const (
	// batchTimeout is how long an append may take from its first message to its
	// outcome, unless its client allows less.
	batchTimeout = 30 * time.Second
	// batchesInFlight bounds the appends of one call that wait for the writer,
	// and batchesOpen those whose last message has not come yet.
	batchesInFlight = 256
	batchesOpen     = 256
)

// batch is one append of a BatchAppend call, told apart by its correlation id.
type batch struct {
	correlation *shared.UUID
	stream      *shared.StreamIdentifier
	write       *write
	cancel      context.CancelFunc
	// refused is set for an append that never reached the writer.
	refused *rpc.Status
}

// BatchAppend takes many appends over one call. They reach the writer in the
// order in which they were completed, and are answered in that order. A closing
// node answers what it has accepted and ends the call.
func (s *streamsServer) BatchAppend(call streams.Streams_BatchAppendServer) error {
	flight := make(chan *batch, batchesInFlight)
	received := make(chan error, 1)
	s.node.background.Go(func() {
		received <- s.receiveBatches(call, flight)
		close(flight)
	})
	for {
		select {
		case b, more := <-flight:
			if !more {
				return answer(call.Context(), <-received)
			}
			if err := call.Send(b.await(s.node)); err != nil {
				return err
			}
			continue
		case <-s.node.closing:
		}
		if len(flight) == 0 {
			return errClosing
		}
	}
}

// receiveBatches collects messages until the client has sent its last one.
func (s *streamsServer) receiveBatches(call streams.Streams_BatchAppendServer, flight chan<- *batch) error {
	open := map[uuid.UUID]*batch{}
	defer func() {
		for _, b := range open {
			b.cancel()
		}
	}()
	for {
		req, err := call.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		correlation, ok := idFromProto(req.GetCorrelationId())
		if !ok {
			return invalid("the correlation id is not a uuid")
		}
		b := open[correlation]
		if b == nil {
			if req.GetOptions() == nil {
				continue // the rest of an append that was refused
			}
			if len(open) >= batchesOpen {
				return invalid("too many appends are open in one call")
			}
			b = s.node.beginBatch(call.Context(), req)
			open[correlation] = b
		}
		b.add(req.GetProposedMessages())
		if b.refused == nil && !req.GetIsFinal() {
			continue
		}
		delete(open, correlation)
		if b.refused == nil {
			if err := s.node.enqueue(b.write); err != nil {
				b.refused = refusal(err)
			}
		}
		select {
		case flight <- b:
		case <-call.Context().Done(): // nobody waits for the answer any more
			b.cancel()
			return call.Context().Err()
		}
	}
}

func (n *Node) beginBatch(ctx context.Context, req *streams.BatchAppendReq) *batch {
	o := req.GetOptions()
	timeout := batchTimeout
	switch d := o.GetDeadlineOption().(type) {
	case *streams.BatchAppendReq_Options_Deadline:
		timeout = min(timeout, d.Deadline.AsDuration())
	case *streams.BatchAppendReq_Options_Deadline_21_10_0:
		timeout = min(timeout, time.Until(d.Deadline_21_10_0.AsTime()))
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	b := &batch{correlation: req.GetCorrelationId(), stream: o.GetStreamIdentifier(), cancel: cancel}

	stream, err := writableStream(o.GetStreamIdentifier())
	expected, known := int64(0), true
	switch e := o.GetExpectedStreamPosition().(type) {
	case *streams.BatchAppendReq_Options_StreamPosition:
		expected = expectedRevision(e.StreamPosition)
	case *streams.BatchAppendReq_Options_NoStream:
		expected = expectNoStream
	case *streams.BatchAppendReq_Options_Any:
		expected = expectAny
	case *streams.BatchAppendReq_Options_StreamExists:
		expected = expectStreamExists
	default:
		known = false
	}
	switch {
	case err != nil:
		b.refused = refusal(err)
	case !known:
		b.refused = refusal(invalid("the expected position is required"))
	case ctx.Err() != nil:
		b.refused = refusal(ctx.Err())
	}
	b.write = n.newAppend(ctx, stream, expected)
	return b
}

func (b *batch) add(messages []*streams.BatchAppendReq_ProposedMessage) {
	for _, m := range messages {
		if b.refused != nil {
			return
		}
		if err := b.write.propose(m); err != nil {
			b.refused = refusal(err)
		}
	}
}

// await returns the answer of a batch once it has an outcome.
func (b *batch) await(n *Node) *streams.BatchAppendResp {
	defer b.cancel()
	if b.refused != nil {
		return b.respond(b.refused, nil)
	}
	select {
	case out := <-b.write.done:
		switch out.kind {
		case written:
			return b.respond(nil, batchSuccess(out))
		case deleted:
			return b.respond(batchStatus(codes.NotFound, "StreamDeleted", &shared.StreamDeleted{StreamIdentifier: b.stream}), nil)
		case wrongVersion:
			return b.respond(batchStatus(codes.AlreadyExists, "WrongExpectedVersion", batchWrongVersion(b.write.expected, out.revision)), nil)
		default:
			return b.respond(refusal(out.err), nil)
		}
	case <-b.write.ctx.Done():
		return b.respond(refusal(b.write.ctx.Err()), nil)
	case <-n.writer.done:
		return b.respond(refusal(errClosing), nil)
	}
}

func (b *batch) respond(failure *rpc.Status, success *streams.BatchAppendResp_Success) *streams.BatchAppendResp {
	resp := &streams.BatchAppendResp{CorrelationId: b.correlation, StreamIdentifier: b.stream}
	if failure != nil {
		resp.Result = &streams.BatchAppendResp_Error{Error: failure}
	} else {
		resp.Result = &streams.BatchAppendResp_Success_{Success: success}
	}
	return resp
}

func batchSuccess(out outcome) *streams.BatchAppendResp_Success {
	success := &streams.BatchAppendResp_Success{}
	if out.revision == noStream {
		success.CurrentRevisionOption = &streams.BatchAppendResp_Success_NoStream{NoStream: &emptypb.Empty{}}
	} else {
		success.CurrentRevisionOption = &streams.BatchAppendResp_Success_CurrentRevision{CurrentRevision: uint64(out.revision)}
	}
	if out.position == 0 {
		success.PositionOption = &streams.BatchAppendResp_Success_NoPosition{NoPosition: &emptypb.Empty{}}
	} else {
		success.PositionOption = &streams.BatchAppendResp_Success_Position{Position: &shared.AllStreamPosition{
			CommitPosition: uint64(out.position), PreparePosition: uint64(out.position),
		}}
	}
	return success
}

func batchWrongVersion(expected, current int64) *shared.WrongExpectedVersion {
	v := &shared.WrongExpectedVersion{}
	switch expected {
	case expectAny:
		v.ExpectedStreamPositionOption = &shared.WrongExpectedVersion_ExpectedAny{ExpectedAny: &emptypb.Empty{}}
	case expectStreamExists:
		v.ExpectedStreamPositionOption = &shared.WrongExpectedVersion_ExpectedStreamExists{ExpectedStreamExists: &emptypb.Empty{}}
	case expectNoStream:
		v.ExpectedStreamPositionOption = &shared.WrongExpectedVersion_ExpectedNoStream{ExpectedNoStream: &emptypb.Empty{}}
	default:
		v.ExpectedStreamPositionOption = &shared.WrongExpectedVersion_ExpectedStreamPosition{ExpectedStreamPosition: uint64(expected)}
	}
	if current == noStream {
		v.CurrentStreamRevisionOption = &shared.WrongExpectedVersion_CurrentNoStream{CurrentNoStream: &emptypb.Empty{}}
	} else {
		v.CurrentStreamRevisionOption = &shared.WrongExpectedVersion_CurrentStreamRevision{CurrentStreamRevision: uint64(current)}
	}
	return v
}
