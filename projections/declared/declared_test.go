package declared_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"humanqa/internal/testing/modeltest"
	"humanqa/internal/testing/must"
	"humanqa/internal/testing/pgtest"
	"humanqa/projections/declared"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

// parse reads a file that is right.
func parse(t *testing.T, text string) declared.File {
	t.Helper()
	f, err := declared.Parse([]byte(text))
	must.NoError(t, err)
	return f
}

// with is a projection of completed jobs with other SQL.
func with(tables, apply string) string {
	indent := func(sql string) string { return "  " + strings.ReplaceAll(sql, "\n", "\n  ") }
	return "name: hostile\nversion: 1\nevents: [job.completed]\ntables: |\n" + indent(tables) + "\napply: |\n" + indent(apply) + "\n"
}

const (
	plainTable = "CREATE TABLE hostile (stream text PRIMARY KEY);"
	plainApply = "INSERT INTO hostile SELECT stream FROM batch ON CONFLICT DO NOTHING"
)

func TestAHostileFileIsRefusedByName(t *testing.T) {
	t.Parallel()
	w := modeltest.New(t)
	modeltest.Lives(w.Log, "a", 12)
	for what, c := range map[string]struct{ tables, apply, want string }{
		"a drop":               {plainTable, "DROP TABLE hostile", "line 7: apply: pq: DROP TABLE is not yet supported in unquoted SQL function body"},
		"a program":            {plainTable, "COPY hostile FROM PROGRAM 'id'", "COPY is not yet supported"},
		"a lock":               {plainTable, "LOCK TABLE public.projection_checkpoints", "LOCK TABLE is not yet supported"},
		"an advisory lock":     {plainTable, "SELECT pg_advisory_lock(1)", "it calls pg_advisory_lock"},
		"a sleep":              {plainTable, plainApply + ";\nSELECT pg_sleep(3600)", "it calls pg_sleep"},
		"another role":         {plainTable, "SELECT set_config('role', session_user, true)", "it calls current_timestamp or the like, set_config"},
		"a clock":              {plainTable, "INSERT INTO hostile SELECT now()::text", "it calls now"},
		"SQL in a text":        {plainTable, "SELECT query_to_xml('DROP TABLE public.goose_db_version', true, true, '')", "it calls query_to_xml"},
		"a block":              {plainTable, "DO $$ BEGIN END $$", "DO is not yet supported"},
		"an end":               {plainTable, "SELECT 1; END; DROP TABLE public.projection_checkpoints; SELECT 1", "cannot insert multiple commands into a prepared statement"},
		"another schema":       {plainTable, "INSERT INTO hostile SELECT id FROM readmodel.jobs", "permission denied for schema readmodel"},
		"another table":        {plainTable, "DELETE FROM public.projection_checkpoints", "permission denied for table projection_checkpoints"},
		"an error in its line": {plainTable, plainApply + ";\nINSERT INTO hostile\nSELECT nothing FROM batch", "line 9: apply: pq: column \"nothing\" does not exist"},
		"a foreign key":        {"CREATE TABLE hostile (stream text REFERENCES public.projection_checkpoints (schema_name));", plainApply, "line 5: tables: pq: permission denied for table projection_checkpoints"},
		"a default":            {"CREATE TABLE hostile (stream text, x text DEFAULT set_config('role', 'postgres', false));", plainApply, "it calls set_config"},
		"a check":              {"CREATE TABLE hostile (stream text CHECK (pg_sleep(9) IS NOT NULL));", plainApply, "it calls pg_sleep"},
		"numbers":              {"CREATE TABLE hostile (stream text, n serial);", plainApply, "it calls nextval"},
		"identities":           {"CREATE TABLE hostile (stream text, n bigint GENERATED ALWAYS AS IDENTITY);", plainApply, "it calls nextval"},
		"a query for a table":  {"CREATE TABLE hostile (stream) AS (SELECT set_config('role', 'postgres', false));", plainApply, "syntax error"},
		"a comment behind one": {"CREATE TABLE hostile (stream) AS (SELECT 'x'::text) --", plainApply, "syntax error"},
		"two at once":          {"CREATE TABLE hostile (stream text); DROP TABLE public.projection_checkpoints;", plainApply, `syntax error at or near "WITH"`},
		"an odd table":         {"CREATE FUNCTION hostile() RETURNS int LANGUAGE sql AS 'SELECT 1';", plainApply, "line 5: tables: only CREATE TABLE name (…) and CREATE INDEX may stand here"},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			f, err := declared.Parse([]byte(with(c.tables, c.apply)))
			if err == nil {
				_, err = declared.Check(w.Ctx(), w.DB, w.Log, f, w.Log.All())
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}

func TestTheExamplesAreShortAndTheirBatchesDoNotMatter(t *testing.T) {
	t.Parallel()
	w := modeltest.New(t)
	modeltest.Everything(w.Log)
	modeltest.Rest(w.Log)
	files, err := filepath.Glob("../../docs/projections/*.yaml")
	must.NoError(t, err)
	if len(files) < 4 {
		t.Errorf("%d examples", len(files))
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		must.NoError(t, err)
		if n := strings.Count(string(text), "\n"); n >= 30 {
			t.Errorf("%s has %d lines", file, n)
		}
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			f := parse(t, string(text))
			checked, err := declared.Check(w.Ctx(), w.DB, w.Log, f, w.Log.All())
			must.NoError(t, err)
			for _, table := range checked.Tables {
				if table.Rows == 0 {
					t.Errorf("nothing came into %s", table.Table)
				}
			}
			events, differences, err := declared.Test(w.Ctx(), w.DB, w.Log, f, w.Log.Head())
			must.NoError(t, err)
			if events == 0 || len(differences) > 0 {
				t.Errorf("%d events, %+v", events, differences)
			}
		})
	}
}
