package clustertest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/protos/streams"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

const (
	maxMessage = 17 << 20

	gossipRead  = "/event_store.client.gossip.Gossip/Read"
	streamsRead = "/event_store.client.streams.Streams/Read"
	streamsOf   = "/event_store.client.streams.Streams/"

	// commitTimeout is how long a leader that is parted tries to commit.
	commitTimeout = time.Second
)

// rawCodec passes messages on as bytes.
type rawCodec struct{}

func (rawCodec) Name() string { return "proto" }

func (rawCodec) Marshal(v any) (mem.BufferSlice, error) {
	b, ok := v.(*[]byte)
	if !ok {
		return nil, fmt.Errorf("marshal %T", v)
	}
	return mem.BufferSlice{mem.SliceBuffer(*b)}, nil
}

func (rawCodec) Unmarshal(data mem.BufferSlice, v any) error {
	b, ok := v.(*[]byte)
	if !ok {
		return fmt.Errorf("unmarshal %T", v)
	}
	*b = data.Materialize()
	return nil
}

// handle answers every call of a client.
func (m *member) handle(_ any, call grpc.ServerStream) error {
	method, _ := grpc.MethodFromServerStream(call)
	v := m.view()
	switch {
	case method == gossipRead:
		out, err := proto.Marshal(m.gossip())
		if err != nil {
			return err
		}
		return call.SendMsg(&out)
	case !strings.HasPrefix(method, streamsOf):
		return m.forward(call, method, nil, nil)
	case method == streamsRead:
		return m.read(call, method, v)
	case v.parted:
		select {
		case <-time.After(commitTimeout):
		case <-call.Context().Done():
		}
		return status.Error(codes.Unavailable, "Server Is Not Ready")
	case v.leads:
		return m.forward(call, method, nil, nil)
	case v.leader == nil:
		return status.Error(codes.Unavailable, "Server Is Not Ready")
	}
	at := v.leader.endPoint()
	call.SetTrailer(metadata.Pairs("exception", "not-leader",
		"leader-endpoint-host", at.GetAddress(), "leader-endpoint-port", strconv.FormatUint(uint64(at.GetPort()), 10)))
	return status.Error(codes.NotFound, "Leader info available")
}

var errTooSlow = status.Error(codes.Aborted,
	"Operation timed out: Consumer too slow to handle event while live. Client resubscription required.")

// read forwards a read; a follower's read is stale.
func (m *member) read(call grpc.ServerStream, method string, v view) error {
	var first []byte
	if err := call.RecvMsg(&first); err != nil {
		return err
	}
	var req streams.ReadReq
	if err := proto.Unmarshal(first, &req); err != nil {
		return err
	}
	subscribes := req.GetOptions().GetSubscription() != nil
	stale := !v.leads && !subscribes
	asked := time.Now()
	ctx, cancel := context.WithCancelCause(call.Context())
	defer cancel(nil)
	if subscribes {
		go func() {
			select {
			case <-v.slow:
				cancel(errTooSlow)
			case <-ctx.Done():
			}
		}()
	}
	err := m.forwardIn(ctx, call, method, first, func(answer []byte) bool {
		return !stale || !younger(answer, asked.Add(-Stale))
	})
	if cause := context.Cause(ctx); errors.Is(cause, errTooSlow) {
		return cause
	}
	return err
}

// younger says that an answer is an event that was written after a moment.
func younger(answer []byte, than time.Time) bool {
	var resp streams.ReadResp
	if err := proto.Unmarshal(answer, &resp); err != nil {
		return false
	}
	ticks, err := strconv.ParseInt(resp.GetEvent().GetEvent().GetMetadata()["created"], 10, 64)
	return err == nil && ticks*100 > than.UnixNano()
}

func (m *member) forward(call grpc.ServerStream, method string, first []byte, passes func([]byte) bool) error {
	return m.forwardIn(call.Context(), call, method, first, passes)
}

// forwardIn passes a call on to the node, and its answers back. first, unless nil, is the
// message that was read already.
func (m *member) forwardIn(ctx context.Context, call grpc.ServerStream, method string, first []byte, passes func([]byte) bool) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	onward, err := m.backend.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, method)
	if err != nil {
		return err
	}
	go func() {
		for message := first; ; message = nil {
			if message == nil {
				if err := call.RecvMsg(&message); err != nil {
					if errors.Is(err, io.EOF) {
						_ = onward.CloseSend() // never fails
					} else {
						cancel()
					}
					return
				}
			}
			if onward.SendMsg(&message) != nil {
				return // RecvMsg gives the error
			}
		}
	}()
	for {
		var answer []byte
		err := onward.RecvMsg(&answer)
		if err != nil {
			call.SetTrailer(onward.Trailer())
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		if passes != nil && !passes(answer) {
			continue
		}
		if err := call.SendMsg(&answer); err != nil {
			return err
		}
	}
}
