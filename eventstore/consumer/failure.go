package consumer

import (
	"errors"
	"fmt"
	"strings"

	"github.com/lib/pq"

	"humanqa/domain"
	"humanqa/eventstore"
	"humanqa/eventstore/generation"
)

// StoppedError says that a projection stopped before the position that a request
// waits for.
type StoppedError struct {
	Name    string
	Failure generation.Failure
}

func (e *StoppedError) Error() string {
	return fmt.Sprintf("projection %s stopped at %s (%s): %s", e.Name, e.Failure.Position, e.Failure.Category, e.Failure.Detail)
}

// lateError says which projections a wait has not seen reach the position before its end.
type lateError struct {
	position domain.Position
	names    []string
	err      error // the context's
}

func (e *lateError) Error() string {
	return fmt.Sprintf("wait for position %s, behind: %s: %v", e.position, strings.Join(e.names, " "), e.err)
}

func (e *lateError) Unwrap() error { return e.err }

// PoisonError is a Preparer's report that trying an event again cannot help.
type PoisonError struct {
	Category generation.Category
	Err      error
}

func (e *PoisonError) Error() string { return e.Err.Error() }
func (e *PoisonError) Unwrap() error { return e.Err }

// HopelessError is a Projector's report that its code is to blame, whatever the events: the
// line stops.
type HopelessError struct{ Err error }

func (e *HopelessError) Error() string { return e.Err.Error() }
func (e *HopelessError) Unwrap() error { return e.Err }

// poisonous says that an event's preparation failed for good.
func poisonous(err error) bool {
	_, poison := errors.AsType[*PoisonError](err)
	_, undecodable := errors.AsType[*eventstore.DecodeError](err)
	return poison || undecodable
}

// errLater marks events that a Preparer may be able to prepare at another time.
var errLater = errors.New("not now")

// transient says that the same batch may succeed if it is tried again.
func transient(err error) bool { return errors.Is(err, errLater) || generation.Transient(err) }

// failureAt describes a permanent failure of one event.
func failureAt(position domain.Position, err error) generation.Failure {
	// Postgres takes neither NUL nor invalid UTF-8, and an error's text may have both.
	detail := strings.ReplaceAll(strings.ToValidUTF8(err.Error(), "\uFFFD"), "\x00", "\uFFFD")
	f := generation.Failure{Category: generation.CategoryApply, Position: position, Detail: detail}
	var (
		decodeError *eventstore.DecodeError
		pgError     *pq.Error
		poison      *PoisonError
	)
	switch {
	case errors.As(err, &poison):
		f.Category = poison.Category
	case errors.As(err, &decodeError):
		f.Category = generation.CategoryDecode
	case errors.As(err, &pgError):
		switch pgError.Code.Class() {
		case "23":
			f.Category = generation.CategoryConstraint
		case "22":
			f.Category = generation.CategoryData
		}
	}
	return f
}
