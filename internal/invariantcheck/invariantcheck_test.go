package invariantcheck_test

import (
	"context"
	"errors"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	"github.com/sirupsen/logrus/hooks/test"

	"humanqa/domain/audit"
	"humanqa/internal/invariantcheck"
	"humanqa/internal/testing/eventually"
	"humanqa/internal/testing/gauges"
	"humanqa/internal/testing/must"
	"humanqa/internal/testing/pgtest"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

// Two processes look all the time. A check is due by the clock of Postgres alone.
func TestTheInvariantsAreCheckedAgainOnceTheLastCheckIsOld(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	var finds atomic.Int64
	var fails atomic.Bool
	run := func(context.Context, invariantcheck.Progress) (invariantcheck.Result, error) {
		if fails.Load() {
			return invariantcheck.Result{}, errors.New("no disk")
		}
		return invariantcheck.Result{Events: 7, Findings: make([]audit.Finding, finds.Load())}, nil
	}
	log, said := test.NewNullLogger()
	log.SetLevel(logrus.WarnLevel)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 2)
	for range cap(ended) {
		process := invariantcheck.New(db, run, log)
		t.Cleanup(process.Stop)
		go func() { ended <- process.Repeat(ctx, 24*time.Hour, time.Millisecond) }()
	}
	ends := sync.OnceFunc(func() {
		stop()
		for range cap(ended) {
			must.NoError(t, <-ended)
		}
	})
	defer ends()
	checks := invariantcheck.New(db, run, log) // an API process: it starts none
	became := func(what string, is func(invariantcheck.Check) bool) {
		t.Helper()
		eventually.True(t, what, func() bool {
			all, err := checks.List(t.Context(), 1)
			must.NoError(t, err)
			return len(all) == 1 && is(all[0])
		})
	}
	done := func(found int) func(invariantcheck.Check) bool {
		return func(c invariantcheck.Check) bool {
			return c.State == "done" && c.Found == found && c.PersonID == invariantcheck.ByItself
		}
	}
	change := func(set string) {
		t.Helper()
		_, err := db.ExecContext(t.Context(), "UPDATE checkup.checks SET "+set)
		must.NoError(t, err)
	}
	became("the first check", done(0))
	if got, err := checks.Problem(t.Context()); got != "" || err != nil {
		t.Errorf("%q %v", got, err)
	}
	finds.Store(2)
	change("started_at = clock_timestamp() - interval '25 hours'")
	became("the check of the next day", done(2))
	if got := gauges.Of(t, checks); got["humanqa_fsck_findings"] != 2 || got["humanqa_fsck_age_seconds"] > time.Hour.Seconds() {
		t.Errorf("got %v", got)
	}
	fails.Store(true)
	change("started_at = clock_timestamp() - interval '25 hours'")
	became("a check fails", func(c invariantcheck.Check) bool { return c.State == "failed" && c.Problem == "no disk" })
	fails.Store(false)
	finds.Store(0)
	change("started_at = clock_timestamp() - interval '2 hours', state = 'failed'")
	became("a failed check is repeated", done(0))
	finds.Store(1)
	change("started_at = clock_timestamp() + interval '1 year', ended_at = started_at") // by a clock that was wrong
	eventually.True(t, "a check behind one that was never made", func() bool {
		var n int
		must.NoError(t, db.GetContext(t.Context(), &n, "SELECT count(*) FROM checkup.checks WHERE state = 'done' AND found = 1"))
		return n > 0
	})
	ends()
	change("started_at = clock_timestamp() - interval '1 minute'")
	must.NoError(t, invariantcheck.Record(t.Context(), db, "an operator", 0, invariantcheck.Result{Findings: make([]audit.Finding, 3)}))
	if last, _, err := checks.LastDone(t.Context()); err != nil || last.PersonID != "an operator" || last.Found != 3 {
		t.Errorf("a check by hand: %+v %v", last, err)
	}
	if len(said.AllEntries()) == 0 {
		t.Error("the log is silent about findings and failures")
	}
}
