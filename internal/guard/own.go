package guard

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"

	"humanqa/domain/identity"
)

// errOwn is the refusal of a page that is this service's.
var errOwn = errors.New("the host is this service's own")

// Own holds the addresses of the service and of its servers: its listeners, its log, its
// Postgres. A nil one has none.
type Own struct {
	mu    sync.Mutex
	sites []string // host:port by which the service is called, as DNS sees it
	ports []uint16 // of this machine
	peers []hostPort
}

type hostPort struct {
	host string
	port uint16
}

// Listens adds a listener's address: its port is the service's at every address
// of this machine.
func (o *Own) Listens(address string) {
	_, text, err := net.SplitHostPort(address)
	if err != nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if port, err := strconv.ParseUint(text, 10, 16); err == nil && port != 0 {
		o.ports = append(o.ports, uint16(port))
	}
}

// Peer adds an address, host:port, that the service connects to. An address of this
// machine counts as a listener's.
func (o *Own) Peer(address string) {
	host, text, err := net.SplitHostPort(address)
	if err != nil || host == "" || strings.HasPrefix(host, "/") {
		return // a socket in a directory
	}
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return
	}
	if addr, err := netip.ParseAddr(host); strings.EqualFold(host, "localhost") || err == nil && addr.IsLoopback() {
		o.Listens(address)
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.peers = append(o.peers, hostPort{host, uint16(port)})
}

// Site adds the URL by which the service is called. It may share its address with others,
// behind a proxy, so it is known by its name.
func (o *Own) Site(raw string) {
	if at := siteOf(raw); at != "" {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.sites = append(o.sites, at)
	}
}

func (o *Own) site(raw string) bool {
	if o == nil {
		return false
	}
	at := siteOf(raw)
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Contains(o.sites, at)
}

func siteOf(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return ""
	}
	p, err := port(u)
	if err != nil {
		return ""
	}
	host := u.Hostname()
	if name, ok := identity.Host(host); ok {
		host = name
	}
	return net.JoinHostPort(host, strconv.Itoa(int(p)))
}

// addresses gives a function that recognises the service's own addresses as they are now.
func (o *Own) addresses(ctx context.Context) (func(netip.AddrPort) bool, error) {
	if o == nil {
		return func(netip.AddrPort) bool { return false }, nil
	}
	o.mu.Lock()
	ports, peers := slices.Clone(o.ports), slices.Clone(o.peers)
	o.mu.Unlock()
	own := map[netip.AddrPort]bool{}
	for _, p := range peers {
		found, err := net.DefaultResolver.LookupNetIP(ctx, "ip", p.host)
		if err != nil {
			return nil, fmt.Errorf("%w: look up what the service stands on: %w", ErrBlocked, err)
		}
		for _, addr := range found {
			own[netip.AddrPortFrom(addr.Unmap(), p.port)] = true
		}
	}
	here, err := localAddrs()
	if err != nil {
		return nil, err
	}
	return func(at netip.AddrPort) bool {
		addr := at.Addr().Unmap()
		return own[netip.AddrPortFrom(addr, at.Port())] ||
			(addr.IsLoopback() || addr.IsUnspecified() || here[addr]) && slices.Contains(ports, at.Port())
	}, nil
}

// localAddrs are the addresses of this machine's interfaces.
func localAddrs() (map[netip.Addr]bool, error) {
	found, err := net.InterfaceAddrs()
	if err != nil {
		return nil, fmt.Errorf("list this machine's addresses: %w", err)
	}
	here := make(map[netip.Addr]bool, len(found))
	for _, a := range found {
		if prefix, err := netip.ParsePrefix(a.String()); err == nil {
			here[prefix.Addr().Unmap()] = true
		}
	}
	return here, nil
}
