package repository

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
	// maxAttempts bounds the new decisions of a batch after another process wrote to
	// the stream first. Two or three processes that write without a break lose ten
	// times in a row every few seconds. They never lose as often as this.
	maxAttempts = 100
	// contendedFor is how long a stream carries only one command an append, after another
	// process wrote to it.
	contendedFor = time.Second
	// AppendTimeout bounds one round of load, decide and append, as long as a request waits.
	// The log's own resends after an unknown outcome fit into it.
	AppendTimeout = 20 * time.Second
	// longestBook is how many events are held in memory until their close is found. A
	// longer stream, from a version without closes, is folded as it is read.
	longestBook = 100_000
)

// Repository runs commands against the streams of one aggregate. It keeps the
// folded state of the streams used last; a state is trusted only through the
// expected revision of the append that follows from it.
//
// Commands on one stream queue up in one writer instead of colliding. A command that
// finds the writer idle starts it. The writer decides all commands that queued during an
// append in order, and writes them by the next append, all or none. So a busy ledger pays
// for one commit per batch, not per charge.
type Repository[S any] struct {
	log    domain.Log
	evolve func(S, domain.Event) S
	now    func() time.Time
	limit  int
	// ClosedBy is the type of the events at which a fold may begin; empty: there are
	// none. Set it before the first command.
	ClosedBy string
	// MaxBytes bounds the memory of the states; 0: only their number is bounded. Set it
	// before the first command.
	MaxBytes int
	busy     sync.WaitGroup // writers that run
	longest  atomic.Uint64  // stream that a command was run on, in events

	mu      sync.Mutex
	writers map[string]*writer[S]
	used    *list.List // of *writer[S], most recently used first
	bytes   int        // memory of the writers' states; counted if MaxBytes is set
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

	exists    bool // an append met an event: the stream is never assumed to be new again
	loaded    bool // state had all events of the stream
	begun     bool // state is a true state of the stream, perhaps not the newest
	state     S
	revision  domain.ExpectedRevision
	position  domain.Position
	contended time.Time // until then an append carries one command
}

// queued is one queued command. decide may be called several times, each time on a newer
// state; the last decision holds. Behind each decision see gets the state with its events.
type queued[S any] struct {
	cause  domain.Cause
	fresh  bool // the stream is assumed not to exist: it is not loaded first
	decide func(S) ([]domain.Event, error)
	see    func(S)
	done   chan appendResult
}

// appendResult answers one queued command.
type appendResult struct {
	at  domain.Position
	err error
}

// New makes a repository that keeps the state of the limit streams used last.
func New[S any](log domain.Log, now func() time.Time, limit int, evolve func(S, domain.Event) S) *Repository[S] {
	return &Repository[S]{
		log: log, evolve: evolve, now: now, limit: limit,
		writers: make(map[string]*writer[S]), used: list.New(),
	}
}

// Execute decides a command on the stream's state and appends its events. see gives the
// caller what it needs of the state after them. decide and see must not keep the state,
// because later commands change it in place. They run in the writer, which may outlive the
// caller, so the variables they set are read only after success. The position is that of
// the stream's last event. A decision without events is a repeat.
func Execute[S, R any](
	ctx context.Context, s *Repository[S], cause domain.Cause, stream string, decide func(S) ([]domain.Event, error), see func(S) R,
) (R, domain.Position, error) {
	return submit(ctx, s, stream, &queued[S]{cause: cause, decide: decide}, see)
}

// Decide is Execute for a caller that needs only the position.
func Decide[S any](
	ctx context.Context, s *Repository[S], cause domain.Cause, stream string, decide func(S) ([]domain.Event, error),
) (domain.Position, error) {
	_, at, err := Execute(ctx, s, cause, stream, decide, func(S) struct{} { return struct{}{} })
	return at, err
}

// Create is Execute for a stream that should not exist yet: the stream is read only if
// the append finds it.
func Create[S, R any](
	ctx context.Context, s *Repository[S], cause domain.Cause, stream string, decide func(S) ([]domain.Event, error), see func(S) R,
) (R, domain.Position, error) {
	return submit(ctx, s, stream, &queued[S]{cause: cause, fresh: true, decide: decide}, see)
}

// Read shows the stream's state as the log has it now. see must not keep the
// state.
func Read[S, R any](ctx context.Context, s *Repository[S], stream string, see func(S) R) (R, error) {
	r, _, err := Execute(ctx, s, domain.Cause{}, stream, func(S) ([]domain.Event, error) { return nil, nil }, see)
	return r, err
}

// Longest is the length of the longest stream that a command was run on, in events.
func (s *Repository[S]) Longest() uint64 { return s.longest.Load() }

// Wait returns when no writer runs any more.
func (s *Repository[S]) Wait() { s.busy.Wait() }

