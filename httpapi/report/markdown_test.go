package report

import (
	"strings"
	"testing"

	"humanqa/httpapi/wire"
)

// GitHub's Markdown makes links of addresses that stand in a text as they are,
// and names people whom an at sign precedes. A checker's note is neither.
func TestTextsBecomeNoLinksByThemselves(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"see https://evil.example/a_b?c":  `see https\://evil.example/a\_b?c`,
		"HTTP://evil.example":             `HTTP\://evil.example`,
		"ftp://evil.example":              `ftp\://evil.example`,
		"at www.evil.example":             `at www\.evil.example`,
		"WWW.evil.example":                `WWW\.evil.example`,
		"12:30, a//b and awww. so":        `12:30, a//b and awww\. so`,
		"@acme/team and ann@acme.example": "@\u2060acme/team and ann@\u2060acme.example",
		"#12":                             `\#12`,
	} {
		if got := inline(text); got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
}

// A link is somebody else's text, too: what a person cannot see in it is escaped,
// and it leads to the same place.
func TestALinkShowsWhatItHolds(t *testing.T) {
	t.Parallel()
	for link, want := range map[string]string{
		"https://a.example/x?y=1&z=é":           "<https://a.example/x?y=1&z=é>",
		"https://a.example/|":                   "<https://a.example/%7C>",
		"https://a.example/\u202egnp.exe":       "<https://a.example/%E2%80%AEgnp.exe>",
		"https://a.example/1\u2028# 2":          `https\://a.example/1 \# 2`,
		"https://a.example/1\u20282":            "<https://a.example/1%E2%80%A82>",
		"https://a.example/1\u00852":            "<https://a.example/1%C2%852>",
		"https://a.example/\u200bx\u00a0\ufeff": "<https://a.example/%E2%80%8Bx%C2%A0%EF%BB%BF>",
	} {
		got := autolink(link)
		if got != want {
			t.Errorf("%q is %q, want %q", link, got, want)
		}
		if strings.ContainsFunc(got, func(c rune) bool { return c != ' ' && wire.Unseen(c) }) {
			t.Errorf("%q hides something", got)
		}
	}
}
