package consumer

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"humanqa/domain"
	"humanqa/eventstore"
	"humanqa/eventstore/generation"
	"humanqa/internal/tracing"
)

// fewer is the factor by which the shared batch's pages are smaller than a runner's own.
// Sharing saves little of the cost of larger batches, and runners by themselves write
// them in parallel.
const fewer = 4

// sharedBatch does the work of some runners of one process that have caught up, and so
// stand at the same place. It reads a page once for all, and writes their rows and
// checkpoints in one transaction (package documentation, "Shared batches").
//
// A participant's lease and its runner's state belong to the shared batch's goroutine
// until the participant is released.
type sharedBatch struct {
	*Supervisor
	gather time.Duration // of its participants (gatherOf)

	participants []*participant
	lastBatch    time.Time // of the last batch
	lastTook     time.Duration

	joining chan struct{} // a runner waits to be admitted, or to be released
	mu      sync.Mutex
	ended   bool
	waiting []*participant
}

// participant is a runner whose work the shared batch does.
type participant struct {
	tenure       *tenure
	left         chan error // gets the reason of its release, once
	contribution contribution
}

// contribution is a participant's share of a transaction.
type contribution struct {
	write  Write // nil: its checkpoint only
	events int
	before generation.Lease // the counts to go back to
	took   time.Duration
}

// joinBatch has the shared batch do the runner's work. It gives nil when the runner has to
// go on by itself, and an error when the shared batch ends.
func (b *sharedBatch) joinBatch(f *tenure) error {
	r := &participant{tenure: f, left: make(chan error, 1)}
	b.mu.Lock()
	if b.ended {
		b.mu.Unlock()
		return context.Canceled
	}
	b.waiting = append(b.waiting, r)
	b.mu.Unlock()
	b.wake()
	return <-r.left
}

// wake makes the shared batch look for runners to admit, and for runners to release.
func (b *sharedBatch) wake() {
	select {
	case b.joining <- struct{}{}:
	default: // it has been told
	}
}

// run works until ctx ends, as the runners do.
func (b *sharedBatch) run(ctx context.Context) {
	defer b.releaseAll()
	timer := time.NewTimer(b.limits.Lease)
	defer timer.Stop()
	var ahead *pendingPage
	defer func() {
		if ahead != nil {
			ahead.cancelRead()
		}
	}()
	for {
		if ahead == nil && len(b.participants) > 0 {
			ahead = b.startRead(ctx, b.restTime())
		}
		select {
		case next := <-ahead.result():
			from := ahead.from
			ahead.cancel()
			ahead = nil
			b.handlePage(ctx, from, next)
		case <-b.joining:
			if ahead != nil { // a new one may stand behind the page that is awaited
				ahead.cancelRead()
				ahead = nil
			}
			b.admitParticipants()
		case <-timer.C:
			b.storeCheckpoints(ctx)
		case <-ctx.Done():
			return
		}
		timer.Reset(b.storeInterval())
	}
}

// admitParticipants takes in the runners that wait. It releases those that have to retry
// events that they set aside.
func (b *sharedBatch) admitParticipants() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.participants = append(b.participants, b.waiting...)
	b.waiting = nil
	var reminded []*participant
	for _, r := range b.participants {
		if len(r.tenure.runner.setAsideDue) > 0 {
			reminded = append(reminded, r)
		}
	}
	b.releaseParticipants(reminded)
}

// releaseAll releases all participants, also later ones.
func (b *sharedBatch) releaseAll() {
	b.admitParticipants()
	b.mu.Lock()
	b.ended = true
	late := b.waiting
	b.waiting = nil
	b.mu.Unlock()
	for _, r := range append(b.participants, late...) {
		r.left <- context.Canceled
	}
	b.participants = nil
}

// pendingPage is a page that is being read for the shared batch.
type pendingPage struct {
	from   eventstore.Checkpoint
	names  []string        // the participants' names
	prompt map[string]bool // event types that are not held back, though no request waits for them
	pages  chan pageRead
	cancel context.CancelFunc
}

