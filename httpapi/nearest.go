package httpapi

import (
	"slices"
	"strings"

	"humanqa/httpapi/wire"
)

// A path without a route is often near the path of a route: the refusal's hint names the
// nearest.

const (
	// maxNear is how many paths a hint names.
	maxNear = 3
	// farSegment is the distance from which two segments have nothing in common.
	farSegment = 3
	// maxSegments bounds the segments that are compared: no path of ours has more.
	maxSegments = 10
)

// nearest are the patterns next to a path that no pattern matches, the nearest first.
func (t table) nearest(path string) []string {
	segments := strings.FieldsFunc(path, func(c rune) bool { return c == '/' })
	if len(segments) == 0 || len(segments) > maxSegments {
		return nil
	}
	type near struct {
		pattern string
		apart   int
	}
	var found []near
	for pattern := range t.patterns {
		if apart := patternDistance(segments, strings.Split(pattern[1:], "/")); apart >= 0 {
			found = append(found, near{pattern, apart})
		}
	}
	slices.SortFunc(found, func(a, b near) int {
		if a.apart != b.apart {
			return a.apart - b.apart
		}
		return strings.Compare(a.pattern, b.pattern)
	})
	var names []string
	for _, n := range found[:min(len(found), maxNear)] {
		if n.apart <= found[0].apart+1 {
			names = append(names, n.pattern)
		}
	}
	return names
}

// patternDistance is the distance of the segments from a pattern; -1 is too far. A
// left-out version counts one, a segment for a variable nothing, any other its edit
// distance.
func patternDistance(segments, pattern []string) int {
	apart := 0
	if len(segments) == len(pattern)-1 && pattern[0] == "v1" {
		apart, pattern = 1, pattern[1:]
	}
	if len(segments) != len(pattern) {
		return -1
	}
	alike := false
	for i, p := range pattern {
		if strings.HasPrefix(p, "{") {
			continue
		}
		if len(segments[i]) > wire.MaxSlip {
			return -1
		}
		d := wire.Distance(wire.Plain(segments[i]), wire.Plain(p), farSegment)
		switch {
		case d >= farSegment || d > 0 && d >= len(p)-1:
			return -1
		case p != "v1":
			alike = true
		}
		apart += d
	}
	if !alike {
		return -1
	}
	return apart
}
