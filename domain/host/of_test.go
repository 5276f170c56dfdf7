package host

import "testing"

func TestTheHostOfAURLIsTheSameHoweverItIsSpelled(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		"https://app.example":                    "app.example",
		"https://APP.Example/cart?x=1#top":       "app.example",
		"https://www.app.example":                "app.example",
		"HTTPS://WWW.app.example:443/":           "app.example",
		"http://app.example:80":                  "app.example",
		"https://app.example.":                   "app.example",
		"https://app.example:":                   "app.example",
		"http://app.example:443":                 "app.example:443",
		"https://app.example:80":                 "app.example:80",
		"https://app.example:8443/":              "app.example:8443",
		"https://www.app.example:8443/":          "app.example:8443",
		"https://www.com":                        "www.com",
		"https://wwwapp.example":                 "wwwapp.example",
		"https://www.www.app.example":            "www.app.example",
		"https://[2001:DB8::1]/":                 "[2001:db8::1]",
		"https://[2001:db8::1]:8443/":            "[2001:db8::1]:8443",
		"https://ann:secret@app.example/account": "app.example",
		"":                                       "",
		"/only/a/path":                           "",
		"https://%zz":                            "",
	} {
		if got := Of(raw); got != want {
			t.Errorf("%q: got %q, want %q", raw, got, want)
		}
	}
}
