package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jmoiron/sqlx"
	"golang.org/x/sync/errgroup"

	"humanqa/domain"
	"humanqa/domain/command"
	"humanqa/domain/command/money"
	"humanqa/eventstore"
	"humanqa/eventstore/consumer"
	"humanqa/internal/testing/commandtest"
	"humanqa/internal/testing/longlog"
	"humanqa/internal/vault"
	"humanqa/projections"
)

const (
	grownJobs     = 20_000
	grownAccounts = 50
	growers       = 32  // streams that are written at the same time
	ledgerBatch   = 250 // debits an append
	closedEvery   = money.CloseEvery
	restarts      = 5
	// runningJobs have not ended, so their debits stay in the book.
	runningJobs = 100_000
	// unclosedLength is the ledger that is folded whole, for comparison.
	unclosedLength = 20_000
)

// ledgerLengths are the debits of the account at which a restart is measured.
var ledgerLengths = []int{1_000, 10_000, 100_000, 1_000_000}

// growth is part (j): the cost of a long log. Finished jobs are written straight into the
// log, as the commands would have.
func growth(ctx context.Context, b *bench) (_ section, err error) {
	var stops stops
	defer func() { err = errors.Join(err, stops.run(ctx)) }()
	pg, err := b.startPostgres(ctx, "growth", &stops)
	if err != nil {
		return section{}, err
	}
	client, db, err := b.startLog(ctx, pg, "growth", &stops)
	if err != nil {
		return section{}, err
	}
	g := &grown{bench: b, client: client, db: db}
	if g.secrets, err = vault.Open(ctx, vault.Config{KeyFile: filepath.Join(b.work, "growth.key"), DB: db}); err != nil {
		return section{}, err
	}
	s := section{
		Title: "growth: rebuilds, checks and restarts of a long log",
		Notes: []string{
			fmt.Sprintf("%d finished jobs of %d accounts, a session of %d read models; COPY writes as many event rows into a plain table",
				grownJobs, grownAccounts, len(projections.Names())),
			fmt.Sprintf(
				"first command: the submission of a new process, median of %d; the ledger is closed every %d events, every job has ended",
				restarts, closedEvery),
		},
	}
	if err := g.rebuilds(ctx, &s); err != nil {
		return section{}, err
	}
	return s, g.restarts(ctx, &s)
}

type grown struct {
	*bench
	client  *eventstore.Client
	db      *sqlx.DB
	secrets *vault.Vault
	events  int
}

// rebuilds writes the jobs, builds and verifies the read models, and measures
// their size.
func (g *grown) rebuilds(ctx context.Context, s *section) error {
	if err := g.live(ctx); err != nil {
		return err
	}
	feed := eventstore.NewFeed(g.client, g.log)
	supervisor := consumer.New(g.db, feed, g.log, projections.All()...)
	if err := supervisor.Prepare(ctx); err != nil {
		return err
	}
	stop := background(ctx, feed.Run)
	defer func() { _ = stop(ctx) }() // it ends with this part
	perSecond := func(do func() error) (float64, error) {
		began := time.Now()
		err := do()
		return float64(g.events) / time.Since(began).Seconds(), err
	}
	if err := g.serving(ctx, supervisor); err != nil {
		return err
	}
	copied, err := perSecond(func() error { return g.copyTwin(ctx) })
	if err != nil {
		return err
	}
	all, err := perSecond(func() error { return supervisor.RebuildAll(ctx, projections.Names(), nil) })
	if err != nil {
		return err
	}
	checked, err := perSecond(func() error {
		found, err := supervisor.VerifyAll(ctx, projections.Names())
		for i, differences := range found {
			if err == nil && len(differences) > 0 {
				err = fmt.Errorf("%s is not the fold of the log", projections.Names()[i])
			}
		}
		return err
	})
	if err != nil {
		return err
	}
	s.Figures = append(s.Figures, figure{"COPY of the events", copied, "events/s"}, figure{"check of all read models", checked, "events/s"})
	s.Goals = append(s.Goals, atLeast("rebuild of all read models, events/s", all, 32_000), below("check to rebuild", all/checked, 1.5,
		"x"))
	for _, alone := range []struct {
		name   string
		target float64
	}{{"credits", 80_000}, {"history", 80_000}, {"jobs", 40_000}, {"events", 40_000}} {
		speed, err := perSecond(func() error { return supervisor.RebuildAll(ctx, []string{alone.name}, nil) })
		if err != nil {
			return err
		}
		s.Goals = append(s.Goals,
			atLeast("rebuild of "+alone.name+", events/s", speed, alone.target),
			atLeast("rebuild of "+alone.name+" to COPY", speed/copied, 0.25))
	}
	return g.sizes(ctx, s)
}

