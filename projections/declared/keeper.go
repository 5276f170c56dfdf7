package declared

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/sirupsen/logrus"

	"humanqa/eventstore/consumer"
	"humanqa/eventstore/generation"
	"humanqa/internal/backoff"
	"humanqa/internal/pgpool"
)

// Keeper runs the projections that were added, in one process. Each has a supervisor of its
// own, so none waits for another.
type Keeper struct {
	db     *sqlx.DB
	source consumer.Source
	log    logrus.FieldLogger

	Limits Limits // of each projection, before Run

	folder string
	last   Last
}

// NewKeeper keeps projections. They share a third of the pool's connections, so that readers
// find one while batches take their time.
func NewKeeper(db *sqlx.DB, source consumer.Source, log logrus.FieldLogger) *Keeper {
	return &Keeper{
		db: pgpool.Lend(db, max(db.Stats().MaxOpenConnections/3, 1)), source: source,
		log: log.WithField("component", "declared projections"), Limits: DefaultLimits(),
	}
}

// From has Run add the files of a folder first; without a name there are none.
func (k *Keeper) From(folder string, last Last) *Keeper {
	k.folder, k.last = folder, last
	return k
}

const (
	// lookEvery is how often the keeper looks for projections that were added or dropped.
	lookEvery = time.Second
	// againAfter is the pause before a projection is tried again whose tables cannot be made.
	againAfter = 15 * time.Second
)

// kept is a projection that runs.
type kept struct {
	text string
	stop func() // and wait
}

// Run keeps the projections until ctx ends, which gives nil.
func (k *Keeper) Run(ctx context.Context) error {
	defer func() { _ = k.db.Close() }() // its connections are the lender's
	added := false
	running := map[string]kept{}
	owners := NewOwners(k.source)
	defer func() {
		for _, r := range running {
			r.stop()
		}
	}()
	for ctx.Err() == nil {
		if !added {
			added = k.addFolder(ctx)
		}
		files, err := List(ctx, k.db)
		if err != nil && ctx.Err() == nil {
			k.log.WithError(err).Warn("the declared projections cannot be read, trying again")
		}
		if err == nil {
			k.follow(ctx, files, running, owners)
		}
		_ = backoff.Wait(ctx, lookEvery) // the loop finds out that ctx has ended
	}
	return nil
}

// addFolder adds the folder's files. One that is refused is logged, and keeps nothing else from
// starting. done is false where the log or the database did not answer.
func (k *Keeper) addFolder(ctx context.Context) (done bool) {
	var files []string
	if k.folder != "" {
		files, _ = filepath.Glob(filepath.Join(k.folder, "*.yaml")) // only a pattern can be wrong
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		var f File
		if err == nil {
			f, err = Parse(text)
		}
		if err == nil {
			_, err = CheckLast(ctx, k.db, k.last, k.source, f)
		}
		if err == nil {
			_, err = Add(ctx, k.db, f)
		}
		switch {
		case err == nil:
		case generation.Transient(err):
			k.log.WithError(err).WithField("file", file).Warn("a declared projection cannot be added now, trying again")
			return false
		default:
			k.log.WithError(err).WithField("file", file).Error("a declared projection is refused")
		}
	}
	return true
}

// follow starts and stops projections, so that those of the files run.
func (k *Keeper) follow(ctx context.Context, files []File, running map[string]kept, owners *Owners) {
	wanted := map[string]string{}
	for _, f := range files {
		wanted[f.Name] = f.text
	}
	for name, r := range running {
		if wanted[name] != r.text {
			r.stop()
			delete(running, name)
		}
	}
	for _, f := range files {
		if _, runs := running[f.Name]; runs {
			continue
		}
		ctx, cancel := context.WithCancel(ctx)
		var ended sync.WaitGroup
		ended.Go(func() { k.keep(ctx, f, owners) })
		running[f.Name] = kept{f.text, func() { cancel(); ended.Wait() }}
	}
}

// keep runs one projection until ctx ends.
func (k *Keeper) keep(ctx context.Context, f File, owners *Owners) {
	for ctx.Err() == nil {
		p, err := f.projection(ctx, k.db, owners, k.Limits)
		if err == nil {
			err = p.dropForeign(ctx, k.db)
		}
		if err == nil {
			err = consumer.New(k.db, k.source, k.log, p).Run(ctx)
		}
		if err != nil && ctx.Err() == nil {
			k.log.WithError(err).WithField("consumer", generation.Declared(f.Name)).
				Error("a declared projection does not run, trying again")
			_ = backoff.Wait(ctx, againAfter) // the loop finds out that ctx has ended
		}
	}
}

// A function of another owner came out of a backup, which holds no roles.
const foreignSQL = `
SELECT EXISTS (
    SELECT
    FROM projection_checkpoints c
    LEFT JOIN pg_proc f ON f.pronamespace = to_regnamespace(c.schema_name) AND f.proname = 'apply'
    WHERE c.name = $1
      AND c.status <> 'retired'
      AND (f.oid IS NULL OR pg_get_userbyid(f.proowner) <> $2))`

// dropForeign drops rows that are not the role's; they are built anew.
func (p *Projection) dropForeign(ctx context.Context, db *sqlx.DB) error {
	foreign, err := pgpool.One[bool](ctx, db, "the owner of "+p.Name(), foreignSQL, p.Name(), p.role)
	if err != nil || !foreign {
		return err
	}
	if err := generation.Drop(ctx, db, p.Name()); err != nil {
		return fmt.Errorf("build the rows of a backup anew: %w", err)
	}
	return nil
}
