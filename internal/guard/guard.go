// Package guard decides which URLs the service accepts and which addresses it dials.
//
// It works in two places. At registration it checks the text of the URL: scheme,
// authority, port, and the host as a literal address or as a name. That gives the
// client an answer at once, but proves nothing: a public name may resolve to a private
// address, today or later. So Control checks the address in the dialer, after name
// resolution, and that check decides. Both places share one list of addresses.
//
// Errors are lower-case sentences that are safe to show to the client.
package guard

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"humanqa/domain/identity"
)

// webhookPorts are the ports a webhook may be sent to, unless the operator
// allows the address itself.
var webhookPorts = []uint16{443, 8443}

// WebhookURL accepts a URL that deliveries may be sent to: https, a public
// host, a port of the list (specification, "Events"). Hosts within allow may
// use any port; they are for trials and tests.
func WebhookURL(raw string, allow Allow) error {
	u, err := parse(raw)
	if err != nil {
		return err
	}
	if u.Scheme != "https" {
		return errors.New("must start with https://, on port 443 or 8443")
	}
	p, err := port(u)
	if err != nil {
		return err
	}
	allowed, err := publicHost(u, Targets{Networks: allow})
	if err != nil {
		return err
	}
	if !allowed && !webhookPort(p) {
		return errors.New("the port must be 443 or 8443")
	}
	return nil
}

func webhookPort(p uint16) bool { return slices.Contains(webhookPorts, p) }

// parse refuses a URL that two parsers could read differently, because other people's
// software reads it later.
func parse(raw string) (*url.URL, error) {
	if raw == "" {
		return nil, errors.New("must not be empty")
	}
	if !utf8.ValidString(raw) {
		return nil, errors.New("must be valid UTF-8")
	}
	for _, r := range raw {
		if unicode.IsControl(r) || unicode.IsSpace(r) || r == '\\' || bidi(r) {
			return nil, errors.New("must not contain blanks, backslashes or control characters")
		}
	}
	u, err := url.Parse(raw)
	if err != nil {
		return nil, errors.New("must be a valid URL")
	}
	if u.User != nil {
		return nil, errors.New("must not contain a user name or password")
	}
	if u.Opaque != "" || u.Hostname() == "" {
		return nil, errors.New("must be an absolute URL with a host")
	}
	if strings.ContainsRune(authority(raw), '%') {
		return nil, errors.New("the host must not contain percent signs")
	}
	return u, nil
}

// bidi tells the invisible characters that reorder what a reader sees.
func bidi(r rune) bool {
	return r >= '\u202a' && r <= '\u202e' || r >= '\u2066' && r <= '\u2069' || r == '\u200e' || r == '\u200f'
}

// authority cuts host and port out of the raw text, before any decoding.
func authority(raw string) string {
	_, rest, _ := strings.Cut(raw, "//")
	if end := strings.IndexAny(rest, "/?#"); end >= 0 {
		rest = rest[:end]
	}
	return rest
}

func port(u *url.URL) (uint16, error) {
	text := u.Port()
	if text == "" {
		if u.Scheme == "http" {
			return 80, nil
		}
		return 443, nil
	}
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil || n == 0 || len(text) > len("65535") { // nor any number of zeros
		return 0, errors.New("the port must be between 1 and 65535")
	}
	return uint16(n), nil
}

// ErrPrivate says that only clients within some network, or on one machine, may
// reach the host.
var ErrPrivate = errors.New("the host is private, internal or reserved")

var (
	errReserved = errors.New("the host is reserved, or a cloud's metadata service")
	errName     = errors.New("the host is not a valid public name")
)

// publicHost checks the host; allowed says that it passes only because it is
// within allow.
func publicHost(u *url.URL, allow Targets) (allowed bool, err error) {
	host := u.Hostname()
	if strings.HasPrefix(u.Host, "[") {
		addr, err := netip.ParseAddr(host)
		if err != nil || !addr.Is6() || addr.Zone() != "" || addr.Is4In6() {
			return false, errors.New("the host is not a valid IPv6 address")
		}
		return literal(addr, allow)
	}
	name, ok := identity.Host(host)
	if !ok {
		return false, errName
	}
	if addr, err := netip.ParseAddr(name); err == nil {
		return literal(addr, allow)
	}
	err = publicName(name)
	if errors.Is(err, ErrPrivate) && (allow.named(name) || name == "localhost" && allow.Networks.loopback()) {
		return true, nil
	}
	return false, err
}

