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
	// maxAttempts bounds how often a batch is decided anew after somebody
	// else wrote to the stream first.
	maxAttempts = 10
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
// Commands on one stream queue up in a lane instead of colliding: whoever
// finds the lane idle starts it, and everything that queued while an append
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
	busy     sync.WaitGroup // lanes that run
	longest  atomic.Uint64  // stream that a command was run on, in events

	mu    sync.Mutex
	lanes map[string]*lane[S]
	used  *list.List // of *lane[S], most recently used first
}

// lane is one stream. mu guards the queue; everything below it belongs to the
// goroutine that runs the lane.
type lane[S any] struct {
	stream  string
	element *list.Element

	mu      sync.Mutex
	queue   []*queued[S]
	running bool

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
		lanes: make(map[string]*lane[S]), used: list.New(),
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

// wait returns when no lane runs any more.
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
	l := s.lane(stream)
	l.mu.Lock()
	l.queue = append(l.queue, r)
	start := !l.running
	l.running = true
	l.mu.Unlock()
	if start {
		s.busy.Go(func() { s.run(l) })
	}
	select {
	case o := <-r.done:
		return *result, o.written, o.err
	case <-ctx.Done():
		// The command may still be written; its id makes a repeat harmless. The
		// result is the lane's until it is done.
		return *new(R), domain.AppendResult{}, domain.Unavailable(fmt.Errorf("%s: %w", stream, context.Cause(ctx)))
	}
}

// lane finds or makes the stream's lane and drops the least recently used idle
// ones beyond the limit.
func (s *repository[S]) lane(stream string) *lane[S] {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l, ok := s.lanes[stream]; ok {
		s.used.MoveToFront(l.element)
		return l
	}
	l := &lane[S]{stream: stream}
	l.element = s.used.PushFront(l)
	s.lanes[stream] = l
	for e := s.used.Back(); e != nil && len(s.lanes) > s.limit; {
		old := e.Value.(*lane[S])
		e = e.Prev()
		// A lane that runs, or that somebody is about to queue on, is in use:
		// two lanes for one stream would only cost conflicts, never truth.
		if old != l && old.idle() {
			s.used.Remove(old.element)
			delete(s.lanes, old.stream)
		}
	}
	return l
}

func (l *lane[S]) idle() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.running && len(l.queue) == 0
}

// take removes the next batch from the queue, or ends the lane's run.
func (l *lane[S]) take(now time.Time) []*queued[S] {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := min(len(l.queue), maxBatch)
	if now.Before(l.contended) {
		n = min(n, 1)
	}
	if n == 0 {
		l.running = false
		l.queue = nil
		return nil
	}
	batch := l.queue[:n:n]
	l.queue = l.queue[n:]
	return batch
}

func (s *repository[S]) run(l *lane[S]) {
	for {
		batch := l.take(s.now())
		if batch == nil {
			return
		}
		// The batch is everybody's: no single caller's cancellation ends it.
		ctx, cancel := context.WithTimeout(context.Background(), appendTimeout)
		s.settle(ctx, l, batch)
		cancel()
	}
}

