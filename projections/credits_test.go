package projections_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"humanqa/domain"
	"humanqa/domain/credits"
	"humanqa/internal/testing/modeltest"
	"humanqa/internal/testing/must"
	creditsmodel "humanqa/projections/credits"
)

func TestABalanceShowsWhatCanBeSpentNow(t *testing.T) {
	t.Parallel()
	w := setup(t, creditsmodel.Projector)
	w.Run(w.Sup)
	day := func(n int) *time.Time {
		d := modeltest.Noon.AddDate(0, 0, n)
		return &d
	}
	w.Log.Record(domain.CreditsStream("acc"),
		&credits.Granted{LotID: "gone", Amount: 7, ExpiresAt: day(-1), BalanceAfter: 7},
		&credits.Granted{LotID: "later", Amount: 20, ExpiresAt: day(20), BalanceAfter: 27},
		&credits.Granted{LotID: "soon", Amount: 10, ExpiresAt: day(2), BalanceAfter: 37},
		&credits.Granted{LotID: "far", Amount: 40, ExpiresAt: day(31), BalanceAfter: 77},
		&credits.Granted{LotID: "ever", Amount: 80, BalanceAfter: 157},
		&credits.Debited{JobID: "j1", Amount: 9, Parts: []credits.Part{{LotID: "gone", Amount: 3}, {LotID: "soon", Amount: 6}}, BalanceAfter: 148},
		&credits.Debited{JobID: "j2", Amount: 5, Parts: []credits.Part{{LotID: "ever", Amount: 5}}, BalanceAfter: 143},
		&credits.Refunded{JobID: "j1", Amount: 9, Expired: 3, Parts: []credits.Part{{LotID: "gone", Amount: 3, Expired: true}, {LotID: "soon", Amount: 6}}, BalanceAfter: 149})
	w.Reach(w.Sup)
	balance := func(now time.Time) creditsmodel.Balance {
		t.Helper()
		b, err := w.reads.Credits.Balance(w.Ctx(), "acc", now)
		must.NoError(t, err)
		return b
	}
	// The rest of "gone" has left the total although its expiry is not recorded.
	modeltest.Same(t, balance(modeltest.Noon), creditsmodel.Balance{Available: 145, Used: 5, Total: 150, LowBelow: 20, Expiring: []creditsmodel.ExpiringCredits{
		{Amount: 10, ExpiresAt: *day(2)}, {Amount: 20, ExpiresAt: *day(20)},
	}})
	// A lot is gone at the very instant at which it expires.
	modeltest.Same(t, balance(*day(2)), creditsmodel.Balance{Available: 135, Used: 5, Total: 140, LowBelow: 20, Expiring: []creditsmodel.ExpiringCredits{
		{Amount: 20, ExpiresAt: *day(20)}, {Amount: 40, ExpiresAt: *day(31)},
	}})

	w.Log.Record(domain.CreditsStream("acc"), &credits.LotExpired{LotID: "gone", Amount: 4, BalanceAfter: 145})
	w.Reach(w.Sup)
	if b := balance(modeltest.Noon); b.Available != 145 || b.Total != 150 {
		t.Errorf("recording the expiry changed the balance: %+v", b)
	}
	empty, err := w.reads.Credits.Balance(w.Ctx(), "nobody", modeltest.Noon)
	must.NoError(t, err)
	modeltest.Same(t, empty, creditsmodel.Balance{LowBelow: 20})
	for _, below := range []domain.Credits{50, 0} {
		w.Log.Record(domain.CreditsStream("acc"), &credits.LowSet{Below: below, BalanceAfter: 145})
		w.Reach(w.Sup)
		if b := balance(modeltest.Noon); b.LowBelow != below || b.Available != 145 {
			t.Errorf("with a limit of %d: %+v", below, b)
		}
	}
	w.Sound(w.Sup, "credits")
}

// The ledger's own fold and the read model must agree whatever happens, and so must the
// balance of a moment that is folded from the last close on.
func TestBalancesAgreeWithTheLedger(t *testing.T) {
	t.Parallel()
	w := setup(t, creditsmodel.Projector)
	w.Run(w.Sup)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	dice := rand.New(rand.NewPCG(seed, 0))
	var (
		state credits.State
		jobs  int
		now   = modeltest.Noon
		past  = creditsmodel.NewPast("acc") // from the last close on
	)
	for step := range 400 {
		var (
			events []domain.Event
			err    error
		)
		now = now.Add(time.Duration(dice.IntN(3600)) * time.Second)
		switch dice.IntN(9) {
		case 0:
			var expires *time.Time
			if dice.IntN(3) > 0 {
				e := now.Add(time.Duration(1+dice.IntN(72)) * time.Hour)
				expires = &e
			}
			events, err = credits.DecideGrant(state, fmt.Sprint("l", step), domain.Credits(1+dice.IntN(50)), expires, "", now)
		case 1, 2, 3, 4:
			jobs++
			charge := credits.Charge{
				JobID: fmt.Sprint("j", jobs), Amount: domain.Credits(1 + dice.IntN(9)), AskedAt: now, KnownTo: state.Book().Closes,
			}
			events, err = credits.DecideDebits(state, []credits.Charge{charge}, now)
		case 5, 6:
			id := fmt.Sprint("j", dice.IntN(jobs+1))
			if _, charged := state.Debit(id); charged {
				events, err = credits.DecideRefund(state, id, "client", now)
			}
		case 7:
			id := fmt.Sprint("j", dice.IntN(jobs+1))
			events, err = credits.DecideClose(state, map[string]credits.Settled{id: {Completed: true}}, now)
			if len(events) > 0 {
				past = creditsmodel.NewPast("acc")
			}
		default:
			events, err = credits.DecideExpire(state, now)
		}
		if err != nil && !domain.IsKind(err, domain.KindPayment) && !domain.IsKind(err, domain.KindNotFound) {
			t.Fatal(err)
		}
		for _, e := range events {
			state = credits.Evolve(state, e)
			past.Fold(e)
		}
		w.Log.Record(domain.CreditsStream("acc"), events...)
		if step%20 != 0 {
			continue
		}
		w.Reach(w.Sup)
		b, err := w.reads.Credits.Balance(w.Ctx(), "acc", now)
		must.NoError(t, err)
		if b.Available != state.Available(now) || b.Used != state.Used() {
			t.Fatalf("step %d: the read model has %+v, the ledger %d available, %d used", step, b, state.Available(now), state.Used())
		}
		modeltest.Same(t, past.Balance(now), b)
	}
	w.Sound(w.Sup, "credits")
}
