package ui

import "testing"

func TestAnAddressWithoutASchemeGetsOne(t *testing.T) {
	t.Parallel()
	for typed, want := range map[string]string{
		" shop.example.com ": "https://shop.example.com", "shop.example.com/a?b=c:d": "https://shop.example.com/a?b=c:d",
		"shop.example.com:8443/x": "https://shop.example.com:8443/x", "localhost:3000": "http://localhost:3000", "10.0.0.1/x": "http://10.0.0.1/x",
		"http://shop.example.com": "http://shop.example.com", "ftp://x.example.com": "ftp://x.example.com",
		"javascript:alert(1)": "javascript:alert(1)", "mailto:a@b.example": "mailto:a@b.example", "user@shop.example.com": "user@shop.example.com",
		"nonsense": "nonsense", "two words.example": "two words.example", "": "",
	} {
		if got := Address(typed); got != want {
			t.Errorf("%q becomes %q, want %q", typed, got, want)
		}
	}
}
