package webhooks

import "testing"

// Whatever accounts take of a pool one after the other, each takes something,
// and the next one finds a place.
func TestTheRoomOfAccountsLeavesPlacesToTheNext(t *testing.T) {
	for _, pool := range []int{1, 2, 3, 16, 256} {
		free, left := pool, []int{}
		for free > 0 {
			taken := 0
			for more := room(free, taken); more > 0; more = room(free, taken) {
				taken, free = taken+more, free-more
			}
			if taken == 0 {
				t.Fatalf("of %d places %d are free, and nobody may have them", pool, free)
			}
			left = append(left, free)
		}
		if pool == 256 && (left[0] < 50 || len(left) < 5) {
			t.Errorf("accounts one after the other leave %v of %d places", left, pool)
		}
	}
	if sooner(-1, 5) != 5 || sooner(5, -1) != 5 || sooner(5, 3) != 3 || sooner(-1, -1) >= 0 {
		t.Error("what comes sooner is not what comes sooner")
	}
	if room(8, 64) != 0 || room(0, 0) != 0 || room(1, 1) != 0 {
		t.Error("an account gets more than its share")
	}
}