// startRead begins to read at the oldest checkpoint of the participants.
func (b *sharedBatch) startRead(ctx context.Context, rest time.Duration) *pendingPage {
	ctx, cancel := context.WithCancel(ctx)
	l := &pendingPage{from: b.participants[0].tenure.lease.Seen, prompt: map[string]bool{}, pages: make(chan pageRead, 1), cancel: cancel}
	for _, r := range b.participants {
		if !generation.AtLeast(r.tenure.lease.Seen, l.from) {
			l.from = r.tenure.lease.Seen
		}
		l.names = append(l.names, r.tenure.lease.Gen.Name)
		if _, prepares := r.tenure.runner.consumer.(Preparer); prepares {
			maps.Copy(l.prompt, r.tenure.runner.handles)
		}
	}
	go func() { l.pages <- b.readPage(ctx, l, rest) }()
	return l
}

// readPage reads the page behind a place. A page that no request waits for is not
// applied at once: a command's next event may come right behind it.
func (b *sharedBatch) readPage(ctx context.Context, l *pendingPage, rest time.Duration) pageRead {
	if err := b.tracker.restUnlessAsked(ctx, rest, l.names); err != nil {
		return pageRead{err: err}
	}
	page, err := b.source.Next(ctx, l.from, b.pageSize(), nil)
	came := time.Now()
	for err == nil && page.Live {
		wanted, asked := b.tracker.hasWaiter(page.Next, l.names)
		until := came.Add(b.holdTime(page.Events, l.prompt))
		if wanted || !time.Now().Before(until) || !b.waitForMore(ctx, page.Next, until, asked) {
			break
		}
		page, err = b.source.Next(ctx, l.from, b.pageSize(), nil)
	}
	return pageRead{page, err}
}

// holdTime is how long a page is held back if no request of this process waits for it. A
// request of another process may wait for it, or a webhook, but never for the beginning of a
// command alone.
func (b *sharedBatch) holdTime(events []domain.Recorded, prompt map[string]bool) time.Duration {
	switch {
	case len(events) > 0 && !slices.ContainsFunc(events, endsCommand):
		return b.limits.Hold
	case b.gather > 0, b.notifies.Load(), slices.ContainsFunc(events, func(r domain.Recorded) bool { return prompt[r.Type] }):
		return 0
	}
	return b.limits.Gather
}

// endsCommand says that the event may be the last one of its command.
func endsCommand(r domain.Recorded) bool {
	_, more := r.Event.(domain.MoreFollows)
	return !more
}

// pageSize is the number of events that the shared batch reads at once.
func (b *sharedBatch) pageSize() int { return max(b.limits.Live/fewer, 1) }

// waitForMore waits until an event lies behind the position, or a request begins to
// wait, or until a time. It is false once that time has passed, or ctx has ended.
func (b *sharedBatch) waitForMore(ctx context.Context, behind domain.Position, until time.Time, asked <-chan struct{}) bool {
	waiting, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	go func() {
		select {
		case <-asked:
			cancel()
		case <-waiting.Done():
		}
	}()
	_, _ = b.source.Next(waiting, eventstore.At(behind), 1, nil) // reading the page meets the error
	return ctx.Err() == nil && time.Now().Before(until)
}

// result gives the channel of the page; a nil one, which blocks, while no page is being read.
func (l *pendingPage) result() <-chan pageRead {
	if l == nil {
		return nil
	}
	return l.pages
}

// cancelRead ends the read; a page that it has found is read again.
func (l *pendingPage) cancelRead() {
	l.cancel()
	<-l.pages
}

// restTime is the rest before the next page, so that events gather on a busy log: see
// tenure.restTime. The longer a batch takes, the more there is to share; a batch of few
// events costs less than the wait for more.
func (b *sharedBatch) restTime() time.Duration {
	return cmp.Or(b.gather, min(b.lastTook/2, b.limits.Gather)) - time.Since(b.lastBatch)
}

