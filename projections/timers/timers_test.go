package timers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lib/pq"
	"github.com/sirupsen/logrus"

	"humanqa/domain"
	"humanqa/domain/account"
	"humanqa/domain/credits"
	"humanqa/domain/job"
	"humanqa/domain/policy"
	"humanqa/eventstore/consumer"
	"humanqa/eventstore/generation"
	"humanqa/internal/testing/logtest"
	"humanqa/internal/testing/modeltest"
	"humanqa/internal/testing/must"
	"humanqa/internal/testing/pgtest"
	"humanqa/projections/readmodel"
)

// Events of memoryLog happened long ago, so their timers are due at once.
const (
	orphans = "orphaned_debit"
	slas    = "sla"
	lots    = "lot_expiry"
)

// reachTimers waits until the timers' rows are as new as the log; WaitFor does
// not cover them.
func (w *world) reachTimers() {
	w.T.Helper()
	w.Eventually("the timers are written", func() bool {
		s := w.Status("timers")
		return s.Position.Compare(w.Log.Head()) >= 0 && s.State != generation.Building
	})
}

func (w *world) timers() *Timers { return New(w.DB, "") }

func (w *world) due(kind string, limit int, lease time.Duration) []policy.Timer {
	w.T.Helper()
	due, err := w.timers().TakeDue(w.Ctx(), []string{kind}, limit, 0, lease)
	must.NoError(w.T, err)
	return due
}

func (w *world) wantDue(kind string, lease time.Duration, keys ...string) []policy.Timer {
	w.T.Helper()
	due := w.due(kind, 100, lease)
	got := map[string]bool{}
	for _, d := range due {
		got[d.Key] = true
	}
	ok := len(due) == len(keys)
	for _, k := range keys {
		ok = ok && got[k]
	}
	if !ok {
		w.T.Fatalf("due: %+v, want %v", due, keys)
	}
	return due
}

func (w *world) settleTimers(outcomes ...policy.Outcome) {
	w.T.Helper()
	must.NoError(w.T, w.timers().Settle(w.Ctx(), outcomes))
}

// endLeases lets every lease, and every pause, have ended.
func (w *world) endLeases() {
	w.Exec("UPDATE policy.leases SET until = now() - interval '1 second'")
}

func TestATimerIsSetByADebitAndClearedByItsJob(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.Run(w.Sup)
	w.Log.Record("credits-acc", &credits.Debited{JobID: "came"})
	w.Log.Record("job-came", &job.Created{Submission: job.Submission{AccountID: "acc"}})
	w.Log.Record("credits-acc", &credits.Debited{JobID: "lost"})
	w.reachTimers()
	got := w.wantDue(orphans, time.Minute, "lost")[0]
	want := policy.Timer{
		Kind: orphans, Key: "lost", AccountID: "acc", DueAt: time.Time{}.Add(20 * time.Second), WallClock: true,
		CauseID: w.Log.All()[2].ID.String(), Position: 3, Attempt: 1, Fence: 1,
	}
	if got != want {
		t.Errorf("due: %+v, want %+v", got, want)
	}

	t.Run("and by the refund", func(t *testing.T) {
		w.Log.Record("credits-acc", &credits.Refunded{JobID: "lost"})
		w.reachTimers()
		w.endLeases()
		w.wantDue(orphans, 0)
	})
}

func TestATimerOfTheFutureIsNotDueButKnown(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.Run(w.Sup)
	at := time.Now().Add(time.Hour)
	w.Log.Record("credits-acc", &credits.Granted{LotID: "lot", Amount: 1, ExpiresAt: &at})
	w.reachTimers()
	w.wantDue(lots, time.Minute)
	next, found, err := w.timers().Next(w.Ctx(), []string{lots}, 2*time.Hour)
	if err != nil || !found || next < 50*time.Minute || next > time.Hour+time.Second {
		t.Errorf("the next is due in %v, %v, %v, want about an hour", next, found, err)
	}
	if next, found, err := w.timers().Next(w.Ctx(), []string{orphans}, 2*time.Hour); found || err != nil {
		t.Errorf("of another kind %v, %v, %v, want none", next, found, err)
	}
	if next, found, err := w.timers().Next(w.Ctx(), []string{lots}, time.Minute); found || err != nil {
		t.Errorf("within a minute %v, %v, %v, want none", next, found, err)
	}
}

