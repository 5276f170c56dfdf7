package consumer

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"github.com/lib/pq"

	"humanqa/domain"
	"humanqa/eventstore"
)

// Category says why an event was set aside, or stopped a line.
type Category string

// The categories of a permanent failure.
const (
	CategoryDecode     Category = "decode"     // a known event that cannot be read
	CategoryConstraint Category = "constraint" // its rows contradict those that are there
	CategoryData       Category = "data"       // a value the tables cannot hold
	CategoryPayload    Category = "payload"    // nothing can be announced of it
	CategoryApply      Category = "apply"      // anything else that was refused
)

// Failure is why and where a line stopped.
type Failure struct {
	Category Category
	Position domain.Position
	Detail   string
	Attempts int // how often the line stopped at this event
	At       time.Time
}

// StoppedError says that a projection stopped before the position that was
// waited for.
type StoppedError struct {
	Name    string
	Failure Failure
}

func (e *StoppedError) Error() string {
	return fmt.Sprintf("projection %s stopped at %s (%s): %s", e.Name, e.Failure.Position, e.Failure.Category, e.Failure.Detail)
}

// PoisonError is a Preparer's word that trying an event again cannot help.
type PoisonError struct {
	Category Category
	Err      error
}

func (e *PoisonError) Error() string { return e.Err.Error() }
func (e *PoisonError) Unwrap() error { return e.Err }

// poisonous says that an event's preparation failed for good.
func poisonous(err error) bool {
	var (
		poison      *PoisonError
		undecodable *eventstore.DecodeError
	)
	return errors.As(err, &poison) || errors.As(err, &undecodable)
}

// errLater marks what a Preparer may be able to prepare at another time.
var errLater = errors.New("not now")

// transient says that the same batch may succeed if it is tried again.
func transient(err error) bool {
	var netError net.Error
	switch {
	case errors.Is(err, errNotOwner), errors.Is(err, errLater),
		errors.Is(err, sql.ErrConnDone), errors.Is(err, sql.ErrTxDone),
		errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded),
		errors.Is(err, driver.ErrBadConn),
		errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF),
		errors.As(err, &netError),
		domain.IsKind(err, domain.KindUnavailable):
		return true
	}
	var pgError *pq.Error
	if !errors.As(err, &pgError) {
		return false
	}
	switch pgError.Code.Class() {
	case "08", // connection exception
		"40", // serialization failure, deadlock
		"53", // insufficient resources
		"55", // lock not available, object in use
		"57", // operator intervention: shutdown, crash, cancelled
		"58": // system error
		return true
	}
	return false
}

// failureAt describes a permanent failure of one event.
func failureAt(position domain.Position, err error) Failure {
	// Postgres takes neither NUL nor what is no UTF-8; anything may stand in it.
	detail := strings.ReplaceAll(strings.ToValidUTF8(err.Error(), "\uFFFD"), "\x00", "\uFFFD")
	f := Failure{Category: CategoryApply, Position: position, Detail: detail}
	var (
		decodeError *eventstore.DecodeError
		pgError     *pq.Error
		poison      *PoisonError
	)
	switch {
	case errors.As(err, &poison):
		f.Category = poison.Category
	case errors.As(err, &decodeError):
		f.Category = CategoryDecode
	case errors.As(err, &pgError):
		switch pgError.Code.Class() {
		case "23":
			f.Category = CategoryConstraint
		case "22":
			f.Category = CategoryData
		}
	}
	return f
}
