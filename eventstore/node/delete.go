package node

import (
	"context"

	"github.com/EventStore/EventStore-Client-Go/v4/protos/shared"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/streams"

	"humanqa/eventstore/node/store"
)

func (s *streamsServer) Delete(ctx context.Context, req *streams.DeleteReq) (*streams.DeleteResp, error) {
	o := req.GetOptions()
	position, err := s.removeStream(ctx, store.OpDelete, o, o.GetExpectedStreamRevision() != nil)
	if err != nil {
		return nil, answer(ctx, err)
	}
	return &streams.DeleteResp{PositionOption: &streams.DeleteResp_Position_{
		Position: &streams.DeleteResp_Position{CommitPosition: position, PreparePosition: position},
	}}, nil
}

func (s *streamsServer) Tombstone(ctx context.Context, req *streams.TombstoneReq) (*streams.TombstoneResp, error) {
	o := req.GetOptions()
	position, err := s.removeStream(ctx, store.OpTombstone, o, o.GetExpectedStreamRevision() != nil)
	if err != nil {
		return nil, answer(ctx, err)
	}
	return &streams.TombstoneResp{PositionOption: &streams.TombstoneResp_Position_{
		Position: &streams.TombstoneResp_Position{CommitPosition: position, PreparePosition: position},
	}}, nil
}

// removal is what a delete and a tombstone ask for.
type removal interface {
	expectation
	GetStreamIdentifier() *shared.StreamIdentifier
}

// removeStream deletes a stream, softly or for good. given is as in expectedOf.
func (s *streamsServer) removeStream(ctx context.Context, op store.Operation, o removal, given bool) (uint64, error) {
	expected, err := expectedOf(o, given)
	if err != nil {
		return 0, err
	}
	stream, err := writableStream(o.GetStreamIdentifier())
	if err != nil {
		return 0, err
	}
	if store.IsMetaStream(stream) {
		return 0, invalid("a metadata stream goes with the stream it describes")
	}
	out, err := s.node.store.Submit(store.NewWrite(ctx, op, stream, expected))
	if err != nil {
		return 0, storeError(err)
	}
	switch out.Kind {
	case store.Deleted:
		return 0, streamDeleted(stream)
	case store.WrongVersion:
		return 0, wrongExpectedVersion(stream, expected, out.Revision)
	}
	return uint64(out.Position), nil
}
