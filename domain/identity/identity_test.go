package identity_test

import (
	"slices"
	"strings"
	"testing"

	"golang.org/x/text/unicode/norm"
	"pgregory.net/rapid"

	"humanqa/domain/identity"
)

func TestATextIsTheSameHoweverItIsTyped(t *testing.T) {
	t.Parallel()
	for _, same := range [][]string{
		{"Log in works.", "  log\u00a0in\tWORKS!", "log in works", "Log\u00ad in works"},
		{"Café öffnet", norm.NFD.String("Café öffnet"), "CAFÉ ÖFFNET", "ca\u200bfé öffnet"},
		{"Straße", "STRASSE"},
		{"\u13f1\u13a0", "\u13f9\uab70"}, // Cherokee, in both cases
		{"Das Herz ❤\ufe0f schlägt", "das Herz ❤ schlägt"},
		{"Go to example.com.", "go to (example.com)"},
		{"List - the items", "list: the items"},
	} {
		for _, spelled := range same {
			if got, want := identity.Text(spelled), identity.Text(same[0]); got != want {
				t.Errorf("%q is %q, and %q is %q", spelled, got, same[0], want)
			}
		}
	}
}

func TestASignBesideALetterOrDigitChangesAText(t *testing.T) {
	t.Parallel()
	for _, others := range [][]string{
		{"Total is 5", "Total is -5", "Total is +5", "Total is 5%", "Total is .5"},
		{"C", "C#", "C++", "C-"}, {"R D", "R&D"}, {"1 2", "1.2", "1/2", "1-2"}, {"env is read", ".env is read"},
	} {
		for i, text := range others {
			for _, other := range others[:i] {
				if identity.Text(text) == identity.Text(other) {
					t.Errorf("%q and %q are both %q", text, other, identity.Text(text))
				}
			}
		}
	}
}

func TestTheFormOfATextHasNoOtherForm(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.String().Draw(t, "text")
		for name, form := range map[string]func(string) string{
			"Fold": identity.Fold, "Text": identity.Text, "Name": identity.Name, "Secret": identity.Secret,
		} {
			if once := form(text); form(once) != once {
				t.Errorf("%s gives %q, and of that %q", name, once, form(once))
			}
		}
	})
}

func TestTheHostOfAURLIsTheSameHoweverItIsSpelled(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		"https://app.example":                          "app.example",
		"https://APP.Example/cart?x=1#top":             "app.example",
		"https://www.app.example":                      "app.example",
		"HTTPS://WWW.app.example:443/":                 "app.example",
		"http://app.example:80":                        "app.example",
		"https://app.example.":                         "app.example",
		"https://app.example:":                         "app.example",
		"https://app.example:0443":                     "app.example",
		"http://app.example:443":                       "app.example:443",
		"https://app.example:80":                       "app.example:80",
		"https://app.example:8443/":                    "app.example:8443",
		"https://www.app.example:8443/":                "app.example:8443",
		"https://www.com":                              "www.com",
		"https://wwwapp.example":                       "wwwapp.example",
		"https://www.www.app.example":                  "www.app.example",
		"https://[2001:DB8:0:0::1]/":                   "[2001:db8::1]",
		"https://[2001:db8::1]:8443/":                  "[2001:db8::1]:8443",
		"https://ann:secret@app.example/account":       "app.example",
		"https://Bücher.example":                       "xn--bcher-kva.example",
		"https://www.bu\u0308cher.example":             "xn--bcher-kva.example",
		"https://xn--bcher-kva.example":                "xn--bcher-kva.example",
		"https://stra\u00dfe.example":                  "xn--strae-oqa.example", // non-transitional
		"https://bücher\u3002example":                  "xn--bcher-kva.example",
		"https://ａｐｐ.example":                          "app.example",
		"":                                             "",
		"/only/a/path":                                 "",
		"https://%zz":                                  "",
		"https://app.example:99999":                    "",
		"https://" + strings.Repeat("\U000e0100", 254): "",
	} {
		if got := identity.Site(raw); got != want {
			t.Errorf("%q: got %q, want %q", raw, got, want)
		}
	}
}

func TestTheFormsOfOlderVersionsAreKnown(t *testing.T) {
	t.Parallel()
	decomposed := norm.NFD.String("Bücher")
	for name, c := range map[string]struct {
		got  []string
		want string
	}{
		"a text":                           {identity.OlderTexts("Total is -5."), "total is 5"},
		"a decomposed text":                {identity.OlderTexts("Bücher"), strings.ToLower(decomposed)},
		"a host":                           {identity.OlderSites("https://www.Bücher.example:443/"), "bücher.example"},
		"a host in punycode":               {identity.OlderSites("https://xn--bcher-kva.example"), "bücher.example"},
		"a decomposed name":                {identity.OlderNames(" Bücher"), strings.ToLower(decomposed)},
		"a name with a ß":                  {identity.OlderNames("Straße"), "straße"},
		"a secret as it is":                {identity.OlderSecrets("a\u00a0b"), "a\u00a0b"},
		"a decomposed secret":              {identity.OlderSecrets("Bücher"), decomposed},
		"a secret of a Mac, typed on a PC": {identity.OlderSecrets(norm.NFC.String(decomposed)), decomposed},
	} {
		if !slices.Contains(c.got, c.want) {
			t.Errorf("%s: %q is not among %q", name, c.want, c.got)
		}
	}
}