// serving runs the supervisor until every read model has caught up.
func (g *grown) serving(ctx context.Context, supervisor *consumer.Supervisor) error {
	stop := background(ctx, supervisor.Run)
	head, err := g.client.Head(ctx)
	if err == nil {
		err = supervisor.WaitFor(ctx, head)
	}
	for _, name := range projections.Names() {
		if err == nil {
			err = supervisor.CatchUp(ctx, name)
		}
	}
	return errors.Join(err, stop(ctx))
}

// live writes the lives of jobs.
func (g *grown) live(ctx context.Context) error {
	var writing errgroup.Group
	writing.SetLimit(growers)
	for range grownAccounts {
		writing.Go(func() error {
			ledger := longlog.NewLedger(g.client, uuid.NewString(), closedEvery)
			for range grownJobs / grownAccounts / 50 {
				ids := make([]string, 50)
				for i := range ids {
					ids[i] = uuid.NewString()
				}
				if err := ledger.Charge(ctx, ids); err != nil {
					return err
				}
				for _, id := range ids {
					life := longlog.Life{AccountID: ledger.Account, Ended: time.Now()}
					if err := life.Write(ctx, g.client, id); err != nil {
						return err
					}
				}
			}
			return nil
		})
	}
	if err := writing.Wait(); err != nil {
		return err
	}
	return g.db.GetContext(ctx, &g.events, "SELECT COUNT(*) FROM eventlog.events")
}

// restarts measures the first command of a new process.
func (g *grown) restarts(ctx context.Context, s *section) error {
	closed := longlog.NewLedger(g.client, uuid.NewString(), closedEvery)
	for _, length := range ledgerLengths {
		if time.Until(g.deadline) < time.Duration(length)*100*time.Microsecond {
			s.Notes = append(s.Notes, fmt.Sprintf("time was too short for %d debits: give it more with -limit", length))
			break
		}
		if err := closed.Grow(ctx, length, ledgerBatch); err != nil {
			return err
		}
		took, mb, err := g.firstCommand(ctx, closed)
		if err != nil {
			return err
		}
		s.Goals = append(s.Goals,
			below(fmt.Sprintf("first command, %d debits", length), millis(took), 20, "ms"),
			below(fmt.Sprintf("ledger in memory, %d debits", length), mb, 5, "MB"))
	}
	running := longlog.NewLedger(g.client, uuid.NewString(), closedEvery)
	running.Running = true
	if err := running.Grow(ctx, runningJobs, ledgerBatch); err != nil {
		return err
	}
	took, mb, err := g.firstCommand(ctx, running)
	if err != nil {
		return err
	}
	s.Goals = append(s.Goals, below(fmt.Sprintf("first command, %d jobs that run", runningJobs), millis(took), 50, "ms"))
	s.Figures = append(s.Figures, figure{fmt.Sprintf("ledger in memory, %d jobs that run", runningJobs), mb, "MB"})
	open := longlog.NewLedger(g.client, uuid.NewString(), 0)
	if err := open.Grow(ctx, unclosedLength, ledgerBatch); err != nil {
		return err
	}
	took, mb, err = g.firstCommand(ctx, open)
	s.Figures = append(s.Figures,
		figure{fmt.Sprintf("first command, %d debits, never closed", unclosedLength), millis(took), "ms"},
		figure{fmt.Sprintf("ledger in memory, %d debits, never closed", unclosedLength), mb, "MB"})
	return err
}

