package credits_test

import (
	"runtime"
	"slices"
	"strconv"
	"testing"
	"time"

	"humanqa/domain"
	"humanqa/domain/credits"
	"humanqa/internal/testing/must"
	"humanqa/internal/testing/scenario"
)

type decide = scenario.Decide[credits.State]

var t0 = time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)

func day(n int) *time.Time { at := t0.AddDate(0, 0, n); return &at }

func given(t *testing.T, events ...domain.Event) *scenario.Given[credits.State] {
	return scenario.New(t, credits.Evolve, events...)
}

func granted(lot string, amount domain.Credits, expires *time.Time, after domain.Credits) domain.Event {
	return &credits.Granted{LotID: lot, Amount: amount, ExpiresAt: expires, Reason: "bought", BalanceAfter: after}
}

func debited(job string, after domain.Credits, parts ...credits.Part) domain.Event {
	e := &credits.Debited{JobID: job, Parts: parts, BalanceAfter: after}
	for _, p := range parts {
		e.Amount += p.Amount
	}
	return e
}

func refunded(job string, after domain.Credits, parts ...credits.Part) *credits.Refunded {
	e := &credits.Refunded{JobID: job, Parts: parts, Reason: "cancelled", BalanceAfter: after}
	for _, p := range parts {
		e.Amount += p.Amount
		if p.Expired {
			e.Expired += p.Amount
		}
	}
	return e
}

func expired(lot string, amount, after domain.Credits) domain.Event {
	return &credits.LotExpired{LotID: lot, Amount: amount, BalanceAfter: after}
}

func of(lot string, amount domain.Credits) credits.Part {
	return credits.Part{LotID: lot, Amount: amount}
}

func lost(lot string, amount domain.Credits) credits.Part {
	return credits.Part{LotID: lot, Amount: amount, Expired: true}
}

func grant(lot string, amount domain.Credits, expires, now *time.Time) decide {
	return func(s credits.State) ([]domain.Event, error) {
		return credits.DecideGrant(s, lot, amount, expires, "bought", *now)
	}
}

func debit(job string, amount domain.Credits, now *time.Time) decide {
	return func(s credits.State) ([]domain.Event, error) {
		return credits.DecideDebits(s, []credits.Charge{{JobID: job, Amount: amount}}, *now)
	}
}

func refund(job string, now *time.Time) decide {
	return func(s credits.State) ([]domain.Event, error) {
		return credits.DecideRefund(s, job, "cancelled", *now)
	}
}

func expire(now *time.Time) decide {
	return func(s credits.State) ([]domain.Event, error) { return credits.DecideExpire(s, *now) }
}

func TestAGrant(t *testing.T) {
	t.Parallel()
	t.Run("adds a lot", func(t *testing.T) {
		given(t).When(grant("a", 10, day(30), day(0))).Events(granted("a", 10, day(30), 10))
	})
	t.Run("adds to what is there", func(t *testing.T) {
		given(t, granted("a", 10, nil, 10)).When(grant("b", 5, nil, day(0))).Events(granted("b", 5, nil, 15))
	})
	t.Run("records first what has expired", func(t *testing.T) {
		given(t, granted("a", 10, day(1), 10)).
			When(grant("b", 5, nil, day(1))).
			Events(expired("a", 10, 0), granted("b", 5, nil, 5))
	})
	t.Run("is positive and ends in the future", func(t *testing.T) {
		given(t).When(grant("a", 0, nil, day(0))).Invalid("amount")
		given(t).When(grant("a", -5, day(0), day(0))).Invalid("amount", "expiresAt")
		given(t).When(grant("a", 5, day(-1), day(0))).Invalid("expiresAt")
	})
	t.Run("never lets sums grow beyond what JSON numbers hold", func(t *testing.T) {
		full := granted("a", credits.MaxGranted, nil, credits.MaxGranted)
		given(t).When(grant("a", credits.MaxGranted+1, nil, day(0))).Invalid("amount")
		given(t).When(grant("a", credits.MaxGranted, nil, day(0))).Events(full)
		given(t, full).When(grant("b", 1, nil, day(0))).Invalid("amount")
	})
}

