package generation

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"humanqa/internal/pgpool"
)

// Readers, ours and an operator's own, know only the views. The rights on them, and
// the views of others that depend on them, must outlive a rebuild. A view that keeps
// all its columns is replaced in place, which keeps them. A view that has lost a column,
// or a column's type, has to be made anew with all views that depend on it.

// obstacleError is the reason why a built generation cannot serve.
type obstacleError struct{ what string }

func (e *obstacleError) Error() string { return e.what }

// changedColumnsSQL names the view's columns that the table lacks, or has in
// another type.
const changedColumnsSQL = `
SELECT v.attname
FROM pg_attribute v
LEFT JOIN pg_attribute t
  ON t.attrelid = to_regclass($2)
 AND t.attname = v.attname
 AND t.attnum > 0
 AND NOT t.attisdropped
WHERE v.attrelid = to_regclass($1)
  AND v.attnum > 0
  AND (t.attname IS NULL OR t.atttypid <> v.atttypid OR t.atttypmod <> v.atttypmod OR t.attcollation <> v.attcollation)`

const columnsSQL = `
SELECT attname
FROM pg_attribute
WHERE attrelid = to_regclass($1)
  AND attnum > 0
  AND NOT attisdropped
ORDER BY attnum`

const viewsOfSQL = `
SELECT DISTINCT s.nspname || '.' || v.relname
FROM pg_class v
JOIN pg_namespace s ON s.oid = v.relnamespace
JOIN pg_rewrite r ON r.ev_class = v.oid
JOIN pg_depend d ON d.classid = 'pg_rewrite'::regclass AND d.objid = r.oid AND d.refclassid = 'pg_class'::regclass
JOIN pg_class t ON t.oid = d.refobjid
JOIN pg_namespace n ON n.oid = t.relnamespace
WHERE s.nspname IN ('readmodel', 'declared')
  AND n.nspname = $1
ORDER BY 1`

// viewOf names the view of a table. Those of declared projections have a schema of their own,
// so that they take no name of ours.
func viewOf(p ReadModel, table string) string {
	if IsDeclared(p.Name()) {
		return "declared." + table
	}
	return "readmodel." + table
}

// pointViews moves the projection's views from one generation to the next.
// A reader meanwhile waits for the commit and then finds the new view by its name.
func pointViews(ctx context.Context, tx *sqlx.Tx, p ReadModel, from, to string) error {
	for _, t := range p.Tables() {
		if err := pointView(ctx, tx, viewOf(p, t.Name), to+"."+t.Name); err != nil {
			return err
		}
	}
	return dropViews(ctx, tx, from)
}

// dropViews removes the views that show a generation's tables to readers.
func dropViews(ctx context.Context, tx *sqlx.Tx, schema string) error {
	views, err := pgpool.List[string](ctx, tx, "the views of "+schema, viewsOfSQL, schema)
	if err != nil {
		return err
	}
	for _, view := range views {
		if _, err := tx.ExecContext(ctx, "DROP VIEW "+view); err != nil {
			return obstacleOf("view "+view+" has no table any more and cannot go", err)
		}
	}
	return nil
}

// pointView lets one view show the generation's table.
func pointView(ctx context.Context, tx *sqlx.Tx, name, table string) error {
	shown, err := columnsOf(ctx, tx, name)
	if err != nil {
		return err
	}
	columns, err := columnsOf(ctx, tx, table)
	if err != nil {
		return err
	}
	changed, err := pgpool.List[string](ctx, tx, "the columns that changed of "+name, changedColumnsSQL, name, table)
	if err != nil {
		return err
	}
	if len(changed) > 0 {
		return remakeView(ctx, tx, name, table, columns)
	}
	// The view's columns keep their places; new ones come behind them.
	for _, c := range columns {
		if !slices.Contains(shown, c) {
			shown = append(shown, c)
		}
	}
	return createView(ctx, tx, name, table, shown)
}

