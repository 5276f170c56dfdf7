package httpapi

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/sirupsen/logrus"

	"humanqa/domain"
	"humanqa/internal/backoff"
	"humanqa/internal/guard"
	"humanqa/internal/hosting"
	"humanqa/projections"
	"humanqa/projections/asof"
	"humanqa/webhooks"
)

// Deps is what the API stands on. Metrics and Halted may be nil, all else is
// required.
type Deps struct {
	Commands Commands
	Reads    *projections.Reads
	// WaitFor returns when every read model shows the position.
	WaitFor func(context.Context, domain.Position) error
	// FeedShown returns when the feed of events shows what anybody was answered
	// before.
	FeedShown func(context.Context) error
	// WebhooksShown returns when the webhooks know what anybody was answered
	// before.
	WebhooksShown func(context.Context) error
	// Ready lists what keeps the service from doing its work; nothing when it
	// is ready.
	Ready func(context.Context) []Problem
	// Past is the log, for answers as they were, and Head its newest position.
	Past domain.Log
	Head func(context.Context) (domain.Position, error)
	// Halted is why nothing may be asked but the service's health; nil, or a nil
	// error, is nothing.
	Halted func() error
	// Checkpoint gives the newest signed checkpoint of the log, and the key to
	// verify it by; an empty note before the first event.
	Checkpoint func(context.Context) (note, verifier string, err error)
	// OwnLog gives accounts their own events, and proofs.
	OwnLog OwnLog
	DB     *sqlx.DB // idempotency keys, rate limits, what is known of evidence
	Vault  Vault
	// SpoolDir is where large bodies lie while they come; empty for the system's
	// directory for temporary files.
	SpoolDir string
	// Evidence is where uploaded files lie.
	Evidence EvidenceFiles
	// RecordingLimit is how many bytes one checker may record of one job; 0 for
	// DefaultRecordingLimit.
	RecordingLimit int64
	Log            logrus.FieldLogger
	Now            func() time.Time
	// BaseURL starts every URL that is handed out; no slash at its end.
	BaseURL string
	// WebhookAllow are the private addresses webhooks may go to all the same.
	WebhookAllow guard.Allow
	// Targets are the private hosts that any account may test, and that the service
	// itself may fetch.
	Targets guard.Targets
	// PrivateTargets says that checkers may reach any private host: this is a demo.
	PrivateTargets bool
	// Resolve looks a name up, to warn of hosts under test that have no address; nil:
	// nothing is looked up.
	Resolve func(ctx context.Context, host string) error
	// HostedDomains are the domains of hosted-app platforms; nil for those that
	// are known.
	HostedDomains hosting.Domains
	// RateLimit is how many requests an API key may send in any minute; 0 for
	// the specification's 60.
	RateLimit int
	Metrics   prometheus.Registerer
}

// Problem is one reason for not being ready, or a note: what an operator should know of a
// service that is. Anybody may read it; Cause is for the log only.
type Problem struct {
	Note   bool   `json:"-"`
	Part   string `json:"part"`
	Reason string `json:"reason"`
	Cause  error  `json:"-"`
}

// Vault keeps what must not lie about in the clear: package internal/vault.
type Vault interface {
	Seal(ctx context.Context, accountID, stream string, plaintext []byte) (string, error)
	Unseal(ctx context.Context, accountID, stream, sealed string) ([]byte, error)
	Fingerprint(ctx context.Context, accountID, use string, secret []byte) (string, error)
}

// API is the service's http.Handler.
type API struct {
	commands   Commands
	reads      *projections.Reads
	waitFor    func(context.Context, domain.Position) error
	feedShown  func(context.Context) error
	checkpoint func(context.Context) (note, verifier string, err error)
	ownLog     OwnLog
	past       *asof.Reads
	head       func(context.Context) (domain.Position, error)

	webhooksShown func(context.Context) error
	deliveries    *webhooks.Log

	ready        *readiness
	halted       func() error
	vault        Vault
	log          logrus.FieldLogger
	now          func() time.Time
	baseURL      string
	webhookAllow guard.Allow

	targets        guard.Targets
	privateTargets bool
	lookups        *lookups

	hostedDomains hosting.Domains

	table          table
	idempotency    idempotency
	limits         *limiter
	evidence       evidenceRows
	evidenceFiles  EvidenceFiles
	recordings     recordingRows
	recorded       chan struct{} // a recording was finished
	recordingLimit int64
	spool          *spool
	metrics        *metrics
	stopping       *stopSignal
	feedWatch      *feedWatch
	streams        *streamPlaces
	pastPlaces     *places
	tablePlaces    *places
	readGrace      time.Duration // of who reads a table
	beat           time.Duration // between two signs of life of a stream
}

