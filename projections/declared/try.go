package declared

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jmoiron/sqlx"

	"humanqa/domain"
	"humanqa/eventstore"
	"humanqa/eventstore/consumer"
	"humanqa/eventstore/generation"
	"humanqa/internal/pgpool"
)

// Checked is what a projection did with some events.
type Checked struct {
	Events int // of the types that it wants
	Took   time.Duration
	Tables []Rows
}

// Rows is the number of a table's rows.
type Rows struct {
	Table string `json:"table"`
	Rows  int    `json:"rows"`
}

// Check makes the projection's tables, applies events to them as one batch, and takes all of
// it back.
func Check(ctx context.Context, db *sqlx.DB, source consumer.Source, f File, events []domain.Recorded) (out Checked, err error) {
	err = f.try(ctx, db, source, 1, func(tx *sqlx.Tx, p *Projection, schemas []string) error {
		rows, err := p.owners.rows(ctx, p.Events, events)
		if err != nil {
			return err
		}
		began := time.Now()
		if err := p.fold(ctx, tx, schemas[0], cmp.Or(string(rows), "[]")); err != nil {
			return err
		}
		out.Took, out.Events = time.Since(began), p.count(events)
		for _, name := range p.names {
			rows, err := pgpool.One[int](ctx, tx, "the rows of "+name, "SELECT count(*) FROM "+schemas[0]+"."+name)
			if err != nil {
				return err
			}
			out.Tables = append(out.Tables, Rows{name, rows})
		}
		return nil
	})
	return out, err
}

// LastEvents is how many of the log's last events CheckLast reads, of any type.
const LastEvents = 1000

// Last gives those of the log's last events that have one of the types.
type Last func(ctx context.Context, count uint64, types []string) ([]domain.Recorded, error)

// CheckLast is Check with the log's last events.
func CheckLast(ctx context.Context, db *sqlx.DB, last Last, source consumer.Source, f File) (Checked, error) {
	events, err := last(ctx, LastEvents, f.Events)
	if err != nil {
		return Checked{}, err
	}
	return Check(ctx, db, source, f, events)
}

func (p *Projection) count(events []domain.Recorded) (n int) {
	for _, r := range events {
		if slices.Contains(p.Events, r.Type) {
			n++
		}
	}
	return n
}

// try runs a trial with so many sets of tables, and a role of its own, in a transaction that is
// taken back.
func (f File) try(
	ctx context.Context, db *sqlx.DB, source consumer.Source, sets int, trial func(*sqlx.Tx, *Projection, []string) error,
) error {
	p, err := f.projection(ctx, db, NewOwners(source), DefaultLimits())
	if err != nil {
		return err
	}
	tx, err := db.BeginTxx(ctx, nil)
	if err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	defer func() { _ = tx.Rollback() }() // it is never committed
	p.role += "_" + uuid.NewString()[:8]
	schemas := make([]string, sets)
	for i := range schemas {
		schemas[i] = f.Name + "_trial_" + uuid.NewString()[:8]
		if err := generation.CreateTables(ctx, tx, p, schemas[i]); err != nil {
			return err
		}
	}
	return trial(tx, p, schemas)
}

// largeBatch and smallBatch are the most events of a batch in the folds that Test compares.
const largeBatch, smallBatch = 1000, 17

// Test folds the log up to a position twice, in large batches and in small ones, and gives the
// rows that only one of the folds has (InFold: the one in small batches).
func Test(
	ctx context.Context, db *sqlx.DB, source consumer.Source, f File, to domain.Position,
) (events int, found []consumer.Difference, err error) {
	err = f.try(ctx, db, source, 2, func(tx *sqlx.Tx, p *Projection, schemas []string) error {
		handles := map[string]bool{}
		for _, e := range p.Handles() {
			handles[e] = true
		}
		for at := (eventstore.Checkpoint{Start: true}); !generation.Reached(at, to); {
			page, err := source.Next(ctx, at, largeBatch, handles)
			if err != nil {
				return fmt.Errorf("read the log behind %s: %w", at.Position, err)
			}
			at = eventstore.At(page.Next)
			batch := slices.DeleteFunc(slices.Clone(page.Events), func(r domain.Recorded) bool {
				return !handles[r.Type] || r.Event == nil
			})
			events += p.count(batch)
			if err := p.Apply(ctx, tx, schemas[0], batch); err != nil {
				return err
			}
			for len(batch) > 0 {
				n := min(len(batch), 1+rand.IntN(smallBatch))
				if err := p.Apply(ctx, tx, schemas[1], batch[:n]); err != nil {
					return err
				}
				batch = batch[n:]
			}
		}
		for _, name := range p.names {
			of, err := consumer.Compare(ctx, tx, name, schemas[0], schemas[1])
			if err != nil {
				return err
			}
			found = append(found, of...)
		}
		return nil
	})
	return events, found, err
}