func columnsOf(ctx context.Context, tx *sqlx.Tx, name string) ([]string, error) {
	return pgpool.List[string](ctx, tx, "the columns of "+name, columnsSQL, name)
}

func createView(ctx context.Context, tx *sqlx.Tx, name, table string, columns []string) error {
	quoted := make([]string, len(columns))
	for i, c := range columns {
		quoted[i] = pq.QuoteIdentifier(c)
	}
	statement := "CREATE OR REPLACE VIEW " + name + " AS SELECT " + strings.Join(quoted, ", ") + " FROM " + table
	return pgpool.Exec(ctx, tx, "create view "+name, statement)
}

// dependentsSQL lists the view and all views that depend on it, each behind those that
// it depends on, with the parts to make them again. extras says that a view has a
// trigger or a rule, which cannot be made again.
const dependentsSQL = `
WITH RECURSIVE standing (oid, depth) AS (
    SELECT to_regclass($1)::oid, 0
    UNION
    SELECT r.ev_class, s.depth + 1
    FROM standing s
    JOIN pg_depend d ON d.refclassid = 'pg_class'::regclass AND d.refobjid = s.oid AND d.classid = 'pg_rewrite'::regclass
    JOIN pg_rewrite r ON r.oid = d.objid
    WHERE r.ev_class <> s.oid
)
SELECT format('%I.%I', n.nspname, c.relname) AS name,
       s.depth = 0 AS root,
       c.relkind = 'v' AS plain,
       EXISTS (SELECT FROM pg_trigger t WHERE t.tgrelid = c.oid)
           OR EXISTS (SELECT FROM pg_rewrite r WHERE r.ev_class = c.oid AND r.rulename <> '_RETURN') AS extras,
       coalesce(' WITH (' || array_to_string(c.reloptions, ', ') || ')', '') AS options,
       pg_get_viewdef(c.oid) AS definition
FROM (SELECT oid, max(depth) AS depth FROM standing GROUP BY oid) s
JOIN pg_class c ON c.oid = s.oid
JOIN pg_namespace n ON n.oid = c.relnamespace
ORDER BY s.depth`

// attachedSQL gives the statements that restore a view's owner, the rights on it and
// on its columns, and its comments.
const attachedSQL = `
WITH v AS (
    SELECT oid, relowner, relacl, to_regclass($1)::text AS name
    FROM pg_class
    WHERE oid = to_regclass($1)
), acl AS (
    SELECT v.oid, NULL::name AS col, a.* FROM v, aclexplode(v.relacl) a
    UNION ALL
    SELECT v.oid, t.attname, a.*
    FROM v
    JOIN pg_attribute t ON t.attrelid = v.oid AND t.attnum > 0 AND t.attname = ANY ($2)
    CROSS JOIN aclexplode(t.attacl) a
)
SELECT format('ALTER VIEW %s OWNER TO %I', $1::text, pg_get_userbyid(relowner)) FROM v
UNION ALL
SELECT format('GRANT %s%s ON %s TO %s%s', a.privilege_type, coalesce(' (' || quote_ident(a.col) || ')', ''), $1::text,
    CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(a.grantee)) END,
    CASE WHEN a.is_grantable THEN ' WITH GRANT OPTION' ELSE '' END)
FROM acl a
JOIN v USING (oid)
WHERE a.grantee <> v.relowner
UNION ALL
SELECT CASE WHEN d.objsubid = 0 THEN format('COMMENT ON VIEW %s IS %L', $1::text, d.description)
    ELSE format('COMMENT ON COLUMN %s.%I IS %L', $1::text, t.attname, d.description) END
FROM v
JOIN pg_description d ON d.objoid = v.oid AND d.classoid = 'pg_class'::regclass
LEFT JOIN pg_attribute t ON t.attrelid = v.oid AND t.attnum = d.objsubid
WHERE d.objsubid = 0 OR t.attname = ANY ($2)`

