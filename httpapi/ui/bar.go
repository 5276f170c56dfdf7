package ui

import "strconv"

// Part is so many of one kind.
type Part struct {
	Kind string
	N    int
}

// Segment is a part of a bar that is 100 wide.
type Segment struct{ Kind, X, Wide string }

// BarOf makes of counts the parts of a bar.
func BarOf(parts ...Part) (bar []Segment) {
	all := 0
	for _, p := range parts {
		all += p.N
	}
	x := 0.0
	for _, p := range parts {
		if p.N == 0 {
			continue
		}
		wide := 100 * float64(p.N) / float64(all)
		bar = append(bar, Segment{p.Kind, strconv.FormatFloat(x, 'f', 2, 64), strconv.FormatFloat(wide, 'f', 2, 64)})
		x += wide
	}
	return bar
}
