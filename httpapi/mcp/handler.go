// Package mcp serves the Model Context Protocol at /mcp, before the API.
//
// Every request needs an API key, and is admitted and counted by the API's own checks. The
// tools (package mcptools) call the API in this process with the caller's key.
//
// Two handlers share one server. A request that names revision 2026-07-28 or a later one
// in Mcp-Protocol-Version goes to a handler without sessions. Any other goes to one that
// keeps a session in this process. So behind a balancer older clients need sticky sessions.
// The library knows no notifications of tasks, so listen.go serves their streams.
package mcp

import (
	"context"
	"math"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"humanqa/httpapi/wire"
	client "humanqa/internal/hqa/api"
	"humanqa/internal/mcptools"
)

const (
	// Path is where the protocol is served.
	Path = "/mcp"
	// metadataPath tells clients how the resource is protected (RFC 9728). Some ask
	// with the resource's path behind it.
	metadataPath = "/.well-known/oauth-protected-resource"
	// statelessSince is the first revision without sessions.
	statelessSince = "2026-07-28"
	versionHeader  = "Mcp-Protocol-Version"
	// maxBody bounds a request, in bytes. Tools take texts, no files.
	maxBody = 1 << 20
	// sessionTime is how long a session of an older client may be silent.
	sessionTime = 10 * time.Minute
)

// API is the service behind the protocol: *httpapi.API.
type API interface {
	http.Handler
	Stop()
	// Authorize admits and counts a request that is not the API's own. It gives the
	// caller's name, or the refusal to send.
	Authorize(w http.ResponseWriter, r *http.Request, route string) (actor string, refusal *wire.Answer)
}

// Handler serves /mcp and passes everything else on to the API.
type Handler struct {
	API
	tools               *mcptools.Tools
	stateless, stateful http.Handler
	listens             *wire.Quota // streams of tasks, by key
	metadata            http.Handler
	metadataURL         string
	origin              string // of the service's own pages
	stopped             chan struct{}
	stop                func()
}

// New makes the handler. baseURL is the service's, without a slash at its end.
func New(api API, baseURL, version string) *Handler {
	h := &Handler{API: api, metadataURL: baseURL + metadataPath + Path, stopped: make(chan struct{})}
	if at, err := url.Parse(baseURL); err == nil {
		h.origin = at.Scheme + "://" + at.Host
	}
	h.stop = sync.OnceFunc(func() { close(h.stopped) })
	h.tools = mcptools.New(client.Within(baseURL, inProcess{api}, "mcp/"+version), version)
	h.listens = wire.NewQuota(math.MaxInt64, mcptools.MaxListens, 0)
	h.stateless, h.stateful = h.serving(h.tools.Server)
	h.metadata = auth.ProtectedResourceMetadataHandler(&oauthex.ProtectedResourceMetadata{
		Resource: baseURL + Path, ResourceName: "Human QA", BearerMethodsSupported: []string{"header"},
		ResourceDocumentation: baseURL + "/docs",
	})
	return h
}

// serving mounts a server twice. Both need a key, so the protection against DNS
// rebinding, which would refuse a proxy on this machine, is off.
func (h *Handler) serving(server *sdk.Server) (stateless, stateful http.Handler) {
	mount := func(o sdk.StreamableHTTPOptions) http.Handler {
		o.DisableLocalhostProtection, o.MaxRequestBodyBytes = true, maxBody
		return auth.RequireBearerToken(tokenOf, &auth.RequireBearerTokenOptions{AllowMissingExpiration: true})(
			sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, &o))
	}
	return mount(sdk.StreamableHTTPOptions{Stateless: true, PropagateRequestCancellation: true}),
		mount(sdk.StreamableHTTPOptions{SessionTimeout: sessionTime})
}

type actorKey struct{}

// tokenOf binds sessions to the key under which they began.
func tokenOf(ctx context.Context, _ string, _ *http.Request) (*auth.TokenInfo, error) {
	actor, _ := ctx.Value(actorKey{}).(string)
	return &auth.TokenInfo{UserID: actor}, nil
}

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case metadataPath, metadataPath + Path:
		h.metadata.ServeHTTP(w, r)
	case Path:
		h.serve(w, r)
	default:
		h.API.ServeHTTP(w, r)
	}
}

// fromHere says that no page of another site sent the request: a browser names the site
// in Origin, and an agent sends none.
func (h *Handler) fromHere(r *http.Request) bool {
	origin := r.Header.Get("Origin")
	if origin == "" || origin == h.origin {
		return true
	}
	at, err := url.Parse(origin)
	return err == nil && (at.Hostname() == "localhost" || net.ParseIP(at.Hostname()).IsLoopback())
}

func (h *Handler) serve(w http.ResponseWriter, r *http.Request) {
	if !h.fromHere(r) {
		http.Error(w, "pages of other sites may not call this", http.StatusForbidden)
		return
	}
	actor, refusal := h.Authorize(w, r, Path)
	if refusal != nil {
		if refusal.Status == http.StatusUnauthorized {
			refusal.Header.Set("WWW-Authenticate", `Bearer realm="humanqa", resource_metadata="`+h.metadataURL+`"`)
		}
		refusal.Send(w)
		return
	}
	ctx, cancel := context.WithCancel(context.WithValue(r.Context(), actorKey{}, actor))
	defer cancel()
	if r.Method == http.MethodGet { // a stream that would not end by itself
		go func() {
			select {
			case <-h.stopped:
				cancel()
			case <-ctx.Done():
			}
		}()
	}
	serving := h.stateful
	if version := strings.TrimSpace(r.Header.Get(versionHeader)); version >= statelessSince {
		if h.listen(w, r, actor) {
			return
		}
		serving = h.stateless
	}
	serving.ServeHTTP(w, r.WithContext(ctx))
}

// Stop tells open streams and the API that the server is about to stop.
func (h *Handler) Stop() {
	h.stop()
	h.API.Stop()
}
