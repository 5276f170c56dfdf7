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
	Apply:   apply,
})

const countSQL = `
INSERT INTO {schema}.verdict_hours AS h
SELECT *
FROM json_populate_recordset(NULL::{schema}.verdict_hours, $1)
ON CONFLICT (hour, status) DO UPDATE
SET verdicts = h.verdicts + EXCLUDED.verdicts`

type hourRow struct {
	Hour     int            `json:"hour"`
	Status   job.ItemStatus `json:"status"`
	Verdicts int            `json:"verdicts"`
}

// apply counts the batch and adds the counts by one statement. Rows that change rarely need
// no more than readmodel.Each.
func apply(ctx context.Context, tx *sqlx.Tx, schema string, batch []domain.Recorded) error {
	counts := map[hourRow]int{}
	for _, r := range batch {
		if e, ok := r.Event.(*job.ItemChecked); ok {
			// The event has its time: a sandbox has a clock of its own.
			counts[hourRow{Hour: e.At.UTC().Hour(), Status: e.Status}]++
		}
	}
	rows := make([]hourRow, 0, len(counts))
	for row, n := range counts {
		row.Verdicts = n
		rows = append(rows, row)
	}
	return readmodel.Run(ctx, tx, schema, readmodel.Write("count verdicts", countSQL, rows))
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
	var rows []hourRow
	if err := q.db.SelectContext(ctx, &rows, hoursSQL, status); err != nil {
		return hours, fmt.Errorf("read the hours of %s: %w", status, err)
	}
	for _, r := range rows {
		hours[r.Hour] = r.Verdicts
	}
	return hours, nil
}
