package httpapi

import (
	"cmp"
	"slices"
	"strings"

	"humanqa/httpapi/wire"
)

// maxNear is how many patterns a hint names.
const maxNear = 3

// nearest are patterns that a path without a route may be meant for: it leaves the version
// out, or has slips in its words. The nearest comes first.
func (t table) nearest(path string) []string {
	words := strings.FieldsFunc(path, func(c rune) bool { return c == '/' })
	var found []string
	for pattern := range t.patterns {
		own := strings.Split(pattern[1:], "/")
		if own[0] == "v1" && len(words) == len(own)-1 {
			own = own[1:]
		}
		if slices.EqualFunc(words, own, nearWord) {
			found = append(found, pattern)
		}
	}
	apart := func(pattern string) int { return wire.Distance(path, pattern, wire.MaxSlip) }
	slices.SortFunc(found, func(a, b string) int { return cmp.Or(apart(a)-apart(b), strings.Compare(a, b)) })
	return found[:min(len(found), maxNear)]
}

// nearWord says that a word of a path may be a slip of a pattern's; a variable takes any.
func nearWord(word, own string) bool {
	return strings.HasPrefix(own, "{") || len(word) <= wire.MaxSlip && wire.Near(word, own)
}
