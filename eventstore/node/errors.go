package node

import (
	"context"
	"errors"
	"strconv"

	"github.com/EventStore/EventStore-Client-Go/v4/protos/shared"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	rpc "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	grpcmeta "google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/emptypb"

	"humanqa/eventstore/node/store"
)

// ErrLocked says that another node serves this database, ErrLost that this one does not any more.
var (
	ErrLocked = store.ErrLocked
	ErrLost   = store.ErrLost
)

var errClosing = status.Error(codes.Unavailable, "the node is shutting down")

// storeError is the status that the protocol has for an error of a write.
func storeError(err error) error {
	var refused *store.RefusedError
	switch {
	case errors.Is(err, store.ErrUnavailable):
		return status.Error(codes.Unavailable, "the log is not available, the outcome of an append is unknown: resend it")
	case errors.Is(err, store.ErrClosed):
		return errClosing
	case errors.As(err, &refused):
		st, err := status.New(codes.ResourceExhausted, refused.Reason).WithDetails(
			&errdetails.RetryInfo{RetryDelay: durationpb.New(refused.RetryAfter)})
		if err != nil { // only for a message that can't be marshalled
			panic(err)
		}
		return st.Err()
	}
	return err
}

func invalid(message string) error { return status.Error(codes.InvalidArgument, message) }

// failure is an answer as the original gives it: a status, and trailers by
// which clients tell the reason.
type failure struct {
	code     codes.Code
	message  string
	trailers grpcmeta.MD
}

func (f *failure) Error() string              { return f.message }
func (f *failure) GRPCStatus() *status.Status { return status.New(f.code, f.message) }

func streamDeleted(stream string) error {
	return &failure{codes.FailedPrecondition, "Event stream '" + stream + "' is deleted.",
		grpcmeta.Pairs("exception", "stream-deleted", "stream-name", stream)}
}

// wrongExpectedVersion answers a delete and a tombstone: the original calls both a delete.
func wrongExpectedVersion(stream string, expected, current int64) error {
	e, c := strconv.FormatInt(expected, 10), strconv.FormatInt(current, 10)
	return &failure{codes.FailedPrecondition,
		"Delete failed due to WrongExpectedVersion. Stream: " + stream + ", Expected version: " + e + ", Actual version: " + c,
		grpcmeta.Pairs("exception", "wrong-expected-version", "stream-name", stream, "expected-version", e, "actual-version", c)}
}

func maxAppendSizeExceeded(limit int) error {
	size := strconv.Itoa(limit)
	return &failure{codes.InvalidArgument, "Maximum Append Size of " + size + " Exceeded.",
		grpcmeta.Pairs("exception", "maximum-append-size-exceeded", "maximum-append-size", size)}
}

// notLeader names the node that holds the log. Clients of every language then go there.
func notLeader(host, port string) error {
	return &failure{codes.NotFound, "Leader info available",
		grpcmeta.Pairs("exception", "not-leader", "leader-endpoint-host", host, "leader-endpoint-port", port)}
}

func requiredMetadataMissing(property string) error {
	return &failure{codes.InvalidArgument, "Required Metadata Property '" + property + "' is missing",
		grpcmeta.Pairs("exception", "missing-required-metadata-property", "required-metadata-properties", "type,content-type")}
}

// answer prepares an error for the wire. It sets the trailers of a failure. A status stays: it
// was known before the call ended. An error that is not meant for clients becomes UNAVAILABLE
// (Postgres is away) or the context's own status, which is a failure where the node has ended the call.
func answer(ctx context.Context, err error) error {
	if _, known := status.FromError(err); !known && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if f, ok := errors.AsType[*failure](err); ok {
		// Fails only outside a handler or after the status was sent.
		_ = grpc.SetTrailer(ctx, f.trailers)
		return f.GRPCStatus().Err()
	}
	if _, known := status.FromError(err); known {
		return err
	}
	if ctx.Err() != nil {
		return status.FromContextError(ctx.Err()).Err()
	}
	return status.Error(codes.Unavailable, "the log can't be read")
}

// refusal is the status of a batched append that did not end in an outcome.
func refusal(err error) *rpc.Status {
	var f *failure
	switch {
	case errors.As(err, &f) && f.trailers.Get("exception")[0] == "maximum-append-size-exceeded":
		limit, err := strconv.ParseUint(f.trailers.Get("maximum-append-size")[0], 10, 32)
		if err != nil { // maxAppendSizeExceeded wrote it
			panic(err)
		}
		return batchStatus(f.code, "MaximumAppendSizeExceeded", &shared.MaximumAppendSizeExceeded{MaxAppendSize: uint32(limit)})
	case errors.Is(err, context.DeadlineExceeded), status.Code(err) == codes.DeadlineExceeded:
		return batchStatus(codes.DeadlineExceeded, "Timeout", &shared.Timeout{})
	case errors.Is(err, context.Canceled):
		return batchStatus(codes.Canceled, "Unknown", &shared.Unknown{})
	case status.Code(err) == codes.InvalidArgument:
		return batchStatus(codes.InvalidArgument, "BadRequest", &shared.BadRequest{Message: err.Error()})
	}
	return batchStatus(status.Code(err), err.Error(), &emptypb.Empty{})
}

func batchStatus(code codes.Code, message string, details proto.Message) *rpc.Status {
	packed, err := anypb.New(details)
	if err != nil { // only for a message that can't be marshalled
		packed = nil
	}
	return &rpc.Status{Code: int32(code), Message: message, Details: []*anypb.Any{packed}}
}
