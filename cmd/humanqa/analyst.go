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
		exists, err := roleExists(ctx, tx, role)
		if err != nil {
			return err
		}
		verb := "CREATE ROLE "
		if exists {
			verb = "ALTER ROLE "
		}
		if _, err := tx.ExecContext(ctx, verb+pq.QuoteIdentifier(role)+
			" LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION CONNECTION LIMIT 5 PASSWORD "+pq.QuoteLiteral(password)); err != nil {
			return err
		}
		return boundAnalyst(ctx, tx, role)
	})
}

func roleExists(ctx context.Context, tx *sqlx.Tx, role string) (exists bool, err error) {
	err = tx.GetContext(ctx, &exists, `SELECT EXISTS (SELECT 1 FROM pg_roles WHERE rolname = $1)`, role)
	return exists, err
}

// boundAnalyst says what an analyst's role may, and for how long.
func boundAnalyst(ctx context.Context, tx *sqlx.Tx, role string) error {
	name := pq.QuoteIdentifier(role)
	statements := []string{
		"GRANT " + pgdev.Analysts + " TO " + name,
		"ALTER ROLE " + name + " SET default_transaction_read_only = on",
		"ALTER ROLE " + name + " SET statement_timeout = '5min'",
		"ALTER ROLE " + name + " SET idle_in_transaction_session_timeout = '1min'", // it keeps rows that are gone
		"ALTER ROLE " + name + " SET search_path = analytics",
		"GRANT USAGE ON SCHEMA analytics TO " + name,
		"GRANT SELECT ON ALL TABLES IN SCHEMA analytics TO " + name,
		"ALTER DEFAULT PRIVILEGES IN SCHEMA analytics GRANT SELECT ON TABLES TO " + name,
	}
	grouped, err := roleExists(ctx, tx, pgdev.Analysts)
	if err != nil {
		return err
	}
	if !grouped {
		statements = append([]string{"CREATE ROLE " + pgdev.Analysts + " NOLOGIN"}, statements...)
	}
	for _, statement := range statements {
		if _, err := tx.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

const analystRolesSQL = `
SELECT rolname
FROM pg_roles
WHERE rolname LIKE 'analyst\_%'
  AND rolcanlogin`

// boundAnalysts gives roles that an older version made the bounds of today.
func boundAnalysts(ctx context.Context, db *sqlx.DB) error {
	return pgpool.InTxDurable(ctx, db, func(tx *sqlx.Tx) error {
		var roles []string
		if err := tx.SelectContext(ctx, &roles, analystRolesSQL); err != nil {
			return fmt.Errorf("list the analysts: %w", err)
		}
		for _, role := range roles {
			if err := boundAnalyst(ctx, tx, role); err != nil {
				return fmt.Errorf("bound the role %s: %w", role, err)
			}
		}
		return nil
	})
}

// analystDSN is where the analyst finds the database: the embedded one at
// HUMANQA_POSTGRES_LISTEN, else over loopback TCP.
func analystDSN(cfg Config, role, password string) (string, error) {
	address := cfg.DatabaseURL
	if address == "" {
		server, err := pgdev.Running(cfg.DataDir)
		switch {
		case err != nil:
			return "", err
		case server.Silent():
			return "", fmt.Errorf("port %d of the embedded Postgres is taken by another process: free it and start the service again", server.Port)
		case cfg.PostgresListen == "":
			address = server.TCPDSN(pgdev.Database)
		default:
			if address, err = server.TLSDSN(pgdev.Database, cfg.PostgresListen); err != nil {
				return "", err
			}
		}
	}
	u, err := url.Parse(address)
	if err != nil {
		return "", errors.New("HUMANQA_DATABASE_URL is no postgres://… address")
	}
	u.User = url.UserPassword(role, password)
	return u.String(), nil
}
