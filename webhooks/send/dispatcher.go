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
	"humanqa/internal/pgpool"
	"humanqa/internal/signature"
	"humanqa/internal/workloop"
	"humanqa/webhooks"
)

// settleGather is how long successes wait for others, so that they settle together. After
// a crash meanwhile they are sent again. The next event of the same job does not wait: it
// asks for a claim, which settles first.
const settleGather = 100 * time.Millisecond

// unsealWait postpones the deliveries of an endpoint whose secret cannot be opened. None
// of them is sent before the secret can be opened.
const unsealWait = time.Minute

// Report has the functions by which the dispatcher reports to the log. Each is called
// again until it returns nil, so a repeat must be harmless.
type Report struct {
	// Disabled says that an endpoint was disabled, with the delivery and the reason.
	Disabled func(ctx context.Context, projectID, deliveryID, reason string) error
	// Confirmed says that the receiver verifies with the new secret of a rotation,
	// sealed as in its event, and no more with the previous one.
	Confirmed func(ctx context.Context, projectID, sealed string) error
}

// Dispatcher sends the deliveries that the subscriber wrote. Several may run, in any
// number of processes.
type Dispatcher struct {
	cfg       Config
	queue     queue
	vault     Vault
	report    Report
	log       logrus.FieldLogger
	loop      *workloop.Loop[claimed, outcome]
	sender    *sender       // while it runs
	reportDue chan struct{} // a report is due
	metrics   metrics
	direct    directDispatch
}

// NewDispatcher prepares a dispatcher; Run starts it, once.
func NewDispatcher(db *sqlx.DB, vault Vault, report Report, cfg Config) *Dispatcher {
	cfg = cfg.withDefaults()
	d := &Dispatcher{
		cfg:       cfg,
		queue:     newQueue(db, cfg.Pool, caps{cfg.PerEndpoint, cfg.MostPerEndpoint}, cfg.Lease),
		vault:     vault,
		report:    report,
		log:       cfg.Log,
		reportDue: make(chan struct{}, 1),
		metrics:   newMetrics(),
	}
	d.loop = workloop.New(deliveries{d}, workloop.Config{
		Name: "webhooks", Places: cfg.Pool, Lease: cfg.Lease, Drain: cfg.Drain, Poll: cfg.Poll, Gather: settleGather, Log: cfg.Log,
	})
	return d
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
		wake = pgpool.ListenTo(listening, pgpool.Named(d.cfg.DSN, sessionName(d.queue.inFlight.holder)), webhooks.DueChannel, d.isOwnLease,
			func(err error) {
				d.log.WithError(err).Warn("listening for due webhooks was interrupted")
			})
	}
	d.reportDue <- struct{}{} // a crash may have come between disabling and telling
	var beside sync.WaitGroup
	beside.Go(func() { d.reportLoop(ctx) })
	beside.Go(func() { d.purgeLoop(ctx) })
	defer beside.Wait()
	working, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	context.AfterFunc(ctx, func() {
		d.closeDirect()
		stop()
	})
	if d.cfg.DSN != "" {
		d.openDirect()
	}
	d.loop.Run(working, wake)
	return nil
}

// Problem is the reason why nothing is sent although there is work; empty: there is no
// problem.
func (d *Dispatcher) Problem() string { return d.loop.Problem() }

// Collectors give the dispatcher's metrics.
func (d *Dispatcher) Collectors() []prometheus.Collector {
	return []prometheus.Collector{d.loop, d.metrics.outcomes, d.metrics.took, endpointsCollector{d}}
}

// deliveries is the work of a dispatcher's loop.
type deliveries struct{ *Dispatcher }

// Take implements workloop.Work.
func (d deliveries) Take(ctx context.Context, limit int) ([]claimed, time.Duration, error) {
	if limit -= d.direct.kept; limit <= 0 {
		d.queue.short = true
		_, back := d.queue.inFlight.accountUse()
		return nil, back, nil
	}
	return d.queue.claimDeliveries(ctx, limit)
}

// Settle implements workloop.Work. A settled delivery may let the next delivery of its
// job go, or free places for others.
func (d deliveries) Settle(ctx context.Context, done []outcome) (more bool, err error) {
	s, err := d.queue.settleOutcomes(ctx, done)
	if err != nil {
		return false, err
	}
	d.reportSettled(done, s)
	return s.waits || d.queue.short, nil
}

// Exchange implements workloop.Exchanger.
func (d deliveries) Exchange(ctx context.Context, done []outcome, limit int) ([]claimed, time.Duration, error) {
	s, batch, next, err := d.queue.settleAndClaim(ctx, done, max(limit-d.direct.kept, 0))
	if err != nil {
		return nil, 0, err
	}
	d.reportSettled(done, s)
	return batch, next, nil
}

// reportSettled logs a settlement, counts its outcomes, and wakes the report loop.
func (d deliveries) reportSettled(done []outcome, s settlement) {
	for _, projectID := range s.sealed { // once a project, not once a delivery
		d.log.WithField("project", projectID).
			Error(
				"a webhook's signing secret cannot be opened: its deliveries wait until another one is set, or the data keys are restored (docs/eventstore.md)")
	}
	d.metrics.countOutcomes(done)
	for _, e := range s.disabled {
		d.log.WithFields(logrus.Fields{"project": e.ProjectID, "delivery": e.DisabledBy, "reason": e.DisabledReason}).
			Warn("a webhook is disabled: the last retry of a delivery failed")
	}
	if len(s.disabled) > 0 || s.confirmed {
		select {
		case d.reportDue <- struct{}{}:
		default: // a report is due already
		}
	}
}

// Do implements workloop.Work: it sends one delivery. It takes at most Config.Timeout,
// and a little more for the vault.
func (d deliveries) Do(ctx context.Context, c claimed) outcome {
	defer d.queue.inFlight.markAnswered(c)
	by, err := d.secrets(ctx, c)
	if err != nil {
		d.log.WithError(err).WithField("project", c.ProjectID).Debug("a webhook's signing secret cannot be opened")
		return outcome{
			claimed: c, result: postponed, wait: unsealWait, unsent: true, answer: answer{at: time.Now(), err: sealedSecret},
		}
	}
	a := d.sendTraced(ctx, c, by)
	if a.err != "" && errors.Is(context.Cause(ctx), workloop.ErrStopped) {
		a.err = interrupted + workloop.ErrStopped.Error()
		a.slow = false
		return outcome{claimed: c, answer: a, result: postponed}
	}
	return classify(c, a, d.cfg.Retries)
}

// Urgent implements workloop.Urgent: a failure may change which deliveries are sent next.
func (d deliveries) Urgent(o outcome) bool { return o.result != delivered }

func (d deliveries) secrets(ctx context.Context, c claimed) (by secrets, err error) {
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
	by.byPrevious = !c.signsWithNew()
	by.previous, err = d.vault.Unseal(ctx, c.AccountID, stream, c.PreviousSecret)
	return by, err
}
