package hosting_test

import (
	"testing"

	"humanqa/internal/hosting"
	"humanqa/internal/testing/must"
)

func TestAHostBelowAPlatformsDomainIsAnApp(t *testing.T) {
	t.Parallel()
	own, err := hosting.Parse(" apps.Example ,, other.example")
	must.NoError(t, err)
	for _, c := range []struct {
		domains hosting.Domains
		url     string
		want    bool
	}{
		{hosting.Known(), "https://shop.replit.app/cart", true},
		{hosting.Known(), "https://4f2a-00-x.janeway.replit.dev:3000/", true},
		{hosting.Known(), "HTTPS://Shop.LOVABLE.app.", true},
		{hosting.Known(), "https://shop-git-main.vercel.app", true},
		{hosting.Known(), "https://vercel.app", false},
		{hosting.Known(), "https://notvercel.app", false},
		{hosting.Known(), "https://vercel.app.example.com", false},
		{hosting.Known(), "https://example.com/?x=.vercel.app", false},
		{hosting.Known(), "https://203.0.113.7", false},
		{hosting.Known(), "https://%zz", false},
		{own, "https://shop.apps.example", true},
		{own, "https://shop.vercel.app", false},
		{nil, "https://shop.vercel.app", false},
	} {
		if got := c.domains.Hosts(c.url); got != c.want {
			t.Errorf("%s: got %t, want %t", c.url, got, c.want)
		}
	}
}

func TestAListOfDomainsIsRead(t *testing.T) {
	t.Parallel()
	for list, want := range map[string]int{
		"": 0, " , ": 0, "a.example": 1, "a.example, b.example": 2,
		"*.a.example": -1, ".a.example": -1, "a.example.": -1, "https://a.example": -1, "a.example:443": -1, "a b": -1,
	} {
		d, err := hosting.Parse(list)
		if (err != nil) != (want < 0) || err == nil && len(d) != want || want == 0 && d != nil {
			t.Errorf("%q reads as %q, %v", list, d, err)
		}
	}
}
