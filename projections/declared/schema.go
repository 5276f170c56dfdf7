package declared

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"humanqa/eventstore/consumer"
	"humanqa/internal/pgpool"
)

// Roles belong to the whole server, so the name has the database's number.
const roleNameSQL = `
SELECT 'declared_' || oid || '_' || $1::text
FROM pg_database
WHERE datname = current_database()`

const makeRoleSQL = `
SELECT NOT EXISTS (SELECT FROM pg_roles WHERE rolname = $1) AS missing,
    rolsuper AS super,
    rolsuper OR rolcreaterole AS may
FROM pg_roles
WHERE rolname = current_user`

// ErrNoRoles refuses declared projections in a database where the service may not make roles.
var ErrNoRoles = errors.New(
	`declared projections need roles of their own, and the service's role lacks CREATEROLE: docs/operations.md ("Your own Postgres")`)

// makeRole makes the role that runs the projection, unless it is there. Only a superuser may
// become the role without being a member.
func (p *Projection) makeRole(ctx context.Context, tx *sqlx.Tx) error {
	is, err := pgpool.One[struct{ Missing, Super, May bool }](ctx, tx, "the role "+p.role, makeRoleSQL, p.role)
	switch {
	case err != nil:
		return err
	case is.Missing && !is.May:
		return ErrNoRoles
	case is.Missing:
		err = pgpool.Exec(ctx, tx, "make the role "+p.role, "CREATE ROLE "+p.role+" NOLOGIN")
	}
	if err != nil || is.Super {
		return err
	}
	return pgpool.Exec(ctx, tx, "become a member of "+p.role, "GRANT "+p.role+" TO CURRENT_USER")
}

const (
	beginMakeSQL = `
GRANT USAGE, CREATE ON SCHEMA {schema} TO {role};
SET LOCAL ROLE {role};
SET LOCAL search_path = {schema};
SET LOCAL statement_timeout = '10s'`

	endMakeSQL = `
GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO SESSION_USER;
RESET ROLE;
SET LOCAL search_path TO DEFAULT;
SET LOCAL statement_timeout TO DEFAULT;
REVOKE CREATE ON SCHEMA {schema} FROM {role}`

	beginFunction = "CREATE FUNCTION apply() RETURNS void LANGUAGE sql BEGIN ATOMIC\n"
	endFunction   = "\n;\nEND"
)

// Make implements generation.Maker: it makes the tables and the function, as the role.
func (p *Projection) Make(ctx context.Context, tx *sqlx.Tx, schema string) error {
	if err := p.makeRole(ctx, tx); err != nil {
		return err
	}
	in := func(query string) string { return consumer.In(schema, strings.ReplaceAll(query, "{role}", p.role)) }
	if err := pgpool.Exec(ctx, tx, "give "+p.role+" its schema", in(beginMakeSQL)); err != nil {
		return err
	}
	for _, s := range append([]statement{{sql: batchSQL}}, p.tables...) {
		if err := define(ctx, tx, "tables", "", s, ""); err != nil {
			return err
		}
	}
	if err := define(ctx, tx, "apply", beginFunction, p.apply, endFunction); err != nil {
		return err
	}
	if p.Serve.Table != "" {
		columns := strings.Join(append(append([]string{"account_id"}, p.Serve.Columns...), p.Serve.Order...), ", ")
		if err := pgpool.Exec(ctx, tx, "serve", "SELECT "+columns+" FROM "+p.Serve.Table+" LIMIT 0"); err != nil {
			return err
		}
	}
	if err := pgpool.Exec(ctx, tx, "take the right to make tables from "+p.role, in(endMakeSQL)); err != nil {
		return err
	}
	return refuseVolatile(ctx, tx, schema)
}

// define runs a statement that makes an object. It is prepared, and Postgres prepares no two
// statements at once: so nothing can follow the one that is meant.
func define(ctx context.Context, tx *sqlx.Tx, field, before string, s statement, behind string) error {
	made, err := tx.PrepareContext(ctx, before+s.sql+behind)
	if err == nil {
		defer func() { _ = made.Close() }() // the transaction's end closes it, too
		_, err = made.ExecContext(ctx)
	}
	var refused *pq.Error
	if !errors.As(err, &refused) {
		return err
	}
	place, _ := strconv.Atoi(refused.Position) // 0: it is not known
	place -= utf8.RuneCountInString(before) + 1
	line := s.line
	if text := []rune(s.sql); place > 0 {
		line += strings.Count(string(text[:min(place, len(text))]), "\n")
	}
	return fmt.Errorf("line %d: %s: %w", line, field, err)
}

// volatileSQL names the functions, in the trees of the function and of the tables' expressions,
// that do not give the same value for the same rows. An operator or an aggregate names its
// function, too.
const volatileSQL = `
WITH trees (tree) AS (
    SELECT prosqlbody::text FROM pg_proc WHERE pronamespace = to_regnamespace($1)
    UNION ALL
    SELECT d.adbin::text FROM pg_attrdef d JOIN pg_class c ON c.oid = d.adrelid WHERE c.relnamespace = to_regnamespace($1)
    UNION ALL
    SELECT conbin::text FROM pg_constraint WHERE connamespace = to_regnamespace($1)
)
SELECT f.proname
FROM trees
CROSS JOIN regexp_matches(tree, ':[a-z]*(?:funcid|fnoid) ([0-9]+)', 'g') m
JOIN pg_proc f ON f.oid = m[1]::oid
WHERE f.provolatile = 'v'
   OR f.proname IN ('now', 'transaction_timestamp', 'statement_timestamp')
UNION
SELECT 'current_timestamp or the like'
FROM trees
WHERE tree LIKE '%{SQLVALUEFUNCTION %'
UNION
SELECT 'nextval'
FROM pg_attribute a
JOIN pg_class c ON c.oid = a.attrelid
WHERE c.relnamespace = to_regnamespace($1)
  AND a.attidentity <> ''
ORDER BY 1`

func refuseVolatile(ctx context.Context, tx *sqlx.Tx, schema string) error {
	names, err := pgpool.List[string](ctx, tx, "the functions that it calls", volatileSQL, schema)
	if err != nil || len(names) == 0 {
		return err
	}
	return fmt.Errorf("it calls %s: rows must follow from the events alone, so take times from them", strings.Join(names, ", "))
}
