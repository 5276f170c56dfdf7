package consumer

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"humanqa/eventstore"
	"humanqa/eventstore/generation"
)

const (
	// scanPages is how many pages of the log are kept for the readers: so much may the
	// fastest be ahead.
	scanPages = 8
	// scanPatience is how long the fastest waits for a reader that stands still.
	scanPatience = 5 * time.Second
)

// sharedScan reads the log from its beginning once for any number of readers: each
// page is read and decoded by the reader that comes first. The readers stay together,
// because the fastest waits for the others; one that is elsewhere in the log, such
// as a build that was interrupted, reads by itself until it meets them. What no
// reader handles is not decoded.
type sharedScan struct {
	source Source
	size   int // events in a page

	mu       sync.Mutex
	pages    []*scanPage // they follow on each other
	readers  map[*scanReader]bool
	expected map[*expectation]bool
	moved    chan struct{} // closed and replaced when a reader moved or left
}

// scanPage is a page that is being read, or was read.
type scanPage struct {
	from    eventstore.Checkpoint
	types   map[string]bool // what is decoded; nil: everything
	done    chan struct{}   // closed once page and err are there
	page    eventstore.Page
	err     error
	waiting int // readers; with the last one the reading ends
	cancel  context.CancelFunc
}

// scanReader takes part in the scan.
type scanReader struct {
	scan  *sharedScan
	types map[string]bool       // what it looks at
	at    eventstore.Checkpoint // guarded by sharedScan.mu
}

// expectation is that some consumers will join.
type expectation struct{ types map[string]bool }

// expectReaders has what is read until forget decoded for these, too: they join one after
// the other, and the page that one begins has to serve the next.
func (p *sharedScan) expectReaders(consumers []Consumer) (forget func()) {
	e := &expectation{types: handledBy(consumers...)}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.expected[e] = true
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.expected, e)
	}
}

func newSharedScan(source Source, size int) *sharedScan {
	return &sharedScan{source: source, size: size, readers: map[*scanReader]bool{}, expected: map[*expectation]bool{},
		moved: make(chan struct{})}
}

// decodesFor says that the page holds what the reader looks at.
func (s *scanPage) decodesFor(r *scanReader) bool {
	if s.types == nil {
		return true
	}
	for t := range r.types {
		if !s.types[t] {
			return false
		}
	}
	return true
}

// addReader adds a reader of the given types. Until it leaves, others wait for it.
func (p *sharedScan) addReader(at eventstore.Checkpoint, types map[string]bool) *scanReader {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := &scanReader{scan: p, at: at, types: types}
	if slices.ContainsFunc(p.pages, func(s *scanPage) bool { return !s.decodesFor(r) }) {
		p.pages = nil // readers from now on begin a scan that serves them all
	}
	p.readers[r] = true
	return r
}

// leaveScan may be called twice.
func (r *scanReader) leaveScan() {
	p := r.scan
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.readers, r)
	if len(p.readers) == 0 {
		p.pages = nil // no reader needs them
	}
	p.wakeReaders()
}

// wakeReaders wakes the readers that wait for others. The caller holds the lock.
func (p *sharedScan) wakeReaders() {
	close(p.moved)
	p.moved = make(chan struct{})
}

