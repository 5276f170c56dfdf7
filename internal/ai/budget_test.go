package ai

import (
	"testing"
	"time"
)

func TestABudgetIsPerAccountAndMinute(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	b := newBudget(func() time.Time { return now })
	b.requests, b.tokens = 3, 100
	step := func(want bool, account string, tokens int) {
		t.Helper()
		if got := b.bookTokens(account, tokens); got != want {
			t.Errorf("take(%s, %d) at %s is %v, want %v", account, tokens, now.Format(time.TimeOnly), got, want)
		}
	}
	step(true, "ann", 60)
	step(false, "ann", 41) // nothing is booked
	step(true, "ann", 40)
	step(true, "bob", 100)
	b.correctTokens("ann", 40, 10)
	step(true, "ann", 30)
	step(false, "ann", 0) // the fourth request
	now = now.Add(59 * time.Second)
	step(false, "ann", 0)
	now = now.Add(time.Second)
	step(true, "ann", 10)
	b.correctTokens("ann", 10, 200)
	step(false, "ann", 0)
	now = now.Add(-time.Hour) // a clock that goes back frees, it never locks out
	step(true, "ann", 100)
	if n := len(b.spent); n != 1 {
		t.Errorf("%d accounts are kept, want only the live one", n)
	}
}