func TestALeasedTimerIsNobodyElsesUntilTheLeaseEnds(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.Run(w.Sup)
	const timers = 200
	for i := range timers {
		w.Log.Record("credits-acc", &credits.Debited{JobID: fmt.Sprint("j", i)})
	}
	w.reachTimers()

	var (
		mu    sync.Mutex
		taken = map[string]int{}
		nodes sync.WaitGroup
	)
	for range 8 {
		nodes.Go(func() {
			for {
				due, err := w.timers().TakeDue(context.Background(), []string{orphans}, 7, 0, time.Hour)
				if err != nil {
					t.Error(err)
				}
				if err != nil || len(due) == 0 {
					return
				}
				mu.Lock()
				for _, d := range due {
					taken[d.Key]++
				}
				mu.Unlock()
			}
		})
	}
	nodes.Wait()
	// A node that finds nothing may stop while another is between its choice
	// and its lease: what is left is still nobody's.
	for _, d := range w.due(orphans, timers, time.Hour) {
		taken[d.Key]++
	}
	if len(taken) != timers {
		t.Errorf("%d timers were taken, want %d", len(taken), timers)
	}
	for key, n := range taken {
		if n != 1 {
			t.Errorf("%s was taken %d times", key, n)
		}
	}

	t.Run("and comes back then", func(t *testing.T) {
		w.endLeases()
		due := w.due(orphans, timers, time.Hour)
		if len(due) != timers {
			t.Fatalf("%d timers came back, want %d", len(due), timers)
		}
		for _, d := range due {
			if d.Attempt != 2 || d.Fence != 2 {
				t.Errorf("%s came back as attempt %d, fence %d, want 2, 2", d.Key, d.Attempt, d.Fence)
			}
		}
	})
	t.Run("unless it is renewed by its holder", func(t *testing.T) {
		w.endLeases()
		renew := func(timer policy.Timer) bool {
			t.Helper()
			held, err := w.timers().Renew(w.Ctx(), timer, time.Hour)
			must.NoError(t, err)
			return held
		}
		holder := policy.Timer{Kind: orphans, Key: "j0", Fence: 2}
		before := holder
		before.Fence = 1
		if renew(before) || !renew(holder) {
			t.Error("the lease is the newest fence's, and nobody else's")
		}
		if n := len(w.due(orphans, timers, time.Hour)); n != timers-1 {
			t.Errorf("%d timers came back, want all but the renewed one", n)
		}
		w.settleTimers(policy.Outcome{Timer: holder})
		if renew(holder) {
			t.Error("a settled timer has no lease")
		}
	})
}

func TestASettledTimerStaysSettledUntilALaterEventSetsItAgain(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.Run(w.Sup)
	w.Log.Record("job-j", &job.Created{Submission: job.Submission{AccountID: "acc", SLAMinutes: 15}})
	w.reachTimers()
	w.settleTimers(policy.Outcome{Timer: w.wantDue(slas, time.Minute, "j")[0]})
	w.endLeases()
	w.wantDue(slas, time.Minute)

	t.Run("also when the timers are rebuilt", func(t *testing.T) {
		before := w.Status("timers").Number
		must.NoError(t, w.Sup.RebuildAll(w.Ctx(), []string{"timers"}, func(consumer.Progress) {}))
		w.Eventually("the rebuild serves", func() bool { return w.Status("timers").Number > before })
		w.reachTimers()
		if n := w.Count("SELECT count(*) FROM readmodel.timers WHERE kind = $1", slas); n != 1 {
			t.Fatalf("%d timers were rebuilt, want 1", n)
		}
		w.wantDue(slas, time.Minute)
	})
	t.Run("and then it is due for that event", func(t *testing.T) {
		w.Log.Record("job-j", &job.SLAMissed{RequeueCount: 1, Requeued: true, DueAt: modeltest.Noon})
		w.reachTimers()
		again := w.wantDue(slas, time.Minute, "j")[0]
		if again.Position != 2 || again.Attempt != 1 {
			t.Errorf("due: %+v, want the first attempt for event 2", again)
		}
	})
}

func TestATimerThatIsSetAgainWhileItRestsDoesNotWait(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.Run(w.Sup)
	w.Log.Record("job-j", &job.Created{Submission: job.Submission{AccountID: "acc", SLAMinutes: 15}})
	w.reachTimers()
	first := w.wantDue(slas, time.Hour, "j")[0]
	w.settleTimers(policy.Outcome{Timer: first, Err: errors.New("no log"), Retry: time.Hour})
	w.wantDue(slas, time.Hour)
	if next, found, err := w.timers().Next(w.Ctx(), []string{slas}, 2*time.Hour); err != nil || !found || next < 50*time.Minute {
		t.Errorf("it comes back in %v, %v, %v, want about an hour", next, found, err)
	}
	w.Log.Record("job-j", &job.SLAMissed{RequeueCount: 1, Requeued: true, DueAt: modeltest.Noon})
	w.reachTimers()
	second := w.wantDue(slas, time.Hour, "j")[0]

	t.Run("and the earlier lease settles nothing", func(t *testing.T) {
		w.settleTimers(policy.Outcome{Timer: first})
		if n := w.Count("SELECT count(*) FROM policy.leases WHERE state = 'leased' AND fence = $1", second.Fence); n != 1 {
			t.Error("the lease of the later event was settled by the earlier one")
		}
	})
}

