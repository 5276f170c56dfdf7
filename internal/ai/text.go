package ai

import (
	"net/url"
	"strings"

	"humanqa/domain/identity"
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

// sentence ends a line with a full stop, unless something else ends it.
func sentence(line string) string {
	if line == "" || strings.ContainsAny(line[len(line)-1:], ".!?") || strings.HasSuffix(line, ellipsis) {
		return line
	}
	return line + "."
}

// quote shows the words of others as such.
func quote(text string) string {
	return "“" + strings.TrimSuffix(fence.Clean(text, maxQuote), ".") + "”"
}

// wordsOf gives the lower-case words of the texts, in order.
func wordsOf(texts ...string) []string {
	return identity.Words(strings.Join(texts, " "))
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
