package credits

import (
	"testing"
	"time"
)

// A lot's timer is due in whole milliseconds, and never comes again.
func TestALotExpiresAtTheMillisecondThatIsShown(t *testing.T) {
	t.Parallel()
	shown := time.Date(2026, 3, 1, 12, 0, 0, int(7*time.Millisecond), time.UTC)
	at := shown.Add(123_456 * time.Nanosecond)
	s := Evolve(State{}, &Granted{LotID: "lot", Amount: 5, ExpiresAt: &at, BalanceAfter: 5})
	if events, err := DecideExpire(s, shown.Add(-time.Millisecond)); err != nil || len(events) != 0 {
		t.Errorf("a millisecond before: %v, %v", events, err)
	}
	events, err := DecideExpire(s, shown)
	if err != nil || len(events) != 1 || *events[0].(*LotExpired) != (LotExpired{LotID: "lot", Amount: 5}) {
		t.Errorf("at its end: %v, %v, want the lot to expire", events, err)
	}
	if next, found := s.NextExpiry(); !found || !next.Equal(shown) {
		t.Errorf("the next expiry is %v, %v, want %v", next, found, shown)
	}
}
