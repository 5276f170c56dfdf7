package node

import (
	"context"
	"errors"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"humanqa/eventstore/node/store"
)

// Term ends when the node loses the log's lock, with ErrLost or ErrLocked as its cause. Once
// the node has the lock again there is a new term.
func (n *Node) Term() context.Context { return n.store.Term() }

// notHeld is the status of calls that are refused, or were ended, for want of the lock; nil
// for any other cause of a context's end.
func notHeld(cause error) error {
	if errors.Is(cause, store.ErrLost) || errors.Is(cause, store.ErrLocked) {
		return status.Error(codes.Unavailable, cause.Error())
	}
	return nil
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
		return nil, nil, notHeld(context.Cause(term))
	}
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(term, func() { cancel(context.Cause(term)) })
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
	ctx context.Context //nolint:containedctx // it replaces the stream's
}

func (s *termedStream) Context() context.Context { return s.ctx }
