package webhooks

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"
	"github.com/sirupsen/logrus"

	"humanqa/domain"
)

// dueChannel is notified once per batch of new work.
const dueChannel = "webhooks_due"

const (
	listenMinWait = 100 * time.Millisecond
	listenMaxWait = 5 * time.Second
	// faultWait is how long the dispatcher leaves a failing database alone.
	faultWait = 500 * time.Millisecond
	// lookAgain is the least time between two looks that found nothing: an
	// endpoint that another dispatcher holds stays due.
	lookAgain = 10 * time.Millisecond
	// unsealWait postpones a delivery whose secret cannot be opened.
	unsealWait = time.Minute
)

// Disable tells the log that an endpoint was disabled, because of which
// delivery and why. It is called again until it returns nil, so a repeat must
// be harmless.
type Disable func(ctx context.Context, projectID, deliveryID, reason string) error

// Dispatcher sends what the subscriber wrote. Several may run, in any number of
// processes.
type Dispatcher struct {
	cfg     Config
	queue   queue
	vault   Vault
	disable Disable
	log     logrus.FieldLogger
}

// NewDispatcher prepares a dispatcher; Run starts it.
func NewDispatcher(db *sqlx.DB, vault Vault, disable Disable, cfg Config) *Dispatcher {
	cfg = cfg.withDefaults()
	return &Dispatcher{
		cfg:     cfg,
		queue:   queue{db: db, perEndpoint: cfg.PerEndpoint, lease: cfg.Lease},
		vault:   vault,
		disable: disable,
		log:     cfg.Log,
	}
}

// Run sends until the context ends, then lets running requests finish for
// Config.Drain and settles them. It leaves no goroutine behind. The error is
// about the configuration; nothing was sent then.
func (d *Dispatcher) Run(ctx context.Context) error {
	sender, err := newSender(d.cfg)
	if err != nil {
		return err
	}
	defer sender.close()

	wake, stopListening := d.listen()
	defer stopListening()

	tell := make(chan struct{}, 1)
	tell <- struct{}{} // a crash may have come between disabling and telling
	var beside sync.WaitGroup
	beside.Go(func() { d.announce(ctx, tell) })
	beside.Go(func() { d.purge(ctx) })
	defer beside.Wait()

	// Requests outlive ctx for a while; abort ends them.
	sending, abort := context.WithCancelCause(context.WithoutCancel(ctx))
	defer abort(nil)
	l := &rounds{Dispatcher: d, sender: sender, sending: sending, results: make(chan outcome, d.cfg.Pool), tell: tell}
	l.run(ctx, wake)
	l.drain(abort)
	return nil
}

// listen gives a channel that says "there may be something due".
func (d *Dispatcher) listen() (wake <-chan *pq.Notification, stop func()) {
	if d.cfg.DSN == "" {
		return nil, func() {}
	}
	listener := pq.NewListener(d.cfg.DSN, listenMinWait, listenMaxWait, func(_ pq.ListenerEventType, err error) {
		if err != nil {
			d.log.WithError(err).Warn("listening for due webhooks was interrupted")
		}
	})
	// Listen waits for the first connection, which may take as long as the
	// database is away; the loop polls meanwhile.
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := listener.Listen(dueChannel); err != nil && !errors.Is(err, pq.ErrChannelAlreadyOpen) {
			d.log.WithError(err).Debug("listening for due webhooks ended")
		}
	}()
	stop = func() {
		_ = listener.Close() // nothing is lost with the connection
		<-done
	}
	return listener.Notify, stop
}

// rounds is one run of a dispatcher. Only its goroutine touches the fields;
// requests hand their outcomes in through results.
type rounds struct {
	*Dispatcher
	sender   *sender
	sending  context.Context
	results  chan outcome // as large as the pool: a request never waits for it
	inFlight int          // requests running or not settled
	finished []outcome
	tell     chan<- struct{}
}

// run alternates between settling what has finished and claiming what is due.
// While one round talks to the database the next one's outcomes gather, so
// batches grow with the load.
func (l *rounds) run(ctx context.Context, wake <-chan *pq.Notification) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
			return
		case o := <-l.results:
			l.gather(o)
		case <-wake:
			skipRest(wake)
		case <-timer.C:
		}
		next, err := l.round(ctx)
		if err != nil && ctx.Err() == nil {
			l.log.WithError(err).Warn("webhook dispatch is interrupted")
		}
		timer.Reset(next)
	}
}