// New makes the API.
func New(d Deps) *API {
	if d.HostedDomains == nil {
		d.HostedDomains = hosting.Known()
	}
	return &API{
		commands: d.Commands, reads: d.Reads, waitFor: d.WaitFor, feedShown: d.FeedShown, checkpoint: d.Checkpoint, ownLog: d.OwnLog, past: asof.NewReads(d.Past, d.DB, d.Reads), head: d.Head,
		webhooksShown: d.WebhooksShown, deliveries: webhooks.NewLog(d.DB), ready: &readiness{look: d.Ready, log: d.Log}, halted: d.Halted,
		vault: d.Vault, log: d.Log, now: d.Now,
		baseURL: d.BaseURL, webhookAllow: d.WebhookAllow,
		targets: d.Targets, privateTargets: d.PrivateTargets,
		lookups:       &lookups{resolve: d.Resolve, names: map[string]*lookup{}},
		hostedDomains: d.HostedDomains,
		table:         newTable(routes),
		idempotency:   idempotency{db: d.DB, vault: d.Vault},
		limits:        newLimiter(d.DB, d.RateLimit),
		evidence:      evidenceRows{db: d.DB},
		evidenceFiles: d.Evidence,
		recordings:    recordingRows{db: d.DB}, recorded: make(chan struct{}, 1),
		recordingLimit: cmp.Or(d.RecordingLimit, DefaultRecordingLimit),
		spool:          newSpool(d.SpoolDir),
		metrics:        newMetrics(d.Metrics),
		stopping:       newStopSignal(),
		feedWatch: &feedWatch{
			events: d.Reads.Events, access: d.Reads.Access, now: d.Now, log: d.Log, listeners: map[*listener]struct{}{},
		},
		streams:     &streamPlaces{open: map[string]int{}},
		pastPlaces:  newPlaces(placesHere, placesEach, 0),
		tablePlaces: newPlaces(placesHere, placesEach, 0),
		readGrace:   bodyGrace,
		beat:        streamBeat,
	}
}

// Run does what the API has to do without being asked: it forgets old
// idempotency keys, callers that have been silent, and uploads that broke off, and
// makes files of recordings that have ended.
// It returns when ctx ends.
func (a *API) Run(ctx context.Context) error {
	var recording sync.WaitGroup
	recording.Go(func() { a.runRecordings(ctx) })
	defer recording.Wait()
	for again := true; again; again = backoff.Wait(ctx, sweepEvery) == nil {
		if err := a.idempotency.sweep(ctx); err != nil && ctx.Err() == nil {
			a.log.WithError(err).Warn("old idempotency keys stay until the next sweep")
		}
		if err := a.limits.sweep(ctx); err != nil && ctx.Err() == nil {
			a.log.WithError(err).Warn("silent callers' rows stay until the next sweep")
		}
		if err := a.evidence.sweep(ctx, a.evidenceFiles); err != nil && ctx.Err() == nil {
			a.log.WithError(err).Warn("uploads that broke off stay until the next sweep")
		}
		if err := a.recordings.sweep(ctx, a.evidenceFiles); err != nil && ctx.Err() == nil {
			a.log.WithError(err).Warn("parts of recordings stay until the next sweep")
		}
	}
	return nil
}

// handleTime bounds a request from the moment its body is there.
const handleTime = 40 * time.Second

// request is an accepted HTTP request on its way to a handler.
type request struct {
	*http.Request
	match
	id     string
	caller caller
	came   *body           // closed with the request
	body   []byte          // what came, until it has been parsed (letGo); not of a file
	read   *problems       // once a handler opened the body
	looked map[string]bool // the query parameters that the handler knows
	notes  []domain.Detail // for the warnings of the answer
	log    logrus.FieldLogger
}

// ServeHTTP takes every request the same way, whatever its path and method.
func (a *API) ServeHTTP(w http.ResponseWriter, hr *http.Request) {
	started := time.Now()
	r := &request{Request: hr, match: a.table.find(hr), id: requestID(hr.Header)}
	r.log = a.log.WithFields(logrus.Fields{"requestId": r.id, "method": loggedMethod(hr.Method), "route": r.name()})
	h := w.Header()
	h.Set(requestIDHeader, r.id)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")

	defer a.metrics.inFlight()()
	ans := a.answer(w, r)
	sent := 0
	switch {
	case ans.stream != nil:
		a.metrics.observe(loggedMethod(hr.Method), r.name(), ans.status, time.Since(started)) // its body has no due time
		sent = ans.sendStream(r, w)
		a.logAccess(r, ans.status, sent, time.Since(started))
		return
	case ans.status != statusClientGone:
		sent = ans.send(w)
	}
	took := time.Since(started)
	a.metrics.observe(loggedMethod(hr.Method), r.name(), ans.status, took)
	a.logAccess(r, ans.status, sent, took)
	if ans.status == http.StatusRequestEntityTooLarge {
		drain(w, hr)
	}
}

