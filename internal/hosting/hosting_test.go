package hosting_test

import (
	"testing"

	"humanqa/internal/hosting"
)

func TestAHostBelowAPlatformsDomainIsAnApp(t *testing.T) {
	t.Parallel()
	own := hosting.Domains{"apps.Example"}
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
