package httpapi

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/gorilla/mux"

	"humanqa/httpapi/evidence"
	"humanqa/httpapi/openapi"
	"humanqa/httpapi/wire"
)

// routesOf is every route of the service. The first pattern that matches wins, so literal
// segments stand before variables.
func routesOf(a *API) []wire.Route {
	declared := wire.Route{Method: "GET", Pattern: "/v1/analytics/{name}", Audience: wire.Clients, AllProjects: true, Handle: a.getDeclared}
	refusals := wire.Route{Method: "GET", Pattern: "/v1/refusals", Audience: wire.Clients, AllProjects: true, Handle: a.listRefusals}
	return slices.Concat(a.clients.Routes(), []wire.Route{declared, refusals}, a.checkers.Routes(), a.publicRoutes())
}

// publicRoutes are the routes that need no key.
func (a *API) publicRoutes() []wire.Route {
	return []wire.Route{
		{Method: "POST", Pattern: "/v1/device", Audience: wire.Public, Write: true, Handle: a.beginLogin},
		{Method: "POST", Pattern: "/v1/device/token", Audience: wire.Public, Write: true, Handle: a.collectLogin},
		{Method: "GET", Pattern: "/v1/evidence/{id}", Audience: wire.Public, Handle: a.Evidence.Answer},
		{Method: "GET", Pattern: "/v1/openapi.json", Audience: wire.Public, Handle: a.servedHere(openapi.Served(openapi.Document))},
		{Method: "GET", Pattern: "/v1/openapi-3.1.json", Audience: wire.Public, Handle: a.servedHere(openapi.Served(openapi.Document31))},
		{Method: "GET", Pattern: "/docs", Audience: wire.Public, Handle: a.docs},
		{Method: "GET", Pattern: "/docs.md", Audience: wire.Public, Handle: served(openapi.Markdown)},
		{Method: "GET", Pattern: "/docs/{file}", Audience: wire.Public, Handle: a.docsFile},
		{Method: "GET", Pattern: "/llms.txt", Audience: wire.Public, Handle: a.servedHere(openapi.LLMs)},
		{Method: "GET", Pattern: "/llms-full.txt", Audience: wire.Public, Handle: served(openapi.LLMsFull)},
		{Method: "GET", Pattern: "/healthz", Audience: wire.Public, Handle: a.healthz},
		{Method: "HEAD", Pattern: "/healthz", Audience: wire.Public, Handle: a.healthz},
		{Method: "GET", Pattern: "/readyz", Audience: wire.Public, Handle: a.readyz},
		{Method: "HEAD", Pattern: "/readyz", Audience: wire.Public, Handle: a.readyz},
	}
}

// table finds routes. mux matches the path; the method is looked up here, so that a wrong
// method still finds its path's audience and Allow header.
type table struct {
	paths    *mux.Router
	patterns map[string]map[string]*wire.Route // by pattern, then method
	past     []string                          // the patterns of the reads that take ?asOf=
}

func newTable(rows []wire.Route) table {
	t := table{
		// The path is matched as it was sent: an encoded slash is not a
		// separator, and nothing is cleaned into a redirect.
		paths:    mux.NewRouter().UseEncodedPath().SkipClean(true),
		patterns: make(map[string]map[string]*wire.Route),
	}
	for i := range rows {
		row := &rows[i]
		if t.patterns[row.Pattern] == nil {
			t.patterns[row.Pattern] = make(map[string]*wire.Route)
			t.paths.Path(row.Pattern).Name(row.Pattern)
		}
		t.patterns[row.Pattern][row.Method] = row
		if row.Past {
			t.past = append(t.past, row.Pattern)
		}
	}
	for _, methods := range t.patterns {
		if get := methods[http.MethodGet]; get != nil && methods[http.MethodHead] == nil {
			methods[http.MethodHead] = get
		}
	}
	return t
}

func (t table) find(r *http.Request) wire.Match {
	var found mux.RouteMatch
	if !t.paths.Match(r, &found) || found.Route == nil {
		return wire.Match{Audience: audienceOf(r.URL.Path)}
	}
	vars := make(map[string]string, len(found.Vars))
	for name, raw := range found.Vars {
		value, err := url.PathUnescape(raw)
		if err != nil {
			return wire.Match{Audience: audienceOf(r.URL.Path)}
		}
		vars[name] = value
	}
	methods := t.patterns[found.Route.GetName()]
	m := wire.Match{RoutePattern: found.Route.GetName(), Route: methods[r.Method], Vars: vars}
	if m.Route != nil {
		m.Audience = m.Route.Audience
		return m
	}
	var allow []string
	for method, row := range methods {
		allow = append(allow, method)
		m.Audience = row.Audience
	}
	slices.Sort(allow)
	m.Allow = strings.Join(allow, ", ")
	return m
}

// audienceOf keeps the order of checks on paths without a route: under /v1 the credential
// is checked before the path is refused.
func audienceOf(path string) wire.Audience {
	switch {
	case path == "/v1/checker" || strings.HasPrefix(path, "/v1/checker/"):
		return wire.Checkers
	case path == "/v1/device" || path == "/v1/device/token":
		return wire.Public
	case path == "/v1/openapi.json" || path == "/v1/openapi-3.1.json" || strings.HasPrefix(path, evidence.Prefix):
		return wire.Public
	case strings.HasPrefix(path, "/v1/hooks/"):
		return wire.Hooks
	case path == "/v1" || strings.HasPrefix(path, "/v1/"):
		return wire.Clients
	}
	return wire.Public
}