// nextPage gives what lies behind the checkpoint, as Source.Next does.
func (r *scanReader) nextPage(ctx context.Context, after eventstore.Checkpoint) (eventstore.Page, error) {
	p := r.scan
	patience := time.NewTimer(scanPatience)
	defer patience.Stop()
	p.mu.Lock()
	if r.at = after; p.readers[r] {
		p.wakeReaders()
	}
	for waited := false; ; {
		s := p.pageCovering(r, after)
		if s == nil {
			switch {
			case !p.canAppendPage(r, after):
				p.mu.Unlock()
				return nextOf(p.source, r.types)(ctx, after, p.size)
			case p.isAhead(r) && !waited:
				moved := p.moved
				p.mu.Unlock()
				select {
				case <-moved:
				case <-patience.C:
					waited = true
				case <-ctx.Done():
					return eventstore.Page{}, ctx.Err()
				}
				p.mu.Lock()
				continue
			}
			s = p.startPage(ctx, r, after)
		}
		s.waiting++
		p.mu.Unlock()
		select {
		case <-s.done:
		case <-ctx.Done():
		}
		p.mu.Lock()
		if s.waiting--; s.waiting == 0 {
			s.cancel()
		}
		if err := ctx.Err(); err != nil {
			p.mu.Unlock()
			return eventstore.Page{}, err
		}
		if errors.Is(s.err, context.Canceled) {
			continue // all that waited for it had gone
		}
		p.mu.Unlock()
		return eventsBehind(s.page, s.from, after), s.err
	}
}

// pageCovering is the page that holds what comes behind the checkpoint for a reader,
// if it is kept or under way. The caller holds the lock.
func (p *sharedScan) pageCovering(r *scanReader, after eventstore.Checkpoint) *scanPage {
	for _, s := range p.pages {
		if !s.decodesFor(r) {
			continue
		}
		if s.from == after {
			return s
		}
		select {
		case <-s.done:
			if generation.AtLeast(after, s.from) && !generation.Reached(after, s.page.Next) {
				return s
			}
		default:
		}
	}
	return nil
}

// canAppendPage says that the page behind the checkpoint follows on those that are
// kept, or that no other reader is at them any more. The caller holds the lock.
func (p *sharedScan) canAppendPage(r *scanReader, after eventstore.Checkpoint) bool {
	if len(p.pages) == 0 {
		return true
	}
	last := p.pages[len(p.pages)-1]
	select {
	case <-last.done:
		if after == eventstore.At(last.page.Next) {
			return true
		}
	default:
		return false
	}
	for other := range p.readers {
		if other != r && (p.pageCovering(other, other.at) != nil || other.at == eventstore.At(last.page.Next)) {
			return false
		}
	}
	p.pages = nil
	return true
}

// isAhead says that one more page would push out one that a reader has not read.
// The caller holds the lock.
func (p *sharedScan) isAhead(r *scanReader) bool {
	if len(p.pages) < scanPages {
		return false
	}
	for other := range p.readers {
		if other != r && p.pageCovering(other, other.at) == p.pages[0] {
			return true
		}
	}
	return false
}

// startPage reads the page behind the checkpoint for all. The caller holds the lock.
func (p *sharedScan) startPage(ctx context.Context, r *scanReader, after eventstore.Checkpoint) *scanPage {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx)) // it is for all readers
	s := &scanPage{from: after, done: make(chan struct{}), cancel: cancel}
	if _, can := p.source.(Selective); can {
		s.types = maps.Clone(r.types)
		for other := range p.readers {
			maps.Copy(s.types, other.types)
		}
		for e := range p.expected {
			maps.Copy(s.types, e.types)
		}
	}
	if len(p.pages) >= scanPages {
		p.pages = p.pages[1:]
	}
	p.pages = append(p.pages[:len(p.pages):len(p.pages)], s)
	go func() {
		page, err := nextOf(p.source, s.types)(ctx, after, p.size)
		p.mu.Lock()
		defer p.mu.Unlock()
		s.page, s.err = page, err
		if err != nil { // the next reader tries again
			for i, is := range p.pages {
				if is == s {
					p.pages = append(p.pages[:i:i], p.pages[i+1:]...)
					break
				}
			}
		}
		close(s.done)
	}()
	return s
}

// eventsBehind is what of the page lies behind the checkpoint.
func eventsBehind(page eventstore.Page, from, after eventstore.Checkpoint) eventstore.Page {
	if after != from && !after.Start {
		for len(page.Events) > 0 && page.Events[0].Position.Compare(after.Position) <= 0 {
			page.Events = page.Events[1:]
		}
	}
	return page
}
