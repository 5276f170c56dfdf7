package service

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/sirupsen/logrus"

	"humanqa/internal/backoff"
	"humanqa/internal/datadir"
	"humanqa/internal/pgdev"
	"humanqa/migrations"
)

// Attach connects to the servers that a running service has started, or that the
// URLs name.
func Attach(ctx context.Context, cfg Config, log logrus.FieldLogger) (_ *Core, err error) {
	c := &Core{Config: cfg, Served: true}
	defer c.undoOn(ctx, &err)

	dsn := cfg.directURL()
	if dsn == "" {
		server, err := pgdev.Running(cfg.DataDir)
		if err != nil {
			return nil, err
		}
		dsn = server.DSN(pgdev.Database)
	}
	socket := SocketPath(cfg.DataDir)
	if cfg.EventStoreURL == "" {
		// The node listens only once the schema is there.
		if _, err := os.Stat(socket); err != nil {
			return nil, fmt.Errorf("reach the log of the running service: %w", err)
		}
	}
	if err := c.openDB(ctx, dsn); err != nil {
		return nil, err
	}
	if err := migrations.Check(ctx, c.DB.DB); err != nil {
		return nil, lacksRights(err)
	}
	if err := c.connectLog(ctx, socket, log); err != nil {
		return nil, err
	}
	return c, c.refuseStrangeLog(ctx)
}

// lookLimit is how long a command that joins a running service looks at its log. A log
// that does not answer may be the reason for the command.
const lookLimit = 5 * time.Second

// refuseStrangeLog fails only where the log is known not to be the database's.
func (c *Core) refuseStrangeLog(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, lookLimit)
	defer cancel()
	_ = c.Binding.Check(ctx)
	return c.Binding.Refuse()
}

// Open serves the commands: a running service is joined, a stopped one is
// started without its workers for as long as the command takes.
func Open(ctx context.Context, cfg Config, log logrus.FieldLogger) (*Core, error) {
	if cfg.DatabaseURL != "" && cfg.EventStoreURL != "" {
		if !HasData(cfg) {
			return nil, NoData(cfg)
		}
		return Attach(ctx, cfg, log)
	}
	return joinOrStart(ctx, cfg,
		func() (*Core, error) { return Attach(ctx, cfg, log) },
		func() (*Core, error) { return Start(ctx, cfg, log, nil) })
}

// joinOrStart starts the servers of a data directory, or joins the process that
// runs them already. It waits while that process starts or stops, and refuses
// where there is no data.
func joinOrStart[T any](ctx context.Context, cfg Config, join, start func() (T, error)) (none T, _ error) {
	patience, cancel := context.WithTimeout(ctx, handoverLimit)
	defer cancel()
	for {
		err := NoData(cfg)
		switch {
		case HasData(cfg):
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
		switch {
		case backoff.Wait(patience, 200*time.Millisecond) == nil:
		case ctx.Err() != nil:
			return none, ctx.Err()
		default:
			return none, fmt.Errorf("%w; no service answers there either: %w", err, joinErr)
		}
	}
}

// OpenHome opens this installation's own Postgres and node, whatever log the
// service is set to use: a stopped one is started without its workers.
func OpenHome(ctx context.Context, cfg Config, log logrus.FieldLogger) (*Core, error) {
	cfg.EventStoreURL = ""
	home, err := joinOrStart(ctx, cfg,
		func() (*Core, error) { return Attach(ctx, cfg, log) },
		func() (*Core, error) { return startUnbound(ctx, cfg, log, nil) })
	if errors.Is(err, datadir.ErrInUse) && (errors.Is(err, fs.ErrNotExist) || errors.Is(err, pgdev.ErrNotRunning)) {
		return nil, fmt.Errorf("a service of this installation runs, on a log that is not embedded: stop it first: %w", err)
	}
	return home, err
}
