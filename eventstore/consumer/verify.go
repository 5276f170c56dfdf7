package consumer

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/google/uuid"
	"github.com/jmoiron/sqlx"

	"humanqa/domain"
	"humanqa/eventstore"
	"humanqa/eventstore/generation"
	"humanqa/eventstore/sharedscan"
)

// Difference is a row that only one of a projection and the fold of the log has.
type Difference struct {
	Table  string
	InFold bool   // the fold has it and the projection lacks it
	Row    string // as JSON
	Key    string // its primary key's columns, as JSON: two of one key are one row that differs
}

// maxDifferences bounds the differences that Verify reports for one table, per direction.
const maxDifferences = 10

const differenceSQL = `
SELECT row_to_json(d)::text
FROM (
    SELECT * FROM {a}
    EXCEPT ALL
    SELECT * FROM {b}
    ORDER BY {key}
    LIMIT $1) d`

const keyColumnsSQL = `
SELECT a.attname
FROM pg_index i
JOIN pg_attribute a
  ON a.attrelid = i.indrelid
 AND a.attnum = ANY(i.indkey)
WHERE i.indrelid = $1::regclass
  AND i.indisprimary
ORDER BY array_position(i.indkey, a.attnum)`

// joinScan takes part in the shared scan of the log, from its beginning.
func (s *Supervisor) joinScan(name string) *sharedscan.Reader {
	types := map[string]bool{}
	if p := s.projectorNamed(name); p != nil {
		types = handledBy(p)
	}
	return s.scan.Add(eventstore.Checkpoint{Start: true}, types)
}

// VerifyAll folds the log anew, with one scan, up to the checkpoint of each projection's
// serving generation, and compares every row (ARCHITECTURE.md, invariant 9). It delays no
// runner: it reads rows and checkpoint from one snapshot, and its own tables exist only in
// the same transaction. The fold also leaves out the streams that the generation has set
// aside: its Status names them. The differences are in the order of the names.
func (s *Supervisor) VerifyAll(ctx context.Context, names []string) ([][]Difference, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	differences := make([][]Difference, len(names))
	var folding sync.WaitGroup
	logs := make([]*sharedscan.Reader, len(names)) // all join before the first one reads
	for i := range names {
		logs[i] = s.joinScan(names[i])
	}
	for i, name := range names {
		folding.Go(func() {
			found, err := s.verifyGeneration(ctx, name, logs[i], servingOf(name))
			if err != nil {
				cancel(fmt.Errorf("%s: %w", name, err))
			}
			differences[i] = found
		})
	}
	folding.Wait()
	return differences, context.Cause(ctx)
}

// loadGeneration reads the generation that is verified.
type loadGeneration func(context.Context, sqlx.QueryerContext) (generation.Generation, error)

func servingOf(name string) loadGeneration {
	return func(ctx context.Context, q sqlx.QueryerContext) (generation.Generation, error) {
		return generation.Serving(ctx, q, name)
	}
}

// verifyGeneration compares a generation with the fold of the log.
func (s *Supervisor) verifyGeneration(ctx context.Context, name string, log *sharedscan.Reader, load loadGeneration) ([]Difference, error) {
	defer log.Leave()
	p := s.projectorNamed(name)
	if p == nil {
		return nil, fmt.Errorf("there is no projection %s", name)
	}
	tx, err := s.db.BeginTxx(ctx, &sql.TxOptions{Isolation: sql.LevelRepeatableRead})
	if err != nil {
		return nil, fmt.Errorf("verify projection %s: %w", name, err)
	}
	defer func() { _ = tx.Rollback() }() // it is never committed
	g, err := load(ctx, tx)
	if err != nil {
		return nil, err
	}
	if g.Version != p.Version() {
		return nil, fmt.Errorf("projection %s has rows of version %d, this binary folds version %d", name, g.Version, p.Version())
	}
	scratch := name + "_verify_" + strings.ReplaceAll(uuid.NewString(), "-", "")
	if err := generation.CreateTables(ctx, tx, p, scratch); err != nil {
		return nil, err
	}
	if err := s.foldInto(ctx, tx, p, scratch, log, g); err != nil {
		return nil, fmt.Errorf("fold the log for %s: %w", name, err)
	}
	log.Leave() // the comparison does not read the log
	var differences []Difference
	for _, t := range p.Tables() {
		if t.View {
			continue
		}
		same, err := equalSums(ctx, tx, t.Name, g.Schema, scratch)
		if err != nil {
			return nil, err
		}
		if same {
			continue
		}
		d, err := Compare(ctx, tx, t.Name, g.Schema, scratch)
		if err != nil {
			return nil, err
		}
		differences = append(differences, d...)
	}
	return differences, nil
}

