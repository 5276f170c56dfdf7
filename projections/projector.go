package projections

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/jmoiron/sqlx/reflectx"

	"humanqa/domain"
	"humanqa/eventstore"
)

// Projector folds events into the tables of one read model.
//
// The fold must not depend on how the log was cut into batches nor on the
// clock: a rebuild in batches of thousands has to end with the very rows that
// the live runner wrote one by one.
type Projector interface {
	// Name is the read model's name, in lower case. It never changes.
	Name() string
	// Version goes up by one with every change of the tables or of the fold;
	// the next start then builds the new version beside the one that serves.
	Version() int
	// Tables lists what to create in a generation's schema. Each gets a view of
	// its name in the schema readmodel, so names are unique over all projectors.
	Tables() []Table
	// Handles lists the event types that Apply wants; it sees no others.
	Handles() []string
	// Apply writes the batch's effect into the schema. The runner commits it
	// together with the checkpoint, so a batch is applied exactly once. An error
	// that is not the connection's stops the projection (see Supervisor.Retry).
	Apply(ctx context.Context, tx *sqlx.Tx, schema string, batch []domain.Recorded) error
}

// Patient is a projector that nobody reads right behind a write. It may gather
// events for a while, and WaitFor does not wait for it.
type Patient interface {
	// Patience is the least time between two batches.
	Patience() time.Duration
}

// Table is a table of a read model. DDL holds its CREATE statements, with
// {schema} where the schema's name belongs.
type Table struct {
	Name string
	DDL  string
}

// Source is where runners read the log: eventstore.Feed.
type Source interface {
	// Next gives what lies behind the checkpoint; it blocks until there is
	// something. A known event that cannot be read is an *eventstore.DecodeError
	// once it comes first.
	Next(ctx context.Context, after eventstore.Checkpoint, maxEvents int) (eventstore.Page, error)
	// Head is the newest position seen, zero before the first.
	Head() domain.Position
}

// in puts the schema's name into a statement. Names come from schemaName only.
func in(schema, query string) string {
	return strings.ReplaceAll(query, "{schema}", schema)
}

// rowMapper lets one struct tag name a row's column, both for scanning and for
// json_populate_recordset (see writeRows).
var rowMapper = reflectx.NewMapper("json")

// mapped gives the same pool with rowMapper. Columns that a row's struct does
// not have are passed over: while services are replaced one by one, old code
// reads the rows of newer projectors.
func mapped(db *sqlx.DB) *sqlx.DB {
	m := sqlx.NewDb(db.DB, db.DriverName()).Unsafe()
	m.Mapper = rowMapper
	return m
}

// writeRows runs a statement that takes all its rows at once: its only
// parameter is a JSON array, which the statement opens with
// json_populate_recordset(NULL::{schema}.<table>, $1). One round trip and one
// parse, however many rows and columns there are.
func writeRows[Row any](ctx context.Context, tx *sqlx.Tx, schema, query string, rows []Row) error {
	if len(rows) == 0 {
		return nil
	}
	data, err := json.Marshal(rows)
	if err != nil {
		return fmt.Errorf("encode rows: %w", err)
	}
	_, err = tx.ExecContext(ctx, in(schema, query), string(data))
	return err
}

// moment is a time as the API shows it: milliseconds, UTC. Finer digits would
// make two instants differ that look equal (decisions, section 1).
func moment(t time.Time) time.Time { return t.UTC().Truncate(time.Millisecond) }

func momentPtr(t time.Time) *time.Time {
	m := moment(t)
	return &m
}

// utc turns what the driver scanned, in the session's time zone, back into UTC.
func utc(times ...*time.Time) {
	for _, t := range times {
		if t != nil {
			*t = t.UTC()
		}
	}
}
