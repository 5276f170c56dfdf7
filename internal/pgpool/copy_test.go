package pgpool_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"
	"github.com/lib/pq/pqerror"

	"humanqa/internal/pgpool"
	"humanqa/internal/testing/must"
)

const copyThingsSQL = `COPY things (id, name) FROM STDIN`

// rowsOf are rows for copyThings.
func rowsOf(first int, names ...string) (rows [][]any) {
	for i, name := range names {
		rows = append(rows, []any{first + i, name})
	}
	return rows
}

func copyThings(ctx context.Context, tx *sqlx.Tx, rows [][]any) error {
	in, err := tx.PrepareContext(ctx, copyThingsSQL)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	for _, row := range rows {
		if _, err := in.ExecContext(ctx, row...); err != nil {
			return err
		}
	}
	_, err = in.ExecContext(ctx)
	return err
}

func TestRowsAreCopiedAsTheyAre(t *testing.T) {
	t.Parallel()
	db := setup(t)
	run(t, db, "DELETE FROM things WHERE id = $1", 1)
	names := []string{
		"", `\N`, `\.`, "tab\tline\nreturn\r", `back\slash "quoted" 'so'`, "é 漢 😀",
		strings.Repeat("longer than what goes out at once\n", 5000),
	}
	for i := range 5000 { // rows end anywhere in what goes out at once
		names = append(names, strings.Repeat("x", i%37))
	}
	// Nothing, one row, all rows.
	for _, some := range [][]string{nil, names[:1], names} {
		err := pgpool.InTx(t.Context(), db, func(tx *sqlx.Tx) error {
			if _, err := tx.ExecContext(t.Context(), "DELETE FROM things WHERE id >= $1", 0); err != nil {
				return err
			}
			return copyThings(t.Context(), tx, rowsOf(0, some...))
		})
		must.NoError(t, err)
		var got []string
		must.NoError(t, db.SelectContext(t.Context(), &got, "SELECT name FROM things WHERE id >= $1 ORDER BY id", 0))
		if !slices.Equal(got, some) {
			t.Errorf("of %d rows there are %d, or others", len(some), len(got))
		}
	}
}

func TestACopyThatIsRefusedLeavesNothing(t *testing.T) {
	t.Parallel()
	db := setup(t)
	run(t, db, "CREATE UNIQUE INDEX ON things (id)")
	gone, cancel := context.WithCancel(t.Context())
	defer cancel()
	for name, c := range map[string]struct {
		ctx  context.Context
		rows [][]any
		code pqerror.Code
	}{
		"a row that is there": {t.Context(), append(rowsOf(2, make([]string, 9000)...), rowsOf(1, "again")...), "23505"},
		"no number":           {t.Context(), [][]any{{"x", "y"}}, "22P02"},
		"a caller who left":   {gone, rowsOf(2, "late"), ""},
	} {
		err := pgpool.InTx(t.Context(), db, func(tx *sqlx.Tx) error {
			if c.code == "" {
				cancel()
			}
			return copyThings(c.ctx, tx, c.rows)
		})
		var refused *pq.Error
		if err == nil || c.code != "" && (!errors.As(err, &refused) || refused.Code != c.code) || c.code == "" && !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", name, err)
		}
		var rows int
		if err := db.GetContext(t.Context(), &rows, "SELECT count(*) FROM things WHERE id >= $1", 0); err != nil || rows != 1 {
			t.Errorf("%s: there are %d rows, %v", name, rows, err)
		}
	}
}
