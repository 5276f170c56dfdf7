package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/sirupsen/logrus"

	"humanqa/domain"
	"humanqa/domain/command"
	"humanqa/eventstore"
	"humanqa/eventstore/consumer"
	"humanqa/eventstore/node"
	"humanqa/internal/ai"
	"humanqa/internal/datadir"
	"humanqa/internal/guard"
	"humanqa/internal/pgclock"
	"humanqa/internal/pgdev"
	"humanqa/internal/pgpool"
	"humanqa/internal/vault"
	"humanqa/migrations"
	"humanqa/projections"
	"humanqa/projections/auditlog"
)

const (
	// claimsPerChecker is how many jobs one checker may hold at a time
	// (decisions, "Claims").
	claimsPerChecker = 1
	// connections is this process's share of Postgres; the embedded node has
	// its own dozen, and the embedded server takes 200.
	connections = 48
	// startLimit covers a first initdb, or crash recovery after a long run.
	startLimit = 5 * time.Minute
	// handover is how long a command waits for a service that is just starting
	// or stopping.
	handover = 20 * time.Second
	// visibleLimit is how long a command waits for the running service to show
	// what the command wrote.
	visibleLimit = 10 * time.Second
)

// core is what the service and the commands both stand on. Either this process
// started it (start) and stops it (close), or it belongs to a service that is
// running (attach) and is only connected to.
type core struct {
	cfg      Config
	dsn      string
	db       *sqlx.DB
	log      *eventstore.Client
	binding  *consumer.Binding // of the database to the log
	vault    *vault.Vault
	clock    *pgclock.Clock
	commands *command.Service
	own      *guard.Own // addresses that no page under test may have

	postgres *pgdev.Server // nil unless started here
	node     *node.Node    // nil unless started here
	// served says that somebody else is projecting what is written here.
	served bool
	// serves says that this process does, and settles what is owed.
	serves bool
	stops  stops
}

// startCore takes the data directory and starts what no URL was given for. It
// fails with datadir.ErrInUse when another process has the directory.
func startCore(ctx context.Context, cfg Config, log logrus.FieldLogger, metrics prometheus.Registerer) (_ *core, err error) {
	c, err := startUnbound(ctx, cfg, log, metrics)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	defer c.undoOn(ctx, &err)
	err = c.binding.Bind(ctx)
	if cfg.EventStoreURL != "" && c.binding.Problem() == nil && ctx.Err() == nil {
		c.tellMissing(ctx, log)
	}
	return c, err
}

// startUnbound is startCore for a log that need not be the database's.
func startUnbound(ctx context.Context, cfg Config, log logrus.FieldLogger, metrics prometheus.Registerer) (_ *core, err error) {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	c := &core{cfg: cfg}
	defer c.undoOn(ctx, &err)

	release, err := datadir.Lock(cfg.DataDir)
	if err != nil {
		return nil, err
	}
	c.stops.add("data directory", closing, func(context.Context) error { release(); return nil })
	if err := wholeRestore(cfg); err != nil {
		return nil, err
	}

	dsn := cfg.DatabaseURL
	if dsn == "" {
		if c.postgres, err = pgdev.Start(ctx, pgdev.Config{Dir: cfg.DataDir, Listen: cfg.PostgresListen, Log: log.WithField("part", "postgres")}); err != nil {
			return nil, err
		}
		c.stops.add("postgres", postgresStop, c.postgres.Stop)
		dsn = c.postgres.DSN(pgdev.Database)
	}
	if err := c.openDB(ctx, dsn); err != nil {
		return nil, err
	}
	if err := migrations.Up(ctx, c.db.DB); err != nil {
		return nil, err
	}
	if c.postgres != nil {
		if err := consumer.ReleaseAll(ctx, c.db); err != nil {
			return nil, err
		}
	}
	socket := ""
	if cfg.EventStoreURL == "" {
		if socket, err = makeSocketPath(cfg.DataDir); err != nil {
			return nil, err
		}
		c.node, err = node.Start(ctx, node.Config{
			DSN:            dsn,
			Socket:         socket,
			Listen:         cfg.EventStoreListen,
			InsecureListen: cfg.EventStoreListenInsecure,
			MaxAppendSize:  cfg.EventStoreMaxAppend,
			CertDir:        nodeCertificates(cfg),
			Log:            log.WithField("part", "node"),
			Registerer:     metrics,
		})
		if errors.Is(err, node.ErrLocked) {
			return nil, fmt.Errorf("%w: stop the service that runs it, use its log by HUMANQA_EVENTSTORE_URL, or set HUMANQA_DATABASE_URL to a database of its own", err)
		}
		if err != nil {
			return nil, err
		}
		c.stops.add("event log", closing, c.node.Close)
	}
	return c, c.connect(ctx, socket, log)
}