func TestADebit(t *testing.T) {
	t.Parallel()
	t.Run("is paid by the soonest-expiring lots, those that never expire last", func(t *testing.T) {
		given(t, granted("never", 10, nil, 10), granted("late", 10, day(20), 20), granted("soon", 10, day(10), 30)).
			When(debit("j1", 25, day(0))).
			Events(debited("j1", 5, of("soon", 10), of("late", 10), of("never", 5)))
	})
	t.Run("is paid by the older of two alike lots", func(t *testing.T) {
		given(t, granted("b", 10, day(10), 10), granted("a", 10, day(10), 20)).
			When(debit("j1", 5, day(0))).
			Events(debited("j1", 15, of("b", 5)))
	})
	t.Run("can use up everything", func(t *testing.T) {
		given(t, granted("a", 5, nil, 5)).When(debit("j1", 5, day(0))).Events(debited("j1", 0, of("a", 5)))
	})
	t.Run("beyond what is there is refused, saying how much is short", func(t *testing.T) {
		given(t, granted("a", 5, nil, 5)).When(debit("j1", 7, day(0))).Refused(domain.InsufficientCredits(7, 5))
		given(t).When(debit("j1", 7, day(0))).Refused(domain.InsufficientCredits(7, 0))
	})
	t.Run("does not see what has expired, swept or not", func(t *testing.T) {
		given(t, granted("a", 5, day(1), 5), granted("b", 5, nil, 10)).
			When(debit("j1", 7, day(1))).Refused(domain.InsufficientCredits(7, 5))
		given(t, granted("a", 5, day(1), 5), granted("b", 5, nil, 10), expired("a", 5, 5)).
			When(debit("j1", 7, day(1))).Refused(domain.InsufficientCredits(7, 5))
	})
	t.Run("records first what has expired", func(t *testing.T) {
		given(t, granted("a", 5, day(1), 5), granted("b", 5, nil, 10)).
			When(debit("j1", 5, day(1))).
			Events(expired("a", 5, 5), debited("j1", 0, of("b", 5)))
	})
	t.Run("happens once a job", func(t *testing.T) {
		charged := []domain.Event{granted("a", 10, nil, 10), debited("j1", 5, of("a", 5))}
		given(t, charged...).When(debit("j1", 5, day(0))).Nothing()
		given(t, charged...).When(debit("j1", 4, day(0))).Conflict("the job was charged 5 credits already")
	})
	t.Run("that was given back stays given back", func(t *testing.T) {
		given(t, granted("a", 10, nil, 10), debited("j1", 5, of("a", 5)), refunded("j1", 10, of("a", 5))).
			When(debit("j1", 5, day(0))).
			Conflict("the charge for this job was given back")
	})
	t.Run("of nothing is still the job's debit", func(t *testing.T) {
		free := &credits.Debited{JobID: "j1", Parts: []credits.Part{}}
		s := given(t).When(debit("j1", 0, day(0))).Events(free).State()
		if d, ok := s.Debit("j1"); !ok || d.Amount != 0 || d.Refunded {
			t.Errorf("the debit is %+v, %v", d, ok)
		}
		given(t, free).When(refund("j1", day(0))).
			Events(&credits.Refunded{JobID: "j1", Parts: []credits.Part{}, Reason: "cancelled"})
	})
	t.Run("is never negative", func(t *testing.T) {
		given(t, granted("a", 5, nil, 5)).When(debit("j1", -1, day(0))).Invalid("amount")
	})
}

func TestSeveralDebitsAtOnce(t *testing.T) {
	t.Parallel()
	debits := func(now *time.Time, charges ...credits.Charge) decide {
		return func(s credits.State) ([]domain.Event, error) { return credits.DecideDebits(s, charges, *now) }
	}
	charge := func(job string, amount domain.Credits) credits.Charge {
		return credits.Charge{JobID: job, Amount: amount}
	}
	t.Run("are paid one after the other by the lots in their order", func(t *testing.T) {
		given(t, granted("old", 2, day(1), 2), granted("soon", 7, day(10), 9), granted("never", 20, nil, 29)).
			When(debits(day(1), charge("j1", 5), charge("j2", 5), charge("j3", 0), charge("j4", 4))).
			Events(
				expired("old", 2, 27),
				debited("j1", 22, of("soon", 5)),
				debited("j2", 17, of("soon", 2), of("never", 3)),
				&credits.Debited{JobID: "j3", Parts: []credits.Part{}, BalanceAfter: 17},
				debited("j4", 13, of("never", 4)),
			)
	})
	t.Run("happen all or not at all", func(t *testing.T) {
		given(t, granted("a", 14, nil, 14)).
			When(debits(day(0), charge("j1", 5), charge("j2", 5), charge("j3", 5))).
			Refused(domain.InsufficientCredits(15, 14))
		given(t, granted("a", 14, nil, 14)).When(debits(day(0), charge("j1", 5), charge("j2", -1))).Invalid("amount")
		full := credits.MaxGranted
		given(t, granted("a", full, nil, full)).When(debits(day(0), charge("j1", full), charge("j2", full))).Invalid("amount")
	})
	t.Run("leave out what was charged before", func(t *testing.T) {
		given(t, granted("a", 8, nil, 8), debited("j1", 3, of("a", 5))).
			When(debits(day(0), charge("j1", 5), charge("j2", 3))).
			Events(debited("j2", 0, of("a", 3)))
	})
	t.Run("don't charge again what was given back, nor one job twice", func(t *testing.T) {
		given(t, granted("a", 10, nil, 10), debited("j1", 5, of("a", 5)), refunded("j1", 10, of("a", 5))).
			When(debits(day(0), charge("j2", 5), charge("j1", 5))).
			Conflict("the charge for this job was given back")
		given(t, granted("a", 10, nil, 10)).
			When(debits(day(0), charge("j1", 5), charge("j1", 5))).
			Conflict("the job is to be charged twice at once")
	})
	t.Run("of nothing change nothing", func(t *testing.T) { given(t).When(debits(day(0))).Nothing() })
}

