package node

import (
	"context"
	"errors"
	"net"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	"humanqa/eventstore/node/store"
)

// Term ends when the node loses the log's lock, with ErrLost or ErrLocked as its cause. Once
// the node has the lock again there is a new term.
func (n *Node) Term() context.Context { return n.store.Term() }

// notHeld is the answer to calls that were ended for want of the lock, or are refused. An
// append that was ended may be written.
func notHeld(term context.Context) error {
	return &failure{code: codes.Unavailable, message: context.Cause(term).Error()}
}

// refused is the answer to calls that are not begun, for want of the lock. Clients of the TLS
// address can go to that of the holder.
func refused(ctx, term context.Context, method string) error {
	locked, ok := errors.AsType[*store.LockedError](context.Cause(term))
	if ok && callerOf(ctx).user != "" && strings.HasPrefix(method, streamsService) {
		if host, port, err := net.SplitHostPort(locked.Holder); err == nil {
			return answer(ctx, notLeader(host, port))
		}
	}
	return notHeld(term)
}

// withinTerm gives a call's context that ends with the node's term, too. Another node may hold
// the log afterwards: a call that went on would show an old log, or wait for ever. Only the
// features of the protocol are told without the lock, so that clients connect.
func (n *Node) withinTerm(ctx context.Context, method string) (context.Context, func(), error) {
	if strings.HasPrefix(method, "/event_store.client.server_features.") {
		return ctx, func() {}, nil
	}
	term := n.store.Term()
	if term.Err() != nil {
		return nil, nil, refused(ctx, term, method)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(term, func() { cancel(notHeld(term)) })
	return ctx, func() { stop(); cancel(nil) }, nil
}

func (n *Node) termUnary(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	ctx, done, err := n.withinTerm(ctx, info.FullMethod)
	if err != nil {
		return nil, err
	}
	defer done()
	return handler(ctx, req)
}

func (n *Node) termStream(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	ctx, done, err := n.withinTerm(stream.Context(), info.FullMethod)
	if err != nil {
		return err
	}
	defer done()
	return handler(srv, &termedStream{stream, ctx})
}

type termedStream struct {
	grpc.ServerStream
	ctx context.Context // it replaces the stream's
}

func (s *termedStream) Context() context.Context { return s.ctx }
