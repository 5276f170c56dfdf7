package service

import (
	"context"
	"errors"

	"github.com/sirupsen/logrus"

	"humanqa/internal/datadir"
	"humanqa/internal/pgdev"
)

// Postgres is the embedded server. This process runs it only if no other does.
type Postgres struct {
	pgdev.Address

	shutdown shutdown
}

// OpenPostgres joins the embedded server of a running service, or starts it.
func OpenPostgres(ctx context.Context, cfg Config, log logrus.FieldLogger) (*Postgres, error) {
	return joinOrStart(ctx, cfg,
		func() (*Postgres, error) {
			address, err := pgdev.Running(cfg.DataDir)
			return &Postgres{Address: address}, err
		},
		func() (*Postgres, error) {
			release, err := datadir.Lock(cfg.DataDir)
			if err != nil {
				return nil, err
			}
			if err := RefuseHalfRestored(cfg); err != nil {
				release()
				return nil, err
			}
			return StartPostgres(ctx, cfg, log, release)
		})
}

// StartPostgres is for a caller that has locked the data directory; Close releases it.
func StartPostgres(ctx context.Context, cfg Config, log logrus.FieldLogger, release func()) (*Postgres, error) {
	p := &Postgres{}
	p.shutdown.add("data directory", closeBudget, func(context.Context) error { release(); return nil })
	server, err := pgdev.Start(ctx, pgdev.Config{Dir: cfg.DataDir, Log: log.WithField("part", "postgres")})
	if err != nil {
		return nil, errors.Join(err, p.shutdown.run(ctx))
	}
	p.shutdown.add("postgres", postgresBudget, server.Stop)
	p.Address = server.Address
	return p, nil
}

// Close stops the server if it was started here.
func (p *Postgres) Close(ctx context.Context) error { return p.shutdown.run(ctx) }