func submit[S, R any](ctx context.Context, s *Repository[S], stream string, r *queued[S], see func(S) R) (R, domain.Position, error) {
	result := new(R)
	r.see, r.done = func(state S) { *result = see(state) }, make(chan appendResult, 1)
	w := s.writer(stream)
	w.mu.Lock()
	w.queue = append(w.queue, r)
	start := !w.running
	w.running = true
	w.mu.Unlock()
	if start {
		s.busy.Go(func() { s.runWriter(w) })
	}
	select {
	case o := <-r.done:
		if o.err != nil {
			return *new(R), o.at, o.err
		}
		return *result, o.at, nil
	case <-ctx.Done():
		// The command may still be written; its id makes a repeat harmless. The
		// result is the writer's until it is done.
		return *new(R), domain.Position{}, domain.Unavailable(fmt.Errorf("%s: %w", stream, context.Cause(ctx)))
	}
}

// writer finds or makes the stream's writer.
func (s *Repository[S]) writer(stream string) *writer[S] {
	s.mu.Lock()
	defer s.mu.Unlock()
	if w, ok := s.writers[stream]; ok {
		s.used.MoveToFront(w.element)
		return w
	}
	w := &writer[S]{stream: stream}
	w.element = s.used.PushFront(w)
	s.writers[stream] = w
	s.evictIdle(w)
	return w
}

// evictIdle drops the least recently used idle writers beyond the limits.
func (s *Repository[S]) evictIdle(but *writer[S]) {
	for e := s.used.Back(); e != nil && (len(s.writers) > s.limit || s.MaxBytes > 0 && s.bytes > s.MaxBytes); {
		old := e.Value.(*writer[S])
		e = e.Prev()
		// A writer is in use while it runs or a command is about to queue on it. Two
		// writers for one stream would cost conflicts, but no correctness.
		if old != but && old.isIdle() {
			s.used.Remove(old.element)
			delete(s.writers, old.stream)
			s.bytes -= old.bytes
		}
	}
}

// countBytes counts the memory of the writer's state, and evicts idle writers if needed.
// Its writer still runs and owns the state.
func (s *Repository[S]) countBytes(w *writer[S]) {
	if s.MaxBytes == 0 {
		return
	}
	bytes := sizeOf(&w.state)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.writers[w.stream] == w { // otherwise it was evicted before its first command was queued
		s.bytes += bytes - w.bytes
		w.bytes = bytes
		s.evictIdle(w)
	}
}

func (w *writer[S]) isIdle() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.running && len(w.queue) == 0
}

// nextBatch removes the next batch from the queue, or ends the writer's run.
func (w *writer[S]) nextBatch(now time.Time) []*queued[S] {
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

func (s *Repository[S]) runWriter(w *writer[S]) {
	for {
		batch := w.nextBatch(s.now())
		if batch == nil {
			return
		}
		// The batch belongs to all callers: no single cancellation ends it.
		ctx, cancel := context.WithTimeout(context.Background(), AppendTimeout)
		s.writeBatch(ctx, w, batch)
		s.countBytes(w)
		cancel()
	}
}

// writeBatch decides and writes one batch, answering every request in it.
func (s *Repository[S]) writeBatch(ctx context.Context, w *writer[S], batch []*queued[S]) {
	var err error
	for attempt := range maxAttempts {
		if attempt > 0 {
			pause(ctx, attempt)
		}
		var done bool
		if done, err = s.attemptBatch(ctx, w, batch); done {
			return
		}
		if !errors.Is(err, errStale) {
			break
		}
	}
	if w.loaded { // after any failure, the next batch starts from the log
		w.forgetState()
	} // otherwise loading goes on where it stopped, so that no stream is too long to load
	switch refused, invalid := errors.Is(err, domain.ErrRefused), domain.IsKind(err, domain.KindInvalid); {
	case (refused || invalid) && len(batch) > 1:
		// Together they may be too large, or one of them has an event that the log
		// refuses. Alone, the faulty command gets the error.
		for i := range batch {
			s.writeBatch(ctx, w, batch[i:i+1])
		}
		return
	case invalid:
		// The error names the problem.
	case refused:
		err = &domain.Error{
			Kind: domain.KindTooLarge, Code: domain.CodePayloadTooLarge, Cause: err,
			Message: "this is too much for one entry of the log", Hint: "shorten the texts, or split them up",
		}
	case !domain.IsKind(err, domain.KindUnavailable): // an unavailable error has its reason
		err = domain.Unavailable(fmt.Errorf("%s: %w", w.stream, err))
	}
	for _, r := range batch {
		r.done <- appendResult{err: err}
	}
}

// errStale says that the stream has newer events: decide again on the newer state.
var errStale = errors.New("another command wrote to the stream")

// attemptBatch makes one round: it decides all commands, appends their events, and
// answers. It answers either every request or none.
//
// Also a refusal and a repeat must rest on a state that the log has confirmed:
// by the append of the batch they stand in, or by reading the tail.
func (s *Repository[S]) attemptBatch(ctx context.Context, w *writer[S], batch []*queued[S]) (done bool, err error) {
	fresh := batch[0].fresh && !w.exists
	confirmed := !w.loaded && !fresh
	if err := s.loadState(ctx, w, fresh); err != nil {
		return false, err
	}
	var (
		events  []domain.NewEvent
		tail    []domain.Event // the last decision's events, not folded in yet
		last    *queued[S]     // its command
		writers int
		errs    = make([]error, len(batch))
	)
	fold := func() {
		for _, e := range tail {
			w.state = s.evolve(w.state, e)
		}
		if tail != nil {
			last.see(w.state)
		}
		tail = nil
	}
	for i, r := range batch {
		// Folding waits until the next decision, so a batch with one writer leaves the
		// state as the log has it.
		fold()
		decided, err := r.decide(w.state)
		switch errs[i] = err; {
		case err != nil:
		case len(decided) == 0:
			r.see(w.state)
		default:
			tail, last = decided, r
			writers++
			events = s.addMetadata(events, r.cause, decided)
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
				w.forgetState() // the state has events that the log does not have
				return false, errStale
			}
			if _, err := s.catchUp(ctx, w); err != nil {
				return false, err
			}
			return false, errStale
		}
		fold()
		w.revision = domain.ExpectedRevision(written.Revision)
		w.position = written.Position
	case !confirmed:
		news, err := s.catchUp(ctx, w)
		if err != nil {
			return false, err
		}
		if news {
			return false, errStale
		}
	}
	for events := uint64(max(w.revision, 0)) + 1; ; {
		if was := s.longest.Load(); was >= events || s.longest.CompareAndSwap(was, events) {
			break
		}
	}
	for i, r := range batch {
		r.done <- appendResult{at: w.position, err: errs[i]}
	}
	return true, nil
}

