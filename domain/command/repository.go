package command

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"humanqa/domain"
)

const (
	// maxBatch bounds how many queued commands one append carries.
	maxBatch = 128
	// maxAttempts bounds how often a batch is decided anew after another process
	// wrote to the stream first: two or three that write to one stream without a
	// break lose to each other ten times in a row every few seconds, and never as
	// often as this.
	maxAttempts = 100
	// contendedFor is how long a stream on which another process was met
	// carries one command an append.
	contendedFor = time.Second
	// appendTimeout bounds one round of load, decide and append. The log's own
	// resends after an unknown outcome fit into it.
	appendTimeout = 30 * time.Second
	// longestBook is how far back a close is looked for. A stream of a version
	// that did not close, however long, is not read twice.
	longestBook = 100_000
)

// streams runs commands against the streams of one aggregate. It keeps the
// folded state of the streams used last; a state is trusted only through the
// expected revision of the append that follows from it.
//
// Commands on one stream queue up in one writer instead of colliding: whoever
// finds the writer idle starts it, and everything that queued while an append
// was under way is decided in order and written by the next append, whole or
// not at all. A busy ledger so pays for one commit per batch, not per charge.
type repository[S any] struct {
	log    domain.Log
	evolve func(S, domain.Event) S
	now    func() time.Time
	limit  int
	// closedBy is the type of the events behind which a fold may begin; empty:
	// there are none.
	closedBy string
	// most bounds the memory of the states, in bytes; 0: only their number does.
	most    int
	busy    sync.WaitGroup // writers that run
	longest atomic.Uint64  // stream that a command was run on, in events

	mu      sync.Mutex
	writers map[string]*writer[S]
	used    *list.List // of *writer[S], most recently used first
	bytes   int        // that the writers' states take; counted if most is set
}

// writer is the only one of a stream in this process. mu guards the queue;
// everything below it belongs to the goroutine that runs the writer.
type writer[S any] struct {
	stream  string
	element *list.Element
	bytes   int // of the state when the writer last ended; the repository's mu guards it

	mu      sync.Mutex
	queue   []*queued[S]
	running bool

	exists    bool // an append met an event: the stream is never believed to be new again
	loaded    bool // state was all there is
	begun     bool // state is a true one, as far as it goes
	state     S
	revision  domain.ExpectedRevision
	position  domain.Position
	contended time.Time // until when one command an append
}

// queued is one queued command. decide may be called several times, each time
// on a newer state; the last one holds.
type queued[S any] struct {
	cause  Cause
	fresh  bool // the stream is believed not to exist: don't load it first
	decide func(S) ([]domain.Event, error)
	done   chan appendResult
}

// appendResult answers one queued command.
type appendResult struct {
	written domain.AppendResult
	err     error
}

func newRepository[S any](log domain.Log, now func() time.Time, limit int, evolve func(S, domain.Event) S) *repository[S] {
	return &repository[S]{
		log: log, evolve: evolve, now: now, limit: limit,
		writers: make(map[string]*writer[S]), used: list.New(),
	}
}

// execute decides a command on the stream's state and appends what follows.
// decide must not keep the state (later commands change it in place); what the
// caller wants to know goes into the result. Deciding nothing is a repeat;
// Written then names the stream's last event.
func execute[S, R any](
	ctx context.Context, s *repository[S], cause Cause, stream string, decide func(S, *R) ([]domain.Event, error),
) (R, domain.AppendResult, error) {
	return submit(ctx, s, stream, cause, false, decide)
}

// create is execute for a stream that should not exist yet: it is not read
// unless the append finds it.
func create[S, R any](
	ctx context.Context, s *repository[S], cause Cause, stream string, decide func(S, *R) ([]domain.Event, error),
) (R, domain.AppendResult, error) {
	return submit(ctx, s, stream, cause, true, decide)
}

// read shows the stream's state as the log has it now. see must not keep the
// state.
func read[S, R any](ctx context.Context, s *repository[S], stream string, see func(S) R) (R, error) {
	r, _, err := submit(ctx, s, stream, Cause{}, false, func(state S, r *R) ([]domain.Event, error) {
		*r = see(state)
		return nil, nil
	})
	return r, err
}

// none is the result of a command that has nothing to tell.
type none = struct{}

// wait returns when no writer runs any more.
func (s *repository[S]) wait() { s.busy.Wait() }

func submit[S, R any](
	ctx context.Context, s *repository[S], stream string, cause Cause, fresh bool, decide func(S, *R) ([]domain.Event, error),
) (R, domain.AppendResult, error) {
	result := new(R)
	r := &queued[S]{cause: cause, fresh: fresh, done: make(chan appendResult, 1)}
	r.decide = func(state S) ([]domain.Event, error) {
		*result = *new(R)
		return decide(state, result)
	}
	w := s.writer(stream)
	w.mu.Lock()
	w.queue = append(w.queue, r)
	start := !w.running
	w.running = true
	w.mu.Unlock()
	if start {
		s.busy.Go(func() { s.run(w) })
	}
	select {
	case o := <-r.done:
		return *result, o.written, o.err
	case <-ctx.Done():
		// The command may still be written; its id makes a repeat harmless. The
		// result is the writer's until it is done.
		return *new(R), domain.AppendResult{}, domain.Unavailable(fmt.Errorf("%s: %w", stream, context.Cause(ctx)))
	}
}

