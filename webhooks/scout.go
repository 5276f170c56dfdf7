package webhooks

import (
	"context"
	"maps"
	"sync"
	"time"
)

// scouts have one request open the way to a host where no connection is: the others
// wait for its, and share it where that speaks HTTP/2. Without, each request of a burst
// opens one of its own, and all but one are dropped after a handshake, which costs more
// than a delivery. Nobody waits longer than scoutTime: a host's silence is met by each
// for itself.
type scouts struct {
	mu    sync.Mutex // guards hosts, and all there is of them
	hosts map[string]*host
}

type host struct {
	warm  time.Time     // until when a connection is there, as far as anybody knows
	scout chan struct{} // closed once it has a connection, or ends without; nil: nobody scouts
}

const (
	scoutTime = 250 * time.Millisecond
	// warmTime is shorter than idleTime, after which connections are closed.
	warmTime = idleTime * 3 / 4
	// hostsKnown is how many hosts are remembered before the cold ones are forgotten.
	hostsKnown = 1024
)

// way is a request's way to its host.
type way struct {
	*scouts
	host *host
	own  chan struct{} // nil: it is no scout
}

// open waits for the host's scout, or makes the request be it, which has to tell of its
// connection (connected), and of its end.
func (s *scouts) open(ctx context.Context, name string) *way {
	w, ahead := s.enter(name, time.Now())
	if ahead != nil {
		patience := time.NewTimer(scoutTime)
		defer patience.Stop()
		select {
		case <-ahead:
		case <-patience.C:
		case <-ctx.Done():
		}
	}
	return w
}

func (s *scouts) enter(name string, now time.Time) (w *way, ahead <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.hosts[name]
	if h == nil {
		if len(s.hosts) >= hostsKnown {
			maps.DeleteFunc(s.hosts, func(_ string, h *host) bool { return h.scout == nil && !now.Before(h.warm) })
		}
		if s.hosts == nil {
			s.hosts = map[string]*host{}
		}
		h = &host{}
		s.hosts[name] = h
	}
	w = &way{scouts: s, host: h}
	switch {
	case now.Before(h.warm):
	case h.scout != nil:
		ahead = h.scout
	default:
		w.own = make(chan struct{})
		h.scout = w.own
	}
	return w, ahead
}

// connected is told that the request has a connection.
func (w *way) connected() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.host.warm = time.Now().Add(warmTime)
	w.yield()
}

// end is told that the request will have none any more.
func (w *way) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.yield()
}

// yield wants the lock held.
func (w *way) yield() {
	if w.own != nil && w.host.scout == w.own {
		close(w.own)
		w.host.scout = nil
	}
}
