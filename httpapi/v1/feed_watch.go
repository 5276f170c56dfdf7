package v1

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/sirupsen/logrus"

	"humanqa/internal/backoff"
	"humanqa/projections/access"
	"humanqa/projections/events"
)

const (
	// watchEvery is how often the feed is looked at while somebody follows it.
	watchEvery = 200 * time.Millisecond
	// keysEvery is how often the keys of those who follow are looked at.
	keysEvery = 400 * time.Millisecond
	// watchTime bounds one look.
	watchTime = 5 * time.Second
)

// feedWatch tells streams when their account has new events, and when their key
// may be used no more. One look at the feed's end, and at the keys, serves all streams of this node, whatever their number; while
// nobody listens there is none. A stream holds no connection to the database
// between two events.
type feedWatch struct {
	events *events.Reads
	access *access.Reads
	now    func() time.Time
	log    logrus.FieldLogger

	mu        sync.Mutex
	listeners map[*listener]struct{}
	stop      context.CancelFunc // of the watch, while somebody listens
	stopped   chan struct{}
}

// listener hears of one account's events. A wake that was not taken yet stands for
// all that came since.
type listener struct {
	accountID string
	keyHash   string
	wake      chan struct{}
	refused   chan struct{} // closed when the key may be used no more
	told      bool          // refused is closed
}

func (e *listener) call() {
	select {
	case e.wake <- struct{}{}:
	default:
	}
}

// listen wakes the caller when the account may have new events, and tells when
// the key is refused, from now on, until leave is called.
func (n *feedWatch) listen(accountID, keyHash string) (e *listener, leave func()) {
	e = &listener{accountID: accountID, keyHash: keyHash, wake: make(chan struct{}, 1), refused: make(chan struct{})}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.listeners[e] = struct{}{}
	if len(n.listeners) == 1 {
		ctx, cancel := context.WithCancel(context.Background())
		n.stop, n.stopped = cancel, make(chan struct{})
		go n.watch(ctx, n.stopped)
	}
	return e, func() { n.leave(e) }
}

// leave ends the watch with its last listener, and returns when it has ended.
func (n *feedWatch) leave(e *listener) {
	n.mu.Lock()
	delete(n.listeners, e)
	stop, stopped := n.stop, n.stopped
	last := len(n.listeners) == 0
	n.mu.Unlock()
	if last {
		stop()
		<-stopped
	}
}

// watch looks for news until ctx ends. A look that fails is made again.
func (n *feedWatch) watch(ctx context.Context, stopped chan<- struct{}) {
	defer close(stopped)
	var at *string // the cursor up to which everybody was told
	failing := false
	var keysAt time.Time // when the keys were looked at
	for again := true; again; again = backoff.Wait(ctx, watchEvery) == nil {
		next, err := n.look(ctx, at)
		if err == nil && time.Since(keysAt) >= keysEvery {
			err = n.refuse(ctx)
			keysAt = time.Now()
		}
		switch {
		case err == nil:
			at, failing = &next, false
		case ctx.Err() == nil && !failing:
			failing = true
			n.log.WithError(err).Warn("streams of events wait until the feed can be read again")
		}
	}
}

// look wakes whoever has news behind the cursor and gives the next one. The
// first look only finds the feed's end: it wakes everybody, because nobody
// knows what came while they began to listen.
func (n *feedWatch) look(ctx context.Context, at *string) (next string, err error) {
	ctx, cancel := context.WithTimeout(ctx, watchTime)
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

// refuse tells those whose keys may be used no more.
func (n *feedWatch) refuse(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, watchTime)
	defer cancel()
	n.mu.Lock()
	asked := make(map[*listener]struct{}, len(n.listeners))
	var hashes []string
	for e := range n.listeners {
		asked[e] = struct{}{}
		hashes = append(hashes, e.keyHash)
	}
	n.mu.Unlock()
	slices.Sort(hashes)
	valid, err := n.access.Valid(ctx, slices.Compact(hashes), n.now())
	if err != nil {
		return err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	for e := range asked {
		_, listens := n.listeners[e]
		if listens && !e.told && !slices.Contains(valid, e.keyHash) {
			e.told = true
			close(e.refused)
		}
	}
	return nil
}

func (n *feedWatch) call(hears func(accountID string) bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for e := range n.listeners {
		if hears(e.accountID) {
			e.call()
		}
	}
}

// Followers says how many streams of events are open on this node.
func (a *Handlers) Followers() int {
	a.feedWatch.mu.Lock()
	defer a.feedWatch.mu.Unlock()
	return len(a.feedWatch.listeners)
}
