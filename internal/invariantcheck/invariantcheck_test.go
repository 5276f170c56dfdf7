package invariantcheck_test

import (
	"context"
	"errors"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/sirupsen/logrus"
	"github.com/sirupsen/logrus/hooks/test"

	"humanqa/domain/audit"
	"humanqa/internal/invariantcheck"
	"humanqa/internal/testing/eventually"
	"humanqa/internal/testing/must"
	"humanqa/internal/testing/pgtest"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

// Two processes look all the time. A check is due by the clock of Postgres alone.
func TestTheInvariantsAreCheckedAgainOnceTheLastCheckIsOld(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	var ran, finds atomic.Int64
	var fails atomic.Bool
	run := func(context.Context, invariantcheck.Progress) (invariantcheck.Result, error) {
		if ran.Add(1); fails.Load() {
			return invariantcheck.Result{}, errors.New("no disk")
		}
		return invariantcheck.Result{Events: 7, Findings: make([]audit.Finding, finds.Load())}, nil
	}
	log, said := test.NewNullLogger()
	log.SetLevel(logrus.WarnLevel)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 2)
	var checks *invariantcheck.Checks
	for range cap(ended) {
		checks = invariantcheck.New(db, run, log)
		t.Cleanup(checks.Stop)
		go func() { ended <- checks.Repeat(ctx, 24*time.Hour, time.Millisecond) }()
	}
	defer func() {
		stop()
		for range cap(ended) {
			must.NoError(t, <-ended)
		}
	}()
	// Both may have found the same check due, one after the other.
	became := func(what string, want int64) {
		t.Helper()
		eventually.True(t, what, func() bool {
			all, err := checks.List(t.Context(), 1000)
			must.NoError(t, err)
			for _, one := range all {
				if one.Running() {
					return false
				}
			}
			return int64(len(all)) == ran.Load() && ran.Load() >= want
		})
	}
	age := func(interval string) {
		t.Helper()
		_, err := db.ExecContext(t.Context(), "UPDATE checkup.checks SET started_at = clock_timestamp() - $1::interval", interval)
		must.NoError(t, err)
	}
	became("the first check", 1)
	if got, err := checks.Problem(t.Context()); got != "" || err != nil {
		t.Errorf("%q %v", got, err)
	}
	finds.Store(2)
	age("25 hours")
	became("the check of the next day", 2)
	last, _, err := checks.LastDone(t.Context())
	must.NoError(t, err)
	if last.Found != 2 || last.PersonID != invariantcheck.ByItself {
		t.Errorf("the second check: %+v", last)
	}
	age("25 hours")
	if got := numbers(t, checks); got["humanqa_fsck_findings"] != 2 {
		t.Errorf("got %v", got)
	}
	fails.Store(true)
	before := ran.Load()
	age("-1 year") // nobody's clock
	became("a check behind one that was never made", before+1)
	before = ran.Load()
	fails.Store(false)
	_, err = db.ExecContext(t.Context(), "UPDATE checkup.checks SET state = 'failed' WHERE state = 'done'")
	must.NoError(t, err)
	age("2 hours")
	became("a failed check is repeated", before+1)
	must.NoError(t, invariantcheck.Record(t.Context(), db, "somebody", 0, invariantcheck.Result{Findings: make([]audit.Finding, 3)}))
	if last, _, err = checks.LastDone(t.Context()); err != nil || last.PersonID != "somebody" || last.Found != 3 {
		t.Errorf("a check by hand: %+v %v", last, err)
	}
	if len(said.AllEntries()) == 0 {
		t.Error("the log is silent about findings and failures")
	}
}

// numbers are the metrics by name.
func numbers(t *testing.T, c prometheus.Collector) map[string]float64 {
	t.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(c)
	families, err := registry.Gather()
	must.NoError(t, err)
	got := map[string]float64{}
	for _, f := range families {
		got[f.GetName()] = f.GetMetric()[0].GetGauge().GetValue()
	}
	return got
}
