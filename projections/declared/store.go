package declared

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jmoiron/sqlx"

	"humanqa/domain"
	"humanqa/eventstore/consumer"
	"humanqa/eventstore/generation"
	"humanqa/internal/backoff"
	"humanqa/internal/pgpool"
)

const listSQL = `
SELECT name, version, file
FROM declared_projections
ORDER BY name`

const lockSQL = `
LOCK TABLE declared_projections IN SHARE ROW EXCLUSIVE MODE`

const addSQL = `
INSERT INTO declared_projections (name, version, file)
VALUES ($1, $2, $3)
ON CONFLICT (name) DO UPDATE
SET version = EXCLUDED.version,
    file = EXCLUDED.file,
    added_at = now()`

const forgetSQL = `
DELETE FROM declared_projections
WHERE name = $1`

// List lists the projections that were added. One that this binary cannot read, such as a newer
// binary's, is among them by its name and version; it does not run.
func List(ctx context.Context, db sqlx.QueryerContext) ([]File, error) {
	rows, err := pgpool.List[struct {
		Name    string
		Version int
		File    string
	}](ctx, db, "the declared projections", listSQL)
	files := make([]File, len(rows))
	for i, row := range rows {
		var unread error
		if files[i], unread = Parse([]byte(row.File)); unread != nil {
			files[i] = File{Name: row.Name, Version: row.Version, text: row.File, unread: unread}
		}
	}
	return files, err
}

// Add has the service keep the projection, or a higher version of it. added is false where it
// does so already. The caller has checked the file (Check).
func Add(ctx context.Context, db *sqlx.DB, f File) (added bool, err error) {
	err = pgpool.InTx(ctx, db, func(tx *sqlx.Tx) error {
		if err := pgpool.Exec(ctx, tx, "lock the declared projections", lockSQL); err != nil {
			return err
		}
		all, err := List(ctx, tx)
		if err != nil {
			return err
		}
		for _, was := range all {
			switch {
			case was.Name != f.Name:
				if i := slices.IndexFunc(f.names, func(name string) bool { return slices.Contains(was.names, name) }); i >= 0 {
					return domain.Conflict("the projection %s has a table %s already", was.Name, f.names[i])
				}
			case was.text == f.text:
				return nil
			case was.Version >= f.Version:
				return domain.Conflict("version %d of %s is there with another text: raise the version", was.Version, f.Name)
			}
		}
		added = true
		return pgpool.Exec(ctx, tx, "add "+f.Name, addSQL, f.Name, f.Version, f.text)
	})
	return added, err
}

// dropWithin is how long Drop waits for the service to look, and to end its last batch.
const dropWithin = 30 * time.Second

// Drop removes a projection with its rows, its views and its role. It waits until no service
// runs it.
func Drop(ctx context.Context, db *sqlx.DB, name string) error {
	if err := pgpool.Exec(ctx, db, "forget "+name, forgetSQL, name); err != nil {
		return err
	}
	role, err := roleOf(ctx, db, name)
	if err != nil {
		return err
	}
	for limit := time.Now().Add(dropWithin); ; {
		err := generation.Drop(ctx, db, generation.Declared(name))
		switch runs := errors.Is(err, generation.ErrRuns) || generation.Transient(err); {
		case err == nil, errors.Is(err, generation.ErrNone): // no service has built it yet
			return pgpool.Exec(ctx, db, "drop the role "+role, "DROP ROLE IF EXISTS "+role)
		case !runs, time.Now().After(limit), backoff.Wait(ctx, lookEvery/4) != nil:
			return err
		}
	}
}

func roleOf(ctx context.Context, db sqlx.QueryerContext, name string) (string, error) {
	return pgpool.One[string](ctx, db, "the role of "+name, roleNameSQL, name)
}

// Projections gives those that were added, and can be read, as consumers, for commands.
func Projections(ctx context.Context, db *sqlx.DB, source consumer.Source) (all []consumer.Consumer, err error) {
	files, err := List(ctx, db)
	if err != nil {
		return nil, err
	}
	owners := NewOwners(source)
	for _, f := range files {
		if f.unread != nil {
			continue
		}
		p, err := f.projection(ctx, db, owners, DefaultLimits())
		if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	return all, nil
}

func (f File) projection(ctx context.Context, db sqlx.QueryerContext, owners *Owners, limits Limits) (*Projection, error) {
	if f.unread != nil {
		return nil, fmt.Errorf("the declared projection %s: %w", f.Name, f.unread)
	}
	role, err := roleOf(ctx, db, f.Name)
	return &Projection{File: f, limits: limits, owners: owners, role: role}, err
}
