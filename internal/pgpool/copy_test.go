package pgpool_test

import (
	"context"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"humanqa/internal/pgpool"
	"humanqa/internal/testing/must"
)

// The race detector sees the driver's goroutine and the rollback on one connection.
func TestACallerWhoLeavesInTheMiddleOfACopy(t *testing.T) {
	t.Parallel()
	db := setup(t)
	db.SetMaxOpenConns(1)
	for range 20 {
		ctx, leave := context.WithCancel(t.Context())
		err := pgpool.InTx(ctx, db, func(tx *sqlx.Tx) error {
			in, err := tx.PrepareContext(ctx, "COPY things (id, name) FROM STDIN")
			must.NoError(t, err)
			defer func() { _ = in.Close() }()
			for n := range 5000 { // of which the driver has sent some
				_, err := in.ExecContext(ctx, n+10, "name")
				must.NoError(t, err)
			}
			leave()
			time.Sleep(10 * time.Millisecond) // in which the transaction is rolled back
			_, err = in.ExecContext(context.WithoutCancel(ctx), 1, "late")
			return err
		})
		if err == nil {
			t.Error("it goes on")
		}
		var rows int
		must.NoError(t, db.GetContext(t.Context(), &rows, "SELECT count(*) FROM things WHERE id >= 10"))
		if rows != 0 {
			t.Errorf("%d rows are there", rows)
		}
	}
}
