package credits_test

import (
	"errors"
	"fmt"
	"maps"
	"testing"
	"time"

	"pgregory.net/rapid"

	"humanqa/domain"
	"humanqa/domain/credits"
	"humanqa/internal/testing/must"
)

// TestNoHistoryBreaksTheLedger runs random commands at random moments and
// checks invariants 1 to 3 (ARCHITECTURE.md) after every event.
func TestNoHistoryBreaksTheLedger(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := &ledger{now: t0, charges: map[string]charged{}, settled: map[string]credits.Settled{}}
		t.Repeat(map[string]func(*rapid.T){
			"": m.check,
			"time passes": func(t *rapid.T) {
				m.now = m.now.Add(time.Duration(rapid.IntRange(1, 48).Draw(t, "hours")) * time.Hour)
			},
			"a clock behind": func(t *rapid.T) {
				m.now = m.now.Add(-time.Duration(rapid.IntRange(1, 60).Draw(t, "minutes")) * time.Minute)
			},
			"grant": func(t *rapid.T) {
				var expires *time.Time
				if rapid.Bool().Draw(t, "expires") {
					at := m.now.Add(time.Duration(rapid.IntRange(-1, 96).Draw(t, "in hours")) * time.Hour)
					expires = &at
				}
				lot := fmt.Sprintf("lot%d", rapid.IntRange(0, 20).Draw(t, "lot"))
				amount := domain.Credits(rapid.IntRange(-1, 12).Draw(t, "amount"))
				m.run(t, func(s credits.State) ([]domain.Event, error) {
					return credits.DecideGrant(s, lot, amount, expires, "", m.now)
				})
			},
			"debit": func(t *rapid.T) {
				c := m.charge(drawJob(t), domain.Credits(rapid.IntRange(-1, 15).Draw(t, "amount")))
				amount, available := c.Amount, m.state.Available(m.now)
				m.run(t, func(s credits.State) ([]domain.Event, error) {
					return credits.DecideDebits(s, []credits.Charge{c}, m.now)
				})
				if domain.IsKind(m.refusal, domain.KindPayment) && amount <= available {
					t.Fatalf("%d credits were refused with %d available", amount, available)
				}
			},
			"debit several": func(t *rapid.T) {
				charges := make([]credits.Charge, rapid.IntRange(2, 5).Draw(t, "jobs"))
				for i := range charges {
					charges[i] = m.charge(drawJob(t), domain.Credits(rapid.IntRange(0, 9).Draw(t, "amount")))
				}
				before := len(m.history)
				m.run(t, func(s credits.State) ([]domain.Event, error) { return credits.DecideDebits(s, charges, m.now) })
				for _, c := range charges {
					d, ok := m.state.Debit(c.JobID)
					if m.refusal == nil && c.Past == nil && (!ok || d.Amount != c.Amount) {
						t.Fatalf("%+v was not charged, only %+v", c, m.history[before:])
					}
				}
			},
			"refund": func(t *rapid.T) {
				job := drawJob(t)
				if m.settled[job].Completed {
					t.Skip("it was completed")
				}
				m.run(t, func(s credits.State) ([]domain.Event, error) {
					return credits.DecideRefund(s, job, "", m.now)
				})
			},
			"complete": func(t *rapid.T) {
				if job := drawJob(t); m.charges[job].amount > 0 && !m.charges[job].refunded {
					m.settled[job] = credits.Settled{Completed: true}
				}
			},
			"low": func(t *rapid.T) {
				below := domain.Credits(rapid.IntRange(-1, 30).Draw(t, "below"))
				m.run(t, func(s credits.State) ([]domain.Event, error) { return credits.DecideLow(s, below, m.now) })
				if below >= 0 && m.state.LowBelow() != below {
					t.Fatalf("the limit is %d, not %d", m.state.LowBelow(), below)
				}
			},
			"close": m.close,
			"expire": func(t *rapid.T) {
				m.run(t, func(s credits.State) ([]domain.Event, error) { return credits.DecideExpire(s, m.now) })
				if due, ok := m.state.NextExpiry(); ok && !m.now.Before(due) {
					t.Fatalf("a lot that was due at %v is left at %v", due, m.now)
				}
			},
		})
	})
}

// close closes the book and goes on with what a fold from there knows.
func (m *ledger) close(t *rapid.T) {
	settled, before := maps.Clone(m.settled), len(m.history)
	maps.DeleteFunc(settled, func(job string, _ credits.Settled) bool { return m.state.LeftBehind(job) })
	for job, c := range m.charges {
		if c.refunded && !m.state.LeftBehind(job) { // its end may have foretold something else
			settled[job] = credits.Settled{RefundExpired: domain.Credits(rapid.IntRange(0, 3).Draw(t, "foretold"))}
		}
	}
	m.run(t, func(s credits.State) ([]domain.Event, error) { return credits.DecideClose(s, settled, m.now) })
	if len(m.history) > before {
		e := m.history[before].(*credits.Closed)
		for job, o := range settled {
			d := m.charges[job]
			if left := m.state.LeftBehind(job); left && (d.refunded == o.Completed || d.expired != o.RefundExpired) {
				t.Fatalf("%s is left behind: %+v, %+v", job, d, o)
			}
		}
		begun := credits.Evolve(credits.State{}, e)
		if begun.LowBelow() != m.state.LowBelow() {
			t.Fatalf("the close says low below %d, the stream below %d", begun.LowBelow(), m.state.LowBelow())
		}
		if begun.Book() != m.state.Book() {
			t.Fatalf("the close leads to %+v, the whole stream to %+v", begun.Book(), m.state.Book())
		}
		m.state = begun
	}
}

