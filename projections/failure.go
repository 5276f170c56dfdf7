package projections

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/lib/pq"

	"humanqa/domain"
	"humanqa/eventstore"
)

// Category says what kind of event stopped a projection.
type Category string

// The categories of a permanent failure.
const (
	CategoryDecode     Category = "decode"     // a known event that cannot be read
	CategoryConstraint Category = "constraint" // its rows contradict those that are there
	CategoryData       Category = "data"       // a value the tables cannot hold
	CategoryApply      Category = "apply"      // anything else the projector refused
)

// Failure is why and where a projection stopped.
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

// transient says that the same batch may succeed if it is tried again.
func transient(err error) bool {
	var netError net.Error
	switch {
	case errors.Is(err, errNotOwner),
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
	f := Failure{Category: CategoryApply, Position: position, Detail: err.Error()}
	var (
		decodeError *eventstore.DecodeError
		pgError     *pq.Error
	)
	switch {
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
