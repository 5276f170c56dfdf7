package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/jmoiron/sqlx"
	_ "github.com/lib/pq" // the driver named "postgres"

	"humanqa/eventstore"
	"humanqa/eventstore/node"
	"humanqa/internal/pgdev"
	"humanqa/migrations"
)

// connections are enough for 256 writers with one connection each, and for the embedded
// node beside them.
const connections = 320

// startPostgres starts a durable server of its own for one part, as the service
// does, but for the number of connections.
func (b *bench) startPostgres(ctx context.Context, name string, stops *stops) (*pgdev.Server, error) {
	dir, err := b.folder(name)
	if err != nil {
		return nil, err
	}
	config := pgdev.Config{Dir: dir, Log: b.log}
	first, err := pgdev.Start(ctx, config)
	if err != nil {
		return nil, err
	}
	// Postgres reads the setting at its next start.
	err = execute(ctx, first.DSN(pgdev.Database), fmt.Sprintf("ALTER SYSTEM SET max_connections = %d", connections))
	if err = errors.Join(err, first.Stop(ctx)); err != nil {
		return nil, err
	}
	pg, err := pgdev.Start(ctx, config)
	if err != nil {
		return nil, err
	}
	stops.add(pg.Stop)
	return pg, nil
}

// execute runs one statement on a connection of its own.
func execute(ctx context.Context, dsn, statement string) error {
	db, err := sql.Open("postgres", dsn)
	if err != nil {
		return err
	}
	_, err = db.ExecContext(ctx, statement)
	return errors.Join(err, db.Close())
}

// openDB opens a pool of a fixed size.
func openDB(ctx context.Context, dsn string, size int, stops *stops) (*sqlx.DB, error) {
	db, err := sqlx.ConnectContext(ctx, "postgres", dsn)
	if err != nil {
		return nil, fmt.Errorf("connect to postgres: %w", err)
	}
	db.SetMaxOpenConns(size)
	db.SetMaxIdleConns(size)
	stops.add(func(context.Context) error { return db.Close() })
	return db, nil
}

// startLog migrates the server's default database, starts an embedded node on
// it, and connects to that as the service does: through the official client,
// over a unix socket.
func (b *bench) startLog(ctx context.Context, pg *pgdev.Server, name string, stops *stops) (*eventstore.Client, *sqlx.DB, error) {
	dsn := pg.DSN(pgdev.Database)
	db, err := openDB(ctx, dsn, 48, stops)
	if err != nil {
		return nil, nil, err
	}
	if err := migrations.Up(ctx, db.DB); err != nil {
		return nil, nil, err
	}
	socket := filepath.Join(b.work, name+".sock")
	n, err := node.Start(ctx, node.Config{DSN: dsn, Socket: socket, Log: b.log})
	if err != nil {
		return nil, nil, err
	}
	stops.add(n.Close)
	client, err := eventstore.OpenSocket(socket, eventstore.Patience, b.log)
	if err != nil {
		return nil, nil, err
	}
	stops.add(func(context.Context) error { return client.Close() })
	return client, db, nil
}
