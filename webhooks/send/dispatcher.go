package send

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/sirupsen/logrus"

	"humanqa/domain"
	"humanqa/internal/signature"
	"humanqa/internal/workloop"
	"humanqa/webhooks"
	"humanqa/webhooks/queue"
)

// settleGather is how long successes wait for others, so that they settle together. After
// a crash meanwhile they are sent again. The next event of the same job does not wait: it
// asks for a claim, which settles first.
const settleGather = 100 * time.Millisecond

// Dispatcher sends the deliveries that the subscriber wrote. Several may run, in any
// number of processes.
type Dispatcher struct {
	cfg       Config
	queue     *queue.Queue
	vault     Vault
	report    Report
	loop      *workloop.Loop[queue.Delivery, queue.Outcome]
	sender    *sender       // while it runs
	reportDue chan struct{} // a report is due
	metrics   metrics
	direct    direct
}

// NewDispatcher prepares a dispatcher; Run starts it, once.
func NewDispatcher(db *sqlx.DB, vault Vault, report Report, cfg Config) *Dispatcher {
	cfg = cfg.withDefaults()
	d := &Dispatcher{
		cfg:       cfg,
		queue:     queue.New(db, cfg.Pool, queue.Caps{Begin: cfg.PerEndpoint, Most: cfg.MostPerEndpoint}, cfg.Lease),
		vault:     vault,
		report:    report,
		reportDue: make(chan struct{}, 1),
		metrics:   newMetrics(),
	}
	d.loop = workloop.New(deliveries{d}, workloop.Config{
		Name: "webhooks", Places: cfg.Pool, Lease: cfg.Lease, Drain: cfg.Drain, Poll: cfg.Poll, Gather: settleGather, Log: cfg.Log,
	})
	d.direct.queue, d.direct.hand = d.queue, d.loop.Hand
	return d
}

// Direct has the dispatcher send the deliveries that a subscriber of its process leases
// to it. Call it once, before either runs, and pass the result to Subscriber.SendThrough.
func (d *Dispatcher) Direct() webhooks.DirectSender {
	d.direct.kept = d.cfg.Pool / keptPart
	return &d.direct
}

// Run sends until the context ends, then lets running requests finish for Config.Drain
// and settles them. An error is about the configuration; no delivery was sent then.
func (d *Dispatcher) Run(ctx context.Context) (err error) {
	if d.sender, err = newSender(d.cfg); err != nil {
		return err
	}
	defer d.sender.close()

	var wake <-chan struct{}
	if d.cfg.DSN != "" {
		// Its connection shows other processes that this one lives, also while it drains.
		listening, stop := context.WithCancel(context.WithoutCancel(ctx))
		defer stop()
		wake = d.queue.Listen(listening, d.cfg.DSN, func(err error) {
			d.cfg.Log.WithError(err).Warn("listening for due webhooks was interrupted")
		})
	}
	var beside sync.WaitGroup
	beside.Go(func() { reportLoop(ctx, d.queue, d.report, d.reportDue, d.cfg) })
	beside.Go(func() { purgeLoop(ctx, d.queue, d.cfg.Log) })
	defer beside.Wait()
	working, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	context.AfterFunc(ctx, func() {
		d.direct.end()
		stop()
	})
	if d.cfg.DSN != "" {
		d.direct.begin()
	}
	d.loop.Run(working, wake)
	return nil
}

// Problem is the reason why nothing is sent although there is work; empty: there is no
// problem.
func (d *Dispatcher) Problem() string { return d.loop.Problem() }

// Collectors give the dispatcher's metrics.
func (d *Dispatcher) Collectors() []prometheus.Collector {
	return []prometheus.Collector{d.loop, d.metrics.outcomes, d.metrics.took, d.queue.Collector(d.cfg.Log)}
}

// deliveries is the work of a dispatcher's loop.
type deliveries struct{ *Dispatcher }

// Take implements workloop.Work.
func (d deliveries) Take(ctx context.Context, limit int) ([]queue.Delivery, time.Duration, error) {
	return d.Exchange(ctx, nil, limit)
}

// Settle implements workloop.Work. A settled delivery may let the next delivery of its
// job go, or free places for others.
func (d deliveries) Settle(ctx context.Context, done []queue.Outcome) (more bool, err error) {
	s, err := d.queue.Settle(ctx, done)
	if err != nil {
		return false, err
	}
	d.reportSettled(done, s)
	return s.Waits, nil
}

// Exchange implements workloop.Exchanger.
func (d deliveries) Exchange(ctx context.Context, done []queue.Outcome, limit int) ([]queue.Delivery, time.Duration, error) {
	s, batch, next, err := d.queue.Exchange(ctx, done, max(limit-d.direct.kept, 0))
	if err != nil {
		return nil, 0, err
	}
	d.reportSettled(done, s)
	return batch, next, nil
}

// reportSettled logs a settlement, counts its outcomes, and wakes the report loop.
func (d deliveries) reportSettled(done []queue.Outcome, s queue.Settlement) {
	for _, projectID := range s.Sealed { // once a project, not once a delivery
		d.cfg.Log.WithField("project", projectID).
			Error(
				"a webhook's signing secret cannot be opened: its deliveries wait until another one is set, or the data keys are restored (docs/eventstore.md)")
	}
	d.metrics.countOutcomes(done)
	for _, e := range s.Disabled {
		d.cfg.Log.WithFields(logrus.Fields{"project": e.ProjectID, "delivery": e.DisabledBy, "reason": e.DisabledReason}).
			Warn("a webhook is disabled: the last retry of a delivery failed")
	}
	if len(s.Disabled) > 0 || s.Confirmed {
		select {
		case d.reportDue <- struct{}{}:
		default: // a report is due already
		}
	}
}

// Do implements workloop.Work: it sends one delivery. It takes at most Config.Timeout,
// and a little more for the vault.
func (d deliveries) Do(ctx context.Context, c queue.Delivery) queue.Outcome {
	defer d.queue.MarkAnswered(c)
	by, err := d.secrets(ctx, c)
	if err != nil {
		d.cfg.Log.WithError(err).WithField("project", c.ProjectID).Debug("a webhook's signing secret cannot be opened")
		return c.Unsigned()
	}
	a := d.sender.sendTraced(ctx, c, by)
	if a.Err != "" && errors.Is(context.Cause(ctx), workloop.ErrStopped) {
		return c.Interrupted(a, workloop.ErrStopped)
	}
	return c.Answered(a, d.cfg.Retries)
}

// Urgent implements workloop.Urgent: a failure may change which deliveries are sent next.
func (d deliveries) Urgent(o queue.Outcome) bool { return o.Result != queue.Delivered }

func (d deliveries) secrets(ctx context.Context, c queue.Delivery) (by secrets, err error) {
	ctx, cancel := context.WithTimeout(ctx, d.cfg.Lease-d.cfg.Timeout)
	defer cancel()
	stream := domain.ProjectStream(c.ProjectID)
	if by.present, err = d.vault.Unseal(ctx, c.AccountID, stream, c.Secret); err != nil {
		return secrets{}, err
	}
	for _, h := range c.For(c.URL) {
		value, err := d.vault.Unseal(ctx, c.AccountID, stream, h.Sealed)
		if err != nil {
			return secrets{}, err
		}
		by.headers = append(by.headers, signature.Header{Name: h.Name, Value: string(value)})
	}
	if c.PreviousSecret == "" {
		return by, nil
	}
	by.byPrevious = !c.SignsWithNew()
	by.previous, err = d.vault.Unseal(ctx, c.AccountID, stream, c.PreviousSecret)
	return by, err
}
