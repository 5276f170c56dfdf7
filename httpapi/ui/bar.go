package ui

import "strconv"

// Segment is a part of a bar that is 100 wide.
type Segment struct{ Kind, X, Wide string }

// BarOf makes a bar of the numbers of items that passed, failed, were skipped, and are open.
func BarOf(pass, fail, skip, pending int) (bar []Segment) {
	all, x := pass+fail+skip+pending, 0.0
	for i, n := range []int{pass, fail, skip, pending} {
		if n == 0 {
			continue
		}
		wide := 100 * float64(n) / float64(all)
		kind := []string{"pass", "fail", "skip", "pending"}[i]
		bar = append(bar, Segment{kind, strconv.FormatFloat(x, 'f', 2, 64), strconv.FormatFloat(wide, 'f', 2, 64)})
		x += wide
	}
	return bar
}
