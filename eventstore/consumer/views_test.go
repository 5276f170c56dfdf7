package consumer_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jmoiron/sqlx"

	"humanqa/domain"
	"humanqa/domain/job"
	"humanqa/eventstore/consumer"
	"humanqa/eventstore/generation"
	"humanqa/internal/testing/eventually"
	"humanqa/internal/testing/modeltest"
	"humanqa/internal/testing/must"
)

// tallies is a read model of one table, whose columns a version can change.
type tallies struct {
	version int
	columns string
}

func (tallies) Name() string      { return "tallies" }
func (t tallies) Version() int    { return t.version }
func (tallies) Handles() []string { return []string{(*job.Created)(nil).EventType()} }

func (t tallies) Tables() []consumer.Table {
	return []consumer.Table{{Name: "tallies", DDL: "CREATE TABLE {schema}.tallies (" + t.columns + ");"}}
}

func (tallies) Apply(ctx context.Context, tx *sqlx.Tx, schema string, batch []domain.Recorded) error {
	for _, r := range batch {
		if _, err := tx.ExecContext(ctx, consumer.In(schema, "INSERT INTO {schema}.tallies (id, n) VALUES ($1, 1)"), r.Stream); err != nil {
			return err
		}
	}
	return nil
}

var talliesBefore = tallies{1, "id text, n integer, note text"}

// analysed is a world whose operator has views of their own on tallies, one on
// the other, and somebody who may read them and no more.
func analysed(t *testing.T) (w *world, reader string) {
	t.Helper()
	w = setup(t, talliesBefore)
	reader = "reader_" + strings.ReplaceAll(uuid.NewString(), "-", "")
	w.Exec("CREATE ROLE " + reader)
	t.Cleanup(func() {
		for _, s := range []string{"DROP OWNED BY " + reader, "DROP ROLE " + reader} {
			if _, err := w.DB.ExecContext(context.Background(), s); err != nil {
				t.Error(err)
			}
		}
	})
	for _, s := range []string{
		"CREATE SCHEMA analyst",
		"CREATE VIEW analyst.big WITH (security_barrier=true) AS SELECT id, n AS size FROM readmodel.tallies WHERE n > 0",
		"CREATE VIEW analyst.bigger AS SELECT count(*) AS many, sum(size) AS total FROM analyst.big",
		"COMMENT ON VIEW readmodel.tallies IS 'what we count'",
		"COMMENT ON COLUMN analyst.big.size IS 'how much'",
		"GRANT USAGE ON SCHEMA readmodel, analyst TO " + reader,
		"GRANT SELECT (id) ON readmodel.tallies TO " + reader,
		"GRANT SELECT ON analyst.bigger TO " + reader,
		"GRANT SELECT ON analyst.big TO PUBLIC",
		"ALTER VIEW analyst.big OWNER TO CURRENT_USER",
	} {
		w.Exec(s)
	}
	w.Run(w.Sup)
	modeltest.Lives(w.Log, "a", 6)
	w.Reach(w.Sup)
	return w, reader
}

// works checks that the views answer, and to whom.
func (w *world) works(reader string) {
	w.T.Helper()
	tx, err := w.DB.BeginTxx(w.Ctx(), nil)
	must.NoError(w.T, err)
	defer func() { _ = tx.Rollback() }()
	_, err = tx.ExecContext(w.Ctx(), "SET LOCAL ROLE "+reader)
	must.NoError(w.T, err)
	for _, query := range []string{"SELECT count(id) FROM readmodel.tallies", "SELECT many FROM analyst.bigger", "SELECT sum(size) FROM analyst.big"} {
		var n int
		if err := tx.GetContext(w.Ctx(), &n, query); err != nil || n != 6 {
			w.T.Errorf("%s gives the reader %d, %v", query, n, err)
		}
	}
	if _, err := tx.ExecContext(w.Ctx(), "SELECT n FROM readmodel.tallies"); err == nil {
		w.T.Error("the reader has got more rights")
	}
	var kept string
	if err := w.DB.GetContext(w.Ctx(), &kept, `SELECT concat_ws(', ', obj_description('readmodel.tallies'::regclass, 'pg_class'),
		col_description('analyst.big'::regclass, 2), (SELECT reloptions::text FROM pg_class WHERE oid = 'analyst.big'::regclass))`); err != nil ||
		kept != "what we count, how much, {security_barrier=true}" {
		w.T.Errorf("the comments and options are %q, %v", kept, err)
	}
}

