package consumer

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"humanqa/eventstore"
)

const (
	// passPages is how many pages of the log are kept for those who fold it
	// anew at the same time: so much may the fastest be ahead.
	passPages = 8
	// passPatience is how long the fastest waits for somebody who stands still.
	passPatience = 5 * time.Second
)

// pass reads the log from its beginning once for any number of readers: each
// page is read and decoded by whoever comes first. The readers stay together,
// because the fastest waits for the others; one that is elsewhere in the log, such
// as a build that was interrupted, reads by itself until it meets them. What no
// reader handles is not decoded.
type pass struct {
	source Source
	size   int // events in a page

	mu       sync.Mutex
	pages    []*sheet // they follow on each other
	readers  map[*reader]bool
	expected map[*expectation]bool
	moved    chan struct{} // closed and replaced when a reader moved or left
}

// sheet is a page that somebody reads, or has read.
type sheet struct {
	from    eventstore.Checkpoint
	types   map[string]bool // what is decoded; nil: everything
	done    chan struct{}   // closed once page and err are there
	page    eventstore.Page
	err     error
	waiting int // readers; with the last one the reading ends
	cancel  context.CancelFunc
}

// reader is one who takes part in the pass.
type reader struct {
	pass  *pass
	types map[string]bool       // what it looks at
	at    eventstore.Checkpoint // guarded by pass.mu
}

// expectation is that some consumers will join.
type expectation struct{ types map[string]bool }

// expect has what is read until forget decoded for these, too: they join one after
// the other, and the page that one begins has to serve the next.
func (p *pass) expect(consumers []Consumer) (forget func()) {
	e := &expectation{types: map[string]bool{}}
	for _, c := range consumers {
		maps.Copy(e.types, handledBy(c))
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.expected[e] = true
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.expected, e)
	}
}

func newPass(source Source, size int) *pass {
	return &pass{source: source, size: size, readers: map[*reader]bool{}, expected: map[*expectation]bool{}, moved: make(chan struct{})}
}

// serves says that the page holds what the reader looks at.
func (s *sheet) serves(r *reader) bool {
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

// join adds a reader, who looks at the given types. Until it leaves, others wait for
// it.
func (p *pass) join(at eventstore.Checkpoint, types map[string]bool) *reader {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := &reader{pass: p, at: at, types: types}
	if slices.ContainsFunc(p.pages, func(s *sheet) bool { return !s.serves(r) }) {
		p.pages = nil // those who come now begin a pass that serves them all
	}
	p.readers[r] = true
	return r
}

// leave may be called twice.
func (r *reader) leave() {
	p := r.pass
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.readers, r)
	if len(p.readers) == 0 {
		p.pages = nil // nobody needs them
	}
	p.stir()
}

// stir wakes those who wait for others. The caller holds the lock.
func (p *pass) stir() {
	close(p.moved)
	p.moved = make(chan struct{})
}

// next gives what lies behind the checkpoint, as Source.Next does.
func (r *reader) next(ctx context.Context, after eventstore.Checkpoint) (eventstore.Page, error) {
	p := r.pass
	patience := time.NewTimer(passPatience)
	defer patience.Stop()
	p.mu.Lock()
	if r.at = after; p.readers[r] {
		p.stir()
	}
	for waited := false; ; {
		s := p.covering(r, after)
		if s == nil {
			switch {
			case !p.extends(r, after):
				p.mu.Unlock()
				return nextOf(p.source, r.types)(ctx, after, p.size)
			case p.ahead(r) && !waited:
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
			s = p.begin(ctx, r, after)
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
			continue // everybody who waited for it had gone
		}
		p.mu.Unlock()
		return behind(s.page, s.from, after), s.err
	}
}

// covering is the page that holds what comes behind the checkpoint for a reader,
// if it is kept or under way. The caller holds the lock.
func (p *pass) covering(r *reader, after eventstore.Checkpoint) *sheet {
	for _, s := range p.pages {
		if !s.serves(r) {
			continue
		}
		if s.from == after {
			return s
		}
		select {
		case <-s.done:
			if atLeast(after, s.from) && !reached(after, s.page.Next) {
				return s
			}
		default:
		}
	}
	return nil
}

// extends says that the page behind the checkpoint follows on those that are
// kept, or that nobody else is at them any more. The caller holds the lock.
func (p *pass) extends(r *reader, after eventstore.Checkpoint) bool {
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
		if other != r && (p.covering(other, other.at) != nil || other.at == eventstore.At(last.page.Next)) {
			return false
		}
	}
	p.pages = nil
	return true
}

// ahead says that one more page would push out one that somebody has not read.
// The caller holds the lock.
func (p *pass) ahead(r *reader) bool {
	if len(p.pages) < passPages {
		return false
	}
	for other := range p.readers {
		if other != r && p.covering(other, other.at) == p.pages[0] {
			return true
		}
	}
	return false
}

// begin reads the page behind the checkpoint for all. The caller holds the lock.
func (p *pass) begin(ctx context.Context, r *reader, after eventstore.Checkpoint) *sheet {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx)) // it is everybody's
	s := &sheet{from: after, done: make(chan struct{}), cancel: cancel}
	if _, can := p.source.(Selective); can {
		s.types = maps.Clone(r.types)
		for other := range p.readers {
			maps.Copy(s.types, other.types)
		}
		for e := range p.expected {
			maps.Copy(s.types, e.types)
		}
	}
	if len(p.pages) >= passPages {
		p.pages = p.pages[1:]
	}
	p.pages = append(p.pages[:len(p.pages):len(p.pages)], s)
	go func() {
		page, err := nextOf(p.source, s.types)(ctx, after, p.size)
		p.mu.Lock()
		defer p.mu.Unlock()
		s.page, s.err = page, err
		if err != nil { // whoever comes next tries again
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

// behind is what of the page lies behind the checkpoint.
func behind(page eventstore.Page, from, after eventstore.Checkpoint) eventstore.Page {
	if after != from && !after.Start {
		for len(page.Events) > 0 && page.Events[0].Position.Compare(after.Position) <= 0 {
			page.Events = page.Events[1:]
		}
	}
	return page
}
