package queue

import "testing"

// Whatever accounts take of a pool one after the other, each takes something,
// and the next one finds a place.
func TestTheQuotaOfAnAccountLeavesPlacesToTheNext(t *testing.T) {
	for _, pool := range []int{1, 2, 3, 16, 256} {
		free, left := pool, []int{}
		for free > 0 {
			taken := 0
			for more := quota(free, taken); more > 0; more = quota(free, taken) {
				taken, free = taken+more, free-more
			}
			if taken == 0 {
				t.Fatalf("of %d places %d are free, and no account may have them", pool, free)
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
	if quota(8, 64) != 0 || quota(0, 0) != 0 || quota(1, 1) != 0 {
		t.Error("an account gets more than its quota")
	}
}
