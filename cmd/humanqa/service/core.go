package service

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/sirupsen/logrus"

	"humanqa/cmd/humanqa/service/logging"
	"humanqa/domain"
	"humanqa/domain/command"
	"humanqa/eventstore"
	"humanqa/eventstore/binding"
	"humanqa/eventstore/consumer"
	"humanqa/eventstore/generation"
	"humanqa/eventstore/node"
	"humanqa/internal/ai"
	"humanqa/internal/chat"
	"humanqa/internal/codehost"
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
	// startLimit covers a first initdb, or crash recovery after a long run.
	startLimit = 5 * time.Minute
	// handoverLimit is how long a command waits for a service that is just starting
	// or stopping.
	handoverLimit = 20 * time.Second
	// VisibleLimit is how long a command waits for the running service to show its write.
	VisibleLimit = 10 * time.Second
)

// Core is the base of the service and of the commands. Either this process
// started it (Start) and stops it (Close), or a running service started it and
// this process is only connected to it (Attach).
type Core struct {
	Config   Config
	dsn      string   // of Postgres itself
	direct   *sqlx.DB // of Postgres itself, for migrations; DB unless a pooler is before it
	DB       *sqlx.DB
	Lent     *sqlx.DB // connections of DB, for reads and for transactions that wait for other work
	exports  *sqlx.DB // connections of Lent, for reads that last as long as their client likes
	Log      *eventstore.Client
	Binding  *binding.Binding // of the database to the log
	Vault    *vault.Vault
	Clock    *pgclock.Clock
	Hosts    *codehost.Hosts
	Chats    *chat.Poster
	Commands *command.Service
	own      *guard.Own // addresses that no page under test may have

	postgres *pgdev.Server // nil unless started here
	node     *node.Node    // nil unless started here
	// Served says that another process projects the events that are written here.
	Served bool
	// serves says that this process projects them, and settles orphaned debits.
	serves   bool
	shutdown shutdown
}

// TurnOn is the next step where pgpool.CheckServer finds something.
const TurnOn = "turn it on in the server's configuration"

// Start locks the data directory and starts Postgres and the node, unless a URL
// names others. It fails with datadir.ErrInUse when another process has the directory.
func Start(ctx context.Context, cfg Config, log logrus.FieldLogger, metrics prometheus.Registerer) (_ *Core, err error) {
	c, err := startUnbound(ctx, cfg, log, metrics)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	defer c.undoOn(ctx, &err)
	err = c.bind(ctx)
	if cfg.DatabaseURL != "" && err == nil {
		if err := pgpool.CheckServer(ctx, c.DB); err != nil {
			log.WithError(err).Error("the database does not hold what it acknowledges: " + TurnOn)
		}
	}
	if cfg.DatabaseURL != "" && cfg.DatabaseDirectURL == "" && err == nil { // else the pooler has the sessions
		if err := CheckConnections(ctx, c.DB); err != nil {
			log.WithError(err).Warn("the database has too few connections: " + FewerConnections)
		}
	}
	if _, away := errors.AsType[*awayError](err); cfg.EventStoreURL != "" && !away && c.Binding.Problem() == nil && ctx.Err() == nil {
		c.tellMissing(ctx, log)
	}
	return c, err
}

// bind ties the database to the log. A log of the operator's own may not answer yet.
func (c *Core) bind(ctx context.Context) error {
	if c.Config.EventStoreURL == "" {
		return c.Binding.Bind(ctx)
	}
	reach, cancel := context.WithTimeout(ctx, reachLimit)
	defer cancel()
	err := c.Binding.Bind(reach)
	if err != nil && !binding.Foreign(err) && (reach.Err() != nil || domain.IsKind(err, domain.KindUnavailable)) {
		return &awayError{"log", "HUMANQA_EVENTSTORE_URL", err}
	}
	return err
}

// startUnbound is Start for a log that need not be the database's.
func startUnbound(ctx context.Context, cfg Config, log logrus.FieldLogger, metrics prometheus.Registerer) (_ *Core, err error) {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	c := &Core{Config: cfg}
	defer c.undoOn(ctx, &err)

	release, err := datadir.Lock(cfg.DataDir)
	if err != nil {
		return nil, err
	}
	c.shutdown.add("data directory", closeBudget, func(context.Context) error { release(); return nil })
	if err := RefuseHalfRestored(cfg); err != nil {
		return nil, err
	}

	dsn := cfg.directURL()
	if dsn == "" {
		if c.postgres, err = pgdev.Start(ctx, pgdev.Config{Dir: cfg.DataDir, Listen: cfg.PostgresListen,
			Log: log.WithField("part", "postgres")}); err != nil {
			return nil, err
		}
		c.shutdown.add("postgres", postgresBudget, c.postgres.Stop)
		dsn = c.postgres.DSN(pgdev.Database)
	}
	if err := c.openDB(ctx, dsn); err != nil {
		return nil, err
	}
	if err := migrations.Up(ctx, c.direct.DB); err != nil {
		return nil, lacksRights(err)
	}
	if c.postgres != nil {
		if err := generation.ReleaseAll(ctx, c.DB); err != nil {
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
			Connections:    cfg.divide().node,
			CertDir:        NodeCertificates(cfg),
			Log:            log.WithField("part", "node"),
			Registerer:     metrics,
		})
		if errors.Is(err, node.ErrLocked) {
			return nil, lockedLog(err)
		}
		if err != nil {
			return nil, err
		}
		c.shutdown.add("event log", closeBudget, c.node.Close)
	}
	return c, c.connectLog(ctx, socket, log)
}

