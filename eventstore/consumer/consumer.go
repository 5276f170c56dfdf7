package consumer

import (
	"context"
	"time"

	"github.com/jmoiron/sqlx"

	"humanqa/domain"
	"humanqa/eventstore"
	"humanqa/eventstore/generation"
)

// Consumer follows the log into Postgres. It is a Projector, or a Preparer.
//
// The effect of a batch must not depend on how the log was cut into batches, nor
// on the clock.
type Consumer interface {
	// Name is the consumer's name, in lower case. It never changes.
	Name() string
	// Handles lists the event types that it wants; it sees no others.
	Handles() []string
}

// Projector is a consumer whose rows can be folded anew from the log at any
// time: a read model. A rebuild in batches of thousands has to end with the very
// rows that the live runner wrote one by one.
type Projector interface {
	Consumer
	// Version goes up by one with every change of the tables or of the fold;
	// the next start then builds the new version beside the one that serves.
	Version() int
	// Tables lists the tables to create in a generation's schema. Each gets a view of
	// its name in the schema readmodel, so names are unique over all projectors.
	Tables() []Table
	// Apply writes the batch's effect into the schema. The runner commits it
	// together with the checkpoint, so a batch is applied exactly once. An event that
	// fails by itself is set aside with its stream (see SetAside).
	Apply(ctx context.Context, tx *sqlx.Tx, schema string, batch []domain.Recorded) error
}

// Preparer is a consumer that cannot be rebuilt, because it has effects elsewhere:
// it never goes back behind its checkpoint. Its tables are those of the schema that
// has its name. It prepares its writes before the transaction, so it may wait for
// the log.
type Preparer interface {
	Consumer
	// Begin is called when the lease was taken: the consumer's memory of its rows may
	// be out of date. Until the next call no other process writes them.
	Begin(ctx context.Context) error
	// Prepare gives the writes of the batch; a nil Write means none, and the
	// checkpoint moves a little later. With an error, done events of the batch are
	// prepared, and the error is about the next one. A *PoisonError or an
	// *eventstore.DecodeError sets that event aside with its stream; after any other
	// error it is tried again.
	Prepare(ctx context.Context, batch []domain.Recorded) (write Write, done int, err error)
}

// Write writes a Preparer's rows, in the transaction that moves its checkpoint. Its
// statements are planned once, and for plain index scans (generation.PlanOnce).
type Write func(ctx context.Context, tx *sqlx.Tx) error

// Committer is a Preparer that is told the result of each transaction with a Write of it:
// nil if it was committed, or the error that leaves this unknown.
type Committer interface {
	Committed(err error)
}

// Lazy is a consumer that WaitFor does not wait for. A request that reads it right
// behind a write waits then (CatchUp).
type Lazy interface {
	// Gather is the least time between two batches at the log's end, unless a request
	// waits (CatchUp). Consumers with the same time share transactions. Zero: as promptly as
	// possible, together with the consumers that are not lazy.
	Gather() time.Duration
}

// Announcer is a lazy consumer whose rows tell clients of events: deliveries, notices, the
// feed. They are written once the read models that WaitFor waits for show the events, so
// that a client can read what it is told (Supervisor.AwaitReads).
type Announcer interface {
	Lazy
	// Announces marks the type.
	Announces()
}

// RawConsumer is a consumer that sees every event, also of types that this binary does
// not know and events that cannot be decoded, which have no Event then. Its rows do not
// depend on the meaning of events, so no event is skipped for it.
type RawConsumer interface {
	// RawConsumer marks the type.
	RawConsumer()
}

// Table is a table of a read model.
type Table = generation.Table

// Source is where runners read the log: eventstore.Feed.
type Source interface {
	// Next gives the events behind the checkpoint; it blocks until there is one. A
	// known event that cannot be read is an *eventstore.DecodeError once it comes
	// first. Events of other types than these may be left undecoded; nil: none is.
	Next(ctx context.Context, after eventstore.Checkpoint, maxEvents int, types map[string]bool) (eventstore.Page, error)
	// Head is the newest position seen, zero before the first.
	Head() domain.Position
	// Load calls each for the events of a stream, from a revision on, as domain.Log does.
	Load(ctx context.Context, stream string, from uint64, each func(domain.Recorded) error) error
}

// handledBy is the set of types whose events the consumer wants decoded. A raw one wants none,
// but the sums of the stored bytes.
func handledBy(c Consumer) map[string]bool {
	if _, raw := c.(RawConsumer); raw {
		return map[string]bool{eventstore.Sums: true}
	}
	types := map[string]bool{}
	for _, eventType := range c.Handles() {
		types[eventType] = true
	}
	return types
}

// In puts the schema's name into a statement.
func In(schema, query string) string { return generation.In(schema, query) }
