// Package example is a complete read model outside the registry: the number of verdicts
// of each kind in each hour of the day. Table, fold and query stand side by side, as
// everywhere in projections. To have the service run it, move it there and add a line
// to registry.go. docs/event-zero.md lists the events.
package example

import (
	"context"
	"fmt"

	"github.com/jmoiron/sqlx"

	"humanqa/domain"
	"humanqa/domain/job"
	"humanqa/eventstore/consumer"
	"humanqa/projections/readmodel"
)

// Hours is the projector. The consumer handles its position, its runner, crashes and
// rebuilds (eventstore/consumer/doc.go). Name is what humanqa projections list calls it.
// Version goes up with any change that makes other rows of the same events: the service
// then builds them anew beside those that serve. Tables are made by the consumer, one set
// for each generation; {schema} is where. Handles names the events it wants; all others
// pass it by. Apply folds a batch. Its rows and the checkpoint behind it are one
// transaction, so each event counts once; the same events in other batches have to make
// the same rows.
var Hours = readmodel.New(readmodel.Spec{
	Name:    "hours",
	Version: 1,
	Tables: []consumer.Table{{Name: "verdict_hours", DDL: `
CREATE TABLE {schema}.verdict_hours (
    hour     integer NOT NULL, -- 0 to 23, UTC
    status   text    NOT NULL, -- pass, fail, skip or pending
    verdicts integer NOT NULL,
    PRIMARY KEY (hour, status)
);`}},
	Handles: domain.TypesOf((*job.ItemChecked)(nil)),
	Apply:   readmodel.Each(count),
})

const countSQL = `
INSERT INTO {schema}.verdict_hours AS h (hour, status, verdicts)
VALUES ($1, $2, 1)
ON CONFLICT (hour, status) DO UPDATE
SET verdicts = h.verdicts + 1`

// count is the statement of an event and its arguments.
func count(r domain.Recorded) (string, []any) {
	if e, ok := r.Event.(*job.ItemChecked); ok {
		return countSQL, []any{readmodel.Moment(r.Meta.Time).Hour(), e.Status}
	}
	return "", nil
}

// Reads asks the rows, through the view of the generation that serves.
type Reads struct{ db *sqlx.DB }

// NewReads reads through schema readmodel.
func NewReads(db *sqlx.DB) *Reads { return &Reads{db: readmodel.Pool(db)} }

const hoursSQL = `
SELECT hour, verdicts
FROM readmodel.verdict_hours
WHERE status = $1`

// Verdicts counts the verdicts of a kind in each hour of the day, UTC.
func (q *Reads) Verdicts(ctx context.Context, status job.ItemStatus) (hours [24]int, err error) {
	var rows []struct {
		Hour     int `json:"hour"`
		Verdicts int `json:"verdicts"`
	}
	if err := q.db.SelectContext(ctx, &rows, hoursSQL, status); err != nil {
		return hours, fmt.Errorf("read the hours of %s: %w", status, err)
	}
	for _, r := range rows {
		hours[r.Hour] = r.Verdicts
	}
	return hours, nil
}
