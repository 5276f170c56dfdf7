package guard

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"humanqa/domain/identity"
)

// Targets lists what may be tested although it is private: networks, and names
// with everything below them (HUMANQA_TARGET_ALLOW). The zero value lists none.
type Targets struct {
	Networks Allow
	Suffixes []string // as DNS sees them
}

// ParseTargets reads comma-separated CIDRs, addresses and suffixes of names.
func ParseTargets(csv string) (Targets, error) {
	var t Targets
	for part := range strings.SplitSeq(csv, ",") {
		part = strings.TrimSpace(part)
		if part == "" {
			continue
		}
		if networks, err := ParseAllow(part); err == nil {
			t.Networks = append(t.Networks, networks...)
			continue
		}
		name, ok := identity.Host(strings.TrimPrefix(strings.TrimPrefix(part, "*"), "."))
		err := errName
		if ok {
			err = publicName(name)
		}
		if err != nil && !errors.Is(err, ErrPrivate) {
			return Targets{}, fmt.Errorf("%q is neither a network such as 10.0.0.0/8 nor a name such as staging.internal", part)
		}
		t.Suffixes = append(t.Suffixes, name)
	}
	return t, nil
}

// named says that the name, as DNS sees it, is listed.
func (t Targets) named(name string) bool { return within(name, t.Suffixes) }

// TargetURL accepts a URL under test: http or https, any port, a host that is
// public or within allow (decisions, "URL under test"). ErrPrivate is in the
// chain of the refusal of a host that an account's own checkers may reach.
func TargetURL(raw string, allow Targets) error {
	u, err := parse(raw)
	if err != nil {
		return err
	}
	if u.Scheme != "http" && u.Scheme != "https" {
		return errors.New("must start with http:// or https://")
	}
	if _, err := port(u); err != nil {
		return err
	}
	_, err = publicHost(u, allow)
	return err
}

// TargetName is the name that a URL under test has to be looked up by; empty for an
// address, and for a name of this machine.
func TargetName(raw string) string {
	u, err := parse(raw)
	if err != nil || strings.HasPrefix(u.Host, "[") {
		return ""
	}
	name, ok := identity.Host(u.Hostname())
	if _, literal := netip.ParseAddr(name); !ok || literal == nil || within(name, []string{"localhost"}) {
		return ""
	}
	return name
}

// shared is the network that carriers put between their customers and the internet.
var shared = netip.MustParsePrefix("100.64.0.0/10")

// metadataAddrs are clouds' metadata services, some of them in networks that may
// be allowed otherwise.
var metadataAddrs = []netip.Addr{
	netip.MustParseAddr("169.254.169.254"), netip.MustParseAddr("fd00:ec2::254"),
	netip.MustParseAddr("100.100.100.200"), netip.MustParseAddr("192.0.0.192"), wireServer,
}

// metadata recognises an address that the service never dials, even if it is allowed.
func metadata(addr netip.Addr) bool { return slices.Contains(metadataAddrs, addr) }

// private recognises an address of a private network, or of one machine: a page may well
// be there.
func private(addr netip.Addr) bool {
	return addr.IsLoopback() || addr.IsPrivate() || shared.Contains(addr)
}
