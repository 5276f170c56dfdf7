package guard

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"syscall"

	"humanqa/domain/identity"
)

// badPorts are those from 1024 up that browsers refuse to open a page on (the
// Fetch standard, "bad port"): other protocols live there.
var badPorts = []uint16{
	1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060, 5061, 6000, 6566,
	6665, 6666, 6667, 6668, 6669, 6679, 6697, 10080,
}

// Pages dials pages under test: any port that a browser would open, but none of
// the system's services (decisions, "URL under test").
type Pages struct {
	Allow Targets
	// Own, unless nil, are the service's own addresses: never dialled, whatever is
	// allowed.
	Own *Own
}

// URL accepts the URL of a page that may be dialled.
func (p Pages) URL(raw string) error {
	if err := TargetURL(raw, p.Allow); err != nil {
		return err
	}
	if p.Own.site(raw) {
		return errOwn
	}
	return nil
}

// DialContext is for http.Transport. The address is checked after the name was
// resolved: a name that is allowed may lead to private addresses, any other only
// to public ones and those that are allowed.
func (p Pages) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBlocked, err)
	}
	check, err := p.control(ctx, host)
	if err != nil {
		return nil, err
	}
	return (&net.Dialer{Control: check}).DialContext(ctx, network, address)
}

// control checks the addresses that a host leads to.
func (p Pages) control(ctx context.Context, host string) (func(network, address string, c syscall.RawConn) error, error) {
	own, err := p.Own.addresses(ctx)
	if err != nil {
		return nil, err
	}
	name, _ := identity.Host(host) // "" is not listed
	return control(func(at netip.AddrPort) bool {
		switch addr := at.Addr(); {
		case !pagePort(at.Port()), own(at):
			return false
		case p.Allow.Networks.Contains(addr), p.Allow.named(name) && private(addr):
			return true
		default:
			return !blocked(addr)
		}
	}), nil
}

func pagePort(p uint16) bool {
	return p == 80 || p == 443 || p >= 1024 && !slices.Contains(badPorts, p)
}

// control lets TCP pass to the addresses that ok accepts, but never to one with
// a zone or to a cloud's metadata service.
func control(ok func(netip.AddrPort) bool) func(network, address string, c syscall.RawConn) error {
	return func(network, address string, _ syscall.RawConn) error {
		if network != "tcp4" && network != "tcp6" {
			return fmt.Errorf("%w: network %s", ErrBlocked, network)
		}
		at, err := netip.ParseAddrPort(address)
		if err != nil {
			return fmt.Errorf("%w: %s is not an address and port", ErrBlocked, address)
		}
		if at.Addr().Zone() != "" || metadata(at.Addr()) || !ok(at) {
			return fmt.Errorf("%w: %s", ErrBlocked, address)
		}
		return nil
	}
}