// answer never fails: a refusal and a panic are answers, too.
func (a *API) answer(w http.ResponseWriter, r *request) (ans answer) {
	defer func() {
		p := recover()
		if p == nil {
			return
		}
		if err, ok := p.(error); ok && errors.Is(err, http.ErrAbortHandler) {
			panic(p)
		}
		r.log.WithField("stack", string(debug.Stack())).Error("panic")
		ans = refuse(r, fmt.Errorf("panic: %v", p))
	}()
	ans, err := a.handle(w, r)
	if err != nil {
		return refuse(r, err)
	}
	return ans
}

// handle is the order of checks (decisions, "Order of checks") up to the handler.
func (a *API) handle(w http.ResponseWriter, r *request) (answer, error) {
	var err error
	if a.halted != nil && (r.audience != public || r.pattern == "") {
		if err := a.halted(); err != nil {
			return answer{}, err
		}
	}
	if r.caller, err = a.authenticate(r.Context(), r.Header, r.match); err != nil {
		if noCredential(err) {
			err = a.limitStranger(r, w.Header(), err)
		}
		return answer{}, err
	}
	if err := a.limitCaller(r, w.Header()); err != nil {
		return answer{}, err
	}
	if err := r.mayWrite(); err != nil { // counted like any call: guessing is not free
		return answer{}, err
	}
	body, err := a.spool.readBody(w, r.Request, r.caller)
	if err != nil {
		return answer{}, err
	}
	defer body.close()
	r.came = body
	switch {
	case r.pattern == "":
		hint := "GET /docs shows the paths there are"
		if near := a.table.nearest(r.URL.Path); near != nil {
			hint = "did you mean " + strings.Join(near, " or ") + "? " + hint
		}
		return answer{}, domain.NotFound("path").WithHint("%s", hint)
	case r.route == nil:
		return answer{}, withHeader(&domain.Error{
			Kind: domain.KindMethod, Code: domain.CodeMethodNotAllowed,
			Message: "the method is not allowed here", Hint: "allowed: " + r.allow,
		}, "Allow", r.allow)
	}
	// A copy: once the handler is done and its context cancelled, r's own still
	// says whether the client is there.
	timed := *r
	if !r.route.upload { // a file is read where it lies
		if timed.body, err = body.load(r.Context()); err != nil {
			return answer{}, err
		}
	}
	ctx, cancel := context.WithTimeout(r.Context(), handleTime)
	defer cancel()
	timed.Request = r.WithContext(ctx)
	timed.looked = map[string]bool{}
	if err := a.refuseMoment(&timed); err != nil {
		return answer{}, err
	}
	if r.route.past && timed.namesMoment() {
		leave, err := takePlace(a.pastPlaces, "reads of the past", r.caller.accountID)
		if err != nil {
			return answer{}, err
		}
		defer leave()
	}
	ans, err := r.route.handle(a, &timed)
	if err != nil {
		return ans, err
	}
	return timed.warnedOfQuery(ans), nil
}

// name is the route as logs and metrics show it: its pattern, because a path
// may hold a token.
func (r *request) name() string {
	if r.pattern == "" {
		return "unknown"
	}
	return r.pattern
}

// maxLoggedPath bounds a path in the log, in bytes.
const maxLoggedPath = 200

// ourTokens finds what begins as a token of ours does.
var ourTokens = regexp.MustCompile(`(?:` + strings.Join([]string{
	domain.LiveKeyPrefix, domain.SandboxKeyPrefix, domain.CheckerKeyPrefix, domain.HookTokenPrefix,
}, "|") + `)[A-Za-z0-9_-]+`)

// loggedPath is the path without its query, and without what may be a secret in it: a
// deploy hook's token, wherever it stands.
func (r *request) loggedPath() string {
	path := r.URL.Path
	if token := r.vars["token"]; token != "" {
		path = strings.ReplaceAll(path, token, "{token}")
	}
	path = ourTokens.ReplaceAllString(path, "{token}")
	if len(path) > maxLoggedPath {
		path = strings.ToValidUTF8(path[:maxLoggedPath], "") + "…"
	}
	return path
}

// loggedMethod keeps what clients invent out of logs and metrics.
func loggedMethod(method string) string {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut,
		http.MethodPatch, http.MethodDelete, http.MethodOptions:
		return method
	}
	return "other"
}

func (a *API) logAccess(r *request, status, sent int, took time.Duration) {
	fields := logrus.Fields{
		"status": status, "bytes": sent, "millis": float64(took.Microseconds()) / 1000, "path": r.loggedPath(),
	}
	if r.caller.accountID != "" {
		fields["accountId"] = r.caller.accountID
	}
	if r.caller.actor != "" {
		fields["actor"] = r.caller.actor
	}
	level := logrus.InfoLevel
	if r.audience == public && status < http.StatusBadRequest {
		level = logrus.DebugLevel // probes, every few seconds
	}
	r.log.WithFields(fields).Log(level, "request")
}
