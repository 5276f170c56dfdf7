package node

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode"

	grpcmeta "google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
)

const (
	// listed bounds the subscriptions that are shown: the slowest ones.
	listed = 100
	// nameLength bounds a name that a client gives itself.
	nameLength = 64
)

// Subscription is an open subscription.
type Subscription struct {
	// Address is the client's, or "socket": then it runs on this machine, as the service
	// itself does.
	Address string
	// User is that of the TLS address; empty where there are no users.
	User string
	// Name is the client's name for its connection; often empty.
	Name string
	// Stream is the stream that it follows; "$all" is the whole log.
	Stream   string
	Filtered bool
	Since    time.Time
	// Position is the place in $all that it has come to, and Lag the events behind that. A
	// subscription of a stream has no position until it has read the stream as it is.
	Position, Lag int64
}

// subscription is an open subscription; its call keeps it up to date.
type subscription struct {
	Subscription
	at atomic.Int64
}

// subscriptions are the open subscriptions: a call adds its own, and removes it when it ends.
type subscriptions struct {
	mu   sync.Mutex
	open map[*subscription]struct{}
}

// subscribe lists the call's subscription until end is called.
func (n *Node) subscribe(ctx context.Context, stream string, filtered bool, position int64) (s *subscription, end func()) {
	s = &subscription{Subscription: describe(ctx)}
	s.Stream, s.Filtered, s.Since = stream, filtered, time.Now()
	s.at.Store(position)
	n.subscriptions.mu.Lock()
	defer n.subscriptions.mu.Unlock()
	if n.subscriptions.open == nil {
		n.subscriptions.open = map[*subscription]struct{}{}
	}
	n.subscriptions.open[s] = struct{}{}
	n.metrics.subscriptions.Inc()
	return s, func() {
		n.metrics.subscriptions.Dec()
		n.subscriptions.mu.Lock()
		defer n.subscriptions.mu.Unlock()
		delete(n.subscriptions.open, s)
	}
}

// describe gives the address, user and name of a call's client.
func describe(ctx context.Context) (s Subscription) {
	s.User = callerOf(ctx).user
	md, _ := grpcmeta.FromIncomingContext(ctx)
	for _, name := range md.Get("connection-name") {
		s.Name = printable(name)
	}
	if p, ok := peer.FromContext(ctx); ok {
		if s.Address = p.Addr.String(); p.Addr.Network() == "unix" {
			s.Address = "socket"
		}
	}
	return s
}

// printable makes a client's text printable, and bounds its length.
func printable(text string) string {
	text = strings.Map(func(c rune) rune {
		if !unicode.IsPrint(c) {
			return -1
		}
		return c
	}, text)
	if short := []rune(text); len(short) > nameLength {
		return string(short[:nameLength])
	}
	return text
}

// Subscriptions lists the open subscriptions, the slowest first, and says how many there
// are: the list is bounded.
func (n *Node) Subscriptions() (list []Subscription, total int) {
	n.subscriptions.mu.Lock()
	for s := range n.subscriptions.open {
		shown := s.Subscription
		shown.Position = s.at.Load()
		list = append(list, shown)
	}
	n.subscriptions.mu.Unlock()
	head := n.Head() // read after the positions, so that none is beyond it
	for i := range list {
		list[i].Lag = max(head-list[i].Position, 0)
	}
	slices.SortFunc(list, func(a, b Subscription) int {
		return cmp.Or(cmp.Compare(b.Lag, a.Lag), a.Since.Compare(b.Since), cmp.Compare(a.Address, b.Address))
	})
	return list[:min(len(list), listed)], len(list)
}

// furthestBehind is the largest lag of an open subscription.
func (n *Node) furthestBehind() float64 {
	list, _ := n.Subscriptions()
	if len(list) == 0 {
		return 0
	}
	return float64(list[0].Lag)
}
