package identity

import (
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/idna"
)

// names maps as browsers do (UTS 46, non-transitional), but lets underscores pass: they
// are common in host names of test deployments. package guard refuses other characters
// that pass.
var names = idna.New(
	idna.MapForLookup(),
	idna.BidiRule(),
	idna.CheckJoiners(true),
	idna.StrictDomainName(false),
	idna.Transitional(false),
)

// maxHost is the longest name of DNS.
const maxHost = 253

// Host gives a host without its port as DNS sees it: ASCII, in lower case, without the dot
// of the root; an address in netip's form. ok is false for a text that is no name of DNS.
// The mapping drops some characters. Their number is bounded all the same.
func Host(host string) (name string, ok bool) {
	if utf8.RuneCountInString(host) > maxHost+1 {
		return "", false
	}
	if addr, err := netip.ParseAddr(host); err == nil {
		return addr.String(), true
	}
	name, err := names.ToASCII(host)
	name = strings.TrimSuffix(strings.ToLower(name), ".")
	return name, err == nil && name != "" && len(name) <= maxHost
}

// Site gives the host of a URL in the form by which projects are found (decisions,
// "Auto-link"): that of Host, without a leading "www.", with a port that is not the
// scheme's own. It is empty where there is no host.
func Site(rawURL string) string {
	u, err := url.Parse(rawURL)
	if err != nil {
		return ""
	}
	name, ok := Host(u.Hostname())
	if !ok {
		return ""
	}
	return site(u, name)
}

// OlderSites gives the forms that older versions gave to the host of a URL.
func OlderSites(rawURL string) (sites []string) {
	u, err := url.Parse(rawURL)
	if err != nil || u.Hostname() == "" {
		return nil
	}
	unicode, _ := idna.ToUnicode(strings.ToLower(u.Hostname()))
	for _, name := range spellings(u.Hostname(), strings.ToLower) {
		sites = append(sites, site(u, strings.TrimSuffix(name, ".")))
	}
	return append(sites, site(u, strings.TrimSuffix(unicode, ".")))
}

func site(u *url.URL, name string) string {
	if bare := strings.TrimPrefix(name, "www."); strings.Contains(bare, ".") { // www.com is a site of its own
		name = bare
	}
	port, err := strconv.ParseUint(u.Port(), 10, 16)
	switch {
	case err != nil && u.Port() != "":
		return ""
	case err != nil, port == 80 && u.Scheme == "http", port == 443 && u.Scheme == "https":
		if strings.Contains(name, ":") {
			return "[" + name + "]"
		}
		return name
	}
	return net.JoinHostPort(name, strconv.FormatUint(port, 10))
}