// writer finds or makes the stream's writer.
func (s *repository[S]) writer(stream string) *writer[S] {
	s.mu.Lock()
	defer s.mu.Unlock()
	if w, ok := s.writers[stream]; ok {
		s.used.MoveToFront(w.element)
		return w
	}
	w := &writer[S]{stream: stream}
	w.element = s.used.PushFront(w)
	s.writers[stream] = w
	s.evict(w)
	return w
}

// evict drops the least recently used idle writers beyond the limits.
func (s *repository[S]) evict(but *writer[S]) {
	for e := s.used.Back(); e != nil && (len(s.writers) > s.limit || s.most > 0 && s.bytes > s.most); {
		old := e.Value.(*writer[S])
		e = e.Prev()
		// A writer that runs, or that somebody is about to queue on, is in use:
		// two writers for one stream would only cost conflicts, never truth.
		if old != but && old.idle() {
			s.used.Remove(old.element)
			delete(s.writers, old.stream)
			s.bytes -= old.bytes
		}
	}
}

// weigh counts what the writer's state takes by now, and makes room for it. Its
// writer still runs: the state is nobody else's.
func (s *repository[S]) weigh(w *writer[S]) {
	if s.most == 0 {
		return
	}
	bytes := sizeOf(&w.state)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.writers[w.stream] == w { // else it was evicted before its first command was queued
		s.bytes += bytes - w.bytes
		w.bytes = bytes
		s.evict(w)
	}
}

func (w *writer[S]) idle() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.running && len(w.queue) == 0
}

// take removes the next batch from the queue, or ends the writer's run.
func (w *writer[S]) take(now time.Time) []*queued[S] {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := min(len(w.queue), maxBatch)
	if now.Before(w.contended) {
		n = min(n, 1)
	}
	if n == 0 {
		w.running = false
		w.queue = nil
		return nil
	}
	batch := w.queue[:n:n]
	w.queue = w.queue[n:]
	return batch
}

func (s *repository[S]) run(w *writer[S]) {
	for {
		batch := w.take(s.now())
		if batch == nil {
			return
		}
		// The batch is everybody's: no single caller's cancellation ends it.
		ctx, cancel := context.WithTimeout(context.Background(), appendTimeout)
		s.settle(ctx, w, batch)
		s.weigh(w)
		cancel()
	}
}

// settle decides and writes one batch, answering every request in it.
func (s *repository[S]) settle(ctx context.Context, w *writer[S], batch []*queued[S]) {
	var err error
	for attempt := range maxAttempts {
		if attempt > 0 {
			pause(ctx, attempt)
		}
		var done bool
		if done, err = s.try(ctx, w, batch); done {
			return
		}
		if !errors.Is(err, errStale) {
			break
		}
	}
	if w.loaded { // whatever went wrong, the next batch starts from the log
		w.forget()
	} // else loading goes on where it stopped, so that no stream is too long for it
	switch refused, invalid := errors.Is(err, domain.ErrRefused), domain.IsKind(err, domain.KindInvalid); {
	case (refused || invalid) && len(batch) > 1:
		// Together they may be too much, or one of them holds what the log does not take:
		// whoever is to blame alone is told so.
		for i := range batch {
			s.settle(ctx, w, batch[i:i+1])
		}
		return
	case invalid:
		// It says what is wrong.
	case refused:
		err = &domain.Error{
			Kind: domain.KindTooLarge, Code: domain.CodePayloadTooLarge, Cause: err,
			Message: "this is too much for one entry of the log", Hint: "shorten the texts, or split them up",
		}
	case !domain.IsKind(err, domain.KindUnavailable): // else it says why
		err = domain.Unavailable(fmt.Errorf("%s: %w", w.stream, err))
	}
	for _, r := range batch {
		r.done <- appendResult{err: err}
	}
}

// errStale says that the log had moved on: decide again on the newer state.
var errStale = errors.New("the stream was written to by somebody else")