// nodeCertificates is where the embedded node keeps what its TLS address is known by.
func nodeCertificates(cfg Config) string { return filepath.Join(cfg.DataDir, "eventstore") }

// attachCore connects to what a running service has started, or to what the
// URLs name.
func attachCore(ctx context.Context, cfg Config, log logrus.FieldLogger) (_ *core, err error) {
	c := &core{cfg: cfg, served: true}
	defer c.undoOn(ctx, &err)

	dsn := cfg.DatabaseURL
	if dsn == "" {
		server, err := pgdev.Running(cfg.DataDir)
		if err != nil {
			return nil, err
		}
		dsn = server.DSN(pgdev.Database)
	}
	socket := socketPath(cfg.DataDir)
	if cfg.EventStoreURL == "" {
		// The node listens only once the schema is there.
		if _, err := os.Stat(socket); err != nil {
			return nil, fmt.Errorf("reach the log of the running service: %w", err)
		}
	}
	if err := c.openDB(ctx, dsn); err != nil {
		return nil, err
	}
	if err := migrations.Check(ctx, c.db.DB); err != nil {
		return nil, err
	}
	if err := c.connect(ctx, socket, log); err != nil {
		return nil, err
	}
	return c, c.refuseStrangeLog(ctx)
}

// lookLimit is how long a command that joins a running service looks at its log;
// one that does not answer may be the reason for the command.
const lookLimit = 5 * time.Second

// refuseStrangeLog fails only where the log is known not to be the database's.
func (c *core) refuseStrangeLog(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, lookLimit)
	defer cancel()
	_ = c.binding.Check(ctx)
	return c.binding.Refuse()
}

// openCore serves the commands: a running service is joined, a stopped one is
// started without its workers for as long as the command takes.
func openCore(ctx context.Context, cfg Config, log logrus.FieldLogger) (*core, error) {
	if cfg.DatabaseURL != "" && cfg.EventStoreURL != "" {
		if !hasData(cfg) {
			return nil, noData(cfg)
		}
		return attachCore(ctx, cfg, log)
	}
	return joinOrStart(ctx, cfg,
		func() (*core, error) { return attachCore(ctx, cfg, log) },
		func() (*core, error) { return startCore(ctx, cfg, log, nil) })
}

// joinOrStart starts what a data directory holds, or joins who has it already.
// It waits for one that is just starting or stopping, and refuses where there
// is nothing to start.
func joinOrStart[T any](ctx context.Context, cfg Config, join, start func() (T, error)) (none T, _ error) {
	patience := time.NewTimer(handover)
	defer patience.Stop()
	retry := time.NewTicker(200 * time.Millisecond)
	defer retry.Stop()
	for {
		err := noData(cfg)
		switch {
		case hasData(cfg):
			var started T
			if started, err = start(); !errors.Is(err, datadir.ErrInUse) {
				return started, err
			}
		case datadir.Owner(cfg.DataDir) == 0:
			return none, err
		}
		joined, joinErr := join()
		if joinErr == nil {
			return joined, nil
		}
		if !errors.Is(joinErr, pgdev.ErrNotRunning) && !errors.Is(joinErr, fs.ErrNotExist) {
			return none, joinErr
		}
		select {
		case <-retry.C:
		case <-patience.C:
			return none, fmt.Errorf("%w; no service answers there either: %w", err, joinErr)
		case <-ctx.Done():
			return none, ctx.Err()
		}
	}
}