// skipRest drops notifications that say the same.
func skipRest(wake <-chan *pq.Notification) {
	for range len(wake) {
		<-wake
	}
}

// gather takes everything that has finished by now.
func (l *rounds) gather(first outcome) {
	l.finished = append(l.finished, first)
	for {
		select {
		case o := <-l.results:
			l.finished = append(l.finished, o)
		default:
			return
		}
	}
}

// round settles and claims once, and says when to do so again unless something
// happens before.
func (l *rounds) round(ctx context.Context) (time.Duration, error) {
	if err := l.settleFinished(ctx); err != nil {
		return faultWait, err
	}
	free := l.cfg.Pool - l.inFlight
	if free == 0 {
		return l.cfg.Poll, nil // a result comes first
	}
	batch, next, err := l.queue.claim(ctx, free)
	if err != nil {
		return faultWait, fmt.Errorf("claim: %w", err)
	}
	for _, c := range batch {
		l.inFlight++
		go func() { l.results <- l.attempt(c) }()
	}
	switch {
	case next < 0 || next > l.cfg.Poll:
		return l.cfg.Poll, nil
	case len(batch) > 0:
		return next, nil
	}
	return max(next, lookAgain), nil
}

func (l *rounds) settleFinished(ctx context.Context) error {
	if len(l.finished) == 0 {
		return nil
	}
	disabled, err := l.queue.settle(ctx, l.finished)
	if err != nil {
		return fmt.Errorf("settle: %w", err)
	}
	l.inFlight -= len(l.finished)
	l.finished = l.finished[:0]
	if disabled {
		select {
		case l.tell <- struct{}{}:
		default: // it is told already
		}
	}
	return nil
}

// errStopping ends requests that outlast the drain.
var errStopping = errors.New("the service stopped")

// attempt sends one delivery. It never waits longer than Config.Timeout, and a
// little for the vault.
func (l *rounds) attempt(c claimed) outcome {
	secret, previous, err := l.secrets(c)
	if err != nil {
		l.log.WithError(err).WithField("project", c.ProjectID).Error("a webhook secret cannot be opened")
		return outcome{
			claimed: c, verdict: postponed, wait: unsealWait, unsent: true,
			answer: answer{err: "the signing secret cannot be opened"},
		}
	}
	a := l.sender.send(l.sending, c, secret, previous)
	if a.err != "" && errors.Is(context.Cause(l.sending), errStopping) {
		a.err = "interrupted: " + errStopping.Error()
		a.timedOut = false
		return outcome{claimed: c, answer: a, verdict: postponed}
	}
	return judge(c, a, l.cfg.Retries)
}

func (l *rounds) secrets(c claimed) (secret, previous []byte, err error) {
	ctx, cancel := context.WithTimeout(l.sending, l.cfg.Lease-l.cfg.Timeout)
	defer cancel()
	stream := domain.ProjectStream(c.ProjectID)
	if secret, err = l.vault.Unseal(ctx, c.AccountID, stream, c.Secret); err != nil {
		return nil, nil, err
	}
	if c.PreviousSecret == "" {
		return secret, nil, nil
	}
	previous, err = l.vault.Unseal(ctx, c.AccountID, stream, c.PreviousSecret)
	return secret, previous, err
}

// drain waits for the requests that are running, ends those that take too
// long, and settles all. What cannot be settled keeps its lease, runs out, and
// is sent again.
func (l *rounds) drain(abort context.CancelCauseFunc) {
	timer := time.AfterFunc(l.cfg.Drain, func() { abort(errStopping) })
	defer timer.Stop()
	for len(l.finished) < l.inFlight {
		l.finished = append(l.finished, <-l.results)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(l.sending), l.cfg.Drain)
	defer cancel()
	if err := l.settleFinished(ctx); err != nil {
		l.log.WithError(err).Warn("the last webhook attempts are not recorded; they will be repeated")
	}
}
