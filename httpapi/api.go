package httpapi

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"humanqa/domain"
	"humanqa/domain/account"
	"humanqa/domain/command"
	"humanqa/httpapi/admit"
	"humanqa/httpapi/input"
	"humanqa/httpapi/readers"
	"humanqa/httpapi/report"
	v1 "humanqa/httpapi/v1"
	"humanqa/httpapi/v1/checkers"
	"humanqa/httpapi/wire"
	"humanqa/internal/backoff"
	"humanqa/internal/clientlogin"
	"humanqa/internal/tracing"
	"humanqa/projections"
)

// Deps holds the dependencies of the API. Submits, Shown, Origin, Metrics and Halted may be nil;
// all else is required.
type Deps struct {
	v1.Shared
	// WaitFor returns when every read model shows the position.
	WaitFor func(context.Context, domain.Position) error
	// Shown is the newest position that all read models of state show.
	Shown func(context.Context) (domain.Position, error)
	// FeedShown returns when the feed of events shows everything that earlier answers
	// showed.
	FeedShown func(context.Context) error
	// WebhooksShown returns when the webhooks know everything that earlier answers
	// showed.
	WebhooksShown func(context.Context) error
	// Ready lists the problems that keep the service from its work; none when it is
	// ready.
	Ready func(context.Context) []Problem
	// Halted gives the error that answers every request except those to public routes;
	// nil, or a nil error, refuses none.
	Halted func() error
	Vault  command.Sealer
	// Spool stores large bodies while they arrive.
	Spool  *wire.Spool
	Tracer *tracing.Tracer // nil: no spans
	// Settings are the operator's permissions for tests and webhooks.
	input.Settings
	// RateLimit is how many requests an API key may send in any minute; 0 for
	// the specification's 60.
	RateLimit int
	// RequestTime bounds all steps of a request together, without the arrival of its body
	// and what its route waits; 0 for 20 seconds (decisions, "One patience").
	RequestTime time.Duration
	// LogAddresses names the client's address in the log's line of each request.
	LogAddresses bool
	Metrics      prometheus.Registerer
}

// Problem is one reason for not being ready.
type Problem = wire.ReadyProblem

// API is the service's http.Handler.
type API struct {
	Deps
	Fresh *admit.Freshness

	ready  *readiness
	Limits *input.Limits

	table    table
	clients  *v1.Handlers
	checkers *checkers.Handlers
	gate     *admit.Gate
	load     *admit.LoadLimit
	writer   *admit.Writer

	metrics   *metrics
	stop      func()
	leaving   atomic.Bool // a stop was asked for, and has not begun
	logins    *clientlogin.Store
	PastReads *wire.Quota
	Readers   *readers.Readers // the named readers of the feed
	Refusals  *Refusals
}

// New makes the API.
func New(d Deps) *API {
	if d.Submits == nil {
		d.Submits = d.Commands
	}
	limiter := admit.NewLimiter(d.DB, d.RateLimit)
	modelsShown := func(ctx context.Context) error {
		head, err := d.Head(ctx)
		if err != nil {
			return err
		}
		return d.WaitFor(ctx, head)
	}
	stopping := make(chan struct{})
	a := &API{
		Deps: d, Fresh: admit.NewFreshness(modelsShown, d.FeedShown, d.WebhooksShown, d.Log), ready: &readiness{look: d.Ready, log: d.Log},
		Limits: input.NewLimits(d.Settings, d.Reads.Pools),
		gate:   admit.NewGate(projections.NewReads(d.DB), limiter, d.Now),
		load:   admit.NewLoadLimit(d.Metrics, d.Log),
		writer: admit.NewWriter(d.DB, d.Vault, d.WaitFor, input.Submissions, d.Now),

		metrics:   newMetrics(d.Metrics),
		stop:      sync.OnceFunc(func() { close(stopping) }),
		logins:    clientlogin.NewStore(d.DB, d.Now),
		PastReads: wire.NewQuota(v1.QuotaOfNode, v1.QuotaOfAccount, 0),
		Refusals:  &Refusals{commands: d.Commands, now: d.Now, log: d.Log, accounts: map[string]*account.SubmissionsRefused{}},
	}
	a.clients = v1.New(v1.Deps{
		Shared: d.Shared, Reports: report.Reader{Jobs: d.Reads.Jobs, Links: d.Evidence, BaseURL: d.BaseURL},
		Limits: a.Limits, Gate: a.gate, Writer: a.writer, Fresh: a.Fresh, Stopping: stopping,
	})
	a.Readers = a.clients.Readers
	if d.Metrics != nil {
		d.Metrics.MustRegister(a.Readers)
	}
	a.checkers = &checkers.Handlers{Shared: d.Shared, Writer: a.writer}
	a.table = newTable(routesOf(a))
	return a
}

// Run forgets old idempotency keys and callers that have been silent, and writes the
// places of the feed's readers and the refused tests, until ctx ends.
func (a *API) Run(ctx context.Context) error {
	var noting sync.WaitGroup
	defer noting.Wait()
	noting.Go(func() {
		if err := a.Readers.Run(ctx); err != nil {
			a.Log.WithError(err).Warn("the last places of named readers are not written")
		}
	})
	noting.Go(func() { a.Refusals.Run(ctx) })
	for again := true; again; again = backoff.Wait(ctx, admit.SweepEvery) == nil {
		if err := a.writer.Keys.Sweep(ctx); err != nil && ctx.Err() == nil {
			a.Log.WithError(err).Warn("old idempotency keys stay until the next sweep")
		}
		if err := a.gate.Limits.Sweep(ctx); err != nil && ctx.Err() == nil {
			a.Log.WithError(err).Warn("silent callers' rows stay until the next sweep")
		}
	}
	return nil
}

// Admit asks for a place among the caller's requests of the last minute.
// retryAfter, in seconds, is 0 when there is one.
func (a *API) Admit(ctx context.Context, caller string, limit int) (retryAfter int, err error) {
	q, err := a.gate.Limits.CountRequest(ctx, caller, limit)
	if err != nil || q.Admitted {
		return 0, err
	}
	return max(1, q.Reset), nil
}
