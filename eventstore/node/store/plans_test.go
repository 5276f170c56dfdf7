package store

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/jmoiron/sqlx"

	"humanqa/internal/testing/must"
	"humanqa/internal/testing/pgtest"
)

// Each statement has the plan that it had when the log was empty, along the indexes.
func TestPlansHoldHoweverLongTheLogIs(t *testing.T) {
	t.Parallel()
	db, err := openDB(pgtest.NewDSN(t), 1, nil)
	must.NoError(t, err)
	t.Cleanup(func() { must.NoError(t, db.Close()) })
	conn, err := sqlx.NewDb(db, "postgres").Connx(t.Context())
	must.NoError(t, err)
	statements := map[string]string{
		"states": sqlLoadStates, "ids": sqlLastIDs, "identities": sqlIdentities, "insert": sqlInsertGroup, "believed": sqlInsertIfAbsent,
		"all_forward": sqlAllForward, "all_backward": sqlAllBackward,
		"stream_forward": sqlStreamForward, "stream_backward": sqlStreamBackward, "stream_info": sqlStreamInfo,
		"unreadable": sqlUnreadable,
	}
	condition := regexp.MustCompile(`Index Cond: \(\(?(stream = |"position" >?= )`)
	parameter := regexp.MustCompile(`\$\d+`)
	plan := func(name string) string {
		parameters := map[string]bool{}
		for _, p := range parameter.FindAllString(statements[name], -1) {
			parameters[p] = true
		}
		nulls := strings.TrimSuffix(strings.Repeat("NULL,", len(parameters)), ",")
		var lines []string
		must.NoError(t, conn.SelectContext(t.Context(), &lines, fmt.Sprintf("EXPLAIN (COSTS OFF) EXECUTE %s (%s)", name, nulls)))
		return strings.Join(lines, "\n")
	}
	fill := func(from, to int) {
		_, err := conn.ExecContext(t.Context(), fmt.Sprintf(`INSERT INTO eventlog.events
			SELECT i, i %% 4, 0, gen_random_uuid(), true, 'job-' || i / 4, 'x', '', '' FROM generate_series(%d, %d) AS i`, from, to))
		must.NoError(t, err)
	}
	for name, text := range statements {
		_, err := conn.ExecContext(t.Context(), "PREPARE "+name+" AS "+text)
		must.NoError(t, err)
	}
	looked := func(rows int) {
		for name := range statements {
			got := plan(name)
			scans := strings.Count(got, " Scan using ") + strings.Count(got, "Scan Backward using ")
			conditions := len(condition.FindAllString(got, -1))
			if strings.Contains(got, "Seq Scan") || scans != conditions || scans == 0 && name != "insert" {
				t.Errorf("%s at %d rows:\n%s", name, rows, got)
			}
		}
	}
	looked(0)
	fill(0, 999)
	looked(1000)
	fill(1000, 99_999)
	looked(100_000)
	_, err = conn.ExecContext(t.Context(), "ANALYZE eventlog.events")
	must.NoError(t, err)
	looked(100_000)
}
