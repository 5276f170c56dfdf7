// Package readmodel holds the shared parts of the folds and queries of all read models.
package readmodel

import (
	"context"
	"database/sql/driver"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/jmoiron/sqlx/reflectx"
	"github.com/lib/pq"

	"humanqa/domain"
	"humanqa/domain/account"
	"humanqa/domain/credits"
	"humanqa/eventstore/consumer"
	"humanqa/internal/pgpool"
)

// mapper lets one struct tag name a row's column, both for scanning and for
// json_populate_recordset (see Write).
var mapper = reflectx.NewMapper("json")

// Pool gives the same pool for rows that are tagged as json.
func Pool(db *sqlx.DB) *sqlx.DB {
	mapped := sqlx.NewDb(db.DB, db.DriverName())
	mapped.Mapper = mapper
	return mapped
}

// Columns lists a row's columns, each with the prefix. A query names the columns it
// reads: while services are replaced one by one, old code reads the rows of newer
// projectors, which may have more columns.
func Columns[Row any](prefix string) string {
	return prefix + strings.Join(Names[Row](), ", "+prefix)
}

// ColumnsBut is Columns with an expression in the place of some.
func ColumnsBut[Row any](instead map[string]string) string {
	names := Names[Row]()
	for i, name := range names {
		if expression, ok := instead[name]; ok {
			names[i] = expression + " AS " + name
		}
	}
	return strings.Join(names, ", ")
}

// Names lists a row's columns.
func Names[Row any]() (names []string) {
	for _, field := range mapper.TypeMap(reflect.TypeFor[Row]()).Index {
		if !field.Embedded && !strings.Contains(field.Path, ".") {
			names = append(names, field.Path)
		}
	}
	return names
}

// Statement writes a batch's rows into a table of a generation.
type Statement func(ctx context.Context, tx *sqlx.Tx, schema string) error

// Run runs statements in turn, up to the first that fails.
func Run(ctx context.Context, tx *sqlx.Tx, schema string, statements ...Statement) error {
	for _, run := range statements {
		if err := run(ctx, tx, schema); err != nil {
			return err
		}
	}
	return nil
}

// Write is a statement that takes all its rows at once: its only parameter is a JSON
// array, which the statement opens with json_populate_recordset(NULL::{schema}.<table>,
// $1), as Insert does. Postgres parses it once, however many rows and columns
// there are. what names the statement in errors.
func Write[Row any](what, query string, rows []Row) Statement {
	return func(ctx context.Context, tx *sqlx.Tx, schema string) error {
		if len(rows) == 0 {
			return nil
		}
		data, err := json.Marshal(rows)
		if err == nil {
			_, err = tx.ExecContext(ctx, consumer.In(schema, query), string(data))
		}
		if err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		return nil
	}
}

// copied is how many rows are worth a COPY, which takes three round trips.
const copied = 100

// Append writes new rows. It writes many rows, as in a rebuild, with COPY, which costs
// Postgres a third.
func Append[Row any](table string, rows []Row) Statement {
	if len(rows) < copied {
		return Write("insert "+table, Insert(table), rows)
	}
	return func(ctx context.Context, tx *sqlx.Tx, schema string) error {
		if err := copyRows(ctx, tx, schema, table, rows); err != nil {
			return fmt.Errorf("insert %s: %w", table, err)
		}
		return nil
	}
}

