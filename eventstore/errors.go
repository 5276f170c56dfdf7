package eventstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"humanqa/domain"
)

var (
	// ErrClosed: the client was closed.
	ErrClosed = errors.New("event store client is closed")
	// ErrStreamDeleted: the stream has a tombstone and is gone for good.
	ErrStreamDeleted = errors.New("stream is deleted")
	// ErrTruncated: events that must be there are missing from a stream.
	ErrTruncated = errors.New("stream has a hole")

	errNoAnswer    = errors.New("no answer from the event store in time")
	errLibrary     = errors.New("event store client library panicked")
	errEmptyAppend = errors.New("an append needs at least one event")
)

// errorClass is the meaning of a library error for the call that got it.
type errorClass int

const (
	classRetry      errorClass = iota // the outcome of a write is unknown, a read may be repeated
	classReconnect                    // the same, and the connection is no good any more
	classTimeout                      // the same, and a second one in a row makes the connection suspect
	classIncomplete                   // the node ended an append before all of it was sent: nothing was written
	classRevision                     // wrong expected revision
	classNoStream                     // the stream does not exist
	classDeleted                      // the stream has a tombstone
	classFull                         // the node has no room: nothing was written, now and for a while
	classLater                        // the node takes no event right now: nothing was written
	classDenied                       // the user may not: it gets better once the operator has given the right
	classFinal                        // it will not get better
)

// longDelay is a time for a retry that no command waits for.
const longDelay = time.Second

// classify reads an error. It uses errors.As, because esdb.FromError calls a
// wrapped error unknown and nil an error.
func classify(err error) errorClass {
	switch {
	case errors.Is(err, ErrClosed):
		return classFinal
	case errors.Is(err, errNoAnswer), errors.Is(err, context.DeadlineExceeded):
		return classTimeout
	case errors.Is(err, errLibrary):
		return classReconnect
	case errors.Is(err, io.EOF):
		// The library does not ask a broken stream for its status.
		return classIncomplete
	}
	st, hasStatus := status.FromError(err)
	if e, ok := errors.AsType[*esdb.Error](err); ok {
		switch e.Code() {
		case esdb.ErrorCodeWrongExpectedVersion:
			return classRevision
		case esdb.ErrorCodeStreamDeleted:
			return classDeleted
		case esdb.ErrorCodeResourceNotFound:
			// The library's own "stream not found" carries no gRPC status; one
			// that does comes from something in between.
			if !hasStatus {
				return classNoStream
			}
		case esdb.ErrorCodeConnectionClosed, esdb.ErrorUnavailable:
			return classReconnect
		case esdb.ErrorCodeNotLeader:
			return classRetry // the library has moved to the leader
		case esdb.ErrorCodeParsing:
			return classFinal
		}
	}
	if !hasStatus {
		return classRetry
	}
	switch st.Code() {
	case codes.Unavailable:
		return classReconnect
	case codes.DeadlineExceeded:
		return classTimeout
	case codes.ResourceExhausted:
		for _, d := range st.Details() {
			if later, ok := d.(*errdetails.RetryInfo); ok {
				if later.GetRetryDelay().AsDuration() < longDelay {
					return classLater
				}
				return classFull
			}
		}
		return classFinal // the library's own "message too large": no retry helps
	case codes.Unauthenticated, codes.PermissionDenied:
		return classDenied
	case codes.InvalidArgument, codes.Unimplemented, codes.NotFound, codes.FailedPrecondition,
		codes.OutOfRange:
		return classFinal
	}
	return classRetry
}

// readError is the error of a read that was given up. An error that may pass is
// unavailable, so that the service answers "try again".
func readError(what string, err error) error {
	err = fmt.Errorf("read %s: %w", what, err)
	switch classify(err) {
	case classRetry, classReconnect, classTimeout, classIncomplete:
		return domain.Unavailable(err)
	}
	return err
}

// fullError says why a log takes no events.
func fullError(err error) *domain.Error {
	return &domain.Error{
		Kind: domain.KindUnavailable, Code: domain.CodeUnavailable,
		Message: "the event log takes no events: " + statusOf(err).Message(),
		Hint:    "send the same request again, with the same Idempotency-Key, once there is room", Cause: err,
	}
}

// statusOf is the node's own status in an error, without the errors that wrap it.
func statusOf(err error) *status.Status {
	var answer interface{ GRPCStatus() *status.Status }
	if errors.As(err, &answer) {
		return answer.GRPCStatus()
	}
	return nil
}

// isEnd says that a live read came to its end.
func isEnd(err error) bool { return errors.Is(err, io.EOF) }