// loadState loads the writer's state from the log, unless it is loaded already. A fresh
// stream is assumed to be empty; the append finds out.
func (s *Repository[S]) loadState(ctx context.Context, w *writer[S], fresh bool) error {
	if w.loaded {
		return nil
	}
	if !w.begun {
		if err := s.loadTail(ctx, w, fresh); err != nil {
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

// loadTail sets the writer's state to that before the stream's first event, or folds the
// events since its newest close.
func (s *Repository[S]) loadTail(ctx context.Context, w *writer[S], fresh bool) error {
	var zero S
	w.state, w.revision, w.position = zero, domain.NoStream, domain.Position{}
	if s.ClosedBy != "" && !fresh {
		events, _, err := s.log.LoadTail(ctx, w.stream, s.ClosedBy, longestBook)
		if err != nil {
			return fmt.Errorf("load since the newest close: %w", err)
		}
		for _, r := range events {
			if err := s.fold(w, r); err != nil {
				return err
			}
		}
	}
	w.begun = true
	return nil
}

// forgetState has the next batch load the stream anew.
func (w *writer[S]) forgetState() { w.loaded, w.begun = false, false }

// catchUp folds in the events that the log has beyond the writer's state. After an error
// the state is still a true state, but perhaps not the newest.
func (s *Repository[S]) catchUp(ctx context.Context, w *writer[S]) (news bool, err error) {
	err = s.log.Load(ctx, w.stream, uint64(w.revision+1), func(r domain.Recorded) error {
		err := s.fold(w, r)
		news = news || err == nil
		return err
	})
	if err != nil {
		return news, fmt.Errorf("load: %w", err)
	}
	return news, nil
}

// fold makes a stored event part of the writer's state.
func (s *Repository[S]) fold(w *writer[S], r domain.Recorded) error {
	switch {
	case r.Disowned:
	case r.Event == nil:
		return fmt.Errorf("event %d has the unknown type %q: %w", r.Revision, r.Type, domain.ErrNewer)
	default:
		w.state = s.evolve(w.state, r.Event)
	}
	w.revision, w.position = domain.ExpectedRevision(r.Revision), r.Position
	return nil
}

// addMetadata gives the events their ids and metadata. The ids are new for each decision.
// If the log has the same ids at that place, it treats an append as a repeat, whatever
// the bytes. Suppose that the ids derived from the command. Another process may decide
// the command again, at another time or with another checklist. The log would then tell
// it that its events were written, and it would go on from a state that the log does not
// have. With new ids it gets a wrong revision, reads the stream, and finds its command
// done.
func (s *Repository[S]) addMetadata(to []domain.NewEvent, c domain.Cause, events []domain.Event) []domain.NewEvent {
	at := s.now()
	for _, e := range events {
		to = append(to, domain.NewEvent{
			ID:    uuid.New(),
			Event: e,
			Meta: domain.Metadata{
				CommandID: c.CommandID, CorrelationID: c.CorrelationID, CausationID: c.CausationID, Trace: c.Trace,
				Actor: c.Actor, AccountID: c.AccountID, Time: at,
			},
		})
	}
	return to
}

// pause waits a little, longer and more randomly each time.
func pause(ctx context.Context, attempt int) {
	select {
	case <-time.After(time.Duration(rand.IntN(1<<min(attempt, 6))) * time.Millisecond):
	case <-ctx.Done():
	}
}
