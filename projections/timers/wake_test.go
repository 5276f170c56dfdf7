package timers

import (
	"context"
	"testing"
	"time"

	"github.com/lib/pq"

	"humanqa/domain"
	"humanqa/domain/credits"
	"humanqa/domain/policy"
	"humanqa/internal/testing/eventually"
	"humanqa/internal/testing/logtest"
	"humanqa/internal/testing/modeltest"
	"humanqa/internal/testing/must"
	"humanqa/internal/testing/pgtest"
)

func TestWhoeverListensHearsOfNewTimers(t *testing.T) {
	t.Parallel()
	dsn := pgtest.NewDSN(t)
	w := &world{World: &modeltest.World{T: t, DB: pgtest.NewDB(t, dsn), Log: logtest.New()}}
	w.Sup = w.Service(w.Log, NewProjector(policy.Rules()))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	wake := New(w.DB, dsn).Wake(ctx)
	w.Eventually("somebody listens", func() bool {
		return w.Count("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND query ILIKE 'LISTEN%' AND state = 'idle'") == 1
	})
	w.Run(w.Sup)
	w.Log.Record("credits-acc", &credits.Debited{JobID: "j"})
	select {
	case <-wake:
		w.reachTimers()
		w.wantDue(orphans, time.Minute, "j")
	case <-time.After(eventually.Patience):
		t.Fatal("nobody was woken")
	}
}

// The policies look every few seconds anyway: what is due long after that wakes nobody.
func TestATimerThatIsDueLongFromNowWakesNobody(t *testing.T) {
	t.Parallel()
	dsn := pgtest.NewDSN(t)
	w := &world{World: &modeltest.World{T: t, DB: pgtest.NewDB(t, dsn), Log: logtest.New()}}
	w.Sup = w.Service(w.Log, NewProjector(policy.Rules()))
	listener := pq.NewListener(dsn, time.Second, time.Second, nil)
	defer func() { _ = listener.Close() }()
	must.NoError(t, listener.Listen(timersChannel))
	w.Run(w.Sup)
	year := time.Now().AddDate(1, 0, 0)
	w.Log.Record("credits-acc", &credits.Granted{LotID: "l", Amount: 5, ExpiresAt: &year})
	w.reachTimers()
	if n := w.Count("SELECT count(*) FROM readmodel.timers WHERE fire_at > now() + interval '1 day'"); n != 1 {
		t.Fatalf("%d timers are due long from now, want 1", n)
	}
	w.Log.RecordAs(domain.Metadata{Time: time.Now()}, "credits-acc", &credits.Debited{JobID: "today's"}) // a charge's is due in twenty seconds
	w.reachTimers()
	w.Log.Record("credits-acc", &credits.Debited{JobID: "other"})
	w.reachTimers()
	w.Exec("SELECT pg_notify($1, 'the last')", timersChannel)
	for soon := 0; ; {
		select {
		case n := <-listener.Notify:
			switch {
			case n == nil: // a new connection
			case n.Extra == "":
				soon++
			case soon != 1:
				t.Errorf("the policies were woken %d times, want once, for what is due soon", soon)
				return
			default:
				return
			}
		case <-time.After(eventually.Patience):
			t.Fatal("nobody was woken")
		}
	}
}