func (c *core) openDB(ctx context.Context, dsn string) error {
	db, err := pgpool.Open(ctx, dsn)
	if errors.Is(err, pq.ErrSSLNotSupported) {
		return fmt.Errorf("%w: turn TLS on there, or, where the network between is trusted, set HUMANQA_DATABASE_URL to postgres://…/name?sslmode=disable", err)
	}
	if err != nil {
		return err
	}
	db.SetMaxOpenConns(connections)
	db.SetMaxIdleConns(connections)
	db.SetConnMaxIdleTime(5 * time.Minute)
	c.dsn, c.db = dsn, db
	c.stops.add("connections", closing, func(context.Context) error { return db.Close() })
	return nil
}

// connect opens what needs the log and a migrated database.
func (c *core) connect(ctx context.Context, socket string, log logrus.FieldLogger) (err error) {
	if c.cfg.EventStoreURL != "" {
		c.log, err = eventstore.Open(c.cfg.EventStoreURL, log)
	} else {
		c.log, err = eventstore.OpenSocket(socket, log)
	}
	if err != nil {
		return err
	}
	c.stops.add("log's client", closing, func(context.Context) error { return c.log.Close() })
	if c.vault, err = vault.Open(ctx, vault.Config{KeyFile: c.cfg.MasterKeyFile, DB: c.db}); err != nil {
		return err
	}
	var macs eventstore.MACKeys
	macs.Primary, macs.Keys = c.vault.MACKeys()
	c.log.Authenticate(macs)
	c.log.SealWith(c.vault)
	if c.clock, err = pgclock.Open(ctx, c.db, log.WithField("part", "clock"), time.Now); err != nil {
		return err
	}
	c.binding = consumer.NewBinding(c.db, c.log, c.clock.Now)
	c.binding.BindKey(func(ctx context.Context) (string, error) {
		verifier, err := c.signer().Verifier(ctx)
		return auditlog.KeyHash(verifier), err
	})
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	var watch sync.WaitGroup
	watch.Go(func() { c.clock.Run(running) })
	c.stops.add("clock", closing, func(context.Context) error { stop(); watch.Wait(); return nil })
	c.own = ownAddresses(c.cfg, c.dsn)
	if c.postgres != nil {
		c.own = ownAddresses(c.cfg, c.dsn, c.postgres.TCPDSN(pgdev.Database))
	}
	writer := c.cfg.AI
	writer.Log = log.WithField("part", "ai")
	writer.Pages = guard.Pages{Allow: c.cfg.TargetAllow, Own: c.own}
	c.commands = command.New(command.Deps{
		Log:              c.binding.Guard(),
		Sealer:           c.vault,
		AI:               ai.New(writer),
		Reads:            projections.CommandReads{Reads: projections.NewReads(c.db)},
		Now:              c.clock.Now,
		ClaimsPerChecker: claimsPerChecker,
		CloseEvery:       c.cfg.CloseEvery,
		CloseFailed: func(accountID string, err error) {
			log.WithFields(logrus.Fields{"accountId": accountID, logrus.ErrorKey: err}).
				Warn("the ledger could not be closed: its account's first command after a restart takes longer; tried again in a minute")
		},
	})
	c.stops.add("commands", closing, func(context.Context) error { c.commands.Drain(); return nil })
	return nil
}

// undoOn gives back what half a start took.
func (c *core) undoOn(ctx context.Context, err *error) {
	if *err != nil {
		*err = errors.Join(*err, c.close(ctx))
	}
}

// close stops what was started here, in order, whether or not ctx has ended.
func (c *core) close(ctx context.Context) error {
	return c.stops.run(ctx)
}

// waitVisible lets a command end once the running service shows its effect, so
// that a key works as soon as it is printed. It is a courtesy: what was
// written is written.
func (c *core) waitVisible(ctx context.Context, at domain.Position) {
	if !c.served {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, visibleLimit)
	defer cancel()
	silent := logrus.New()
	silent.SetOutput(io.Discard)
	// It only reads checkpoints: without Run it needs no source of events.
	_ = consumer.New(c.db, nil, silent, projections.All()...).WaitFor(ctx, at) // late is not wrong
}

// withCore runs a command on the core.
func (a *app) withCore(ctx context.Context, do func(context.Context, *core) error) (err error) {
	c, err := openCore(ctx, a.cfg, quiet(a.log))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.close(ctx)) }()
	return do(ctx, c)
}