// NodeCertificates is the folder with the certificates of the embedded node's TLS address.
func NodeCertificates(cfg Config) string { return filepath.Join(cfg.DataDir, "eventstore") }

func (c *Core) openDB(ctx context.Context, dsn string) error {
	reach, cancel := context.WithTimeout(ctx, reachLimit)
	defer cancel()
	name := programName
	if c.Config.DatabaseURL != "" && c.Config.DatabaseDirectURL == "" && !c.Served {
		name = c.Config.processName()
	}
	db, err := pgpool.Open(reach, pgpool.Named(dsn, name))
	if errors.Is(err, pq.ErrSSLNotSupported) {
		return fmt.Errorf(
			"%w: turn TLS on there, or, where the network between is trusted, set HUMANQA_DATABASE_URL to postgres://…/name?sslmode=disable", err)
	}
	if c.Config.DatabaseURL != "" {
		if err == nil {
			err = c.Config.needsSessions(pgpool.CheckSessions(reach, db))
		}
		err = postgresAway(err)
	}
	if err != nil {
		if db != nil {
			_ = db.Close() // nothing is pending on it
		}
		return err
	}
	c.dsn, c.direct = pgpool.Named(dsn, programName), db
	if c.Config.DatabaseDirectURL != "" {
		c.shutdown.add("direct connections", closeBudget, func(context.Context) error { return c.direct.Close() })
		if db, err = c.openShared(reach); err != nil {
			return err
		}
	}
	pool := c.Config.divide().pool
	db.SetMaxOpenConns(pool)
	db.SetMaxIdleConns(pool)
	c.DB, c.Lent = db, pgpool.Lend(db, pool-1)
	c.exports = pgpool.Lend(c.Lent, max((pool-1)/4, 1))
	c.shutdown.add("connections", closeBudget, func(context.Context) error {
		return errors.Join(c.exports.Close(), c.Lent.Close(), db.Close())
	})
	return nil
}

// openShared opens the pool by way of a pooler in transaction mode.
func (c *Core) openShared(ctx context.Context) (*sqlx.DB, error) {
	if err := pgpool.CheckDefaults(ctx, c.Config.DatabaseDirectURL); err != nil {
		return nil, BadSetting("HUMANQA_DATABASE_URL", "%v: reset it (ALTER ROLE … RESET …), or use a pooler in session mode", err)
	}
	db, err := pgpool.OpenShared(ctx, pgpool.Named(c.Config.DatabaseURL, programName))
	return db, postgresAway(err)
}

// connectLog opens the parts that need the log and a migrated database.
func (c *Core) connectLog(ctx context.Context, socket string, log logrus.FieldLogger) (err error) {
	if c.Config.EventStoreURL != "" {
		c.Log, err = eventstore.Open(c.Config.EventStoreURL, log)
	} else {
		c.Log, err = eventstore.OpenSocket(socket, eventstore.Patience, log)
	}
	if err != nil {
		return err
	}
	c.shutdown.add("log's client", closeBudget, func(context.Context) error { return c.Log.Close() })
	if c.Vault, err = vault.Open(ctx, c.Config.Vault(c.DB)); err != nil {
		return err
	}
	c.Log.Authenticate(c.Vault.MACKeys)
	c.Log.SealWith(c.Vault)
	if c.Clock, err = pgclock.Open(ctx, c.DB, log.WithField("part", "clock"), time.Now); err != nil {
		return err
	}
	c.Binding = binding.New(c.DB, c.Log, c.Clock.Now)
	c.Binding.BindKey(func(ctx context.Context) (string, error) {
		verifier, err := c.Signer().Verifier(ctx)
		return auditlog.KeyHash(verifier), err
	})
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	var watch sync.WaitGroup
	watch.Go(func() { c.Clock.Run(running) })
	c.shutdown.add("clock", closeBudget, func(context.Context) error { stop(); watch.Wait(); return nil })
	c.own = ownAddresses(c.Config, c.dsn, c.Config.DatabaseURL)
	if c.postgres != nil {
		c.own = ownAddresses(c.Config, c.dsn, c.postgres.TCPDSN(pgdev.Database))
	}
	writer := c.Config.AI
	writer.Log = log.WithField("part", "ai")
	writer.Pages = guard.Pages{Allow: c.Config.TargetAllow, Own: c.own}
	c.Hosts = codehost.New(codehost.Config{
		GitHubURL: c.Config.GitHubURL, GitLabURL: c.Config.GitLabURL, Allow: c.Config.WebhookAllow,
	})
	c.Chats = chat.New()
	c.Commands = command.New(command.Deps{
		Log:              c.Binding.Guard(),
		Sealer:           c.Vault,
		Tokens:           c.Vault,
		Statuses:         c.Hosts,
		AI:               ai.New(writer),
		Reads:            projections.CommandReads{Reads: projections.NewReads(c.DB)},
		Now:              c.Clock.Now,
		ClaimsPerChecker: claimsPerChecker,
		CloseEvery:       c.Config.CloseEvery,
		CloseFailed: func(accountID string, err error) {
			log.WithFields(logrus.Fields{"accountId": accountID, logrus.ErrorKey: err}).
				Warn("the ledger could not be closed: its account's first command after a restart takes longer; tried again in a minute")
		},
	})
	c.shutdown.add("commands", closeBudget, func(context.Context) error { c.Commands.Drain(); return nil })
	return nil
}