func TestARefund(t *testing.T) {
	t.Parallel()
	t.Run("returns to the lots that paid", func(t *testing.T) {
		s := given(t, granted("a", 10, day(10), 10), granted("b", 10, nil, 20), debited("j1", 5, of("a", 10), of("b", 5))).
			When(refund("j1", day(1))).
			Events(refunded("j1", 20, of("a", 10), of("b", 5))).
			State()
		lots := s.Lots(*day(1))
		if len(lots) != 2 || lots[0].ID != "a" || lots[0].Remaining != 10 || lots[1].ID != "b" || lots[1].Remaining != 10 {
			t.Errorf("the lots are %+v", lots)
		}
	})
	t.Run("happens once", func(t *testing.T) {
		given(t, granted("a", 10, nil, 10), debited("j1", 5, of("a", 5)), refunded("j1", 10, of("a", 5))).
			When(refund("j1", day(0))).
			Nothing()
	})
	t.Run("to a lot that has expired is lost at once", func(t *testing.T) {
		s := given(t, granted("a", 10, day(10), 10), granted("b", 10, nil, 20), debited("j1", 5, of("a", 10), of("b", 5))).
			When(refund("j1", day(10))).
			Events(refunded("j1", 10, lost("a", 10), of("b", 5))).
			State()
		if s.Available(*day(10)) != 10 || s.Used() != 0 || s.Expired() != 10 || s.Granted() != 20 {
			t.Errorf("available %d, used %d, expired %d", s.Available(*day(10)), s.Used(), s.Expired())
		}
	})
	t.Run("to a lot that was swept is lost even by a clock that runs behind", func(t *testing.T) {
		given(t, granted("a", 10, day(10), 10), debited("j1", 5, of("a", 5)), expired("a", 5, 0)).
			When(refund("j1", day(9))).
			Events(refunded("j1", 0, lost("a", 5)))
	})
	t.Run("records first what has expired", func(t *testing.T) {
		given(t, granted("a", 10, day(10), 10), debited("j1", 5, of("a", 5))).
			When(refund("j1", day(10))).
			Events(expired("a", 5, 0), refunded("j1", 0, lost("a", 5)))
	})
	t.Run("without a debit is not found", func(t *testing.T) {
		given(t, granted("a", 10, nil, 10)).When(refund("j1", day(0))).NotFound("debit")
		given(t).When(refund("j1", day(0))).NotFound("debit")
	})
}

func TestExpiryTakesWhatIsLeftOfEveryDueLot(t *testing.T) {
	t.Parallel()
	lots := []domain.Event{
		granted("never", 10, nil, 10), granted("late", 10, day(20), 20), granted("soon", 10, day(10), 30),
		granted("used up", 5, day(5), 35), debited("j1", 26, of("used up", 5), of("soon", 4)),
	}
	given(t, lots...).When(expire(day(9))).Nothing()
	given(t, lots...).When(expire(day(10))).Events(expired("soon", 6, 20))
	given(t, lots...).When(expire(day(30))).Events(expired("soon", 6, 20), expired("late", 10, 10))

	s := given(t, lots...).State()
	if at, ok := s.NextExpiry(); !ok || !at.Equal(*day(10)) {
		t.Errorf("the next expiry is %v, %v", at, ok)
	}
	if at, ok := given(t, lots[0]).State().NextExpiry(); ok {
		t.Errorf("a lot that never expires is due at %v", at)
	}
	if _, ok := given(t).State().NextExpiry(); ok {
		t.Error("an empty ledger has something due")
	}
}