func copyRows[Row any](ctx context.Context, tx *sqlx.Tx, schema, table string, rows []Row) (err error) {
	names := Names[Row]()
	in, err := tx.PrepareContext(ctx, consumer.In(schema, "COPY {schema}."+table+" ("+strings.Join(names, ", ")+") FROM STDIN"))
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }() // the last Exec has reported any error
	fields := make([]*reflectx.FieldInfo, len(names))
	plain := make([]bool, len(names))
	for i, name := range names {
		fields[i] = mapper.TypeMap(reflect.TypeFor[Row]()).GetByPath(name)
		t := fields[i].Field.Type
		plain[i] = !t.Implements(reflect.TypeFor[driver.Valuer]()) && !t.Implements(reflect.TypeFor[json.Marshaler]())
	}
	values := make([]any, len(names))
	for i := range rows {
		row := reflect.Indirect(reflect.ValueOf(&rows[i]).Elem()) // rows may be pointers
		for i := range names {
			if values[i], err = copyable(row.FieldByIndex(fields[i].Index), plain[i]); err != nil {
				return fmt.Errorf("encode %s: %w", names[i], err)
			}
		}
		if _, err := in.ExecContext(ctx, values...); err != nil {
			return err
		}
	}
	_, err = in.ExecContext(ctx) // the end
	return err
}

// copyable is a value as COPY takes it, with the same result as Write: objects and lists
// become JSON, and texts are valid UTF-8. plain says that its kind determines its value.
func copyable(v reflect.Value, plain bool) (any, error) {
	if v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return nil, nil
		}
		return copyable(v.Elem(), plain)
	}
	if !plain {
		switch v := v.Interface().(type) {
		case time.Time:
			return v, nil
		case driver.Valuer: // an array
			array, err := v.Value()
			if err != nil || array == nil {
				return nil, err
			}
			return copyable(reflect.ValueOf(array), false)
		case json.Marshaler:
			text, err := v.MarshalJSON()
			return string(text), err
		}
	}
	switch {
	case v.Kind() == reflect.String:
		return strings.ToValidUTF8(v.String(), "\uFFFD"), nil
	case v.CanInt():
		return v.Int(), nil
	case v.CanUint():
		return strconv.FormatUint(v.Uint(), 10), nil
	case v.Kind() == reflect.Struct, v.Kind() == reflect.Slice:
		text, err := json.Marshal(v.Interface())
		return string(text), err
	}
	return fmt.Sprint(v.Interface()), nil // other numbers, and truths
}

// Insert is the statement that writes new rows. A clause that a caller adds calls the
// existing row "was".
func Insert(table string) string {
	return `
INSERT INTO {schema}.` + table + ` AS was
SELECT *
FROM json_populate_recordset(NULL::{schema}.` + table + `, $1)`
}

// Upsert writes new rows, and existing rows with all their columns.
func Upsert[Row any](table string, rows []Row, key ...string) Statement {
	var set []string
	for _, column := range Names[Row]() {
		if !slices.Contains(key, column) {
			set = append(set, column+" = EXCLUDED."+column)
		}
	}
	return Write("write "+table, Insert(table)+`
ON CONFLICT (`+strings.Join(key, ", ")+`) DO UPDATE
SET `+strings.Join(set, ",\n    "), rows)
}

// Update writes some columns of existing rows.
func Update[Row any](table, key string, rows []Row, columns ...string) Statement {
	set := make([]string, len(columns))
	for i, column := range columns {
		set[i] = column + " = r." + column
	}
	return Write("update "+table, `
UPDATE {schema}.`+table+` t
SET `+strings.Join(set, ",\n    ")+`
FROM json_populate_recordset(NULL::{schema}.`+table+`, $1) r
WHERE t.`+key+` = r.`+key, rows)
}

// Each runs the statement of each event in turn, for rows that change rarely. An event
// without one is an error.
func Each(change func(domain.Recorded) (query string, args []any)) Apply {
	return func(ctx context.Context, tx *sqlx.Tx, schema string, batch []domain.Recorded) error {
		for _, r := range batch {
			query, args := change(r)
			err := errors.New("no statement for it")
			if query != "" {
				_, err = tx.ExecContext(ctx, consumer.In(schema, query), args...)
			}
			if err != nil {
				return fmt.Errorf("apply %s of %s: %w", r.Type, r.Stream, err)
			}
		}
		return nil
	}
}