// charge asks as a command does: of a debit that was left behind the job knows.
func (m *ledger) charge(job string, amount domain.Credits) credits.Charge {
	c := credits.Charge{JobID: job, Amount: amount, KnownTo: m.state.Book().Closes}
	if was, ok := m.charges[job]; ok && m.state.LeftBehind(job) {
		c.Past = &credits.Debit{Amount: was.amount, Refunded: was.refunded}
	}
	return c
}

func drawJob(t *rapid.T) string {
	return fmt.Sprintf("job%d", rapid.IntRange(0, 12).Draw(t, "job"))
}

// ledger is the machine under test and, beside it, the same money counted from
// the events alone.
type ledger struct {
	now     time.Time
	state   credits.State
	history []domain.Event
	refusal error // of the last command

	granted, debited, refunded, expired domain.Credits
	charges                             map[string]charged
	settled                             map[string]credits.Settled // the jobs that were completed
}

type charged struct {
	amount   domain.Credits
	refunded bool
	expired  domain.Credits
}

// run decides and folds, and checks that the same command again is harmless.
func (m *ledger) run(t *rapid.T, decide func(credits.State) ([]domain.Event, error)) {
	events, err := decide(m.state)
	m.refusal = err
	if err != nil {
		var refusal *domain.Error
		if !errors.As(err, &refusal) {
			t.Fatalf("an internal error: %v", err)
		}
		return
	}
	for _, e := range events {
		m.state = credits.Evolve(m.state, e)
		m.history = append(m.history, e)
		m.count(t, e)
		m.check(t)
	}
	if again, err := decide(m.state); err != nil || len(again) > 0 {
		t.Fatalf("the repeat is not harmless: %v, %v", again, err)
	}
}

func (m *ledger) count(t *rapid.T, e domain.Event) {
	var after domain.Credits
	switch e := e.(type) {
	case *credits.Granted:
		m.granted += e.Amount
		after = e.BalanceAfter
	case *credits.Debited:
		if _, ok := m.charges[e.JobID]; ok {
			t.Fatalf("%s is debited twice", e.JobID)
		}
		if sum(e.Parts) != e.Amount {
			t.Fatalf("the parts of %+v don't add up", e)
		}
		m.charges[e.JobID] = charged{amount: e.Amount}
		m.debited += e.Amount
		after = e.BalanceAfter
	case *credits.Refunded:
		c, ok := m.charges[e.JobID]
		if !ok || c.refunded || c.amount != e.Amount || sum(e.Parts) != e.Amount {
			t.Fatalf("%+v refunds %+v", e, c)
		}
		m.charges[e.JobID] = charged{amount: c.amount, refunded: true, expired: e.Expired}
		m.refunded += e.Amount
		m.expired += e.Expired
		after = e.BalanceAfter
	case *credits.LotExpired:
		if e.Amount <= 0 {
			t.Fatalf("%+v expires nothing", e)
		}
		m.expired += e.Amount
		after = e.BalanceAfter
	case *credits.LowSet:
		after = e.BalanceAfter
	case *credits.Closed:
		after = e.BalanceAfter
	}
	if want := m.granted - (m.debited - m.refunded) - m.expired; after != want || after < 0 {
		t.Fatalf("balanceAfter is %d, the events add up to %d", after, want)
	}
}

func sum(parts []credits.Part) domain.Credits {
	var total domain.Credits
	for _, p := range parts {
		total += p.Amount
	}
	return total
}

func (m *ledger) check(t *rapid.T) {
	s := m.state
	must.NoError(t, s.Damage())
	if s.Balance() < 0 || s.Used() < 0 || s.Expired() < 0 {
		t.Fatalf("balance %d, used %d, expired %d", s.Balance(), s.Used(), s.Expired())
	}
	if s.Granted() != s.Balance()+s.Used()+s.Expired() {
		t.Fatalf("granted %d ≠ %d left + %d used + %d expired", s.Granted(), s.Balance(), s.Used(), s.Expired())
	}
	if s.Granted() != m.granted || s.Used() != m.debited-m.refunded || s.Expired() != m.expired {
		t.Fatal("the totals are not what the events add up to")
	}
	var spendable domain.Credits
	var last time.Time
	for _, l := range s.Lots(m.now) {
		spendable += l.Remaining
		if l.Remaining <= 0 {
			t.Fatalf("lot %s shows %d", l.ID, l.Remaining)
		}
		due := m.now.AddDate(100, 0, 0)
		if l.ExpiresAt != nil {
			due = *l.ExpiresAt
		}
		if !due.After(m.now) || due.Before(last) {
			t.Fatalf("lot %s, which expires %v, is out of order", l.ID, due)
		}
		last = due
	}
	if spendable != s.Available(m.now) {
		t.Fatalf("the lots hold %d, %d are available", spendable, s.Available(m.now))
	}
	for job, c := range m.charges {
		if s.LeftBehind(job) {
			continue
		}
		if d, ok := s.Debit(job); !ok || d.Amount != c.amount || d.Refunded != c.refunded || sum(d.Parts) != c.amount {
			t.Fatalf("the debit of %s is %+v, wanted %+v", job, d, c)
		}
	}
	m.replay(t)
}

// replay folds the whole history again: the state is nothing but its events.
func (m *ledger) replay(t *rapid.T) {
	var s credits.State
	for _, e := range m.history {
		s = credits.Evolve(s, e)
	}
	if s.Balance() != m.state.Balance() || s.Used() != m.state.Used() || s.Available(m.now) != m.state.Available(m.now) {
		t.Fatal("the same events fold into another state")
	}
}
