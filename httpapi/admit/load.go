package admit

import (
	"container/list"
	"context"
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/sirupsen/logrus"

	"humanqa/domain"
	"humanqa/httpapi/wire"
)

const (
	// atOnce is how many requests of a lane this process works on at the same time. More
	// would not be quicker: an append takes as many commands, and the database has fewer
	// connections.
	atOnce = 128
	// mostWaiting bounds the requests of a lane that wait for their turn, and
	// longestWait the time that they do.
	mostWaiting = 1024
	longestWait = time.Second
	// readsOfAccount is how many reads of one account are under way at the same time; the
	// others of it wait. So it leaves connections of the database to the other accounts.
	readsOfAccount = 8
	// overloadTold is the least time between two log lines about refused requests.
	overloadTold = time.Minute
)

// LoadLimit bounds the requests that a process works on at once (decisions, "Overload").
// So a load of any size takes bounded memory, and a request above the bound is refused
// early, before its credential is looked up. Reads have a lane of their own: they are
// served even while many commands wait.
type LoadLimit struct {
	reads, writes lane
	accounts      *wire.Quota // places of accounts' reads
	refused       *prometheus.CounterVec
	log           logrus.FieldLogger
	told          atomic.Int64 // Unix time in seconds
}

// lane gives its places to requests that return before it gives them to new ones, each
// in the order they came.
type lane struct {
	name string

	mu        sync.Mutex
	free      int
	returning list.List // of chan struct{}, closed with the place
	fresh     list.List
}

// NewLoadLimit makes the limit of a process. reg may be nil.
func NewLoadLimit(reg prometheus.Registerer, log logrus.FieldLogger) *LoadLimit {
	l := &LoadLimit{
		reads:  lane{name: "reads", free: atOnce},
		writes: lane{name: "writes", free: atOnce},
		// A wait ends with its request.
		accounts: wire.NewQuota(math.MaxInt64, readsOfAccount, math.MaxInt64),
		refused: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "humanqa_http_overload_refused_total",
			Help: "Requests that were refused because too many were under way, by lane (reads, writes).",
		}, []string{"lane"}),
		log: log,
	}
	for _, of := range []*lane{&l.reads, &l.writes} {
		l.refused.WithLabelValues(of.name)
	}
	if reg != nil {
		reg.MustRegister(l.refused)
	}
	return l
}

// Enter waits for the request's turn, or refuses it. leave gives the place back; only its
// first call counts.
func (l *LoadLimit) Enter(ctx context.Context, m wire.Match) (leave func(), err error) {
	of := l.laneOf(m)
	if of == nil {
		return func() {}, nil
	}
	turn, cancel := context.WithTimeout(ctx, longestWait)
	defer cancel()
	switch {
	case of.enter(turn, &of.fresh, mostWaiting):
		return of.leave(), nil
	case ctx.Err() != nil:
		return nil, ctx.Err()
	}
	return nil, l.refuse(of)
}

// Return is Enter for a request that had a place before, once its account is known. It waits
// as long as the context lasts, so that the work done for the request is not lost.
func (l *LoadLimit) Return(ctx context.Context, m wire.Match, accountID string) (leave func(), err error) {
	of := l.laneOf(m)
	if of == nil {
		return func() {}, nil
	}
	ofAccount := func() {}
	if of == &l.reads && accountID != "" {
		if err := l.accounts.Acquire(ctx, accountID, 1); err != nil {
			return nil, err
		}
		ofAccount = func() { l.accounts.Release(accountID, 1) }
	}
	if !of.enter(ctx, &of.returning, math.MaxInt) {
		ofAccount()
		return nil, domain.Unavailable(ctx.Err())
	}
	ofLane := of.leave()
	return sync.OnceFunc(func() { ofLane(); ofAccount() }), nil
}

// laneOf is nil for a request that needs no credential: health and documents cost next to
// nothing.
func (l *LoadLimit) laneOf(m wire.Match) *lane {
	switch {
	case m.Audience == wire.Public:
		return nil
	case m.Route != nil && m.Route.Write:
		return &l.writes
	}
	return &l.reads
}

// enter takes a place, or waits for one in the queue. It is false where the queue is
// full, or the context ended first.
func (of *lane) enter(ctx context.Context, queue *list.List, most int) bool {
	of.mu.Lock()
	if of.free > 0 {
		of.free--
		of.mu.Unlock()
		return true
	}
	if queue.Len() >= most {
		of.mu.Unlock()
		return false
	}
	turn := make(chan struct{})
	waiting := queue.PushBack(turn)
	of.mu.Unlock()
	select {
	case <-turn:
		return true
	case <-ctx.Done():
	}
	of.mu.Lock()
	defer of.mu.Unlock()
	select {
	case <-turn: // the place came at the same moment
		return true
	default:
		queue.Remove(waiting)
		return false
	}
}

// leave gives a place to the next request.
func (of *lane) leave() func() {
	return sync.OnceFunc(func() {
		of.mu.Lock()
		defer of.mu.Unlock()
		for _, queue := range []*list.List{&of.returning, &of.fresh} {
			if next := queue.Front(); next != nil {
				close(queue.Remove(next).(chan struct{})) // enter put it there
				return
			}
		}
		of.free++
	})
}

func (l *LoadLimit) refuse(of *lane) error {
	l.refused.WithLabelValues(of.name).Inc()
	now, told := time.Now().Unix(), l.told.Load()
	if now-told >= int64(overloadTold.Seconds()) && l.told.CompareAndSwap(told, now) {
		l.log.WithField("lane", of.name).Warn("overload: requests are refused (humanqa_http_overload_refused_total counts them)")
	}
	// Clients that were refused together do not come back together.
	return wire.RetryAfter(&domain.Error{
		Kind: domain.KindUnavailable, Code: domain.CodeUnavailable,
		Message: "the service has more requests than it can take", Hint: "send the same request again after Retry-After seconds",
	}, 1+rand.IntN(5))
}