// Load reads the rows of a generation whose key is in a list.
func Load[Row any](ctx context.Context, tx *sqlx.Tx, schema, table, key string, keys []string) (rows []Row, err error) {
	if len(keys) == 0 {
		return nil, nil
	}
	query := `
SELECT ` + Columns[Row]("") + `
FROM {schema}.` + table + `
WHERE ` + key + ` = ANY($1)`
	if err := Select(ctx, tx, schema, &rows, query, pq.Array(keys)); err != nil {
		return nil, fmt.Errorf("load %s: %w", table, err)
	}
	return rows, nil
}

// Select reads rows of a generation into a slice of structs.
func Select(ctx context.Context, tx *sqlx.Tx, schema string, rows any, query string, args ...any) error {
	mapped := *tx
	mapped.Mapper = mapper
	return mapped.SelectContext(ctx, rows, consumer.In(schema, query), args...)
}

// Get reads one row; NotFound without one.
func Get[Row any](ctx context.Context, db *sqlx.DB, what, query string, args ...any) (Row, error) {
	return pgpool.FindOr[Row](ctx, db, domain.NotFound(what), what, query, args...)
}

// Page reads a part of a list, and the number of rows of the whole list. of are the
// parameters of both queries; those of the page follow them.
func Page[Row any](
	ctx context.Context, db *sqlx.DB, what, countSQL, listSQL string, of []any, page ...any,
) (rows []Row, total int, err error) {
	if total, err = Get[int](ctx, db, "the number of "+what, countSQL, of...); err != nil {
		return nil, 0, err
	}
	rows, err = pgpool.List[Row](ctx, db, what, listSQL, slices.Concat(of, page)...)
	return rows, total, err
}

// JobOf is the job an event is about; empty when it is about none.
func JobOf(r domain.Recorded) string {
	switch e := r.Event.(type) {
	case *credits.Refunded:
		return e.JobID
	case *account.Created:
		return ""
	}
	return r.StreamID()
}

// Moment is a time as the API shows it: milliseconds, UTC. Finer digits would
// make two instants differ that look equal (decisions, "Timestamps").
func Moment(t time.Time) time.Time { return t.UTC().Truncate(time.Millisecond) }

// MomentPtr is Moment for a column that may be null.
func MomentPtr(t time.Time) *time.Time { return new(Moment(t)) }

// OptionalMoment is Moment of a time that may be missing.
func OptionalMoment(t *time.Time) *time.Time {
	if t == nil {
		return nil
	}
	return MomentPtr(*t)
}

// Where collects the conditions of a list and their parameters, the account's
// first.
type Where struct {
	SQL  string
	Args []any
}

// WhereAccount begins with the account, which the query names $1 itself.
func WhereAccount(accountID string) *Where { return &Where{Args: []any{accountID}} }

// And adds a condition that names its parameter %s.
func (w *Where) And(condition string, arg any) {
	w.SQL += fmt.Sprintf("\n  AND "+condition, w.Param(arg))
}

// Param adds a parameter and gives its name.
func (w *Where) Param(arg any) string {
	w.Args = append(w.Args, arg)
	return fmt.Sprintf("$%d", len(w.Args))
}

// JSON is a column that holds a value as JSON.
type JSON[T any] struct{ V T }

// Scan implements sql.Scanner.
func (j *JSON[T]) Scan(src any) error { return scanJSON(src, &j.V) }

// MarshalJSON implements json.Marshaler.
func (j JSON[T]) MarshalJSON() ([]byte, error) { return json.Marshal(j.V) }

// List is a column that holds a list as JSON.
type List[T any] []T

// Scan implements sql.Scanner.
func (l *List[T]) Scan(src any) error { return scanJSON(src, (*[]T)(l)) }

func scanJSON(src, into any) error {
	data, ok := src.([]byte)
	if !ok {
		return fmt.Errorf("a column of JSON holds a %T", src)
	}
	return json.Unmarshal(data, into)
}