type dependentView struct {
	Name       string `db:"name"`
	Root       bool   `db:"root"`
	Plain      bool   `db:"plain"`
	Extras     bool   `db:"extras"`
	Options    string `db:"options"`
	Definition string `db:"definition"`

	attached []string // statements
}

// remakeView makes a view anew whose columns have changed, and all views that depend
// on it. One that cannot be made again is an obstacle to the whole.
func remakeView(ctx context.Context, tx *sqlx.Tx, name, table string, columns []string) error {
	views, err := pgpool.List[dependentView](ctx, tx, "the objects that depend on "+name, dependentsSQL, name)
	if err != nil {
		return err
	}
	for i := range views {
		v := &views[i]
		if !v.Plain || v.Extras {
			return &obstacleError{fmt.Sprintf(
				"%s stands on %s, which loses or changes a column, and is no plain view that could be made again", v.Name, name)}
		}
		kept := columns
		if !v.Root {
			if kept, err = columnsOf(ctx, tx, v.Name); err != nil {
				return err
			}
		}
		if v.attached, err = pgpool.List[string](ctx, tx, "the rights on "+v.Name, attachedSQL, v.Name, pq.Array(kept)); err != nil {
			return err
		}
	}
	for _, v := range slices.Backward(views) {
		if _, err := tx.ExecContext(ctx, "DROP VIEW "+v.Name); err != nil {
			return obstacleOf(v.Name+" cannot be made anew", err)
		}
	}
	for _, v := range views {
		if v.Root {
			if err := createView(ctx, tx, name, table, columns); err != nil {
				return err
			}
		} else if _, err := tx.ExecContext(ctx, "CREATE VIEW "+v.Name+v.Options+" AS "+v.Definition); err != nil {
			return obstacleOf("view "+v.Name+" cannot be kept", err)
		}
		for _, statement := range v.attached {
			if _, err := tx.ExecContext(ctx, statement); err != nil {
				return obstacleOf("the objects that depend on "+v.Name+" cannot be kept", err)
			}
		}
	}
	return nil
}

// obstacleOf makes an obstacle of a refusal by Postgres, unless trying again may help.
func obstacleOf(what string, err error) error {
	var refused *pq.Error
	if !errors.As(err, &refused) || Transient(err) {
		return fmt.Errorf("%s: %w", what, err)
	}
	reason := refused.Message
	if refused.Detail != "" {
		reason += ": " + strings.ReplaceAll(refused.Detail, "\n", "; ")
	}
	return &obstacleError{what + ": " + reason}
}

const holdersSQL = `
SELECT DISTINCT format('connection %s of %s', a.pid, a.usename)
FROM pg_locks l
JOIN pg_class c ON c.oid = l.relation
JOIN pg_stat_activity a ON a.pid = l.pid
WHERE c.relnamespace IN ('readmodel'::regnamespace, 'declared'::regnamespace)
  AND l.granted
  AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
  AND a.pid <> pg_backend_pid()
  AND a.xact_start < now() - make_interval(secs => $1)`

// ObstacleOf describes the obstacle to a flip that waited so long for a lock; empty
// when there is no lasting one.
func ObstacleOf(ctx context.Context, db *sqlx.DB, waited time.Duration, err error) string {
	if known, ok := errors.AsType[*obstacleError](err); ok {
		return known.what
	}
	var refused *pq.Error
	if !errors.As(err, &refused) || refused.Code != "55P03" {
		return ""
	}
	var holders []string
	if db.SelectContext(ctx, &holders, holdersSQL, waited.Seconds()) != nil || len(holders) == 0 {
		return ""
	}
	return "the views are being read for long, by " + strings.Join(holders, ", ")
}

const setObstacleSQL = `
UPDATE projection_checkpoints
SET obstacle = $5` + ownedSQL

// StoreObstacle stores the obstacle to a flip; empty: there is none any more.
func (l *Lease) StoreObstacle(ctx context.Context, db *sqlx.DB, what string) error {
	l.Gen.Obstacle = what
	return l.exec(ctx, db, setObstacleSQL, what)
}
