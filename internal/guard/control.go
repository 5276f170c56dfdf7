package guard

import (
	"errors"
	"net"
	"net/http"
	"net/netip"
	"syscall"
	"time"

	"code.dny.dev/ssrf"
)

// ErrBlocked is in the chain of every error of Control: the address is not one
// we ever connect to. A name may have another one a moment later.
var ErrBlocked = errors.New("the address is blocked")

// wireServer is Azure's platform address: public by its number, a metadata
// service in fact.
var wireServer = netip.MustParseAddr("168.63.129.16")

// special knows IANA's special-purpose registries.
var special = ssrf.New(
	ssrf.WithAnyPort(),
	ssrf.WithDeniedV4Prefixes(netip.PrefixFrom(wireServer, wireServer.BitLen())),
)

// blocked says whether addr is anything but a public unicast address.
func blocked(addr netip.Addr) bool {
	network := "tcp4"
	if !addr.Is4() {
		network = "tcp6"
	}
	return special.Safe(network, netip.AddrPortFrom(addr, 443).String(), nil) != nil
}

// Control is for net.Dialer. It sees each address after name resolution, right before the
// connection, so a name that resolves to a private address, at any time, is refused. Only
// TCP to the ports of WebhookURL passes; an address within allow may have any port.
func Control(allow Allow) func(network, address string, c syscall.RawConn) error {
	return control(func(at netip.AddrPort) bool {
		return allow.Contains(at.Addr()) || !blocked(at.Addr()) && webhookPort(at.Port())
	})
}

// Client makes requests of at most timeout. It dials as Control lets it, follows no redirect,
// and its answers are safe to read.
func Client(allow Allow, timeout time.Duration) *http.Client {
	dialer := &net.Dialer{Control: Control(allow)}
	return &http.Client{
		Timeout:       timeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: Answers(&http.Transport{
			// No Proxy: one would dial where the guard does not see it.
			DialContext: dialer.DialContext, ForceAttemptHTTP2: true,
			IdleConnTimeout: time.Minute, MaxIdleConnsPerHost: 4, MaxResponseHeaderBytes: 16 << 10,
		}),
	}
}
