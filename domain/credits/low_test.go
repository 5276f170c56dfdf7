package credits_test

import (
	"testing"

	"humanqa/domain"
	"humanqa/domain/credits"
)

// A debit carries the limit in force, so that whoever announces it needs no other
// event.
func TestADebitCarriesTheLimitInForce(t *testing.T) {
	t.Parallel()
	set := func(below domain.Credits) func(credits.State) ([]domain.Event, error) {
		return func(s credits.State) ([]domain.Event, error) { return credits.DecideLow(s, below, t0) }
	}
	state := credits.Evolve(credits.State{}, &credits.Granted{LotID: "lot", Amount: 100, BalanceAfter: 100})
	debit := func(job string) *credits.Debited {
		t.Helper()
		events, err := credits.DecideDebits(state, []credits.Charge{{JobID: job, Amount: 5}}, t0)
		if err != nil || len(events) != 1 {
			t.Fatal(events, err)
		}
		state = credits.Evolve(state, events[0])
		return events[0].(*credits.Debited)
	}
	if d := debit("j1"); d.LowBelow != nil || d.Limit() != credits.DefaultLow {
		t.Errorf("without a limit: %+v", d)
	}
	for _, below := range []domain.Credits{91, 0, credits.DefaultLow} {
		events, err := set(below)(state)
		if err != nil || len(events) != 1 {
			t.Fatal(events, err)
		}
		state = credits.Evolve(state, events[0])
		if events, err := set(below)(state); err != nil || events != nil {
			t.Errorf("the same limit again: %v, %v", events, err)
		}
		d := debit("job" + string(rune('a'+below%26)))
		if d.LowBelow == nil || d.Limit() != below || d.BecameLow() != (below == 91) {
			t.Errorf("below %d: %+v, %t", below, d, d.BecameLow())
		}
	}
	for _, below := range []domain.Credits{-1, credits.MaxLow + 1} {
		if _, err := set(below)(state); !domain.IsKind(err, domain.KindInvalid) {
			t.Errorf("%d: %v", below, err)
		}
	}
	if err := state.Damage(); err != nil {
		t.Error(err)
	}
}
