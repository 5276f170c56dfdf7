package ai

import (
	"net/url"
	"strings"
	"unicode"

	"humanqa/internal/fence"
)

// Lengths in characters. The limits of a client's own texts (decisions, "Lengths") bound
// the items; the rest keeps a report readable.
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

// ellipsis marks a cut.
const ellipsis = "…"

// clean makes one line of a text that others wrote: valid UTF-8, single
// blanks, nothing invisible that could reorder or hide what a reader sees, and
// at most limit characters. It stops reading where the line is full.
func clean(text string, limit int) string {
	var line []rune
	blank := false
	for _, r := range text { // an invalid byte becomes U+FFFD
		switch {
		case unicode.IsSpace(r) || unicode.IsControl(r):
			blank = len(line) > 0
			continue
		case fence.Hidden(r) || unicode.Is(unicode.Co, r):
			continue
		}
		if blank {
			line = append(line, ' ')
			blank = false
		}
		if line = append(line, r); len(line) > limit {
			return strings.TrimRight(string(line[:max(0, limit-1)]), " ") + ellipsis
		}
	}
	return string(line)
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

// withoutSecrets drops the user, the query and the fragment of a URL: they may hold a
// token.
func withoutSecrets(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return ""
	}
	u.User, u.RawQuery, u.ForceQuery, u.Fragment, u.RawFragment = nil, "", false, "", ""
	return u.String()
}
