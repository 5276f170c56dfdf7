package mail

import "testing"

func TestALetterKeepsTheJoinersOfWritingAndTheTagsOfFlags(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645":                                 "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",
		"\u0915\u094d\u200d\u0937":                                                         "\u0915\u094d\u200d\u0937",
		"\U0001f469\U0001f3fd\u200d\U0001f4bb tests":                                       "\U0001f469\U0001f3fd\u200d\U0001f4bb tests",
		"\U0001f3f4\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f Edinburgh": "\U0001f3f4\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f Edinburgh",
		"pay\u200d \u200cpal\u200d\u200d!":                                                 "pay pal!",
		"a\u202eb\u2066c\u200bd\ufeff":                                                     "abcd",
		"hidden\U000e0068\U000e0069\U000e0069\U000e007f words":                             "hidden words",
		"\U0001f3f4\U000e0067\U000e0062\U000e0073 a flag that does not end":                "\U0001f3f4 a flag that does not end",
	} {
		if got := oneLine(text); got != want {
			t.Errorf("%+q is %+q, want %+q", text, got, want)
		}
	}
}

func TestAnAddressWithADomainBeyondASCIIIsTakenAsDNSSeesIt(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"ann@b\u00fccher.example": "ann@xn--bcher-kva.example", "Ann+qa@Example.com": "Ann+qa@example.com", "j\u00f6rg@example.com": "", "ann@\u202eb.example": "", "ann": "",
	} {
		got := dialled(address)
		if ok := len(checkAddress(got)) == 0; ok != (want != "") || ok && got != want {
			t.Errorf("%+q is %+q, want %+q", address, got, want)
		}
	}
}