func TestARebuildKeepsRightsAndViewsOfOthers(t *testing.T) {
	t.Parallel()
	for name, next := range map[string]tallies{
		"the same columns":              talliesBefore,
		"a new column in between":       {2, "id text, fresh integer, n integer, note text"},
		"a column that nobody uses":     {2, "n integer, id text"},
		"a column with another type":    {2, "id varchar(200), n bigint, note text"},
		"the same columns, other order": {2, "note text, n integer, id text"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, reader := analysed(t)
			w.works(reader)
			service := w.Service(w.Log, next)
			must.NoError(t, service.RebuildAll(w.Ctx(), []string{"tallies"}, nil))
			if s := w.Status("tallies"); s.Number != 2 || s.Obstacle != "" {
				t.Errorf("got %+v", s)
			}
			if n := w.Count("SELECT count(*) FROM information_schema.columns WHERE table_schema = 'readmodel' AND table_name = 'tallies'"); n != strings.Count(next.columns, ",")+1 {
				t.Errorf("the view has %d columns, want those of %s", n, next.columns)
			}
			w.works(reader)
		})
	}
}

// building is the generation that waits for its turn.
func (w *world) building() consumer.Status {
	w.T.Helper()
	list, err := w.Sup.Status(w.Ctx())
	must.NoError(w.T, err)
	for _, s := range list {
		if !s.Serving {
			return s
		}
	}
	return consumer.Status{}
}

func TestWhatIsInTheWayOfARebuildIsNamed(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ block, want, clear string }{
		"a view that uses a column which is gone": {
			"CREATE VIEW analyst.notes AS SELECT note FROM readmodel.tallies",
			`view analyst.notes cannot be kept: column tallies.note does not exist`,
			"DROP VIEW analyst.notes",
		},
		"a materialized view": {
			"CREATE MATERIALIZED VIEW analyst.copy AS SELECT * FROM analyst.big",
			"analyst.copy stands on readmodel.tallies, which loses or changes a column, and is no plain view that could be made again",
			"DROP MATERIALIZED VIEW analyst.copy",
		},
		"a function": {
			"CREATE FUNCTION analyst.f() RETURNS bigint BEGIN ATOMIC SELECT count(*) FROM readmodel.tallies; END",
			"function analyst.f() depends on view readmodel.tallies",
			"DROP FUNCTION analyst.f()",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, reader := analysed(t)
			w.Exec(test.block)
			next := w.Service(w.Log, tallies{2, "id text, n integer"})
			ctx, cancel := context.WithCancel(w.Ctx())
			defer cancel()
			ended := make(chan error, 1)
			go func() { ended <- next.RebuildAll(ctx, []string{"tallies"}, nil) }()
			w.Eventually("the obstacle is named", func() bool { return w.building().Obstacle != "" })
			if s := w.building(); !strings.Contains(s.Obstacle, test.want) || !strings.Contains(s.Problem(), s.Obstacle) {
				t.Errorf("the obstacle is %q, want %q", s.Obstacle, test.want)
			}
			w.works(reader) // nothing was lost by trying
			modeltest.Lives(w.Log, "b", 1)
			w.Eventually("the new rows stay up to date meanwhile", func() bool { return w.building().Position == w.Log.Head() })
			w.Exec(test.clear)
			must.NoError(t, <-ended)
			if s := w.Status("tallies"); s.Number != 2 || s.Obstacle != "" {
				t.Errorf("got %+v", s)
			}
		})
	}
}

// A flip and a reader of two views may wait for each other. The flip has to give way.
func TestAFlipGivesWayBeforePostgresEndsAReader(t *testing.T) {
	t.Parallel()
	w := setup(t)
	var looks int64 // in ms
	must.NoError(t, w.DB.GetContext(w.Ctx(), &looks, "SELECT setting FROM pg_settings WHERE name = 'deadlock_timeout'"))
	if waits := generation.FlipWait(time.Hour); 2*waits.Milliseconds() > looks {
		t.Errorf("a flip waits %s for each lock, and Postgres looks for deadlocks after %d ms", waits, looks)
	}
}

// Somebody's long look at a view holds a flip up, not the others' looks.
func TestALongReaderOfAViewIsNamed(t *testing.T) {
	// Not beside the others: who else holds the views, or changes rights, would be
	// in the way as well.
	w, _ := analysed(t)
	long, err := w.DB.BeginTxx(w.Ctx(), nil)
	must.NoError(t, err)
	defer func() { _ = long.Rollback() }()
	var n, pid int
	err = errors.Join(long.GetContext(w.Ctx(), &n, "SELECT count(*) FROM readmodel.tallies"), long.GetContext(w.Ctx(), &pid, "SELECT pg_backend_pid()"))
	must.NoError(t, err)
	ended := make(chan error, 1)
	go func() { ended <- w.Service(w.Log, talliesBefore).RebuildAll(w.Ctx(), []string{"tallies"}, nil) }()
	w.Eventually("the reader is named", func() bool {
		select {
		case err := <-ended:
			t.Fatalf("the rebuild ended: %v", err)
		default:
		}
		return strings.Contains(w.building().Obstacle, fmt.Sprintf("connection %d of", pid))
	})
	must.NoError(t, long.Commit())
	select {
	case err := <-ended:
		must.NoError(t, err)
	case <-time.After(eventually.Patience):
		t.Fatal("the rebuild did not go on")
	}
}
