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

// Find reads one row if it is there.
func Find[Row any](ctx context.Context, q sqlx.QueryerContext, what, query string, args ...any) (row Row, found bool, err error) {
	switch err = sqlx.GetContext(ctx, q, &row, query, args...); {
	case errors.Is(err, sql.ErrNoRows):
		return row, false, nil
	case err != nil:
		return row, false, fmt.Errorf("read %s: %w", what, err)
	}
	return row, true, nil
}

// Exec runs a statement without rows. what says in an error what it does.
func Exec(ctx context.Context, e sqlx.ExecerContext, what, query string, args ...any) error {
	if _, err := e.ExecContext(ctx, query, args...); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}
