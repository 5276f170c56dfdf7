package projections

import (
	"context"

	"github.com/jmoiron/sqlx"

	"humanqa/domain"
)

// Events reads the account's events that webhooks announce, in the log's
// order.
type Events struct{ db *sqlx.DB }

// AccountEvent is an event with what its announcement says about its job or
// session. Cursor grows with the log; it is opaque to clients.
type AccountEvent struct {
	Cursor    string
	Recorded  domain.Recorded // secrets left out
	ProjectID string
	Job       *Job // of job events
}

// EventFilter narrows a page. After is a Cursor, empty for the beginning.
type EventFilter struct {
	After     string
	Types     []string
	ProjectID string // a project-bound key's
	Limit     int
}

// OfJob gives the events of one job; NotFound for another account's.
func (q *Events) OfJob(ctx context.Context, accountID, jobID string) ([]AccountEvent, error) {
	panic("not built yet")
}

// After gives a page of the account's events. A cursor that is none of ours is
// Invalid, path "after".
func (q *Events) After(ctx context.Context, accountID string, f EventFilter) ([]AccountEvent, error) {
	panic("not built yet")
}