// foldInto applies the log up to a generation's checkpoint, as the runner of a rebuild does.
func (s *Supervisor) foldInto(
	ctx context.Context, tx *sqlx.Tx, p Projector, schema string, log *sharedscan.Reader, of generation.Generation,
) error {
	skips, err := generation.LoadSkips(ctx, tx, p.Name())
	if err != nil {
		return err
	}
	aside, err := loadAside(ctx, tx, of, false)
	if err != nil {
		return err
	}
	f := tenure{runner: s.newRunner(p, generation.Generation{}), lease: &generation.Lease{}, skips: skips, aside: byStream(aside)}
	to := of.Checkpoint()
	for at := (eventstore.Checkpoint{Start: true}); !generation.AtLeast(at, to); {
		page, err := log.Next(ctx, at)
		var undecodable *eventstore.DecodeError
		switch {
		case errors.As(err, &undecodable) && f.runner.raw:
			page = eventstore.Page{Events: []domain.Recorded{undecodable.Recorded}, Next: undecodable.Position}
		case errors.As(err, &undecodable):
			if e := &undecodable.Recorded; !skips[e.Position] && f.runner.handles[e.Type] && !f.isSetAside(e) {
				f.aside[e.Stream] = e.Position // as a rebuild would
			}
			at = eventstore.At(undecodable.Position)
			continue
		case err != nil:
			return err
		}
		batch := until(f.selectEvents(page.Events), to.Position)
		if len(batch) > 0 {
			if err := f.foldBatch(ctx, tx, schema, batch); err != nil {
				return err
			}
		}
		at = eventstore.At(page.Next)
	}
	return nil
}

// until cuts off the events behind a position.
func until(batch []domain.Recorded, position domain.Position) []domain.Recorded {
	for i, r := range batch {
		if r.Position.Compare(position) > 0 {
			return batch[:i]
		}
	}
	return batch
}

// Rows are compared one by one only where the sums over all rows differ. A sum reads each
// row once, while a difference of sets sorts them all.
const sumSQL = `
SELECT COUNT(*) || ' ' || COALESCE(SUM(hashtextextended(r::text, 0)), 0) || ' ' || COALESCE(SUM(hashtextextended(r::text, 1)), 0)
FROM {a} r`

func equalSums(ctx context.Context, tx *sqlx.Tx, table, rows, fold string) (bool, error) {
	var is, should string
	for schema, sum := range map[string]*string{rows: &is, fold: &should} {
		if err := tx.GetContext(ctx, sum, strings.ReplaceAll(sumSQL, "{a}", schema+"."+table)); err != nil {
			return false, fmt.Errorf("sum %s.%s up: %w", schema, table, err)
		}
	}
	return is == should, nil
}

// Compare gives the rows that only one of two schemas has.
func Compare(ctx context.Context, tx *sqlx.Tx, table, rows, fold string) ([]Difference, error) {
	var key []string
	if err := tx.SelectContext(ctx, &key, keyColumnsSQL, rows+"."+table); err != nil {
		return nil, fmt.Errorf("find the key of %s: %w", table, err)
	}
	order := strings.Join(key, ", ")
	if order == "" {
		order = "1"
	}
	var differences []Difference
	for _, inFold := range []bool{false, true} {
		a, b := rows+"."+table, fold+"."+table
		if inFold {
			a, b = b, a
		}
		query := strings.NewReplacer("{a}", a, "{b}", b, "{key}", order).Replace(differenceSQL)
		var found []string
		if err := tx.SelectContext(ctx, &found, query, maxDifferences); err != nil {
			return nil, fmt.Errorf("compare %s with %s: %w", a, b, err)
		}
		for _, row := range found {
			of, err := keyOf(row, key)
			if err != nil {
				return nil, fmt.Errorf("read a row of %s: %w", table, err)
			}
			differences = append(differences, Difference{Table: table, InFold: inFold, Row: row, Key: of})
		}
	}
	return differences, nil
}

// keyOf picks the key's columns out of a row.
func keyOf(row string, key []string) (string, error) {
	var columns map[string]json.RawMessage
	if err := json.Unmarshal([]byte(row), &columns); err != nil {
		return "", err
	}
	of := make(map[string]json.RawMessage, len(key))
	for _, name := range key {
		of[name] = columns[name]
	}
	text, err := json.Marshal(of)
	return string(text), err
}
