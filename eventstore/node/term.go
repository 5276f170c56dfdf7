package node

import (
	"context"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
)

// Term ends when the node loses the log's lock, with ErrLost or ErrLocked as its cause. Once
// the node has the lock again there is a new term.
func (n *Node) Term() context.Context { return n.store.Term() }

// notHeld is the answer to calls that are refused, or were ended, for want of the lock.
func notHeld(term context.Context) error {
	return &failure{code: codes.Unavailable, message: context.Cause(term).Error()}
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
		return nil, nil, notHeld(term)
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
	ctx context.Context //nolint:containedctx // it replaces the stream's
}

func (s *termedStream) Context() context.Context { return s.ctx }
