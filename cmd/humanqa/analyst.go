package main

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"
	"regexp"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"humanqa/internal/pgdev"
	"humanqa/internal/pgpool"
	"humanqa/projections/analytics"
)

type analystCreateCmd struct {
	Name string `required:"" help:"Lower-case letters, digits and _; the role is analyst_NAME."`
}

var analystName = regexp.MustCompile(`^[a-z][a-z0-9_]{0,40}$`)

// Validate is called by kong.
func (c *analystCreateCmd) Validate() error {
	if !analystName.MatchString(c.Name) {
		return errors.New("--name must be lower-case letters, digits and _, and begin with a letter")
	}
	return nil
}

// Run makes a role of Postgres that reads schema analytics and nothing else. One
// that is there gets a new password.
func (c *analystCreateCmd) Run(ctx context.Context, a *app) error {
	return a.withCore(ctx, func(ctx context.Context, core *core) error {
		if err := analytics.Prepare(ctx, core.db); err != nil {
			return fmt.Errorf("%w: start humanqa serve of this version once", err)
		}
		var random [24]byte
		if _, err := rand.Read(random[:]); err != nil {
			return err
		}
		role, password := "analyst_"+c.Name, base64.RawURLEncoding.EncodeToString(random[:])
		if err := makeAnalyst(ctx, core.db, role, password); err != nil {
			return fmt.Errorf("make the role %s: %w", role, err)
		}
		dsn, err := analystDSN(a.cfg, role, password)
		if err != nil {
			return err
		}
		return a.print(struct {
			Role string `json:"role"`
			URL  string `json:"url"`
		}{role, dsn}, "role  %s\nurl   %s   (shown once)\npsql '%s' -c 'SELECT * FROM analytics.jobs LIMIT 5'", role, dsn, dsn)
	})
}

func makeAnalyst(ctx context.Context, db *sqlx.DB, role, password string) error {
	return pgpool.InTxDurable(ctx, db, func(tx *sqlx.Tx) error {
		var exists bool
		if err := tx.GetContext(ctx, &exists, `SELECT EXISTS (SELECT 1 FROM pg_roles WHERE rolname = $1)`, role); err != nil {
			return err
		}
		name, verb := pq.QuoteIdentifier(role), "CREATE ROLE "
		if exists {
			verb = "ALTER ROLE "
		}
		for _, statement := range []string{
			verb + name + " LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION CONNECTION LIMIT 5 PASSWORD " + pq.QuoteLiteral(password),
			"ALTER ROLE " + name + " SET default_transaction_read_only = on",
			"ALTER ROLE " + name + " SET statement_timeout = '5min'",
			"ALTER ROLE " + name + " SET search_path = analytics",
			"GRANT USAGE ON SCHEMA analytics TO " + name,
			"GRANT SELECT ON ALL TABLES IN SCHEMA analytics TO " + name,
			"ALTER DEFAULT PRIVILEGES IN SCHEMA analytics GRANT SELECT ON TABLES TO " + name,
		} {
			if _, err := tx.ExecContext(ctx, statement); err != nil {
				return err
			}
		}
		return nil
	})
}

// analystDSN is where the analyst finds the database: the embedded one over
// loopback TCP.
func analystDSN(cfg Config, role, password string) (string, error) {
	address := cfg.DatabaseURL
	if address == "" {
		server, err := pgdev.Running(cfg.DataDir)
		if err != nil {
			return "", err
		}
		address = server.TCPDSN(pgdev.Database)
	}
	u, err := url.Parse(address)
	if err != nil {
		return "", errors.New("HUMANQA_DATABASE_URL is no postgres://… address")
	}
	u.User = url.UserPassword(role, password)
	return u.String(), nil
}
