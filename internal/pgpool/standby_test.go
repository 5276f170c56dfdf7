package pgpool_test

import (
	"database/sql/driver"
	"errors"
	"net/url"
	"testing"

	"github.com/jmoiron/sqlx"

	"humanqa/internal/pgpool"
	"humanqa/internal/testing/must"
	"humanqa/internal/testing/pgtest"
)

// A server that became a stand-by refuses to write on the connections that it keeps.
func TestAConnectionToAServerThatOnlyReadsIsReplaced(t *testing.T) {
	t.Parallel()
	db := setup(t)
	run(t, db, "SET default_transaction_read_only = on")
	run(t, db, "INSERT INTO things VALUES ($1, $2)", 2, "two")
	err := pgpool.InTx(t.Context(), db, func(tx *sqlx.Tx) error {
		run(t, tx, "SET TRANSACTION READ ONLY")
		_, err := tx.ExecContext(t.Context(), "INSERT INTO things VALUES ($1, $2)", 3, "three")
		return err
	})
	if !errors.Is(err, driver.ErrBadConn) {
		t.Errorf("in a transaction: %v", err)
	}
	if n := prepared(t, db, "INSERT%"); n != 0 {
		t.Error("the connection is used again")
	}
}

func TestOfTwoHostsThePrimaryIsTaken(t *testing.T) {
	t.Parallel()
	u, err := url.Parse(pgtest.NewDSN(t))
	must.NoError(t, err)
	if u.Query().Get("host") == "" {
		t.Skip("the server is given by its address")
	}
	gone := t.TempDir() // no server is there
	query := u.Query()
	query.Set("host", gone+","+query.Get("host"))
	u.RawQuery = query.Encode()
	db := pgtest.NewDB(t, u.String())
	must.NoError(t, db.PingContext(t.Context()))
	wake := pgpool.Listen(t.Context(), u.String(), "news", nil)
	<-wake
}
