package projections_test

import (
	"math/rand/v2"
	"testing"

	"humanqa/domain"
	ledgers "humanqa/domain/credits"
	"humanqa/internal/testing/longlog"
	"humanqa/internal/testing/modeltest"
	"humanqa/internal/testing/must"
	"humanqa/projections"
	"humanqa/projections/asof"
	"humanqa/projections/credits"
	"humanqa/projections/events"
	"humanqa/projections/ledger"
)

// A balance of the past reads the last book before its place, and as far back as it must
// where none was closed. It is what all events before it add up to.
func TestABalanceOfThePastReadsTheLastBookBeforeIt(t *testing.T) {
	t.Parallel()
	w := modeltest.New(t, ledger.Projector, events.Projector{})
	for account, closeEvery := range map[string]int{"closed": 1000, "open": 0} {
		l := longlog.NewLedger(w.Log, account, closeEvery)
		must.NoError(t, l.Grow(w.Ctx(), 8000, 100))
	}
	w.Run(w.Sup)
	w.Reach(w.Sup)
	reads := asof.NewReads(w.Log, w.DB, projections.NewReads(w.DB))
	for _, account := range []string{"closed", "open"} {
		all := w.Log.Stream(domain.CreditsStream(account))
		at := map[int]bool{0: true, 1: true, len(all) - 1: true}
		for range 40 {
			at[rand.IntN(len(all))] = true
		}
		past := credits.NewPast(account) // of all events, as before books were closed
		for i, r := range all {
			if _, closes := r.Event.(*ledgers.Closed); !closes {
				past.Fold(r.Event)
			}
			if !at[i] {
				continue
			}
			got, err := reads.Balance(w.Ctx(), account, events.Until{Position: r.Position})
			must.NoError(t, err)
			modeltest.Same(t, got, past.Balance(r.Meta.Time))
		}
	}
}
