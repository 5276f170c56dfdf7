package ui

import (
	"slices"
	"strconv"
	"time"
)

// Place is the place of a moment on a line that is 100 wide and lasts as long as whole.
func Place(at, whole time.Duration) string {
	share := 0.0
	if whole > 0 {
		share = min(1, max(0, float64(at)/float64(whole)))
	}
	return strconv.FormatFloat(100*share, 'f', 2, 64)
}

// DrawnAfter orders verdicts on a line by their kinds, for slices.SortFunc: a mark is drawn
// over those before it, so failures come last.
func DrawnAfter(a, b string) int {
	order := []string{"skip", "pass", "fail"}
	return slices.Index(order, a) - slices.Index(order, b)
}
