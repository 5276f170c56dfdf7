package eventstore

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"
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

// verdict is what an error of the library says about the call that got it.
type verdict int

const (
	verdictRetry      verdict = iota // the outcome of a write is unknown, a read may be repeated
	verdictReconnect                 // the same, and the connection is no good any more
	verdictTimeout                   // the same, and a second one in a row makes the connection suspect
	verdictIncomplete                // the node ended an append before all of it was sent: nothing was written
	verdictRevision                  // wrong expected revision
	verdictNoStream                  // the stream does not exist
	verdictDeleted                   // the stream has a tombstone
	verdictFinal                     // it will not get better
)

// judge classifies an error. It uses errors.As, because esdb.FromError calls a
// wrapped error unknown and nil an error.
func judge(err error) verdict {
	switch {
	case errors.Is(err, ErrClosed):
		return verdictFinal
	case errors.Is(err, errNoAnswer), errors.Is(err, context.DeadlineExceeded):
		return verdictTimeout
	case errors.Is(err, errLibrary):
		return verdictReconnect
	case errors.Is(err, io.EOF):
		// The library does not ask a broken stream for its status.
		return verdictIncomplete
	}
	st, hasStatus := status.FromError(err)
	var e *esdb.Error
	if errors.As(err, &e) {
		switch e.Code() {
		case esdb.ErrorCodeWrongExpectedVersion:
			return verdictRevision
		case esdb.ErrorCodeStreamDeleted:
			return verdictDeleted
		case esdb.ErrorCodeResourceNotFound:
			// The library's own "stream not found" carries no gRPC status; one
			// that does comes from something in between.
			if !hasStatus {
				return verdictNoStream
			}
		case esdb.ErrorCodeConnectionClosed, esdb.ErrorUnavailable:
			return verdictReconnect
		case esdb.ErrorCodeNotLeader:
			return verdictRetry // the library has moved to the leader
		case esdb.ErrorCodeParsing:
			return verdictFinal
		}
	}
	if !hasStatus {
		return verdictRetry
	}
	switch st.Code() {
	case codes.Unavailable:
		return verdictReconnect
	case codes.DeadlineExceeded:
		return verdictTimeout
	case codes.InvalidArgument, codes.Unauthenticated, codes.PermissionDenied,
		codes.Unimplemented, codes.NotFound, codes.FailedPrecondition,
		codes.OutOfRange, codes.ResourceExhausted:
		return verdictFinal
	}
	return verdictRetry
}

// readError says what a read that was given up on ran into. What may get
// better is unavailable, so that the service answers "try again".
func readError(what string, err error) error {
	err = fmt.Errorf("read %s: %w", what, err)
	switch judge(err) {
	case verdictRetry, verdictReconnect, verdictTimeout, verdictIncomplete:
		return domain.Unavailable(err)
	}
	return err
}

// isEnd says that a live read came to its end.
func isEnd(err error) bool { return errors.Is(err, io.EOF) }
