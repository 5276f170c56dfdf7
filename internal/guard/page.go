package guard

import (
	"fmt"
	"net/netip"
	"slices"
	"syscall"
)

// badPorts are those from 1024 up that browsers refuse to open a page on (the
// Fetch standard, "bad port"): other protocols live there.
var badPorts = []uint16{
	1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060, 5061, 6000, 6566,
	6665, 6666, 6667, 6668, 6669, 6679, 6697, 10080,
}

// PageControl is Control for whoever fetches a page under test: such a page may
// have any port (decisions, "URL under test") that a browser would
// open, but none of the system's services.
func PageControl(allow Allow) func(network, address string, c syscall.RawConn) error {
	return control(allow, pagePort)
}

func pagePort(p uint16) bool {
	return p == 80 || p == 443 || p >= 1024 && !slices.Contains(badPorts, p)
}

// control lets TCP to public addresses pass on the ports that port accepts; an
// address within allow may have any port.
func control(allow Allow, port func(uint16) bool) func(network, address string, c syscall.RawConn) error {
	return func(network, address string, _ syscall.RawConn) error {
		if network != "tcp4" && network != "tcp6" {
			return fmt.Errorf("%w: network %s", ErrBlocked, network)
		}
		at, err := netip.ParseAddrPort(address)
		if err != nil {
			return fmt.Errorf("%w: %s is not an address and port", ErrBlocked, address)
		}
		switch {
		case at.Addr().Zone() != "":
		case allow.Contains(at.Addr()):
			return nil
		case !blocked(at.Addr()) && port(at.Port()):
			return nil
		}
		return fmt.Errorf("%w: %s", ErrBlocked, address)
	}
}
