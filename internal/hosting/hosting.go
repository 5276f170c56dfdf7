// Package hosting knows the platforms on which people publish apps without their own
// domain.
package hosting

import (
	_ "embed"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"humanqa/domain/identity"
)

// Domains are domains under which such platforms give each app a host of its own. An app
// is a host below one of them, never the domain itself, which is the platform's. They are
// as DNS sees them.
type Domains []string

//go:embed known.txt
var known string

// Known are the development and the published domains of public platforms.
func Known() (d Domains) {
	for line := range strings.Lines(known) {
		if !strings.HasPrefix(line, "#") {
			d = append(d, strings.Fields(line)...)
		}
	}
	return d
}

// Parse reads a list of domains, separated by commas. Of nothing it makes nil.
func Parse(list string) (Domains, error) {
	var d Domains
	for _, part := range strings.Split(list, ",") {
		typed := strings.TrimSpace(part)
		if typed == "" {
			continue
		}
		domain, ok := identity.Host(typed)
		if !ok || strings.Trim(typed, ".") != typed || strings.ContainsAny(domain, "/:*@ ") {
			return nil, fmt.Errorf("%q is no domain", part)
		}
		d = append(d, domain)
	}
	return d, nil
}

// Hosts says whether the URL is that of an app on one of the platforms.
func (d Domains) Hosts(rawURL string) bool {
	u, err := url.Parse(rawURL)
	if err != nil {
		return false
	}
	host, ok := identity.Host(u.Hostname())
	return ok && slices.ContainsFunc(d, func(domain string) bool {
		app, below := strings.CutSuffix(host, "."+domain)
		return below && app != ""
	})
}
