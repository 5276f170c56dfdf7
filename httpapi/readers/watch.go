package readers

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
	// watchEvery is the time between two looks at the feed while a stream is open.
	watchEvery = 200 * time.Millisecond
	// KeysEvery is the least time between two looks at the keys of the streams.
	KeysEvery = 400 * time.Millisecond
	// watchTime bounds one look.
	watchTime = 5 * time.Second
)

// Watch tells streams when their account has new events, and when their key may be used
// no more. One look at the feed's end, and at the keys, serves all streams of this node.
// Without a listener there are no looks. A stream holds no connection to the database
// between two events.
type Watch struct {
	events *events.Reads
	access *access.Reads
	now    func() time.Time
	log    logrus.FieldLogger

	mu        sync.Mutex
	listeners map[*Listener]struct{}
	stop      context.CancelFunc // of the watch, while there is a listener
	stopped   chan struct{}
}

// NewWatch looks at nothing before the first listener.
func NewWatch(feed *events.Reads, keys *access.Reads, now func() time.Time, log logrus.FieldLogger) *Watch {
	return &Watch{events: feed, access: keys, now: now, log: log, listeners: map[*Listener]struct{}{}}
}

// Listener is woken for one account's events. A wake that was not taken yet stands for
// all events since.
type Listener struct {
	accountID string
	keyHash   string
	Wake      chan struct{}
	Refused   chan struct{} // closed when the key may be used no more
	told      bool          // Refused is closed
}

func (e *Listener) call() {
	select {
	case e.Wake <- struct{}{}:
	default:
	}
}

// Listen wakes the caller when the account may have new events, and tells when
// the key is refused, from now on, until leave is called.
func (n *Watch) Listen(accountID, keyHash string) (e *Listener, leave func()) {
	e = &Listener{accountID: accountID, keyHash: keyHash, Wake: make(chan struct{}, 1), Refused: make(chan struct{})}
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
func (n *Watch) leave(e *Listener) {
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
func (n *Watch) watch(ctx context.Context, stopped chan<- struct{}) {
	defer close(stopped)
	var at *string // the cursor up to which all listeners were told
	failing := false
	var keysAt time.Time // when the keys were looked at
	for again := true; again; again = backoff.Wait(ctx, watchEvery) == nil {
		next, err := n.look(ctx, at)
		if err == nil && time.Since(keysAt) >= KeysEvery {
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

// look wakes the listeners with events behind the cursor, and gives the next cursor. The
// first look only finds the feed's end. It wakes all listeners, because events may have
// come while they began to listen.
func (n *Watch) look(ctx context.Context, at *string) (next string, err error) {
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

// refuse tells the listeners whose keys may not be used any more.
func (n *Watch) refuse(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, watchTime)
	defer cancel()
	n.mu.Lock()
	asked := make(map[*Listener]struct{}, len(n.listeners))
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
			close(e.Refused)
		}
	}
	return nil
}

func (n *Watch) call(hears func(accountID string) bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for e := range n.listeners {
		if hears(e.accountID) {
			e.call()
		}
	}
}

// Followers says how many streams of events are open on this node.
func (n *Watch) Followers() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.listeners)
}