// undoOn closes the parts of a start that failed.
func (c *Core) undoOn(ctx context.Context, err *error) {
	if *err != nil {
		*err = errors.Join(*err, c.Close(ctx))
	}
}

// Close stops the parts that were started here, in order, whether or not ctx has ended.
func (c *Core) Close(ctx context.Context) error {
	return c.shutdown.run(ctx)
}

// WaitVisible lets a command end once the running service shows its effect, so
// that a key works as soon as it is printed. It is a courtesy: the
// write is done.
func (c *Core) WaitVisible(ctx context.Context, at domain.Position) {
	if !c.Served {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, VisibleLimit)
	defer cancel()
	silent := logrus.New()
	silent.SetOutput(io.Discard)
	// It only reads checkpoints: without Run it needs no source of events.
	_ = consumer.New(c.DB, nil, silent, projections.All()...).WaitFor(ctx, at) // late is not wrong
}

// catchUpWithin is how long a list waits for the read models. They may have a
// crash to catch up with.
const catchUpWithin = time.Minute

// ErrBehind says that read models have not come as far as they should.
var ErrBehind = errors.New("the read models are behind: start the service, or see humanqa projections list")

// CatchUp brings the read models, and the further consumers, up to a position. ErrBehind
// says that one does not come there.
func (c *Core) CatchUp(ctx context.Context, logger *logrus.Logger, to domain.Position, more ...consumer.Consumer) (err error) {
	log := logging.Quiet(logger)
	feed := eventstore.NewFeed(c.Log, log)
	all := append(projections.All(), more...)
	models := consumer.New(c.DB, feed, log, all...)
	if err := models.Prepare(ctx); err != nil {
		return err
	}
	workers, running := newWorkerGroup(ctx)
	var stop shutdown
	stop.add("feed", workerBudget, workers.start("feed", feed.Run))
	stop.add("projections", workerBudget, workers.start("projections", models.Run))
	defer func() { err = errors.Join(err, stop.run(ctx)) }()
	limited, cancel := context.WithTimeout(running, catchUpWithin)
	defer cancel()
	err = models.WaitFor(limited, to)
	for _, one := range all { // writes do not wait for a lazy one
		if _, lazy := one.(consumer.Lazy); lazy && err == nil {
			err = models.CatchUp(limited, one.Name())
		}
	}
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case running.Err() != nil:
		return context.Cause(running)
	case err != nil:
		return fmt.Errorf("%w: %w", ErrBehind, err)
	}
	return nil
}

// FindingLine is one line of eventstore check.
func FindingLine(f eventstore.Finding) string {
	if f.OK {
		return fmt.Sprintf("ok    %-17s  %s", f.What, logging.OneLine(f.Detail))
	}
	return fmt.Sprintf("FAIL  %-17s  %s: %s", f.What, logging.OneLine(f.Detail), f.Hint)
}

// tellMissing logs at the start the rights and limits that an operator's log
// lacks, line by line as eventstore check does.
func (c *Core) tellMissing(ctx context.Context, log logrus.FieldLogger) {
	findings := c.Log.Inspect(ctx)
	if !slices.ContainsFunc(findings, func(f eventstore.Finding) bool { return !f.OK }) {
		return
	}
	for _, f := range findings {
		if line := FindingLine(f); f.OK {
			log.Info(line)
		} else {
			log.Error(line)
		}
	}
}
