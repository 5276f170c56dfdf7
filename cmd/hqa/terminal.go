package main

import (
	"strings"
	"unicode"
)

// clean takes control characters and changes of the reading direction out of a text that
// others wrote: it goes to a terminal.
func clean(s string) string {
	return strings.Map(func(c rune) rune {
		if unicode.Is(unicode.Cc, c) || unicode.Is(unicode.Bidi_Control, c) {
			return unicode.ReplacementChar
		}
		return c
	}, s)
}
