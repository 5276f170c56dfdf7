package ai

import (
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Lengths in characters. What a client may write itself (decisions, "Lengths")
// bounds the items; the rest keeps a report readable.
const (
	maxItemText = 1000
	maxTitle    = 200
	maxSummary  = 1500
	// The rules' own sentence comes before a model's summary.
	maxModelSummary = 800
	maxBugText      = 2000
	maxFix          = 500
	maxStep         = 1000
	maxSteps        = 10
	maxPoint        = 300 // a strength or a recommendation
	maxPoints       = 10
	maxNote         = 500
	maxQuote        = 120
	maxShownURL     = 300
)

// ellipsis marks what was cut.
const ellipsis = "…"

// clean makes one line of a text that others wrote: valid UTF-8, single
// blanks, nothing invisible that could reorder or hide what a reader sees, and
// at most limit characters. It stops reading where the line is full.
func clean(text string, limit int) string {
	var line strings.Builder
	length, blank := 0, false
	for len(text) > 0 {
		r, size := utf8.DecodeRuneInString(text)
		text = text[size:]
		switch {
		case unicode.IsSpace(r) || unicode.IsControl(r):
			blank = length > 0
			continue
		case unicode.Is(unicode.Cf, r) || unicode.Is(unicode.Co, r):
			continue
		}
		need := 1
		if blank {
			need = 2
		}
		if length+need > limit {
			return cut(line.String(), limit)
		}
		if blank {
			line.WriteByte(' ')
			blank = false
		}
		line.WriteRune(r) // an invalid byte has become U+FFFD
		length += need
	}
	return line.String()
}

// cut marks a line that goes on beyond limit characters.
func cut(line string, limit int) string {
	r := []rune(line)
	if len(r) >= limit {
		r = r[:max(0, limit-1)]
	}
	return strings.TrimRight(string(r), " ") + ellipsis
}

// sentence ends a line with a full stop, unless something else ends it.
func sentence(line string) string {
	if line == "" || strings.ContainsAny(line[len(line)-1:], ".!?") || strings.HasSuffix(line, ellipsis) {
		return line
	}
	return line + "."
}

// quote shows the words of others as such.
func quote(text string) string {
	return "“" + strings.TrimSuffix(clean(text, maxQuote), ".") + "”"
}

// wordsOf gives the lower-case words of the texts, in order.
func wordsOf(texts ...string) []string {
	return strings.FieldsFunc(strings.ToLower(strings.Join(texts, " ")), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r)
	})
}

// withoutSecrets drops what a URL may carry besides its place: a query or a
// fragment may hold a token.
func withoutSecrets(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return ""
	}
	u.User, u.RawQuery, u.ForceQuery, u.Fragment, u.RawFragment = nil, "", false, "", ""
	return u.String()
}
