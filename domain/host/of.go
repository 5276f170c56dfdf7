package host

import (
	"net"
	"net/url"
	"strings"
	"unicode/utf8"
)

// A longer text names no host. An index can hold a name of this length, however many
// bytes a character has.
const (
	maxName = 253
	maxPort = 5
)

// Of gives the host of a URL in the form by which projects are found (decisions,
// "Auto-link"). It is in lower case, without the scheme's own port, a leading "www." and
// the root's dot. It is empty where there is no host.
func Of(rawURL string) string {
	u, err := url.Parse(rawURL)
	if err != nil {
		return ""
	}
	name := strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
	if bare := strings.TrimPrefix(name, "www."); strings.Contains(bare, ".") { // www.com is a site of its own
		name = bare
	}
	port := u.Port()
	switch {
	case name == "", utf8.RuneCountInString(name) > maxName, len(port) > maxPort:
		return ""
	case port == "", port == "80" && u.Scheme == "http", port == "443" && u.Scheme == "https":
		if strings.Contains(name, ":") {
			return "[" + name + "]"
		}
		return name
	}
	return net.JoinHostPort(name, port)
}
