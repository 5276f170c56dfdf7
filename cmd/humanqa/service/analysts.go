package service

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"humanqa/internal/pgdev"
	"humanqa/internal/pgpool"
)

const roleExistsSQL = `
SELECT EXISTS (
    SELECT
    FROM pg_roles
    WHERE rolname = $1)`

// MakeAnalyst makes a role that reads schemas analytics and declared, or gives it a new password.
func MakeAnalyst(ctx context.Context, db *sqlx.DB, role, password string) error {
	return pgpool.InTx(ctx, db, func(tx *sqlx.Tx) error {
		exists, err := pgpool.One[bool](ctx, tx, "the roles", roleExistsSQL, role)
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

// An idle transaction keeps rows that are gone. The service's role becomes a member where it
// needs that to see and end the analyst's sessions. A superuser does not: a member of Analysts
// may come from other machines.
const boundAnalystSQL = `
DO $bound$
BEGIN
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = '` + pgdev.Analysts + `') THEN
        CREATE ROLE ` + pgdev.Analysts + ` NOLOGIN;
    END IF;
    IF NOT (SELECT rolsuper FROM pg_roles WHERE rolname = current_user) THEN
        GRANT {role} TO CURRENT_USER;
    END IF;
END
$bound$;
GRANT ` + pgdev.Analysts + ` TO {role};
ALTER ROLE {role} SET default_transaction_read_only = on;
ALTER ROLE {role} SET statement_timeout = '5min';
ALTER ROLE {role} SET idle_in_transaction_session_timeout = '1min';
ALTER ROLE {role} SET search_path = analytics, declared;
GRANT USAGE ON SCHEMA analytics, declared TO {role};
GRANT SELECT ON ALL TABLES IN SCHEMA analytics, declared TO {role};
ALTER DEFAULT PRIVILEGES IN SCHEMA analytics, declared GRANT SELECT ON TABLES TO {role};`

// boundAnalyst says what an analyst's role may, and for how long.
func boundAnalyst(ctx context.Context, tx *sqlx.Tx, role string) error {
	return pgpool.Exec(ctx, tx, "bound the role "+role, strings.ReplaceAll(boundAnalystSQL, "{role}", pq.QuoteIdentifier(role)))
}

const analystRolesSQL = `
SELECT rolname
FROM pg_roles
WHERE rolname LIKE 'analyst\_%'
  AND rolcanlogin`

// boundAnalysts gives roles of older versions the bounds of this one.
func boundAnalysts(ctx context.Context, db *sqlx.DB) error {
	return pgpool.InTx(ctx, db, func(tx *sqlx.Tx) error {
		roles, err := pgpool.List[string](ctx, tx, "the analysts", analystRolesSQL)
		for _, role := range roles {
			if err == nil {
				err = boundAnalyst(ctx, tx, role)
			}
		}
		return err
	})
}

const (
	// analystLimit is how long a transaction of an analyst lasts at most. A role may change
	// its own statement_timeout, which ends a statement before.
	analystLimit = 6 * time.Minute
	// analystsEvery is how often the service looks for longer ones.
	analystsEvery = 15 * time.Second
)

const endAnalystsSQL = `
SELECT pg_terminate_backend(pid)
FROM pg_stat_activity
WHERE usename LIKE 'analyst\_%'
  AND datname = current_database()
  AND xact_start < clock_timestamp() - $1 * interval '1 millisecond'`

// EndAnalysts ends the sessions of analysts with a transaction of that age.
func EndAnalysts(ctx context.Context, db *sqlx.DB, limit time.Duration) error {
	return pgpool.Exec(ctx, db, "end long transactions of analysts", endAnalystsSQL, limit.Milliseconds())
}

// AnalystDSN is where the analyst finds the database: the embedded one at
// HUMANQA_POSTGRES_LISTEN, else over loopback TCP.
func AnalystDSN(cfg Config, role, password string) (string, error) {
	address := cfg.DatabaseURL
	if address == "" {
		server, err := pgdev.Running(cfg.DataDir)
		switch {
		case err != nil:
			return "", err
		case server.Silent():
			return "", fmt.Errorf("port %d of the embedded Postgres is taken by another process: free it and start the service again",
				server.Port)
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