// try makes one round: decide everything, append what follows, answer. It
// answers either every request or none.
//
// Also a refusal and a repeat must rest on a state that the log has confirmed:
// by the append of the batch they stand in, or by reading the tail.
func (s *repository[S]) try(ctx context.Context, w *writer[S], batch []*queued[S]) (done bool, err error) {
	fresh := batch[0].fresh && !w.exists
	confirmed := !w.loaded && !fresh
	if err := s.load(ctx, w, fresh); err != nil {
		return false, err
	}
	var (
		events  []domain.NewEvent
		tail    []domain.Event // decided last, not folded in yet
		writers int
		errs    = make([]error, len(batch))
	)
	for i, r := range batch {
		// Folding in is put off until somebody decides after it: a batch with
		// one writer then leaves the state as the log has it.
		var decided []domain.Event
		if len(tail) > 0 {
			w.fold(s.evolve, tail)
			tail = nil
		}
		if decided, errs[i] = r.decide(w.state); errs[i] == nil && len(decided) > 0 {
			tail = decided
			writers++
			events = s.envelop(events, r.cause, decided)
		}
	}
	switch {
	case len(events) > 0:
		written, err := s.log.Append(ctx, w.stream, w.revision, events)
		if err != nil {
			if !errors.Is(err, domain.ErrWrongRevision) {
				return false, err
			}
			w.exists, w.contended = true, s.now().Add(contendedFor)
			if writers > 1 || tail == nil {
				w.forget() // events were folded in that the log does not have
				return false, errStale
			}
			if _, err := s.catchUp(ctx, w); err != nil {
				return false, err
			}
			return false, errStale
		}
		w.fold(s.evolve, tail)
		w.revision, w.position = revisionOf(written), written.Position
	case !confirmed:
		news, err := s.catchUp(ctx, w)
		if err != nil {
			return false, err
		}
		if news {
			return false, errStale
		}
	}
	last := domain.AppendResult{Revision: uint64(max(w.revision, 0)), Position: w.position}
	for events := last.Revision + 1; ; {
		if was := s.longest.Load(); was >= events || s.longest.CompareAndSwap(was, events) {
			break
		}
	}
	for i, r := range batch {
		r.done <- appendResult{written: last, err: errs[i]}
	}
	return true, nil
}

// load makes the writer's state that of the log, unless it is there already. A
// fresh stream is believed to be empty; the append will tell.
func (s *repository[S]) load(ctx context.Context, w *writer[S], fresh bool) error {
	if w.loaded {
		return nil
	}
	if !w.begun {
		if err := s.begin(ctx, w, fresh); err != nil {
			return err
		}
	}
	if !fresh || w.revision != domain.NoStream {
		if _, err := s.catchUp(ctx, w); err != nil {
			return err
		}
	}
	w.loaded = true
	return nil
}

// begin makes the writer's state that of the stream's beginning, or of its newest
// close.
func (s *repository[S]) begin(ctx context.Context, w *writer[S], fresh bool) error {
	var zero S
	w.state, w.revision, w.position = zero, domain.NoStream, domain.Position{}
	if s.closedBy != "" && !fresh {
		at, closed, err := s.log.Newest(ctx, w.stream, s.closedBy, longestBook)
		if err != nil {
			return fmt.Errorf("find the newest close: %w", err)
		}
		if closed {
			w.revision = domain.ExpectedRevision(at) - 1 //nolint:gosec // a stream never has 2^63 events
		}
	}
	w.begun = true
	return nil
}

// forget has the next batch load the stream anew.
func (w *writer[S]) forget() { w.loaded, w.begun = false, false }

// catchUp folds in what the log has beyond the writer's state. After an error
// the state is a true one, only perhaps not the newest.
func (s *repository[S]) catchUp(ctx context.Context, w *writer[S]) (news bool, err error) {
	err = s.log.Load(ctx, w.stream, uint64(w.revision+1), func(r domain.Recorded) error { //nolint:gosec // never below zero
		if r.Event == nil {
			return fmt.Errorf("event %d has the unknown type %q: this binary is older than the log", r.Revision, r.Type)
		}
		w.state = s.evolve(w.state, r.Event)
		w.revision, w.position = domain.ExpectedRevision(r.Revision), r.Position //nolint:gosec // a stream never has 2^63 events
		news = true
		return nil
	})
	if err != nil {
		return news, fmt.Errorf("load: %w", err)
	}
	return news, nil
}

func (w *writer[S]) fold(evolve func(S, domain.Event) S, events []domain.Event) {
	for _, e := range events {
		w.state = evolve(w.state, e)
	}
}

// envelop gives the events their ids and metadata. The ids are new for each
// decision. The log takes ids that it has at that place for a repeat, whatever
// the bytes: did they derive from the command, then another process that decides
// it again, at another time or with another checklist, would be told that its
// events were written, and go on from a state that the log does not have. So it
// meets the revision instead, reads, and finds its command done.
func (s *repository[S]) envelop(to []domain.NewEvent, c Cause, events []domain.Event) []domain.NewEvent {
	at := s.now()
	for _, e := range events {
		to = append(to, domain.NewEvent{
			ID:    uuid.New(),
			Event: e,
			Meta: domain.Metadata{
				CommandID: c.CommandID, CorrelationID: c.CorrelationID, CausationID: c.CausationID,
				Actor: c.Actor, AccountID: c.AccountID, Time: at,
			},
		})
	}
	return to
}

func revisionOf(w domain.AppendResult) domain.ExpectedRevision {
	return domain.ExpectedRevision(w.Revision) //nolint:gosec // a stream never has 2^63 events
}

// pause waits a little, longer and more randomly each time.
func pause(ctx context.Context, attempt int) {
	select {
	case <-time.After(time.Duration(rand.IntN(1<<min(attempt, 6))) * time.Millisecond): //nolint:gosec // jitter
	case <-ctx.Done():
	}
}
