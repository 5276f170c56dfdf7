package wire

import (
	"cmp"
	"net/http"
	"regexp"
	"strings"

	"github.com/sirupsen/logrus"

	"humanqa/domain"
	"humanqa/domain/account"
)

// Request is an accepted HTTP request on its way to a handler.
type Request struct {
	*http.Request
	Match
	ID      string
	Caller  Caller
	Upload  *Body           // closed with the request
	Content []byte          // what came, until it has been parsed (ReleaseBody); not of a file
	Read    *Problems       // once a handler opened the body
	Looked  map[string]bool // the query parameters that the handler knows
	Notes   []domain.Detail // for the warnings of the answer
	Log     logrus.FieldLogger
	// LeaveLoad gives the place among the requests under way back, before the request waits
	// for something that is not its own work.
	LeaveLoad func()
}

// RouteName is the route as logs and metrics show it: its pattern, because a path
// may hold a token.
func (r *Request) RouteName() string {
	return cmp.Or(r.RoutePattern, "unknown")
}

// maxLoggedPath bounds a path in the log, in bytes.
const maxLoggedPath = 200

// ourTokens finds what begins as a token of ours does.
var ourTokens = regexp.MustCompile(`(?:` + strings.Join([]string{
	domain.LiveKeyPrefix, domain.SandboxKeyPrefix, domain.CheckerKeyPrefix, domain.HookTokenPrefix,
}, "|") + `)[A-Za-z0-9_-]+`)

// LoggedPath is the path without its query, and without what may be a secret in it: a
// deploy hook's token, wherever it stands.
func (r *Request) LoggedPath() string {
	path := r.URL.Path
	if token := r.Vars["token"]; token != "" {
		path = strings.ReplaceAll(path, token, "{token}")
	}
	path = ourTokens.ReplaceAllString(path, "{token}")
	if len(path) > maxLoggedPath {
		path = strings.ToValidUTF8(path[:maxLoggedPath], "") + "…"
	}
	return path
}

// LoggedMethod keeps what clients invent out of logs and metrics.
func LoggedMethod(method string) string {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut,
		http.MethodPatch, http.MethodDelete, http.MethodOptions:
		return method
	}
	return "other"
}

// Audience says whose credential a route wants.
type Audience int

const (
	Public   Audience = iota // none
	Clients                  // an API key
	Checkers                 // a checker key
	Hooks                    // the token in the path
)

// handler answers a request, or refuses it.
type handler func(*Request) (Answer, error)

// Route is one row of the table.
type Route struct {
	Method   string
	Pattern  string
	Audience Audience
	// Write routes refuse read-only keys.
	Write bool
	// Creates marks what charges or creates: Idempotency-Key is honoured there,
	// but for claims, whose answer holds credentials and is stored nowhere.
	Creates bool
	// Submits marks what takes a test, or checks one: its answer warns of fields
	// that look like slips.
	Submits bool
	// Upload routes take files: their bodies are not brought into memory.
	Upload bool
	// AllProjects routes are about all projects of an account: they refuse a key of one.
	AllProjects bool
	// Past routes show state, and take ?asOf= (decisions, "asOf").
	Past   bool
	Handle handler
}

// Match is where a request leads: no pattern (404), a pattern without a route
// for the method (405, allow lists the methods), or a route.
type Match struct {
	RoutePattern string
	Route        *Route
	Audience     Audience
	Allow        string
	Vars         map[string]string
}

// Caller is who stands behind a request, once its credential was accepted.
type Caller struct {
	Actor     string // key:<id>, checker:<id>
	AccountID string // of an API key
	Scope     account.Scope
	ProjectID string // the one project an API key is bound to, or empty
	CheckerID string // of a checker key
	Sandbox   bool   // the account is one
}

// Owner is whose Idempotency-Keys the caller uses, and whose data key seals
// what is stored under them: the account's, or a checker's own.
func (c Caller) Owner() string {
	if c.AccountID == "" {
		return "checker:" + c.CheckerID
	}
	return c.AccountID
}

const (
	IdempotencyHeader = "Idempotency-Key"
	maxIdempotencyKey = 255
)

// IdempotencyKey reads the header; present says that the client sent one. Who
// creates reads it with the body, so that one 400 names everything.
func (r *Request) IdempotencyKey(p *Problems) (key string, present bool) {
	values := r.Header.Values(IdempotencyHeader)
	if len(values) == 0 {
		return "", false
	}
	key = values[0]
	ok := key != "" && len(key) <= maxIdempotencyKey
	for i := range len(key) {
		ok = ok && ' ' <= key[i] && key[i] <= '~'
	}
	if !ok {
		p.Add(IdempotencyHeader, "must be 1 to %d printable ASCII characters", maxIdempotencyKey)
	}
	return key, true
}

const ClaimTokenHeader = "X-Claim-Token"

// ReleaseBody gives the body's memory back once nobody reads in it any more: the
// command may take its time.
func (r *Request) ReleaseBody() {
	r.Content, r.Read = nil, nil
	r.Upload.parsed()
}
