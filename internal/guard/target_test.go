package guard

import (
	"errors"
	"net/netip"
	"reflect"
	"testing"

	"humanqa/internal/testing/must"
)

func TestWhatMayBeTestedAlthoughItIsPrivate(t *testing.T) {
	t.Parallel()
	got, err := ParseTargets(" 10.1.2.3/8, ::1,, Staging.Internal. ,*.corp, intranet")
	must.NoError(t, err)
	want := Targets{
		Networks: Allow{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("::1/128")},
		Suffixes: []string{"staging.internal", "corp", "intranet"},
	}
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("got %+v", got)
	}
	for _, bad := range []string{"10.0.0.0/33", "https://staging.internal", "a b", "staging.internal:8080", "-", "127.1", "metadata.google.internal"} {
		if _, err := ParseTargets(bad); err == nil {
			t.Errorf("%q was accepted", bad)
		}
	}
	for raw, ok := range map[string]bool{
		"http://10.2.3.4:8080/":            true,
		"http://[::1]:3000/":               true,
		"http://localhost:3000/":           true, // ::1 is
		"http://127.0.0.1/":                false,
		"http://staging.internal/":         true,
		"http://a.b.STAGING.internal./":    true,
		"http://notstaging.internal/":      false,
		"http://wiki.corp/":                true,
		"http://intranet/":                 true,
		"http://extranet/":                 false,
		"http://192.168.1.1/":              false,
		"http://169.254.169.254/":          false,
		"http://metadata.google.internal/": false,
	} {
		if err := TargetURL(raw, got); (err == nil) != ok {
			t.Errorf("%s: %v, want ok=%v", raw, err, ok)
		}
	}
}

// Only what some network's people may reach is private; the rest is refused
// whoever asks.
func TestWhatIsPrivateIsToldFromWhatIsReserved(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]bool{
		"http://localhost:3000/": true, "http://app.localhost/": true, "http://127.0.0.1/": true, "http://[::1]/": true,
		"http://10.0.0.1/": true, "http://192.168.1.1/": true, "http://100.64.0.1/": true, "http://[fd00::1]/": true,
		"http://intranet/": true, "http://wiki.corp/": true, "http://printer.local/": true,
		"http://0.0.0.0/": false, "http://169.254.169.254/": false, "http://100.100.100.200/": false, "http://224.0.0.1/": false,
		"http://metadata/": false, "http://metadata.google.internal/": false, "http://[64:ff9b::7f00:1]/": false,
		"http://192.0.2.1/": false, "http://[fe80::1]/": false, "http://127.1/": false, "ftp://10.0.0.1/": false,
	} {
		err := TargetURL(raw, Targets{})
		if err == nil || errors.Is(err, ErrPrivate) != want {
			t.Errorf("%s: %v, want private=%v", raw, err, want)
		}
	}
	for raw, want := range map[string]string{
		"https://Example.com:8443/a": "example.com", "http://wiki.corp./": "wiki.corp", "http://bücher.example/": "xn--bcher-kva.example",
		"http://127.0.0.1/": "", "http://[::1]/": "", "http://localhost:3000/": "", "http://app.localhost/": "", "nonsense": "",
	} {
		if got := TargetName(raw); got != want {
			t.Errorf("%s is looked up as %q", raw, got)
		}
	}
}
