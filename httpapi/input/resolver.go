package input

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"
)

const (
	// lookupTime bounds the look-up of a name, lookupPatience the time that an answer
	// waits for it. A later result serves the next answer.
	lookupTime     = 2 * time.Second
	lookupPatience = 300 * time.Millisecond
	// lookupLife is the time for which a name's result is used.
	lookupLife = time.Minute
	// maxLookups bounds the names that are remembered or under way.
	maxLookups = 1000
)

// resolver finds out whether the hosts of URLs under test have addresses, while the
// commands that take them run.
type resolver struct {
	resolve func(ctx context.Context, host string) error // nil: nothing is looked up

	mu    sync.Mutex
	names map[string]*lookup
}

type lookup struct {
	begun time.Time
	done  chan struct{} // closed once missing holds
	// missing says that the name has no address, for certain: a look-up that
	// failed otherwise says nothing.
	missing bool
}

// startLookup begins to look a name up, unless that began less than lookupLife ago. It
// gives nil where no result will come.
func (l *resolver) startLookup(name string) *lookup {
	if l.resolve == nil || name == "" {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if found := l.names[name]; found != nil && now.Sub(found.begun) < lookupLife {
		return found
	}
	if len(l.names) >= maxLookups {
		for old, found := range l.names {
			if now.Sub(found.begun) >= lookupLife {
				delete(l.names, old)
			}
		}
		if len(l.names) >= maxLookups {
			return nil
		}
	}
	begun := &lookup{begun: now, done: make(chan struct{})}
	l.names[name] = begun
	go func() {
		defer close(begun.done)
		ctx, cancel := context.WithTimeout(context.Background(), lookupTime)
		defer cancel()
		var dns *net.DNSError
		begun.missing = errors.As(l.resolve(ctx, name), &dns) && dns.IsNotFound
	}()
	return begun
}

// isMissing waits a moment for the look-up, and says that the name is missing.
func (l *lookup) isMissing(ctx context.Context) bool {
	late := time.NewTimer(time.Until(l.begun.Add(lookupPatience)))
	defer late.Stop()
	select {
	case <-l.done:
		return l.missing
	case <-late.C:
	case <-ctx.Done():
	}
	select { // the result may have come at the same moment
	case <-l.done:
		return l.missing
	default:
		return false
	}
}
