package consumer

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
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
func (s *Supervisor) joinScan(names []string) *sharedscan.Reader {
	types := map[string]bool{}
	for _, name := range names {
		if p := s.projectorNamed(name); p != nil {
			maps.Copy(types, handledBy(p))
		}
	}
	return s.scan.Add(eventstore.Checkpoint{Start: true}, types)
}

// VerifyAll folds the log anew, with one scan, up to the checkpoint of each projection's
// serving generation, and compares every row (ARCHITECTURE.md, invariant 9). It delays no
// runner: it reads rows and checkpoint from one snapshot, and its own tables exist only in
// the same transaction. The fold also leaves out the streams that the generation has set
// aside: its Status names them. The differences are in the order of the names.
//
// The transactions last as long as the scan, and wait for each other's pages. So there are no
// more of them than a third of the pool's connections, and each folds several projections.
func (s *Supervisor) VerifyAll(ctx context.Context, names []string) ([][]Difference, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	each := 1
	if most := s.db.Stats().MaxOpenConnections; most > 0 { // else it has no limit
		transactions := max(most/3, 1)
		each = max((len(names)+transactions-1)/transactions, 1)
	}
	groups := slices.Collect(slices.Chunk(names, each))
	differences := make([][][]Difference, len(groups))
	var folding sync.WaitGroup
	logs := make([]*sharedscan.Reader, len(groups)) // all join before the first one reads
	for i, group := range groups {
		logs[i] = s.joinScan(group)
	}
	for i, group := range groups {
		folding.Go(func() {
			found, err := s.verifyGenerations(ctx, group, logs[i], generation.Serving)
			if err != nil {
				cancel(err)
			}
			differences[i] = found
		})
	}
	folding.Wait()
	return slices.Concat(differences...), context.Cause(ctx)
}

// loadGeneration reads the generation that is verified.
type loadGeneration func(ctx context.Context, q sqlx.QueryerContext, name string) (generation.Generation, error)

// verifyGenerations compares generations with the fold of the log, in one transaction.
func (s *Supervisor) verifyGenerations(
	ctx context.Context, names []string, log *sharedscan.Reader, load loadGeneration,
) ([][]Difference, error) {
	defer log.Leave()
	tx, err := s.db.BeginTxx(ctx, &sql.TxOptions{Isolation: sql.LevelRepeatableRead})
	if err != nil {
		return nil, fmt.Errorf("verify projections: %w", err)
	}
	defer func() { _ = tx.Rollback() }() // it is never committed
	folds := make([]*fold, len(names))
	for i, name := range names {
		if folds[i], err = s.beginFold(ctx, tx, name, load); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	if err := foldLog(ctx, tx, folds, log); err != nil {
		return nil, err
	}
	log.Leave() // the comparison does not read the log
	differences := make([][]Difference, len(folds))
	for i, f := range folds {
		if differences[i], err = f.compare(ctx, tx); err != nil {
			return nil, fmt.Errorf("%s: %w", names[i], err)
		}
	}
	return differences, nil
}

// fold folds the log into tables of its own, as the runner of a rebuild does.
type fold struct {
	tenure

	projector Projector
	verified  generation.Generation
	scratch   string // the schema of the tables
}

func (s *Supervisor) beginFold(ctx context.Context, tx *sqlx.Tx, name string, load loadGeneration) (*fold, error) {
	p := s.projectorNamed(name)
	if p == nil {
		return nil, errors.New("there is no such projection")
	}
	g, err := load(ctx, tx, name)
	if err != nil {
		return nil, err
	}
	if g.Version != p.Version() {
		return nil, fmt.Errorf("it has rows of version %d, this binary folds version %d", g.Version, p.Version())
	}
	f := &fold{
		tenure: tenure{runner: s.newRunner(p, generation.Generation{}), lease: &generation.Lease{}}, projector: p, verified: g,
		scratch: name + "_verify_" + strings.ReplaceAll(uuid.NewString(), "-", ""),
	}
	if err := generation.CreateTables(ctx, tx, p, f.scratch); err != nil {
		return nil, err
	}
	if f.skips, err = generation.LoadSkips(ctx, tx, name); err != nil {
		return nil, err
	}
	aside, err := loadAside(ctx, tx, g, false)
	f.aside = byStream(aside)
	return f, err
}

// foldLog applies the log up to the checkpoint of each generation.
func foldLog(ctx context.Context, tx *sqlx.Tx, folds []*fold, log *sharedscan.Reader) error {
	for at := (eventstore.Checkpoint{Start: true}); ; {
		folds = slices.DeleteFunc(slices.Clone(folds), func(f *fold) bool { return generation.AtLeast(at, f.verified.Checkpoint()) })
		if len(folds) == 0 {
			return nil
		}
		page, err := log.Next(ctx, at)
		undecodable, broken := errors.AsType[*eventstore.DecodeError](err)
		if broken {
			page.Next = undecodable.Position
		} else if err != nil {
			return fmt.Errorf("fold the log: %w", err)
		}
		for _, f := range folds {
			if err := f.apply(ctx, tx, page.Events, undecodable); err != nil {
				return fmt.Errorf("fold the log for %s: %w", f.projector.Name(), err)
			}
		}
		at = eventstore.At(page.Next)
	}
}

// apply takes a page, or the event that cannot be decoded in its place.
func (f *fold) apply(ctx context.Context, tx *sqlx.Tx, events []domain.Recorded, undecodable *eventstore.DecodeError) error {
	if undecodable != nil && f.runner.raw {
		events = []domain.Recorded{undecodable.Recorded}
	} else if undecodable != nil {
		if e := &undecodable.Recorded; !f.skips[e.Position] && f.runner.handles[e.Type] && !f.isSetAside(e) {
			f.aside[e.Stream] = e.Position // as a rebuild would
		}
		return nil
	}
	batch := until(f.selectEvents(events), f.verified.Checkpoint().Position)
	if len(batch) == 0 {
		return nil
	}
	return f.foldBatch(ctx, tx, f.scratch, batch)
}

// compare gives the rows that differ.
func (f *fold) compare(ctx context.Context, tx *sqlx.Tx) (differences []Difference, err error) {
	for _, t := range f.projector.Tables() {
		if t.View {
			continue
		}
		same, err := equalSums(ctx, tx, t.Name, f.verified.Schema, f.scratch)
		if err != nil {
			return nil, err
		}
		if same {
			continue
		}
		d, err := Compare(ctx, tx, t.Name, f.verified.Schema, f.scratch)
		if err != nil {
			return nil, err
		}
		differences = append(differences, d...)
	}
	return differences, nil
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
	order := cmp.Or(strings.Join(key, ", "), "1")
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
