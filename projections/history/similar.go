package history

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"unicode"
)

// alike is how much of a failure's words a text has to name, by their weight, to
// be taken for the same.
const alike = 0.3

// Similar gives those of the failures that the text sounds like, at most so many,
// the likest first. A word counts the more the fewer failures have it.
func Similar(failures []OpenFailure, text string, most int) []OpenFailure {
	said := words(text)
	in := make([][]string, len(failures))
	of := map[string]float64{} // word to the number of failures that have it
	for n, f := range failures {
		in[n] = words(f.Description)
		for _, word := range in[n] {
			of[word]++
		}
	}
	type scored struct {
		OpenFailure
		score float64
	}
	var found []scored
	for n, f := range failures {
		var named, all float64
		for _, word := range in[n] {
			weight := math.Log(1 + float64(len(failures))/of[word])
			all += weight
			if slices.ContainsFunc(said, func(s string) bool { return sameWord(s, word) }) {
				named += weight
			}
		}
		if named > 0 && named/all >= alike {
			found = append(found, scored{f, named / all})
		}
	}
	slices.SortStableFunc(found, func(a, b scored) int { return cmp.Compare(b.score, a.score) })
	out := make([]OpenFailure, 0, most)
	for _, f := range found[:min(most, len(found))] {
		out = append(out, f.OpenFailure)
	}
	return out
}

// filler are words that tell nothing of a failure.
var filler = []string{"and", "are", "but", "can", "does", "for", "from", "has", "not", "that", "the", "then", "this", "was", "when", "with",
	"works", "you"}

// words are those of a text that tell something, each once.
func words(text string) []string {
	all := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	slices.Sort(all)
	return slices.DeleteFunc(slices.Compact(all), func(word string) bool {
		return len([]rune(word)) < 3 && !strings.ContainsFunc(word, func(r rune) bool { return r > unicode.MaxLatin1 }) ||
			slices.Contains(filler, word)
	})
}

// sameWord holds for forms of a word, too, and for one that is half typed: the
// first five letters are the same, or all of a shorter one.
func sameWord(a, b string) bool {
	if a == b {
		return true
	}
	const stem = 5
	return len(a) >= stem && len(b) >= stem && a[:stem] == b[:stem]
}
