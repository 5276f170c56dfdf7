package pgpool

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/jmoiron/sqlx"
)

// List reads the rows of a query. what names them in an error.
func List[Row any](ctx context.Context, q sqlx.QueryerContext, what, query string, args ...any) (rows []Row, err error) {
	if err := sqlx.SelectContext(ctx, q, &rows, query, args...); err != nil {
		return nil, fmt.Errorf("read %s: %w", what, err)
	}
	return rows, nil
}

// Find reads one row if there is one.
func Find[Row any](ctx context.Context, q sqlx.QueryerContext, what, query string, args ...any) (row Row, found bool, err error) {
	row, err = One[Row](ctx, q, what, query, args...)
	if errors.Is(err, sql.ErrNoRows) {
		return row, false, nil
	}
	return row, err == nil, err
}

// FindOr is Find that gives an error of the caller's where there is no row.
func FindOr[Row any](ctx context.Context, q sqlx.QueryerContext, missing error, what, query string, args ...any) (Row, error) {
	row, found, err := Find[Row](ctx, q, what, query, args...)
	if err == nil && !found {
		err = missing
	}
	return row, err
}

// Exec runs a statement without rows. what names the action in an error.
func Exec(ctx context.Context, e sqlx.ExecerContext, what, query string, args ...any) error {
	if _, err := e.ExecContext(ctx, query, args...); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// ExecCount is Exec that says how many rows were changed.
func ExecCount(ctx context.Context, e sqlx.ExecerContext, what, query string, args ...any) (changed int, err error) {
	done, err := e.ExecContext(ctx, query, args...)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", what, err)
	}
	n, err := done.RowsAffected()
	return int(n), err
}

// ExecOne is Exec that gives an error of the caller's where no row was changed.
func ExecOne(ctx context.Context, e sqlx.ExecerContext, none error, what, query string, args ...any) error {
	n, err := ExecCount(ctx, e, what, query, args...)
	if err != nil || n > 0 {
		return err
	}
	return none
}

// One reads the row that a query always has, such as a count.
func One[Row any](ctx context.Context, q sqlx.QueryerContext, what, query string, args ...any) (row Row, err error) {
	if err := sqlx.GetContext(ctx, q, &row, query, args...); err != nil {
		return row, fmt.Errorf("read %s: %w", what, err)
	}
	return row, nil
}

// By reads the rows of a query by a key of each.
func By[Row any, Key comparable](
	ctx context.Context, q sqlx.QueryerContext, what string, key func(Row) Key, query string, args ...any,
) (map[Key]Row, error) {
	rows, err := List[Row](ctx, q, what, query, args...)
	by := make(map[Key]Row, len(rows))
	for _, row := range rows {
		by[key(row)] = row
	}
	return by, err
}

// Set reads the texts of a query's only column as a set.
func Set(ctx context.Context, q sqlx.QueryerContext, what, query string, args ...any) (map[string]bool, error) {
	list, err := List[string](ctx, q, what, query, args...)
	set := make(map[string]bool, len(list))
	for _, one := range list {
		set[one] = true
	}
	return set, err
}
