package httpapi

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/sirupsen/logrus"
)

const (
	// newsEvery is how often the feed is looked at while somebody follows it.
	newsEvery = 200 * time.Millisecond
	// newsTime bounds one look.
	newsTime = 5 * time.Second
)

// newsroom tells streams when their account has new events. One look at the
// feed's end serves all streams of this node, whatever their number; while
// nobody listens there is none. A stream holds no connection to the database
// between two events.
type newsroom struct {
	events EventReads
	log    logrus.FieldLogger

	mu      sync.Mutex
	ears    map[*ear]struct{}
	stop    context.CancelFunc // of the watch, while somebody listens
	stopped chan struct{}
}

// ear hears of one account's events. A wake that was not taken yet stands for
// all that came since.
type ear struct {
	accountID string
	wake      chan struct{}
}

func (e *ear) call() {
	select {
	case e.wake <- struct{}{}:
	default:
	}
}

// listen wakes the caller when the account may have new events, from now on,
// until leave is called.
func (n *newsroom) listen(accountID string) (wake <-chan struct{}, leave func()) {
	e := &ear{accountID: accountID, wake: make(chan struct{}, 1)}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.ears[e] = struct{}{}
	if len(n.ears) == 1 {
		ctx, cancel := context.WithCancel(context.Background())
		n.stop, n.stopped = cancel, make(chan struct{})
		go n.watch(ctx, n.stopped)
	}
	return e.wake, func() { n.leave(e) }
}

// leave ends the watch with its last listener, and returns when it has ended.
func (n *newsroom) leave(e *ear) {
	n.mu.Lock()
	delete(n.ears, e)
	stop, stopped := n.stop, n.stopped
	last := len(n.ears) == 0
	n.mu.Unlock()
	if last {
		stop()
		<-stopped
	}
}

// watch looks for news until ctx ends. A look that fails is made again.
func (n *newsroom) watch(ctx context.Context, stopped chan<- struct{}) {
	defer close(stopped)
	tick := time.NewTicker(newsEvery)
	defer tick.Stop()
	var at *string // the cursor up to which everybody was told
	failing := false
	for {
		next, err := n.look(ctx, at)
		switch {
		case err == nil:
			at, failing = &next, false
		case ctx.Err() == nil && !failing:
			failing = true
			n.log.WithError(err).Warn("streams of events wait until the feed can be read again")
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// look wakes whoever has news behind the cursor and gives the next one. The
// first look only finds the feed's end: it wakes everybody, because nobody
// knows what came while they began to listen.
func (n *newsroom) look(ctx context.Context, at *string) (next string, err error) {
	ctx, cancel := context.WithTimeout(ctx, newsTime)
	defer cancel()
	if at == nil {
		if next, err = n.events.Newest(ctx); err == nil {
			n.call(func(string) bool { return true })
		}
		return next, err
	}
	accounts, next, err := n.events.News(ctx, *at)
	if err == nil && len(accounts) > 0 {
		n.call(func(accountID string) bool { return slices.Contains(accounts, accountID) })
	}
	return next, err
}

func (n *newsroom) call(hears func(accountID string) bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for e := range n.ears {
		if hears(e.accountID) {
			e.call()
		}
	}
}