// firstCommand gives the median time, and the heap that the ledger takes in megabytes.
func (g *grown) firstCommand(ctx context.Context, l *longlog.Ledger) (took time.Duration, mb float64, err error) {
	var all []time.Duration
	for range restarts {
		before := heap()
		commands := command.New(command.Deps{
			Log: g.client, Sealer: g.secrets, AI: commandtest.AI{}, Reads: commandtest.NoReads{}, Now: time.Now,
			ClaimsPerChecker: 1, CloseEvery: math.MaxInt, // the bench closes
		})
		s := &assembly{commands: commands, waitFor: func(context.Context, domain.Position) error { return nil }}
		began := time.Now()
		if _, _, err := s.submit(ctx, l.Account); err != nil {
			return 0, 0, err
		}
		all = append(all, time.Since(began))
		commands.Drain()
		mb = max(heap()-before, 0)
		runtime.KeepAlive(commands)
		if err := l.Reload(ctx); err != nil { // the next append follows the submission's debit
			return 0, 0, err
		}
	}
	slices.Sort(all)
	return all[len(all)/2], mb, nil
}

// heap is the size of the live objects, in megabytes.
func heap() float64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc) / (1 << 20)
}

const copyPlainSQL = `COPY plain (revision, created, event_id, is_json, stream, type, data, metadata) FROM STDIN`

// copyTwin writes as many rows of the size of the log's events with COPY.
func (g *grown) copyTwin(ctx context.Context) (err error) {
	var data, meta []byte
	if err := g.db.QueryRowContext(ctx, "SELECT data, metadata FROM eventlog.events WHERE type = 'job.claimed' LIMIT 1").Scan(&data,
		&meta); err != nil {
		return err
	}
	if _, err := g.db.ExecContext(ctx, createPlainSQL); err != nil {
		return err
	}
	tx, err := g.db.BeginTx(ctx, &sql.TxOptions{})
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // after a commit it does nothing
	in, err := tx.PrepareContext(ctx, copyPlainSQL)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	for i := range g.events {
		id := uuid.NewString()
		if _, err := in.ExecContext(ctx, 0, int64(i), id, true, domain.JobStream(id), "job.claimed", data, meta); err != nil {
			return err
		}
	}
	if _, err := in.ExecContext(ctx); err != nil {
		return err
	}
	if err := in.Close(); err != nil {
		return err
	}
	return tx.Commit()
}

const sizesSQL = `
SELECT SUM(pg_total_relation_size(c.oid))
FROM pg_class c
JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind = 'r'
  AND n.nspname = $1`

// sizes measures the disk space of a finished job.
func (g *grown) sizes(ctx context.Context, s *section) error {
	if _, err := g.db.ExecContext(ctx, "DROP TABLE plain"); err != nil {
		return err
	}
	listed, err := consumer.List(ctx, g.db)
	if err != nil {
		return err
	}
	// Autovacuum does this within the minute.
	if _, err := g.db.ExecContext(ctx, "VACUUM"); err != nil {
		return err
	}
	size := func(schema string) (kB float64, err error) {
		err = g.db.GetContext(ctx, &kB, sizesSQL, schema)
		return kB / grownJobs / 1024, err
	}
	log, err := size("eventlog")
	s.Figures = append(s.Figures,
		figure{"events a finished job", float64(g.events) / grownJobs, "events"},
		figure{"log, a finished job", log, "kB"})
	var models float64
	for _, l := range listed {
		if err != nil || !l.Serving {
			continue
		}
		var one float64
		one, err = size(l.Schema)
		models += one
		if one >= 0.05 {
			s.Figures = append(s.Figures, figure{l.Name + ", a finished job", one, "kB"})
		}
	}
	s.Figures = append(s.Figures, figure{"read models, a finished job", models, "kB"})
	return err
}
