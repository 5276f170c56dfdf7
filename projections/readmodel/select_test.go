package readmodel

import (
	"slices"
	"testing"

	"github.com/jmoiron/sqlx"

	"humanqa/internal/must"
	"humanqa/internal/pgpool"
	"humanqa/internal/pgtest"
)

func TestOneIDIsNotPlannedForEachTime(t *testing.T) {
	t.Parallel()
	db, err := pgpool.Open(t.Context(), pgtest.NewDSN(t))
	must.NoError(t, err)
	t.Cleanup(func() { _ = db.Close() })
	db.SetMaxOpenConns(1)
	_, err = db.ExecContext(t.Context(), `CREATE SCHEMA few; CREATE TABLE few.things (id text PRIMARY KEY); INSERT INTO few.things VALUES ('a'), ('b'), ('c')`)
	must.NoError(t, err)
	err = pgpool.InTx(t.Context(), db, func(tx *sqlx.Tx) error {
		for range 10 {
			for _, ids := range [][]string{nil, {"a"}, {"a", "c", "none"}} {
				var found []string
				if err := SelectAny(t.Context(), tx, "few", `SELECT id FROM {schema}.things WHERE id = ANY($1) ORDER BY id`, &found, ids); err != nil {
					return err
				}
				if want := slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return id == "none" }); !slices.Equal(found, want) {
					t.Errorf("of %v found %v", ids, found)
				}
			}
		}
		return nil
	})
	must.NoError(t, err)
	var planned int
	if err := db.GetContext(t.Context(), &planned, `SELECT custom_plans FROM pg_prepared_statements WHERE statement LIKE '%few.things WHERE id = $1%'`); err != nil || planned > 5 {
		t.Errorf("planned %d times, %v", planned, err)
	}
}
