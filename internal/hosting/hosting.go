// Package hosting knows the platforms on which people publish apps without their own
// domain.
package hosting

import (
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

// Known are the development and the published domains of public platforms.
func Known() Domains { return slices.Clone(known) }

var known = Domains{
	// Builders that host what they make.
	"replit.app", "replit.dev", "repl.co",
	"lovable.app", "lovableproject.com",
	"bolt.host", "webcontainer.io", "webcontainer-api.io", "stackblitz.io",
	"v0.app", "vusercontent.net",
	"base44.app", "bubbleapps.io", "softr.app", "glideapp.io", "framer.app", "framer.website",
	"webflow.io", "wixsite.com", "wixstudio.com", "glitch.me",
	"streamlit.app", "hf.space", "val.run", "e2b.app", "e2b.dev",
	// Editors in the cloud.
	"csb.app", "codesandbox.io", "app.github.dev", "gitpod.io", "gitpod.dev", "cloudworkstations.dev",
	// Platforms that deploy from a repository or a container.
	"vercel.app", "now.sh", "netlify.app", "pages.dev", "workers.dev", "surge.sh", "deno.dev", "deno.net",
	"onrender.com", "up.railway.app", "fly.dev", "herokuapp.com", "koyeb.app", "zeabur.app", "northflank.app",
	"pythonanywhere.com", "github.io", "gitlab.io", "web.app", "firebaseapp.com", "hosted.app",
	"run.app", "appspot.com", "azurewebsites.net", "azurestaticapps.net", "azurecontainerapps.io",
	"amplifyapp.com", "awsapprunner.com", "elasticbeanstalk.com", "ondigitalocean.app", "modal.run",
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
