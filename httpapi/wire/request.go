package wire

import (
	"cmp"
	"context"
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/sirupsen/logrus"

	"humanqa/domain"
	"humanqa/domain/account"
	"humanqa/domain/job"
)

// Request is an accepted HTTP request on its way to a handler.
type Request struct {
	*http.Request
	Match
	ID      string
	Caller  Caller
	Upload  *Body            // closed with the request
	Content []byte           // the body until it has been parsed (ReleaseBody); not of a file
	Read    *Problems        // once a handler opened the body
	Looked  map[string]bool  // the query parameters that the handler knows
	Notes   []domain.Detail  // for the warnings of the answer
	Asked   []job.Submission // the tests that the request is to buy
	// Unresolved warns of hosts under test without an address; nil: none was looked up.
	Unresolved func(context.Context) []domain.Detail
	// Shown is a position up to which the read models show every event; zero: not known.
	Shown domain.Position
	// Commanded says that a command was issued for the request.
	Commanded bool
	Log       logrus.FieldLogger
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

// ourTokens finds the words that begin like a token of ours.
var ourTokens = regexp.MustCompile(`(?:` + strings.Join([]string{
	domain.LiveKeyPrefix, domain.SandboxKeyPrefix, domain.CheckerKeyPrefix, domain.HookTokenPrefix,
}, "|") + `)[A-Za-z0-9_-]+`)

// LoggedPath is the path without its query, and without possible secrets: a deploy hook's
// token, and each word that begins like a token of ours.
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

// LoggedMethod keeps invented methods out of logs and metrics.
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
	// Creates marks routes that charge or create: Idempotency-Key is honoured there. A
	// claim is not marked, because its answer holds credentials and is stored nowhere.
	Creates bool
	// Submits marks routes that take a test, or estimate one: the answer warns of fields
	// that look like slips.
	Submits bool
	// Buys is the source of the tests that the route buys, as of a job; empty: it buys none.
	Buys string
	// Upload routes take files: their bodies are not brought into memory.
	Upload bool
	// AllProjects routes are about all projects of an account: they refuse a key of one.
	AllProjects bool
	// Past routes show state, and take ?asOf= (decisions, "asOf").
	Past bool
	// Waits is how long the route holds its answer back on request (?wait=). It comes on top
	// of the request's time.
	Waits  time.Duration
	Handle handler
}

// Match is the result of a route's look-up: no pattern (404), a pattern without a route
// for the method (405, Allow lists the methods), or a route.
type Match struct {
	RoutePattern string
	Route        *Route
	Audience     Audience
	Allow        string
	Vars         map[string]string
}

// Caller is the sender of a request whose credential was accepted.
type Caller struct {
	Actor     string // key:<id>, checker:<id>, hook:<project id>
	AccountID string // of an API key
	Scope     account.Scope
	ProjectID string // the one project an API key is bound to, or empty
	CheckerID string // of a checker key
	Sandbox   bool   // the account is a sandbox
}

// Owner is the owner of the caller's Idempotency-Keys, whose data key seals the answers
// under them: the account, or the checker itself.
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

// IdempotencyKey reads the header; present says that the client sent one. A route that
// creates reads it with the body, so that one 400 names every problem.
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

// ReleaseBody frees the body's memory once no reader needs it: the command may take its
// time.
func (r *Request) ReleaseBody() {
	r.Content, r.Read = nil, nil
	r.Upload.parsed()
}
