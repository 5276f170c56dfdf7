package generation

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"net"
	"time"

	"github.com/lib/pq"

	"humanqa/domain"
)

// Category says why an event was set aside, or stopped a line.
type Category string

// The categories of a permanent failure.
const (
	CategoryDecode     Category = "decode"     // a known event that cannot be read
	CategoryConstraint Category = "constraint" // its rows contradict those that are there
	CategoryData       Category = "data"       // a value the tables cannot hold
	CategoryPayload    Category = "payload"    // an event that cannot be announced
	CategoryApply      Category = "apply"      // any other refusal
)

// Failure is the reason and the place of a line's stop.
type Failure struct {
	Category Category
	Position domain.Position
	Detail   string
	Attempts int // how often the line stopped at this event
	At       time.Time
}

// Transient says that a transaction may succeed if it is tried again.
func Transient(err error) bool {
	var netError net.Error
	switch {
	case errors.Is(err, ErrNotOwner),
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