func TestTheLedgerShowsWhereEveryCreditIs(t *testing.T) {
	t.Parallel()
	s := given(t,
		granted("a", 10, day(10), 10), granted("b", 20, nil, 30), debited("j1", 18, of("a", 10), of("b", 2)),
		debited("j2", 13, of("b", 5)),
	).State()

	if s.Available(*day(0)) != 13 || s.Balance() != 13 || s.Used() != 17 || s.Expired() != 0 || s.Granted() != 30 {
		t.Errorf("available %d, used %d, expired %d, granted %d", s.Available(*day(0)), s.Used(), s.Expired(), s.Granted())
	}
	d, ok := s.Debit("j1")
	if !ok || d.Amount != 12 || d.Refunded || !slices.Equal(d.Parts, []credits.Part{of("a", 10), of("b", 2)}) {
		t.Errorf("the debit is %+v, %v", d, ok)
	}
	if _, ok := s.Debit("j3"); ok {
		t.Error("a job that was never charged has a debit")
	}
}

func TestALedgerThatContradictsItselfDecidesNothing(t *testing.T) {
	t.Parallel()
	a := granted("a", 10, nil, 10)
	for name, events := range map[string][]domain.Event{
		"balances do not add up":      {granted("a", 10, nil, 11)},
		"more taken than there is":    {a, debited("j1", -2, of("a", 12))},
		"paid from an unknown lot":    {a, debited("j1", 5, of("x", 5))},
		"charged twice":               {a, debited("j1", 5, of("a", 5)), debited("j1", 0, of("a", 5))},
		"refund without a debit":      {a, refunded("j1", 15, of("a", 5))},
		"refunded twice":              {a, debited("j1", 5, of("a", 5)), refunded("j1", 10, of("a", 5)), refunded("j1", 15, of("a", 5))},
		"refunded to an unknown lot":  {a, debited("j1", 5, of("a", 5)), refunded("j1", 10, of("x", 5))},
		"expiry of an unknown lot":    {a, expired("x", 10, 0)},
		"more expired than there was": {a, expired("a", 11, -1)},
		"a negative grant":            {a, granted("b", -5, nil, 5)},
	} {
		t.Run(name, func(t *testing.T) {
			if given(t, events...).State().Damage() == nil {
				t.Error("the damage is not noticed")
			}
			given(t, events...).When(grant("n", 1, nil, day(0))).Broken("the ledger is damaged")
			given(t, events...).When(debit("n", 1, day(0))).Broken("the ledger is damaged")
			given(t, events...).When(refund("j1", day(0))).Broken("the ledger is damaged")
			given(t, events...).When(expire(day(0))).Broken("the ledger is damaged")
		})
	}
}

// A busy account's ledger is folded in memory: an event must cost the same
// however long the ledger is, and a debit must stay small.
func TestALedgerOfManyDebitsStaysCheap(t *testing.T) {
	const debits = 100_000
	ids := make([]string, debits)
	for i := range ids {
		ids[i] = "job-" + strconv.Itoa(i)
	}
	before := heap()
	s := credits.Evolve(credits.State{}, granted("a", debits, nil, debits))
	for _, id := range ids {
		events, err := credits.DecideDebits(s, []credits.Charge{{JobID: id, Amount: 1}}, t0)
		must.NoError(t, err)
		for _, e := range events {
			s = credits.Evolve(s, e)
		}
	}
	if each := (heap() - before) / debits; each > 120 {
		t.Errorf("a debit takes %d bytes beside its job's id", each)
	}
	if s.Used() != debits || s.Available(t0) != 0 || s.Damage() != nil {
		t.Errorf("used %d, available %d, %v", s.Used(), s.Available(t0), s.Damage())
	}
	runtime.KeepAlive(ids)
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func BenchmarkDebit(b *testing.B) {
	s := credits.Evolve(credits.State{}, granted("a", 1<<40, nil, 1<<40))
	for i := range 100_000 {
		s = charge(b, s, strconv.Itoa(i))
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		s = charge(b, s, "b"+strconv.Itoa(i))
	}
}

func charge(b *testing.B, s credits.State, job string) credits.State {
	events, err := credits.DecideDebits(s, []credits.Charge{{JobID: job, Amount: 5}}, t0)
	must.NoError(b, err)
	return credits.Evolve(s, events[0])
}
