package guard

import (
	"errors"
	"net"
	"net/netip"
	"strings"
	"testing"

	"humanqa/internal/testing/must"
)

func TestAPageMayHaveAnyPortThatABrowserOpens(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		network, address string
		allow            Allow
		ok               bool
	}{
		{"tcp4", "8.8.8.8:80", nil, true},
		{"tcp4", "8.8.8.8:443", nil, true},
		{"tcp4", "8.8.8.8:3000", nil, true},
		{"tcp6", "[2606:4700:4700::1111]:8080", nil, true},
		{"tcp4", "8.8.8.8:22", nil, false},
		{"tcp4", "8.8.8.8:25", nil, false},
		{"tcp4", "8.8.8.8:6667", nil, false},
		{"udp4", "8.8.8.8:443", nil, false},
		{"tcp4", "127.0.0.1:80", nil, false},
		{"tcp4", "10.0.0.1:3000", nil, false},
		{"tcp4", "169.254.169.254:80", nil, false},
		{"tcp4", "169.254.169.254:80", Allow{netip.MustParsePrefix("169.254.0.0/16")}, false},
		{"tcp6", "[fd00:ec2::254]:80", Allow{netip.MustParsePrefix("fc00::/7")}, false},
		{"tcp6", "[::ffff:127.0.0.1]:80", loopback, false},
		{"tcp4", "127.0.0.1:8080", loopback, true},
		{"tcp4", "127.0.0.1:22", loopback, false},
		{"tcp4", "10.0.0.1:3000", loopback, false},
	} {
		dial, err := Pages{Allow: Targets{Networks: tt.allow}}.control(t.Context(), "a.example")
		must.NoError(t, err)
		err = dial(tt.network, tt.address, nil)
		if (err == nil) != tt.ok {
			t.Errorf("%s %s with %v: %v, want ok=%v", tt.network, tt.address, tt.allow, err, tt.ok)
		}
		if err != nil && !errors.Is(err, ErrBlocked) {
			t.Errorf("%s %s: %v does not wrap ErrBlocked", tt.network, tt.address, err)
		}
	}
}

// A name that the operator lists may lead to a private address; another name may
// not, whatever it resolves to when it is dialled.
func TestOnlyAListedNameLeadsToPrivateAddresses(t *testing.T) {
	t.Parallel()
	targets, err := ParseTargets("staging.internal, 10.9.0.0/16")
	must.NoError(t, err)
	for at, want := range map[string]bool{
		"shop.staging.internal 10.1.2.3:443": true,
		"STAGING.internal. 127.0.0.1:8080":   true,
		"shop.staging.internal 0.0.0.0:80":   false,
		"rebound.example.com 10.1.2.3:443":   false,
		"rebound.example.com 10.9.2.3:443":   true,
		"rebound.example.com 127.0.0.1:8080": false,
		"other.internal 10.1.2.3:443":        false,
	} {
		name, address, _ := strings.Cut(at, " ")
		dial, err := Pages{Allow: targets}.control(t.Context(), name)
		must.NoError(t, err)
		if err := dial("tcp4", address, nil); (err == nil) != want {
			t.Errorf("%s: %v, want ok=%v", at, err, want)
		}
	}
}

// Whatever is allowed, no page is the service itself, by any of its names or of
// this machine's addresses.
func TestTheServicesOwnAddressesAreNeverDialled(t *testing.T) {
	t.Parallel()
	own := new(Own)
	own.Listens("127.0.0.1:8080")
	own.Listens("[::]:9090")
	own.Listens("/run/postgres") // a socket
	own.Peer("localhost:5432")
	own.Peer("10.1.2.3:5432")
	own.Peer("/run/postgres")
	own.Site("https://qa.internal/")
	targets, err := ParseTargets("127.0.0.0/8, ::1, 10.0.0.0/8, internal")
	must.NoError(t, err)
	pages := Pages{Allow: targets, Own: own}
	at := map[string]bool{
		"127.0.0.1:8080": false, "127.8.8.8:8080": false, "[::1]:8080": false, "127.0.0.1:9090": false, "127.0.0.1:5432": false,
		"10.1.2.3:5432": false, "10.1.2.4:5432": true, "10.1.2.3:8080": true, "127.0.0.1:3000": true,
	}
	interfaces, err := net.InterfaceAddrs()
	must.NoError(t, err)
	for _, a := range interfaces {
		if prefix, err := netip.ParsePrefix(a.String()); err == nil && prefix.Addr().Is4() {
			at[netip.AddrPortFrom(prefix.Addr(), 8080).String()] = false
		}
	}
	dial, err := pages.control(t.Context(), "shop.internal")
	must.NoError(t, err)
	for address, want := range at {
		network := "tcp4"
		if strings.HasPrefix(address, "[") {
			network = "tcp6"
		}
		if err := dial(network, address, nil); (err == nil) != want {
			t.Errorf("%s: %v, want ok=%v", address, err, want)
		}
	}
	for raw, want := range map[string]bool{
		"https://qa.internal/a": false, "https://QA.internal:443": false, "https://qa.internal:8443/": true, "https://shop.internal/": true,
	} {
		if err := pages.URL(raw); (err == nil) != want {
			t.Errorf("%s: %v, want ok=%v", raw, err, want)
		}
	}
}
