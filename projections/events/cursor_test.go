package events

import (
	"testing"
)

func TestCursorsAreOrderedByTheirPlace(t *testing.T) {
	t.Parallel()
	for _, c := range [][3]string{ // two, and the later one
		{"", "", ""}, {"", "0-0", "0-0"}, {"9-9", "10-1", "10-1"}, {"10-2", "10-10", "10-10"}, {"7-1", "7-1", "7-1"},
		{"9000000000000000000-0", "1-1", "9000000000000000000-0"}, {"none", "1-1", "1-1"},
	} {
		if a, b := LaterCursor(c[0], c[1]), LaterCursor(c[1], c[0]); a != c[2] || b != c[2] {
			t.Errorf("of %q and %q: %q and %q, want %q", c[0], c[1], a, b, c[2])
		}
	}
}
