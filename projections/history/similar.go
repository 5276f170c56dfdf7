package history

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"unicode"

	"humanqa/domain/identity"
)

// alike is the part of a failure's words, by weight, that a text must contain to count as
// similar.
const alike = 0.3

// Similar gives the failures that are similar to the text, at most so many, the most
// similar first. A word has more weight if fewer failures have it.
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

// filler are words without information about a failure.
var filler = []string{"and", "are", "but", "can", "does", "for", "from", "has", "not", "that", "the", "then", "this", "was", "when", "with",
	"works", "you"}

// words gives the words of a text without filler, each once.
func words(text string) []string {
	all := identity.Words(text)
	slices.Sort(all)
	return slices.DeleteFunc(slices.Compact(all), func(word string) bool {
		return len([]rune(word)) < 3 && !strings.ContainsFunc(word, func(r rune) bool { return r > unicode.MaxLatin1 }) ||
			slices.Contains(filler, word)
	})
}

// sameWord also holds for forms of a word, and for a half-typed word: the first five
// letters are the same, or all letters of a shorter word.
func sameWord(a, b string) bool {
	if a == b {
		return true
	}
	const stem = 5
	return len(a) >= stem && len(b) >= stem && a[:stem] == b[:stem]
}
