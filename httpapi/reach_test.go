package httpapi

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"humanqa/httpapi/admit"
	"humanqa/internal/guard"
	"humanqa/internal/testing/must"
)

func TestOnlyATrustedProxySaysWhoAsked(t *testing.T) {
	t.Parallel()
	proxies, err := guard.ParseAllow("10.0.0.0/8, fd00::/8")
	must.NoError(t, err)
	for name, c := range map[string]struct {
		peer             string
		tls              bool
		forwarded, proto []string
		address, scheme  string
	}{
		"nobody between us":                 {peer: "198.51.100.7:9", address: "198.51.100.7", scheme: "http"},
		"TLS of our own":                    {peer: "198.51.100.7:9", tls: true, address: "198.51.100.7", scheme: "https"},
		"a stranger's claim":                {peer: "198.51.100.7:9", forwarded: []string{"203.0.113.5"}, proto: []string{"https"}, address: "198.51.100.7", scheme: "http"},
		"a proxy":                           {peer: "10.1.2.3:9", forwarded: []string{"203.0.113.5"}, proto: []string{"https"}, address: "203.0.113.5", scheme: "https"},
		"what the client claimed in front":  {peer: "10.1.2.3:9", forwarded: []string{"192.0.2.1, 203.0.113.5"}, address: "203.0.113.5", scheme: "http"},
		"two proxies, two lines":            {peer: "10.1.2.3:9", forwarded: []string{"192.0.2.1", "203.0.113.5,10.9.9.9"}, proto: []string{"http", "https"}, address: "203.0.113.5", scheme: "https"},
		"a port, and IPv6":                  {peer: "[fd00::1]:9", forwarded: []string{"[2001:db8:1:2:3::4]:443"}, address: "2001:db8:1:2::/64", scheme: "http"},
		"IPv6 as IPv4":                      {peer: "[::ffff:10.1.2.3]:9", forwarded: []string{"::ffff:203.0.113.5"}, address: "203.0.113.5", scheme: "http"},
		"an internal client":                {peer: "10.1.2.3:9", forwarded: []string{"10.7.7.7"}, address: "10.7.7.7", scheme: "http"},
		"a proxy that says nothing":         {peer: "10.1.2.3:9", address: "10.1.2.3", scheme: "http"},
		"what cannot be read, and a scheme": {peer: "10.1.2.3:9", forwarded: []string{"203.0.113.5, unknown"}, proto: []string{"gopher"}, address: "10.1.2.3", scheme: "http"},
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
		r.RemoteAddr = c.peer
		r.Header["X-Forwarded-For"], r.Header["X-Forwarded-Proto"] = c.forwarded, c.proto
		Reach{TLS: c.tls, Proxies: proxies}.Settle(r)
		gotAddress, gotScheme := admit.Address(r.RemoteAddr), r.URL.Scheme
		if gotAddress != c.address || gotScheme != c.scheme {
			t.Errorf("%s: %s by %s, want %s by %s", name, gotAddress, gotScheme, c.address, c.scheme)
		}
	}
}

func TestTheLogOfRequestsNamesTheClientOnlyIfThatIsAsked(t *testing.T) {
	t.Parallel()
	s := shared(t)
	_, key := s.account(0)
	for _, asked := range []bool{false, true} {
		node := s.node(func(d *Deps) { d.LogAddresses = asked })
		node.call(key, "GET", "/v1/credits", "").want(http.StatusOK)
		if got := strings.Contains(node.logged.String(), "address=192.0.2.1 "); got != asked {
			t.Errorf("asked: %t, and the log has\n%s", asked, node.logged)
		}
	}
}
