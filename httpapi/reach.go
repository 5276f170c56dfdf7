package httpapi

import (
	"net"
	"net/http"
	"net/netip"
	"strings"

	"humanqa/httpapi/wire"
	"humanqa/internal/guard"
)

// Reach says how requests reach this process (decisions, "Client address").
type Reach struct {
	// TLS says that connections are encrypted up to this process.
	TLS bool
	// Proxies are trusted to name the client and the scheme that it used
	// (HUMANQA_TRUSTED_PROXIES).
	Proxies guard.Allow
}

// Settle makes the request's RemoteAddr the client's and its URL.Scheme the one
// that the client used, http or https.
func (reach Reach) Settle(r *http.Request) {
	r.URL.Scheme = "http"
	if reach.TLS {
		r.URL.Scheme = "https"
	}
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil || !reach.trusts(peer.Addr()) {
		return
	}
	r.RemoteAddr = reach.client(peer, r.Header.Values("X-Forwarded-For"))
	if said := wire.Listed(r.Header.Values("X-Forwarded-Proto")); len(said) > 0 {
		if nearest := said[len(said)-1]; nearest == "http" || nearest == "https" {
			r.URL.Scheme = nearest
		}
	}
}

func (reach Reach) trusts(addr netip.Addr) bool {
	return reach.Proxies.Contains(addr.Unmap().WithZone(""))
}

// client walks back from the peer through the trusted proxies: each has appended the
// address of its own peer. An address that the client wrote itself stands further in
// front, and is never reached.
func (reach Reach) client(peer netip.AddrPort, forwarded []string) string {
	list := wire.Listed(forwarded)
	at := peer.String()
	for i := len(list) - 1; i >= 0; i-- {
		addr, ok := forwardedAddr(list[i])
		if !ok {
			break // at is the nearest address that can be read
		}
		at = net.JoinHostPort(addr.String(), "0")
		if !reach.trusts(addr) {
			break
		}
	}
	return at
}

// forwardedAddr reads one element: an address, with a port or without.
func forwardedAddr(text string) (netip.Addr, bool) {
	if both, err := netip.ParseAddrPort(text); err == nil {
		return both.Addr().Unmap(), true
	}
	addr, err := netip.ParseAddr(strings.Trim(text, "[]"))
	return addr.Unmap(), err == nil
}