// handlePage applies the page that was read behind a place.
func (b *sharedBatch) handlePage(ctx context.Context, from eventstore.Checkpoint, next pageRead) {
	if ctx.Err() != nil {
		return
	}
	if next.err != nil || !next.page.Live {
		// Each participant handles a failed read by itself. So it does while the log grows
		// faster than small pages, and for a while, so that participants do not come and go.
		for _, r := range b.participants {
			r.tenure.coolsUntil = time.Now().Add(storeBusy * b.limits.Store)
		}
		b.releaseParticipants(b.participants)
		return
	}
	to := eventstore.At(next.page.Next)
	var writing, passing, failing []*participant
	for _, r := range b.participants {
		if !generation.AtLeast(r.tenure.lease.Seen, from) || generation.AtLeast(r.tenure.lease.Seen, to) {
			continue // it joined while this page was read, or has passed the page
		}
		r.contribution = contribution{before: *r.tenure.lease}
		events := eventsAfter(next.page.Events, r.tenure.lease.Seen)
		batch := r.tenure.selectEvents(events)
		write, err := b.prepareWrite(ctx, r, batch)
		switch {
		case err != nil, slices.ContainsFunc(events, r.tenure.mustNotPass):
			*r.tenure.lease = r.contribution.before
			r.tenure.coolsUntil = time.Now().Add(b.limits.CoolDown)
			failing = append(failing, r)
		case write != nil:
			r.contribution.write, r.contribution.events = write, len(batch)
			writing = append(writing, r)
		default:
			r.tenure.lease.Handled += int64(len(batch))
			passing = append(passing, r)
		}
	}
	b.releaseParticipants(failing)
	for _, r := range passing {
		r.tenure.lease.Seen = to
		b.tracker.noteProgress(r.tenure.lease.Gen.Name, to)
	}
	began := time.Now()
	var span tracing.Span
	if len(writing) > 0 {
		ctx, span = startBatch(ctx, b.tracer, next.page.Events, namesOf(writing)...)
	}
	b.commitContributions(ctx, to, slices.Concat(writing, b.overdueParticipants(passing, storeBusy*b.limits.Store)))
	span.End()
	if len(writing) > 0 {
		b.lastBatch = time.Now()
		b.lastTook = b.lastBatch.Sub(began)
	}
}

// prepareWrite gives the writes of a participant. A Preparer may wait for the log meanwhile, at
// most as long as a transaction may take, and an Announcer for the read models.
func (b *sharedBatch) prepareWrite(ctx context.Context, r *participant, batch []domain.Recorded) (Write, error) {
	if len(batch) == 0 {
		return nil, nil
	}
	preparing, cancel := context.WithTimeout(ctx, b.limits.Shared)
	defer cancel()
	write, _, err := r.tenure.prepareBatch(preparing, batch)
	if err != nil {
		return nil, err
	}
	return write, r.tenure.awaitReads(ctx, write, batch)
}

// eventsAfter gives the events that lie behind a place.
func eventsAfter(events []domain.Recorded, at eventstore.Checkpoint) []domain.Recorded {
	first := slices.IndexFunc(events, func(e domain.Recorded) bool { return !generation.Reached(at, e.Position) })
	if first < 0 {
		return nil
	}
	return events[first:]
}

// overdueParticipants have not stored their checkpoint for some time.
func (b *sharedBatch) overdueParticipants(participants []*participant, since time.Duration) (late []*participant) {
	for _, r := range participants {
		if time.Since(r.tenure.lastStore) >= since {
			late = append(late, r)
		}
	}
	return late
}

// storeInterval is how long the checkpoints, and the leases with them, may stay as they are.
func (b *sharedBatch) storeInterval() time.Duration {
	if slices.ContainsFunc(b.participants, func(r *participant) bool { return r.tenure.lease.Seen != r.tenure.lease.Stored }) {
		return b.limits.Store
	}
	return b.limits.Lease / 3
}

// storeCheckpoints stores the checkpoints of all participants, which renews their leases.
// Participants at different places, which are rare, take a statement each.
func (b *sharedBatch) storeCheckpoints(ctx context.Context) {
	left := slices.Clone(b.participants)
	for len(left) > 0 && ctx.Err() == nil {
		to := left[0].tenure.lease.Seen
		var here, others []*participant
		for _, r := range left {
			if r.tenure.lease.Seen == to {
				r.contribution = contribution{before: *r.tenure.lease}
				here = append(here, r)
			} else {
				others = append(others, r)
			}
		}
		b.commitContributions(ctx, to, here)
		left = others
	}
}

// releaseParticipants makes participants go on by themselves, until each has caught up again.
func (b *sharedBatch) releaseParticipants(participants []*participant) {
	leaving := slices.Clone(participants)
	b.participants = slices.DeleteFunc(b.participants, func(r *participant) bool { return slices.Contains(leaving, r) })
	for _, r := range leaving {
		r.left <- nil
	}
}
