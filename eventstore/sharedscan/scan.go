// Package sharedscan reads a log once for any number of readers.
package sharedscan

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

// Source is where pages come from: eventstore.Feed.
type Source interface {
	// Next gives the events behind the checkpoint; it blocks until there is one. Events of
	// other types may lack Event and Meta, since decoding is half of the cost of reading the
	// log. Unless the types have eventstore.Sums, all events may lack their sums.
	Next(ctx context.Context, after eventstore.Checkpoint, maxEvents int, types map[string]bool) (eventstore.Page, error)
}

const (
	// scanPages is how many pages of the log are kept for the readers, and so how far the
	// fastest may be ahead.
	scanPages = 8
	// Patience is how long the fastest usually waits for a reader that stands still.
	Patience = 5 * time.Second
)

// Scan reads the log from its beginning once for any number of readers: each
// page is read and decoded by the reader that comes first. The readers stay together,
// because the fastest waits for the others. A reader elsewhere in the log, such as a
// build that was interrupted, waits once for those behind it, and then reads by itself
// until it meets them. Events that no reader handles are not decoded.
type Scan struct {
	source   Source
	size     int           // events in a page
	patience time.Duration // of the fastest with a reader that stands still

	mu      sync.Mutex
	pages   []*scanPage // they follow on each other
	readers map[*Reader]bool
	awaited int           // readers that may still join
	moved   chan struct{} // closed and replaced when a reader moved or left
}

// scanPage is a page that is being read, or was read.
type scanPage struct {
	from    eventstore.Checkpoint
	types   map[string]bool // the types that are decoded
	done    chan struct{}   // closed once page and err are there
	page    eventstore.Page
	err     error
	waiting int // readers; the read is cancelled when the last one leaves
	cancel  context.CancelFunc
}

// Reader takes part in the scan.
type Reader struct {
	scan  *Scan
	types map[string]bool // the types that it handles

	// Guarded by Scan.mu.
	at    eventstore.Checkpoint
	alone bool // those behind it did not come while it waited for them
}

// Await makes readers that begin, or are ahead, wait for a while until came was called: a
// reader that may join takes a moment, and the first page has to serve it. came may be called
// again.
func (p *Scan) Await() (came func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.awaited++
	return sync.OnceFunc(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.awaited--
		p.wakeReaders()
	})
}

// New prepares a scan in pages of so many events.
func New(source Source, size int, patience time.Duration) *Scan {
	return &Scan{source: source, size: size, patience: patience, readers: map[*Reader]bool{}, moved: make(chan struct{})}
}

// decodesFor says that the page has all types of the reader decoded.
func (s *scanPage) decodesFor(r *Reader) bool {
	for t := range r.types {
		if !s.types[t] {
			return false
		}
	}
	return true
}

// Add adds a reader of the given types. Until it leaves, others wait for it.
func (p *Scan) Add(at eventstore.Checkpoint, types map[string]bool) *Reader {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := &Reader{scan: p, at: at, types: types}
	if slices.ContainsFunc(p.pages, func(s *scanPage) bool { return !s.decodesFor(r) }) {
		p.pages = nil // readers from now on begin a scan that serves them all
	}
	p.readers[r] = true
	return r
}

// Leave may be called twice.
func (r *Reader) Leave() {
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
func (p *Scan) wakeReaders() {
	close(p.moved)
	p.moved = make(chan struct{})
}

// Next gives the events behind the checkpoint, as Source.Next does.
func (r *Reader) Next(ctx context.Context, after eventstore.Checkpoint) (eventstore.Page, error) {
	p := r.scan
	patience := time.NewTimer(p.patience)
	defer patience.Stop()
	p.mu.Lock()
	if r.at = after; p.readers[r] {
		p.wakeReaders()
	}
	for waited := false; ; {
		s := p.pageCovering(r, after)
		if s == nil {
			appends := p.canAppendPage(r, after)
			begins := !appends || len(p.pages) == 0
			switch {
			case !waited && p.isAhead(r, begins):
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
				r.alone = r.alone || waited && begins
				continue
			case !appends:
				p.mu.Unlock()
				return p.source.Next(ctx, after, p.size, r.types)
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
			continue // all readers that waited for it had left
		}
		p.mu.Unlock()
		return eventsBehind(s.page, s.from, after), s.err
	}
}

// pageCovering is the page that holds the reader's next events behind the checkpoint,
// if it is kept or under way. The caller holds the lock.
func (p *Scan) pageCovering(r *Reader, after eventstore.Checkpoint) *scanPage {
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

// canAppendPage says that the page behind the checkpoint follows on the kept pages, or
// that no other reader needs the kept pages any more. The caller holds the lock.
func (p *Scan) canAppendPage(r *Reader, after eventstore.Checkpoint) bool {
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

// isAhead says that the reader has to wait for others, or for those that may still join. Where it
// begins, they may come to its place, unless it has waited for that before. Behind the kept pages,
// one more would push out a page that another reader has not read. The caller holds the lock.
func (p *Scan) isAhead(r *Reader, begins bool) bool {
	if begins && r.alone || !begins && len(p.pages) < scanPages {
		return false
	}
	for other := range p.readers {
		if begins && !other.alone && !generation.AtLeast(other.at, r.at) ||
			!begins && other != r && p.pageCovering(other, other.at) == p.pages[0] {
			return true
		}
	}
	return p.awaited > 0
}

// startPage reads the page behind the checkpoint for all. The caller holds the lock.
func (p *Scan) startPage(ctx context.Context, r *Reader, after eventstore.Checkpoint) *scanPage {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx)) // it is for all readers
	s := &scanPage{from: after, types: maps.Clone(r.types), done: make(chan struct{}), cancel: cancel}
	for other := range p.readers {
		maps.Copy(s.types, other.types)
	}
	if len(p.pages) >= scanPages {
		p.pages = p.pages[1:]
	}
	p.pages = append(p.pages[:len(p.pages):len(p.pages)], s)
	go func() {
		page, err := p.source.Next(ctx, after, p.size, s.types)
		p.mu.Lock()
		defer p.mu.Unlock()
		s.page, s.err = page, err
		if err != nil { // the next reader tries again
			p.pages = slices.DeleteFunc(slices.Clone(p.pages), func(is *scanPage) bool { return is == s })
		}
		close(s.done)
	}()
	return s
}

// eventsBehind is the page without the events up to the checkpoint.
func eventsBehind(page eventstore.Page, from, after eventstore.Checkpoint) eventstore.Page {
	if after != from && !after.Start {
		for len(page.Events) > 0 && page.Events[0].Position.Compare(after.Position) <= 0 {
			page.Events = page.Events[1:]
		}
	}
	return page
}
