// Package mcp serves the Model Context Protocol at /mcp, before the API.
//
// Every request needs an API key, and is admitted and counted by the API's own checks. The
// tools (package mcptools) call the API in this process with the caller's key. So each call
// of the API is counted, too. A POST has one message: the library would take a batch of a
// client that names no version, which is many calls under one count. The bytes of answers
// under way are bounded (underWay).
//
// Two handlers share one server. A request that names revision 2026-07-28 or a later one
// in Mcp-Protocol-Version goes to a handler without sessions. Any other goes to one that
// keeps a session in this process. So behind a balancer older clients need sticky sessions.
package mcp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"humanqa/httpapi/wire"
	client "humanqa/integrations/clients/go/humanqa"
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
	stateless, stateful http.Handler
	answers             *wire.Quota // bytes of answers under way, by key
	metadata            http.Handler
	metadataURL         string
	origin              string          // of the service's own pages
	serves              context.Context // until the server is about to stop
	stop                context.CancelFunc
}

// New makes the handler. baseURL is the service's, without a slash at its end.
func New(api API, baseURL, version string) *Handler {
	h := &Handler{API: api, metadataURL: baseURL + metadataPath + Path}
	if at, err := url.Parse(baseURL); err == nil {
		h.origin = at.Scheme + "://" + at.Host
	}
	h.serves, h.stop = context.WithCancel(context.Background())
	h.answers = wire.NewQuota(answersOfNode, answersOfKey, wire.PlaceWait)
	h.stateless, h.stateful = h.serving(mcptools.New(client.Within(baseURL, inProcess{api}, "mcp/"+version), version))
	h.metadata = auth.ProtectedResourceMetadataHandler(&oauthex.ProtectedResourceMetadata{
		Resource: baseURL + Path, ResourceName: "Human QA", BearerMethodsSupported: []string{"header"},
		ResourceDocumentation: baseURL + "/docs",
	})
	return h
}

// serving mounts a server twice. Both need a key, so the protection against DNS
// rebinding, which would refuse a proxy on this machine, is off.
func (h *Handler) serving(server *sdk.Server) (stateless, stateful http.Handler) {
	server.AddReceivingMiddleware(withShare)
	mount := func(o sdk.StreamableHTTPOptions) http.Handler {
		o.DisableLocalhostProtection = true
		return auth.RequireBearerToken(tokenOf, &auth.RequireBearerTokenOptions{AllowMissingExpiration: true})(
			sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, &o))
	}
	return mount(sdk.StreamableHTTPOptions{Stateless: true, PropagateRequestCancellation: true}),
		mount(sdk.StreamableHTTPOptions{SessionTimeout: sessionTime})
}

type actorKey struct{}

// tokenOf binds sessions to the key under which they began, and a message to its request.
func tokenOf(ctx context.Context, _ string, _ *http.Request) (*auth.TokenInfo, error) {
	actor, _ := ctx.Value(actorKey{}).(string)
	return &auth.TokenInfo{UserID: actor, Extra: map[string]any{underWayExtra: ctx.Value(underWayKey{})}}, nil
}

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case metadataPath, metadataPath + Path:
		h.metadata.ServeHTTP(wire.AsGet(w, r))
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

func (h *Handler) serve(to http.ResponseWriter, r *http.Request) {
	w := &shaped{ResponseWriter: to, json: r.Method == http.MethodPost && !wire.WantsEvents(r.Header.Values("Accept"))}
	defer w.end()
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
	r.Header.Set("Accept", "application/json, "+wire.EventStream) // which the library asks for
	if !oneMessage(w, r) {
		return
	}
	share := &underWay{quota: h.answers, key: actor}
	defer share.end()
	defer w.end() // before the share is given back
	ctx, cancel := context.WithCancel(context.WithValue(context.WithValue(r.Context(), actorKey{}, actor), underWayKey{}, share))
	defer cancel()
	r = r.WithContext(ctx)
	if r.Method == http.MethodGet { // a stream that would not end by itself
		defer context.AfterFunc(h.serves, cancel)()
	}
	serving := h.stateful
	if version := strings.TrimSpace(r.Header.Get(versionHeader)); version >= statelessSince {
		serving = h.stateless
	}
	serving.ServeHTTP(w, r)
}

// oneMessage reads the body, and refuses any that is not one message. The request keeps its
// body.
func oneMessage(w *shaped, r *http.Request) bool {
	if r.Method != http.MethodPost {
		return true
	}
	refusal, status := &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest}, http.StatusBadRequest
	if err := wire.Inflate(r); err != nil {
		wire.Refuse(&wire.Request{Request: r}, err).Send(w)
		return false
	}
	body, err := io.ReadAll(http.MaxBytesReader(w.ResponseWriter, r.Body, maxBody))
	body = bytes.TrimPrefix(body, []byte("\ufeff"))
	switch tooLarge := (*http.MaxBytesError)(nil); {
	case errors.As(err, &tooLarge):
		refusal.Message, status = fmt.Sprintf("the request has more than %d bytes", tooLarge.Limit), http.StatusRequestEntityTooLarge
	case err != nil:
		refusal.Message = "the request cannot be read: " + err.Error()
	default:
		if w.id, refusal = mcptools.Judge(body); refusal == nil {
			r.Body = io.NopCloser(bytes.NewReader(body))
			return true
		}
	}
	w.WriteHeader(status)
	_, _ = w.Write(mcptools.Fault(w.id, refusal)) // it is held
	return false
}

// Stop tells open streams and the API that the server is about to stop.
func (h *Handler) Stop() {
	h.stop()
	h.API.Stop()
}
