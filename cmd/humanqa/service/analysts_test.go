package service

import (
	"fmt"
	"net/url"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"humanqa/internal/pgdev"
	"humanqa/internal/testing/must"
	"humanqa/internal/testing/pgtest"
)

func TestAServiceWhoseRoleIsNoSuperuserEndsTheSessionsOfItsAnalysts(t *testing.T) {
	t.Parallel()
	dsn := pgtest.NewDSN(t)
	admin := pgtest.NewDB(t, dsn)
	now := time.Now().UnixNano()
	own, analyst := fmt.Sprint("service_", now), fmt.Sprint("analyst_", now)
	run := func(statements ...string) {
		for _, statement := range statements {
			_, err := admin.Exec(statement)
			must.NoError(t, err)
		}
	}
	run("CREATE ROLE "+own+" LOGIN CREATEROLE PASSWORD 'secret'", "CREATE SCHEMA analytics AUTHORIZATION "+own,
		"ALTER SCHEMA declared OWNER TO "+own)
	t.Cleanup(func() {
		run("DROP OWNED BY "+analyst+" CASCADE", "DROP OWNED BY "+own+" CASCADE",
			"DROP ROLE "+analyst, "DROP ROLE "+pgdev.Analysts, "DROP ROLE "+own)
	})
	as := func(role string) *sqlx.DB {
		u, err := url.Parse(dsn)
		must.NoError(t, err)
		u.User = url.UserPassword(role, "secret")
		return pgtest.NewDB(t, u.String())
	}
	db := as(own)
	must.NoError(t, MakeAnalyst(t.Context(), db, analyst, "secret"))
	conn, err := as(analyst).Conn(t.Context())
	must.NoError(t, err)
	defer func() { _ = conn.Close() }() // it was ended
	_, err = conn.ExecContext(t.Context(), "SET statement_timeout = 0; BEGIN; SELECT 1")
	must.NoError(t, err)
	must.NoError(t, EndAnalysts(t.Context(), db, 0))
	if _, err := conn.ExecContext(t.Context(), "SELECT pg_sleep(3600)"); err == nil {
		t.Error("the analyst's session goes on")
	}
}