// settle decides and writes one batch, answering every request in it.
func (s *repository[S]) settle(ctx context.Context, l *lane[S], batch []*queued[S]) {
	var err error
	for attempt := range maxAttempts {
		if attempt > 0 {
			pause(ctx, attempt)
		}
		var done bool
		if done, err = s.try(ctx, l, batch); done {
			return
		}
		if !errors.Is(err, errStale) {
			break
		}
	}
	if l.loaded { // whatever went wrong, the next batch starts from the log
		l.forget()
	} // else loading goes on where it stopped, so that no stream is too long for it
	switch refused := errors.Is(err, domain.ErrRefused); {
	case refused && len(batch) > 1:
		// Together they may be too much; whoever is too much alone is told so.
		for i := range batch {
			s.settle(ctx, l, batch[i:i+1])
		}
		return
	case refused:
		err = &domain.Error{
			Kind: domain.KindTooLarge, Code: domain.CodePayloadTooLarge, Cause: err,
			Message: "this is too much for one entry of the log", Hint: "shorten the texts, or split them up",
		}
	default:
		err = domain.Unavailable(fmt.Errorf("%s: %w", l.stream, err))
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
func (s *repository[S]) try(ctx context.Context, l *lane[S], batch []*queued[S]) (done bool, err error) {
	confirmed := !l.loaded && !batch[0].fresh
	if err := s.load(ctx, l, batch[0].fresh); err != nil {
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
			l.fold(s.evolve, tail)
			tail = nil
		}
		if decided, errs[i] = r.decide(l.state); errs[i] == nil && len(decided) > 0 {
			tail = decided
			writers++
			events = s.envelop(events, r.cause, decided)
		}
	}
	switch {
	case len(events) > 0:
		written, err := s.log.Append(ctx, l.stream, l.revision, events)
		if err != nil {
			if !errors.Is(err, domain.ErrWrongRevision) {
				return false, err
			}
			l.contended = s.now().Add(contendedFor)
			if writers > 1 || tail == nil {
				l.forget() // events were folded in that the log does not have
				return false, errStale
			}
			if _, err := s.catchUp(ctx, l); err != nil {
				return false, err
			}
			return false, errStale
		}
		l.fold(s.evolve, tail)
		l.revision, l.position = revisionOf(written), written.Position
	case !confirmed:
		news, err := s.catchUp(ctx, l)
		if err != nil {
			return false, err
		}
		if news {
			return false, errStale
		}
	}
	last := domain.AppendResult{Revision: uint64(max(l.revision, 0)), Position: l.position}
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

// load makes the lane's state that of the log, unless it is there already. A
// fresh stream is believed to be empty; the append will tell.
func (s *repository[S]) load(ctx context.Context, l *lane[S], fresh bool) error {
	if l.loaded {
		return nil
	}
	if !l.begun {
		if err := s.begin(ctx, l, fresh); err != nil {
			return err
		}
	}
	if !fresh || l.revision != domain.NoStream {
		if _, err := s.catchUp(ctx, l); err != nil {
			return err
		}
	}
	l.loaded = true
	return nil
}

// begin makes the lane's state that of the stream's beginning, or of its newest
// close.
func (s *repository[S]) begin(ctx context.Context, l *lane[S], fresh bool) error {
	var zero S
	l.state, l.revision, l.position = zero, domain.NoStream, domain.Position{}
	if s.closedBy != "" && !fresh {
		at, closed, err := s.log.Newest(ctx, l.stream, s.closedBy, longestBook)
		if err != nil {
			return fmt.Errorf("find the newest close: %w", err)
		}
		if closed {
			l.revision = domain.ExpectedRevision(at) - 1 //nolint:gosec // a stream never has 2^63 events
		}
	}
	l.begun = true
	return nil
}

// forget has the next batch load the stream anew.
func (l *lane[S]) forget() { l.loaded, l.begun = false, false }

// catchUp folds in what the log has beyond the lane's state. After an error
// the state is a true one, only perhaps not the newest.
func (s *repository[S]) catchUp(ctx context.Context, l *lane[S]) (news bool, err error) {
	err = s.log.Load(ctx, l.stream, uint64(l.revision+1), func(r domain.Recorded) error { //nolint:gosec // never below zero
		if r.Event == nil {
			return fmt.Errorf("event %d has the unknown type %q: this binary is older than the log", r.Revision, r.Type)
		}
		l.state = s.evolve(l.state, r.Event)
		l.revision, l.position = domain.ExpectedRevision(r.Revision), r.Position //nolint:gosec // a stream never has 2^63 events
		news = true
		return nil
	})
	if err != nil {
		return news, fmt.Errorf("load: %w", err)
	}
	return news, nil
}

func (l *lane[S]) fold(evolve func(S, domain.Event) S, events []domain.Event) {
	for _, e := range events {
		l.state = evolve(l.state, e)
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
