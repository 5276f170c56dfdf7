package declared_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"humanqa/domain"
	"humanqa/domain/job"
	"humanqa/eventstore/consumer"
	"humanqa/eventstore/generation"
	"humanqa/internal/testing/modeltest"
	"humanqa/internal/testing/must"
	"humanqa/internal/testing/pgtest"
	"humanqa/projections/declared"
	"humanqa/projections/jobs"
)

// world is a database and a log with built-in read models, beside a keeper.
type world struct{ *modeltest.World }

func setup(t *testing.T) world {
	t.Helper()
	w := world{modeltest.New(t, jobs.Projector)}
	w.Run(w.Sup)
	return w
}

func (w world) add(text string) {
	w.T.Helper()
	added, err := declared.Add(w.Ctx(), w.DB, parse(w.T, text))
	must.NoError(w.T, err)
	if !added {
		w.T.Error("it was there already")
	}
}

// keep runs a keeper until the returned function is called, or the test ends.
func (w world) keep(limits declared.Limits) (stop func()) {
	quiet := logrus.New()
	quiet.SetOutput(io.Discard)
	k := declared.NewKeeper(w.DB, w.Log, quiet)
	k.Limits = limits
	return w.run(k)
}

func (w world) run(k *declared.Keeper) (stop func()) {
	w.T.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- k.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		must.NoError(w.T, <-done)
	})
	w.T.Cleanup(stop)
	return stop
}

// status is that of the serving generation; empty before there is one.
func (w world) status(name string) (found consumer.Status) {
	w.T.Helper()
	list, err := w.Sup.Status(w.Ctx())
	must.NoError(w.T, err)
	for _, s := range list {
		if s.Name == generation.Declared(name) && s.Serving {
			found = s
		}
	}
	return found
}

func (w world) reached(name string, version int) {
	w.T.Helper()
	w.Eventually(name+" has seen everything", func() bool {
		s := w.status(name)
		return s.Version == version && s.Started && s.Position == w.Log.Head()
	})
}

func example(t testing.TB, name string) string {
	t.Helper()
	text, err := os.ReadFile("../../docs/projections/" + name + ".yaml")
	must.NoError(t, err)
	return string(text)
}

const (
	builtInSQL = `
SELECT account_id, project_id, date_trunc('week', completed_at, 'UTC')::date AS week, count(*)::integer AS tests,
    count(*) FILTER (WHERE overall_status = 'pass')::integer AS passed
FROM readmodel.jobs
WHERE status = 'completed'
GROUP BY 1, 2, 3`

	differSQL = `
SELECT count(*)
FROM ((TABLE declared.pass_rates EXCEPT (` + builtInSQL + `))
    UNION ALL ((` + builtInSQL + `) EXCEPT TABLE declared.pass_rates)) d`
)

// randomJobs appends the beginnings and ends of jobs, interleaved.
func (w world) randomJobs(r *rand.Rand, prefix string, n int) {
	for i := range n {
		stream := domain.JobStream(fmt.Sprint(prefix, i))
		w.Log.Record(stream, modeltest.Created(fmt.Sprint("acc", r.IntN(3)), func(e *job.Created) {
			e.ProjectID = []string{"", "p1", "p2", "p3"}[r.IntN(4)]
		}))
		if old := domain.JobStream(fmt.Sprint(prefix, r.IntN(i+1))); len(w.Log.Types(old)) == 1 {
			end := modeltest.Completed([]string{"pass", "fail", "inconclusive"}[r.IntN(3)])
			end.At = modeltest.Noon.Add(time.Duration(r.IntN(60*24)) * time.Hour)
			w.Log.Record(old, modeltest.Claimed("ann"), end)
		}
	}
}

