package pgpool

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"
)

// A setting of the server, the database, the role or the address may break what the service
// promises. So each session gets its own settings behind its connect, in one statement.
// Poolers refuse them as startup parameters. A server that does not know a setting is left alone.
//
// Of synchronous_commit only "off" is replaced: operators of stand-bys choose how far a commit
// waits. A session keeps it for its life, whatever the server reloads. The search path stays
// where it leads to the tables of the service.
const sessionSQL = `
SELECT set_config('synchronous_commit', coalesce(nullif(current_setting('synchronous_commit'), 'off'), 'on'), false)
UNION ALL
SELECT set_config('search_path', '"$user", public', false)
WHERE to_regclass('projection_checkpoints') IS NULL
UNION ALL
SELECT set_config(name, value, false)
FROM ` + wantedSQL + `
WHERE current_setting(name, true) <> value`

const wantedSQL = `(VALUES
  ('default_transaction_read_only', 'off'),
  ('default_transaction_isolation', 'read committed'),
  ('statement_timeout', '0'),
  ('transaction_timeout', '0'),
  ('lock_timeout', '0'),
  ('idle_session_timeout', '0'),
  ('idle_in_transaction_session_timeout', '0'),
  ('client_encoding', 'UTF8'),
  ('timezone', 'UTC')) AS wanted (name, value)`

// Connector makes connections whose sessions have the service's settings, and those that more
// sets: statements without parameters, each with its semicolon.
func Connector(config pq.Config, dial pq.Dialer, more string) (driver.Connector, error) {
	followPrimary(&config)
	inner, err := pq.NewConnectorConfig(config)
	if err != nil {
		return nil, fmt.Errorf("read the database url: %w", err)
	}
	if dial != nil {
		inner.Dialer(dial)
	}
	if len(config.Multi) == 0 {
		return sessions{inner, more + sessionSQL}, nil
	}
	return sessions{severalHosts{inner}, more + sessionSQL}, nil
}

type sessions struct {
	driver.Connector
	settings string
}

// Connect implements driver.Connector.
func (s sessions) Connect(ctx context.Context) (driver.Conn, error) {
	opened, err := s.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	on, ok := opened.(driver.ExecerContext)
	if !ok {
		return nil, errors.Join(fmt.Errorf("the driver's %T lacks methods that this package needs", opened), opened.Close())
	}
	if _, err := on.ExecContext(ctx, s.settings, nil); err != nil {
		return nil, errors.Join(fmt.Errorf("set up a session: %w", err), opened.Close())
	}
	return opened, nil
}

// unsafeSQL reads the settings that only the server's configuration can change.
const unsafeSQL = `
SELECT name
FROM pg_settings
WHERE name IN ('fsync', 'full_page_writes')
  AND setting = 'off'
ORDER BY name`

// CheckServer names the settings of the server with which a crash of its machine may lose or
// damage what was committed. A session cannot change them.
func CheckServer(ctx context.Context, db *sqlx.DB) error {
	off, err := List[string](ctx, db, "the server's settings", unsafeSQL)
	if err != nil || len(off) == 0 {
		return err
	}
	return fmt.Errorf("the server has %s off: a crash of its machine may lose acknowledged work", strings.Join(off, " and "))
}
