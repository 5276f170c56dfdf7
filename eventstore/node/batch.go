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

	"humanqa/eventstore/node/store"
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
	write       *pendingAppend
	cancel      context.CancelFunc
	// refused is set for an append that never reached the writer.
	refused *rpc.Status
}

// BatchAppend takes many appends over one call. They reach the writer in the
// order in which they were completed, and are answered in that order. A closing
// node answers what it has accepted and ends the call.
func (s *streamsServer) BatchAppend(call streams.Streams_BatchAppendServer) error {
	inFlight := make(chan *batch, batchesInFlight)
	received := make(chan error, 1)
	s.node.background.Go(func() {
		received <- s.receiveBatches(call, inFlight)
		close(inFlight)
	})
	for {
		select {
		case b, more := <-inFlight:
			if !more {
				return answer(call.Context(), <-received)
			}
			if err := call.Send(b.awaitOutcome(s.node)); err != nil {
				return err
			}
			continue
		case <-call.Context().Done():
			return answer(call.Context(), call.Context().Err())
		case <-s.node.closing:
		}
		if len(inFlight) == 0 {
			return errClosing
		}
	}
}

// receiveBatches collects messages until the client has sent its last one.
func (s *streamsServer) receiveBatches(call streams.Streams_BatchAppendServer, inFlight chan<- *batch) error {
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
		b.addMessages(req.GetProposedMessages())
		if b.refused == nil && !req.GetIsFinal() {
			continue
		}
		delete(open, correlation)
		if b.refused == nil {
			if err := s.node.store.Enqueue(b.write.Write); err != nil {
				b.refused = refusal(storeError(err))
			}
		}
		select {
		case inFlight <- b:
		case <-call.Context().Done(): // no client waits for the answer any more
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
		expected = store.ExpectNoStream
	case *streams.BatchAppendReq_Options_Any:
		expected = store.ExpectAny
	case *streams.BatchAppendReq_Options_StreamExists:
		expected = store.ExpectStreamExists
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

func (b *batch) addMessages(messages []*streams.BatchAppendReq_ProposedMessage) {
	for _, m := range messages {
		if b.refused != nil {
			return
		}
		if err := b.write.propose(m); err != nil {
			b.refused = refusal(err)
		}
	}
}

// awaitOutcome returns the answer of a batch once it has an outcome.
func (b *batch) awaitOutcome(n *Node) *streams.BatchAppendResp {
	defer b.cancel()
	if b.refused != nil {
		return b.respond(b.refused, nil)
	}
	out, err := n.store.Await(b.write.Write)
	switch {
	case err != nil:
		return b.respond(refusal(storeError(err)), nil)
	case out.Kind == store.Deleted:
		return b.respond(batchStatus(codes.NotFound, "StreamDeleted", &shared.StreamDeleted{StreamIdentifier: b.stream}), nil)
	case out.Kind == store.WrongVersion:
		return b.respond(batchStatus(codes.AlreadyExists, "WrongExpectedVersion", batchWrongVersion(b.write.Expected, out.Revision)), nil)
	}
	return b.respond(nil, batchSuccess(out))
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

func batchSuccess(out store.Outcome) *streams.BatchAppendResp_Success {
	success := &streams.BatchAppendResp_Success{}
	if out.Revision == store.NoStream {
		success.CurrentRevisionOption = &streams.BatchAppendResp_Success_NoStream{NoStream: &emptypb.Empty{}}
	} else {
		success.CurrentRevisionOption = &streams.BatchAppendResp_Success_CurrentRevision{CurrentRevision: uint64(out.Revision)}
	}
	if out.Position == 0 {
		success.PositionOption = &streams.BatchAppendResp_Success_NoPosition{NoPosition: &emptypb.Empty{}}
	} else {
		success.PositionOption = &streams.BatchAppendResp_Success_Position{Position: &shared.AllStreamPosition{
			CommitPosition: uint64(out.Position), PreparePosition: uint64(out.Position),
		}}
	}
	return success
}

func batchWrongVersion(expected, current int64) *shared.WrongExpectedVersion {
	v := &shared.WrongExpectedVersion{}
	switch expected {
	case store.ExpectAny:
		v.ExpectedStreamPositionOption = &shared.WrongExpectedVersion_ExpectedAny{ExpectedAny: &emptypb.Empty{}}
	case store.ExpectStreamExists:
		v.ExpectedStreamPositionOption = &shared.WrongExpectedVersion_ExpectedStreamExists{ExpectedStreamExists: &emptypb.Empty{}}
	case store.ExpectNoStream:
		v.ExpectedStreamPositionOption = &shared.WrongExpectedVersion_ExpectedNoStream{ExpectedNoStream: &emptypb.Empty{}}
	default:
		v.ExpectedStreamPositionOption = &shared.WrongExpectedVersion_ExpectedStreamPosition{ExpectedStreamPosition: uint64(expected)}
	}
	if current == store.NoStream {
		v.CurrentStreamRevisionOption = &shared.WrongExpectedVersion_CurrentNoStream{CurrentNoStream: &emptypb.Empty{}}
	} else {
		v.CurrentStreamRevisionOption = &shared.WrongExpectedVersion_CurrentStreamRevision{CurrentStreamRevision: uint64(current)}
	}
	return v
}
