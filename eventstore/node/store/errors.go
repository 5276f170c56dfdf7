package store

import (
	"errors"
	"time"

	"github.com/lib/pq"
)

var (
	// ErrLocked says that another node serves this database.
	ErrLocked = errors.New("another node holds the event log of this database")
	// ErrLost says that this node does not hold the event log any more.
	ErrLost = errors.New("the node has lost the event log's lock")
	// ErrUnavailable says that the outcome of a write is unknown.
	ErrUnavailable = errors.New("the log is not available")
	// ErrClosed says that the store takes no more writes.
	ErrClosed = errors.New("the store is closed")

	errSilent = errors.New("the writer's session does not answer")
	errFormer = errors.New("a session that is over holds the log's lock still")
)

// LockedError is ErrLocked with the address of the node that has the lock; empty: it has none
// that clients could use.
type LockedError struct{ Holder string }

func (e *LockedError) Error() string {
	if e.Holder == "" {
		return ErrLocked.Error()
	}
	return ErrLocked.Error() + ", at " + e.Holder
}

func (e *LockedError) Unwrap() error { return ErrLocked }

// lossBy is the cause of a term's end: a LockedError if another node has the lock.
func lossBy(err error) error {
	if locked, ok := errors.AsType[*LockedError](err); ok {
		return locked
	}
	return ErrLost
}

// RefusedError answers writes while Postgres takes none. Unlike with ErrUnavailable,
// nothing of them is written, and a resend at once cannot succeed.
type RefusedError struct {
	Reason     string
	RetryAfter time.Duration
}

func (e *RefusedError) Error() string { return e.Reason }

// notWritten says that Postgres has undone the statement that failed. The loss of a
// connection, or the end of its session, tells nothing about the statement.
func notWritten(err error) bool {
	failed, ok := errors.AsType[*pq.Error](err)
	return ok && failed.Severity == "ERROR" // in another language it counts as unknown
}

// errUnsent answers writes of which nothing is in Postgres.
var errUnsent = &RefusedError{"it connects to its database", retryFirst}

// unsent is the answer to such writes after a group failed.
func unsent(refusal error) error {
	if refusal == ErrUnavailable { //nolint:errorlint // the very one
		return errUnsent
	}
	return refusal
}

// refusalOf gives the error that answers writes after a group failed by this error. It is
// nil unless the error says that Postgres has no room, or cannot write at all, so that the
// next group would fail as well. A statement with such an error has written nothing.
func refusalOf(err error) error {
	var fromPostgres *pq.Error
	if !errors.As(err, &fromPostgres) {
		return nil
	}
	switch fromPostgres.Code {
	case "53100":
		return &RefusedError{"its disk is full", retryLast}
	case "58030":
		return &RefusedError{"its disk does not work", retryLast}
	}
	return nil
}
