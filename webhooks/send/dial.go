package send

import (
	"context"
	"maps"
	"sync"
	"time"
)

// dials are the single-flight dials to hosts. Where a host has no connection, the first
// request dials. The others wait for its connection, and share it if the host speaks
// HTTP/2. Without this each request of a burst dials, and all but one of the connections
// are dropped after a handshake, which costs more than a delivery. No request waits longer
// than patience: then it dials by itself.
type dials struct {
	patience time.Duration // dialPatience, but in tests
	mu       sync.Mutex    // guards hosts, and all of their fields
	hosts    map[string]*dialHost
}

type dialHost struct {
	warmUntil time.Time     // a connection probably exists until then
	first     chan struct{} // closed once the first request has a connection, or ends without one; nil: there is no first request
}

const (
	dialPatience = 250 * time.Millisecond
	// idleTime is how long a connection is kept for the next request. warmTime is shorter.
	idleTime = time.Minute
	warmTime = idleTime * 3 / 4
	// hostsKnown is how many hosts are remembered before the cold ones are forgotten.
	hostsKnown = 1024
)

// dial is a request's part in the dial of its host.
type dial struct {
	*dials
	host     *dialHost
	ownsDial chan struct{} // set for the first request; nil for all others
}

// awaitDial waits for the host's first request, or makes this request the first one. The
// caller reports the connection (markConnected) and the end of the request (endDial).
func (s *dials) awaitDial(ctx context.Context, name string) *dial {
	w, ahead := s.joinDial(name, time.Now())
	if ahead != nil {
		patience := time.NewTimer(s.patience)
		defer patience.Stop()
		select {
		case <-ahead:
		case <-patience.C:
		case <-ctx.Done():
		}
	}
	return w
}

func (s *dials) joinDial(name string, now time.Time) (w *dial, ahead <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.hosts[name]
	if h == nil {
		if len(s.hosts) >= hostsKnown {
			maps.DeleteFunc(s.hosts, func(_ string, h *dialHost) bool { return h.first == nil && !now.Before(h.warmUntil) })
		}
		if s.hosts == nil {
			s.hosts = map[string]*dialHost{}
		}
		h = &dialHost{}
		s.hosts[name] = h
	}
	w = &dial{dials: s, host: h}
	switch {
	case now.Before(h.warmUntil):
	case h.first != nil:
		ahead = h.first
	default:
		w.ownsDial = make(chan struct{})
		h.first = w.ownsDial
	}
	return w, ahead
}

// markConnected says that the request has a connection.
func (w *dial) markConnected() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.host.warmUntil = time.Now().Add(warmTime)
	w.releaseDial()
}

// endDial says that the request has ended.
func (w *dial) endDial() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.releaseDial()
}

// releaseDial requires that the caller holds the lock.
func (w *dial) releaseDial() {
	if w.ownsDial != nil && w.host.first == w.ownsDial {
		close(w.ownsDial)
		w.host.first = nil
	}
}
