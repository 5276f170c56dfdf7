package httpapi

import "testing"

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