func literal(addr netip.Addr, allow Targets) (allowed bool, err error) {
	switch {
	case metadata(addr):
		return false, errReserved
	case allow.Networks.Contains(addr):
		return true, nil
	case private(addr):
		return false, ErrPrivate
	case blocked(addr):
		return false, errReserved
	}
	return false, nil
}

// publicName refuses every name that cannot be, or is known not to be, a
// public one.
func publicName(name string) error {
	labels := strings.Split(name, ".")
	for _, l := range labels {
		if !validLabel(l) {
			return errName
		}
	}
	last := labels[len(labels)-1]
	if number(last) {
		// Octal, hexadecimal, short and overlong forms of IPv4: resolvers
		// differ about them, so none of them is accepted.
		return errors.New("the host is not a valid IPv4 address")
	}
	switch {
	case within(name, metadataNames):
		return errReserved
	case len(labels) == 1 || within(name, privateSuffixes):
		return ErrPrivate
	}
	return nil
}

// within says that the name is one of those, or below one.
func within(name string, suffixes []string) bool {
	return slices.ContainsFunc(suffixes, func(suffix string) bool {
		return name == suffix || strings.HasSuffix(name, "."+suffix)
	})
}

// privateSuffixes are names, with everything below them, that lead into
// private networks.
var privateSuffixes = []string{
	"localhost", "localdomain", "local", "internal", "intranet", "private",
	"lan", "home", "corp", "home.arpa", "svc",
}

// metadataNames lead to a cloud's metadata service.
var metadataNames = []string{
	"metadata", "metadata.google.internal", "instance-data.ec2.internal",
	"metadata.goog", "metadata.azure.com", "metadata.tencentyun.com", "metadata.platformequinix.com",
}

func validLabel(l string) bool {
	return l != "" && len(l) <= 63 && strings.Trim(l, "abcdefghijklmnopqrstuvwxyz0123456789-_") == "" && strings.Trim(l, "-") == l
}

// number tells a label that some parsers take for a part of an IPv4 address:
// digits only, or 0x and hexadecimal digits (possibly none).
func number(label string) bool {
	digits := "0123456789"
	if hex, ok := strings.CutPrefix(label, "0x"); ok {
		label, digits = hex, "0123456789abcdef"
	}
	return strings.Trim(label, digits) == ""
}

// Allow lists the private networks that may be used all the same
// (HUMANQA_WEBHOOK_ALLOW). The zero value allows none.
type Allow []netip.Prefix

// ParseAllow reads comma-separated CIDRs; a bare address stands for itself.
func ParseAllow(csv string) (Allow, error) {
	var allow Allow
	for part := range strings.SplitSeq(csv, ",") {
		part = strings.TrimSpace(part)
		if part == "" {
			continue
		}
		prefix, err := netip.ParsePrefix(part)
		if err != nil {
			addr, addrErr := netip.ParseAddr(part)
			if addrErr != nil || addr.Zone() != "" {
				return nil, fmt.Errorf("%q is not a network such as 10.0.0.0/8", part)
			}
			prefix = netip.PrefixFrom(addr, addr.BitLen())
		}
		if prefix.Addr().Is4In6() {
			return nil, fmt.Errorf("%q must be a plain IPv4 or IPv6 network", part)
		}
		allow = append(allow, prefix.Masked())
	}
	return allow, nil
}

// Contains says that the address is in one of the networks.
func (a Allow) Contains(addr netip.Addr) bool {
	return slices.ContainsFunc(a, func(p netip.Prefix) bool { return p.Contains(addr) })
}

// loopback says whether the name localhost is allowed. Control checks the address that it
// leads to.
func (a Allow) loopback() bool {
	return a.Contains(netip.AddrFrom4([4]byte{127, 0, 0, 1})) || a.Contains(netip.IPv6Loopback())
}