// The keeper is stopped in the middle of its work ten times, while events come, and the rows
// are built anew. They are those of the built-in read model.
func TestADeclaredProjectionHasTheRowsOfTheBuiltInOne(t *testing.T) {
	t.Parallel()
	w := setup(t)
	seed := rand.Uint64()
	t.Log("seed", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	w.randomJobs(r, "before", 100)
	w.add(example(t, "pass_rates"))
	for i := range 10 {
		before := w.status("pass_rates").Position
		stop := w.keep(declared.DefaultLimits())
		w.randomJobs(r, fmt.Sprint("round", i, "-"), 20)
		w.Eventually("it moves", func() bool { return w.status("pass_rates").Position != before })
		stop()
	}
	w.keep(declared.DefaultLimits())
	w.same("pass_rates", 1)

	// A rebuild is ordered as for any other read model, and so is its dry run.
	first := w.status("pass_rates").Number
	must.NoError(t, generation.RequestRebuild(w.Ctx(), w.DB, generation.Declared("pass_rates")))
	w.Eventually("the next generation serves", func() bool { return w.status("pass_rates").Number > first })
	w.same("pass_rates", 1)
	all, err := declared.Projections(w.Ctx(), w.DB, w.Log)
	must.NoError(t, err)
	w.Sound(w.Service(w.Log, all...), generation.Declared("pass_rates"))
}

// same waits until both read models have seen everything, and compares their rows.
func (w world) same(name string, version int) {
	w.T.Helper()
	w.reached(name, version)
	w.Reach(w.Sup)
	if n := w.Count(differSQL); n != 0 || w.Count("SELECT count(*) FROM declared.pass_rates") == 0 {
		w.T.Errorf("%d rows differ", n)
	}
}

func TestAProjectionThatTakesTooMuchStopsByNameAndNoOtherOneFeelsIt(t *testing.T) {
	t.Parallel()
	w := setup(t)
	endless := "WITH RECURSIVE r (n) AS (SELECT 1 UNION ALL SELECT n FROM r)\nINSERT INTO hostile SELECT stream FROM batch, r"
	for name, apply := range map[string]string{
		"endless": endless,
		"rows":    "INSERT INTO hostile SELECT g::text FROM generate_series(1, 2000) g",
		"bytes":   "INSERT INTO hostile SELECT g || repeat(md5(g::text), 60) FROM generate_series(1, 900) g",
	} {
		w.add(strings.ReplaceAll(with("CREATE TABLE hostile (stream text);", apply), "hostile", name))
	}
	w.add(example(t, "pass_rates"))
	stop := w.keep(declared.Limits{Batch: time.Hour, WorkMem: "4MB", Rows: 1000, Bytes: 1 << 20})
	modeltest.Lives(w.Log, "a", 12)
	for name, want := range map[string]string{
		"rows": "its tables have 2000 rows, of at most 1000", "bytes": "bytes, of at most 1048576",
	} {
		w.Eventually(name+" stops", func() bool { return w.status(name).Failure != nil })
		s := w.status(name)
		if !strings.Contains(s.Failure.Detail, want) || s.Problem() != "" || len(s.Notes()) != 1 {
			t.Errorf("%s: %+v, %q, %q", name, s.Failure, s.Problem(), s.Notes())
		}
	}
	w.same("pass_rates", 1) // while the endless one runs
	if s := w.status("endless"); s.Failure != nil || s.Started {
		t.Errorf("the endless one: %+v", s)
	}
	stop()
	w.keep(declared.Limits{Batch: 50 * time.Millisecond, WorkMem: "4MB", Rows: 1000, Bytes: 1 << 20})
	w.Eventually("the endless one stops", func() bool { return w.status("endless").Failure != nil })
	if got, want := w.status("endless").Failure.Detail, "apply: a batch took longer than 50ms and was ended"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	w.same("pass_rates", 1)
}

func TestAHigherVersionTakesTheViewsOverAndADropLeavesNothing(t *testing.T) {
	t.Parallel()
	w := setup(t)
	modeltest.Lives(w.Log, "a", 24)
	text := example(t, "pass_rates")
	w.add(text)
	w.keep(declared.DefaultLimits())
	w.same("pass_rates", 1)
	if added, err := declared.Add(w.Ctx(), w.DB, parse(t, text)); err != nil || added {
		t.Errorf("the same file: %t, %v", added, err)
	}
	other := strings.ReplaceAll(text, "'pass'", "'fail'")
	if _, err := declared.Add(w.Ctx(), w.DB, parse(t, other)); err == nil || !strings.Contains(err.Error(), "raise the version") {
		t.Errorf("another text of the same version: %v", err)
	}
	taken := strings.Replace(text, "name: pass_rates", "name: other", 1)
	if _, err := declared.Add(w.Ctx(), w.DB, parse(t, taken)); err == nil || !strings.Contains(err.Error(), "pass_rates has a table pass_rates already") {
		t.Errorf("another projection with the table: %v", err)
	}
	w.add(strings.Replace(other, "version: 1", "version: 2", 1))
	w.reached("pass_rates", 2)
	if n := w.Count("SELECT sum(passed) FROM declared.pass_rates"); n != 0 {
		t.Errorf("%d tests failed", n)
	}

	must.NoError(t, declared.Drop(w.Ctx(), w.DB, "pass_rates"))
	if n := w.Count(`SELECT (SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'declared\_%') + (SELECT count(*) FROM pg_views WHERE schemaname = 'declared')
		+ (SELECT count(*) FROM declared_projections) + (SELECT count(*) FROM pg_roles WHERE rolname = (
			SELECT 'declared_' || oid || '_pass_rates' FROM pg_database WHERE datname = current_database()))`); n != 0 {
		t.Errorf("%d things are left", n)
	}
}

// A batch holds the checkpoint until it commits.
func TestADropWaitsForTheLastBatch(t *testing.T) {
	t.Parallel()
	w := setup(t)
	modeltest.Lives(w.Log, "a", 24)
	w.add(example(t, "pass_rates"))
	stop := w.keep(declared.DefaultLimits())
	w.reached("pass_rates", 1)
	stop()
	batch, err := w.DB.BeginTx(w.Ctx(), nil)
	must.NoError(t, err)
	_, err = batch.ExecContext(w.Ctx(), "SELECT FROM projection_checkpoints WHERE name = 'declared_pass_rates' FOR UPDATE")
	must.NoError(t, err)
	dropped := make(chan error, 1)
	go func() { dropped <- declared.Drop(w.Ctx(), w.DB, "pass_rates") }()
	waits := map[time.Time]bool{}
	w.Eventually("it waits again, or has ended", func() bool {
		var since []time.Time
		must.NoError(t, w.DB.SelectContext(w.Ctx(), &since, `SELECT xact_start FROM pg_stat_activity
			WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE '%projection_checkpoints%'`))
		for _, at := range since {
			waits[at] = true
		}
		return len(waits) > 1 || len(dropped) > 0
	})
	must.NoError(t, batch.Rollback())
	must.NoError(t, <-dropped)
	if n := w.Count(`SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'declared\_%'`); n != 0 {
		t.Errorf("%d schemas are left", n)
	}
}

// A backup holds no roles, and its tables belong to the role that restores it.
func TestRowsOutOfABackupAreBuiltAnew(t *testing.T) {
	t.Parallel()
	w := setup(t)
	modeltest.Lives(w.Log, "a", 24)
	w.add(example(t, "pass_rates"))
	stop := w.keep(declared.DefaultLimits())
	w.reached("pass_rates", 1)
	stop()
	schema := w.status("pass_rates").Schema
	w.Exec("ALTER FUNCTION " + schema + ".apply() OWNER TO CURRENT_USER")
	w.Exec("DELETE FROM " + schema + ".pass_rates")
	w.keep(declared.DefaultLimits())
	w.Eventually("the role owns the function", func() bool {
		return w.Count(`SELECT count(*) FROM pg_proc WHERE proname = 'apply' AND pg_get_userbyid(proowner) LIKE 'declared\_%'`) == 1
	})
	w.same("pass_rates", 1)
}

func TestARoleThatMayMakeNoRolesIsToldSo(t *testing.T) {
	t.Parallel()
	dsn := pgtest.NewDSN(t)
	admin := pgtest.NewDB(t, dsn)
	f := parse(t, example(t, "pass_rates"))
	u, err := url.Parse(dsn)
	must.NoError(t, err)
	for right, want := range map[string]error{"NOCREATEROLE": declared.ErrNoRoles, "CREATEROLE": nil} {
		name := fmt.Sprint("service_", strings.ToLower(right), "_", time.Now().UnixNano())
		run := func(statement string) {
			_, err := admin.Exec(statement)
			must.NoError(t, err)
		}
		run("CREATE ROLE " + name + " LOGIN PASSWORD 'secret' " + right)
		run("GRANT CREATE ON DATABASE " + strings.TrimPrefix(u.Path, "/") + " TO " + name)
		t.Cleanup(func() {
			run("DROP OWNED BY " + name)
			run("DROP ROLE " + name)
		})
		u.User = url.UserPassword(name, "secret")
		_, err = declared.Check(t.Context(), pgtest.NewDB(t, u.String()), nil, f, nil)
		if (err == nil) != (want == nil) || want != nil && !strings.Contains(err.Error(), want.Error()) {
			t.Errorf("%s: %v, want %v", right, err, want)
		}
	}
}

// A newer binary knows events that this one does not.
func TestAFileThatThisBinaryCannotReadStopsNoOther(t *testing.T) {
	t.Parallel()
	w := setup(t)
	modeltest.Lives(w.Log, "a", 12)
	w.Exec(`INSERT INTO declared_projections (name, version, file) VALUES ('newer', 1, 'name: newer')`)
	w.add(example(t, "pass_rates"))
	w.keep(declared.DefaultLimits())
	w.reached("pass_rates", 1)
	must.NoError(t, declared.Drop(w.Ctx(), w.DB, "newer"))
	left, err := declared.List(w.Ctx(), w.DB)
	must.NoError(t, err)
	if len(left) != 1 || left[0].Name != "pass_rates" {
		t.Errorf("%d are left: %+v", len(left), left)
	}
}

func TestAFolderIsAddedOnceTheLogAnswers(t *testing.T) {
	t.Parallel()
	w := setup(t)
	modeltest.Lives(w.Log, "a", 12)
	folder := t.TempDir()
	for name, text := range map[string]string{"refused": with(plainTable, "DROP TABLE hostile"), "pass_rates": example(t, "pass_rates")} {
		must.NoError(t, os.WriteFile(filepath.Join(folder, name+".yaml"), []byte(text), 0o600))
	}
	asked := 0
	last := func(context.Context, uint64, []string) ([]domain.Recorded, error) {
		if asked++; asked == 1 {
			return nil, domain.Unavailable(errors.New("no leader"))
		}
		return w.Log.All(), nil
	}
	quiet := logrus.New()
	quiet.SetOutput(io.Discard)
	w.run(declared.NewKeeper(w.DB, w.Log, quiet).From(folder, last))
	w.reached("pass_rates", 1)
	files, err := declared.List(w.Ctx(), w.DB)
	must.NoError(t, err)
	if len(files) != 1 {
		t.Errorf("%d files were added", len(files))
	}
}