func TestASandboxsClockBringsItsTimersEarly(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.Run(w.Sup)
	at := time.Now().Add(time.Hour)
	expiring := func(id string) *credits.Granted {
		return &credits.Granted{LotID: id, Amount: 1, ExpiresAt: &at}
	}
	w.Log.Record("account-box", &account.Created{Name: "Box", Sandbox: true})
	w.Log.Record("account-acc", &account.Created{Name: "Acc"})
	w.Log.Record("credits-box", expiring("before"))
	w.Log.Record("credits-acc", expiring("others"), &credits.Debited{JobID: "j"})
	w.reachTimers()
	w.wantDue(lots, time.Minute)

	w.Log.Record("account-box", &account.ClockAdvanced{Seconds: 3590, OffsetSeconds: 3590})
	w.reachTimers()
	w.wantDue(lots, time.Minute)
	w.Log.Record("account-box", &account.ClockAdvanced{Seconds: 20, OffsetSeconds: 3610})
	w.Log.Record("credits-box", expiring("behind"))
	w.reachTimers()
	due := w.wantDue(lots, time.Minute, "before", "behind")
	for _, d := range due {
		if !d.Sandbox || d.AccountID != "box" || !d.DueAt.Equal(readmodel.Moment(at)) {
			t.Errorf("due: %+v, want it to be the sandbox's, and due by the account's time", d)
		}
	}

	t.Run("but not those that keep the service's time", func(t *testing.T) {
		w.Log.RecordAs(domain.Metadata{Time: time.Now()}, "credits-box", &credits.Debited{JobID: "soon"})
		w.reachTimers()
		w.wantDue(orphans, time.Minute, "j")
	})
	t.Run("whatever the batches", func(t *testing.T) {
		w.Sound(w.Sup, "timers")
	})
}

func TestNothingIsDueWhileTheTimersAreBuiltForTheFirstTime(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.Log.Record("credits-acc", &credits.Debited{JobID: "came"})
	w.Log.Record("job-came", &job.Created{Submission: job.Submission{AccountID: "acc"}})
	w.Log.Hold(1)
	w.Run(w.Sup)
	w.Eventually("the debit is written", func() bool {
		return w.Count("SELECT count(*) FROM readmodel.timers WHERE kind = $1", orphans) == 1
	})
	if s := w.Status("timers"); s.State != generation.Building {
		t.Fatalf("the timers are %s, want them to be building", s.State)
	}
	w.wantDue(orphans, time.Minute)
}

func TestSettledTimersAreNotLookedAtForEver(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.Run(w.Sup)
	forget := func() {
		t.Helper()
		must.NoError(t, w.timers().Forget(w.Ctx()))
	}
	behind := func() int {
		return w.Count("SELECT count(*) FROM readmodel.timers, policy.horizons WHERE generation = $1 AND timers.fire_at < horizons.fire_at",
			w.Status("timers").Schema)
	}
	within := func(minutes int) *job.Created {
		return modeltest.Created("acc", func(e *job.Created) { e.SLAMinutes = minutes })
	}
	at := time.Now().Add(time.Hour)
	w.Log.Record("account-box", &account.Created{Name: "Box", Sandbox: true})
	w.Log.Record("credits-box", &credits.Granted{LotID: "ahead", Amount: 1, ExpiresAt: &at})
	w.Log.Record("job-a", within(15))
	w.Log.Record("job-b", within(30))
	w.reachTimers()
	for _, due := range w.wantDue(slas, time.Minute, "a", "b") {
		o := policy.Outcome{Timer: due}
		if due.Key == "b" { // the later one
			o.Err = errors.New("no log")
		}
		w.settleTimers(o)
	}
	forget()
	if n := behind(); n != 1 {
		t.Fatalf("%d timers are behind the horizon, want the settled one", n)
	}
	w.settleTimers(policy.Outcome{Timer: w.wantDue(slas, time.Minute, "b")[0]})
	forget()
	if n := behind(); n < 2 {
		t.Fatalf("%d timers are behind the horizon, want all settled ones", n)
	}
	for _, c := range []struct {
		what, kind, key string
		event           func()
	}{
		{"one that is set late", slas, "late", func() { w.Log.Record("job-late", within(15)) }},
		{"one that is set again", slas, "a", func() {
			w.Log.Record("job-a", &job.SLAMissed{RequeueCount: 1, Requeued: true, DueAt: modeltest.Noon})
		}},
		{"one that a sandbox's clock brings", lots, "ahead", func() {
			w.Log.Record("account-box", &account.ClockAdvanced{Seconds: 1e6, OffsetSeconds: 1e6})
		}},
	} {
		forget()
		c.event()
		w.reachTimers()
		due := w.due(c.kind, 10, time.Minute)
		if len(due) != 1 || due[0].Key != c.key {
			t.Errorf("%s: due are %+v, want %s", c.what, due, c.key)
			continue
		}
		w.settleTimers(policy.Outcome{Timer: due[0]})
	}
	w.Sound(w.Sup, "timers")
}

