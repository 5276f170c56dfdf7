// Package twin is POST /v1/jobs as most services would build it: rows in
// Postgres, changed in place, and an outbox for subscribers.
// The HTTP stack is the service's own (package httpapi: routing, key lookup,
// decoding, validation, answers, logs); only what stands behind it differs.
//
// A submission is one transaction: lock the balance row, lower it, insert the
// job, insert the outbox row. Every statement is prepared. It is a comparison
// partner, with neither idempotency of its own nor refunds.
package twin

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/sirupsen/logrus"

	"humanqa/domain"
	"humanqa/eventstore/consumer"
	"humanqa/httpapi"
	"humanqa/httpapi/admit"
	v1 "humanqa/httpapi/v1"
	"humanqa/httpapi/wire"
	"humanqa/internal/pgdev"
	"humanqa/internal/pgpool"
	"humanqa/internal/vault"
	"humanqa/migrations"
	"humanqa/projections"
)

const (
	// connections is the service's own share of Postgres.
	connections = 48
	drainFor    = 15 * time.Second
	stopLimit   = 30 * time.Second
)

// Config says where the twin lives.
type Config struct {
	Dir      string // must exist
	Addr     string
	Accounts int
	Credits  domain.Credits // of each account
	Log      *logrus.Logger
}

// Serve runs the twin until ctx ends. ready gets an API key for each account
// once requests are served.
func Serve(ctx context.Context, c Config, ready func(keys []string) error) (err error) {
	pg, err := pgdev.Start(ctx, pgdev.Config{Dir: c.Dir, Log: c.Log})
	if err != nil {
		return err
	}
	defer func() {
		limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopLimit)
		defer cancel()
		err = errors.Join(err, pg.Stop(limit))
	}()
	db, err := pgpool.Open(ctx, pg.DSN(pgdev.Database))
	if err != nil {
		return fmt.Errorf("connect to postgres: %w", err)
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	db.SetMaxOpenConns(connections)
	db.SetMaxIdleConns(connections)

	s, err := newStore(ctx, db, c.Log)
	if err != nil {
		return err
	}
	keys := make([]string, c.Accounts)
	for i := range keys {
		if keys[i], err = s.open(ctx, c.Credits); err != nil {
			return err
		}
	}
	secrets, err := vault.Open(ctx, vault.Config{KeyFile: filepath.Join(c.Dir, "key"), DB: db})
	if err != nil {
		return err
	}
	api := httpapi.New(httpapi.Deps{
		Shared: v1.Shared{
			Submits: s, Reads: projections.NewReads(db), DB: db, Lent: db,
			Head: func(context.Context) (domain.Position, error) { return domain.Position{}, nil },
			Log:  c.Log.WithField("part", "api"), Now: time.Now, BaseURL: "http://" + c.Addr,
		},
		// Committed rows are visible at once.
		WaitFor:       func(context.Context, domain.Position) error { return nil },
		FeedShown:     func(context.Context) error { return nil },
		WebhooksShown: func(context.Context) error { return nil },
		Ready:         func(context.Context) []httpapi.Problem { return nil },
		Vault:         secrets, Spool: wire.NewSpool(""),
		// Requests are counted like the service's, but the limit is never reached.
		RateLimit: admit.MaxRateLimit,
	})
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", c.Addr)
	if err != nil {
		return err
	}
	if err := ready(keys); err != nil {
		return errors.Join(err, l.Close())
	}
	return httpapi.Serve(ctx, httpapi.NewServer(api, c.Log), l, drainFor)
}

// prepareSchema makes the service's schema, because the HTTP stack and the key
// lookup read it, and the twin's own tables beside it.
func prepareSchema(ctx context.Context, db *sqlx.DB, log logrus.FieldLogger) error {
	if err := migrations.Up(ctx, db.DB); err != nil {
		return err
	}
	if err := consumer.New(db, nil, log, projections.All()...).Prepare(ctx); err != nil {
		return err
	}
	if _, err := db.ExecContext(ctx, schemaSQL); err != nil {
		return fmt.Errorf("create the twin's tables: %w", err)
	}
	return nil
}