// Neither what was settled long ago nor what lies far ahead is read to find
// what is due.
func TestLookingForTimersWalksOnlyWhatIsDue(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.Exec("UPDATE projection_checkpoints SET status = 'live' WHERE name = 'timers'")
	w.Exec(`INSERT INTO readmodel.timers
		SELECT 'sla', 'j' || n, 'acc', now(), true, false, now() + (n - 10000) * interval '1 minute', '', n FROM generate_series(1, 20000) n`)
	w.Exec(`INSERT INTO policy.leases (kind, key, until, position, state)
		SELECT kind, key, now(), position, 'settled' FROM readmodel.timers WHERE fire_at <= now() - interval '5 minutes'`)
	must.NoError(t, w.timers().Forget(w.Ctx()))
	w.Exec("ANALYZE " + w.Status("timers").Schema + ".timers")
	w.Exec("ANALYZE policy.leases")
	for name, plan := range map[string]string{
		"take": w.Plan(takeDueTimersSQL, pq.Array([]string{slas}), 256, 15.0),
		"next": w.Plan(nextTimerSQL, pq.Array([]string{slas}), 5.0),
	} {
		if !strings.Contains(plan, "timers_fire_at_idx") || !strings.Contains(plan, "fire_at <= ") || strings.Contains(plan, "Seq Scan on timers") ||
			strings.Contains(plan, "Seq Scan on leases") {
			t.Errorf("%s does not walk the index of what is due:\n%s", name, plan)
		}
	}
	if due := w.due(slas, 256, time.Minute); len(due) != 5 {
		t.Errorf("%d timers are due, want the 5 that are not settled", len(due))
	}
}

func BenchmarkTakeAndSettleTimers(b *testing.B) {
	const many = 10_000
	db := pgtest.New(b)
	quiet := logrus.New()
	quiet.SetOutput(io.Discard)
	must.NoError(b, consumer.New(db, logtest.New(), quiet, NewProjector(policy.Rules())).Prepare(b.Context()))
	timers := New(db, "")
	for b.Loop() {
		b.StopTimer()
		_, err := db.ExecContext(b.Context(), fmt.Sprintf(`
			UPDATE projection_checkpoints SET status = 'live';
			TRUNCATE policy.leases;
			DELETE FROM readmodel.timers;
			INSERT INTO readmodel.timers
			SELECT 'sla', 'j' || n, 'acc', now(), true, false, now(), '', n FROM generate_series(1, %d) n`, many))
		must.NoError(b, err)
		b.StartTimer()
		for left := many; left > 0; {
			due, err := timers.TakeDue(b.Context(), []string{slas}, 256, 0, time.Minute)
			must.NoError(b, err)
			outcomes := make([]policy.Outcome, len(due))
			for i, d := range due {
				outcomes[i].Timer = d
			}
			must.NoError(b, timers.Settle(b.Context(), outcomes))
			left -= len(due)
		}
	}
	b.ReportMetric(many*float64(b.N)/b.Elapsed().Seconds(), "timers/s")
}

// After an upgrade the old rows are shown until the new ones are built.
func TestNothingIsDueWhileAnOlderVersionOfTheTimersIsShown(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.Run(w.Sup)
	w.Log.Record("credits-acc", &credits.Debited{JobID: "lost"})
	w.reachTimers()
	w.Exec("ALTER VIEW readmodel.timers RENAME TO new_timers")
	w.Exec("CREATE VIEW readmodel.timers AS SELECT kind, key, due_at FROM readmodel.new_timers")
	w.wantDue(orphans, time.Minute)
	if next, found, err := w.timers().Next(w.Ctx(), []string{orphans}, 2*time.Hour); found || err != nil {
		t.Errorf("the next is due in %v, %v, %v", next, found, err)
	}
	w.Exec("DROP VIEW readmodel.timers")
	w.Exec("ALTER VIEW readmodel.new_timers RENAME TO timers")
	w.wantDue(orphans, time.Minute, "lost")
}
