package binding

import (
	"context"
	"errors"
	"sync"
	"time"

	"humanqa/domain"
)

const (
	// probeTime is how long the log may take to tell its end before it counts as silent. A new
	// leader of a cluster, or a restarted node, is nearly always there earlier.
	probeTime = 10 * time.Second
	// lookTime bounds a call that looks whether a silent log answers again.
	lookTime = 500 * time.Millisecond
)

// silence is the time in which the log does not answer. Calls that wait then end at once, and
// later ones are refused at once: a caller learns nothing by waiting. But one at a time goes
// through, for a moment, to look.
type silence struct {
	mu      sync.Mutex
	reason  string             // empty: the log answers
	calls   context.Context    // nil, or the time in which it answers: calls end with it
	end     context.CancelFunc // of calls
	looking bool
}

// Silent says that the log does not answer, for a reason that clients may be told.
func (b *Binding) Silent(reason string) {
	s := &b.silence
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.reason = reason; reason != "" && s.end != nil {
		s.end()
		s.calls, s.end = nil, nil
	}
}

// Answers says that the log answers.
func (b *Binding) Answers() { b.Silent("") }

// Silence is the reason why the log does not answer; empty: it does, as far as is known.
func (b *Binding) Silence() string {
	b.silence.mu.Lock()
	defer b.silence.mu.Unlock()
	return b.silence.reason
}

// probe asks for the log's end, and notes whether it came.
func (b *Binding) probe(ctx context.Context) bool {
	short, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	switch _, err := b.log.Head(short); {
	case err == nil:
		b.Answers()
	case ctx.Err() == nil && (short.Err() != nil || domain.IsKind(err, domain.KindUnavailable)):
		b.Silent("it does not answer")
	}
	return b.Silence() == ""
}

// Guard gives the log as long as it is the database's, and answers.
func (b *Binding) Guard() BoundLog { return guardedLog{b} }

// guarded runs a call to the log. Its context ends when the log falls silent.
func guarded[T any](ctx context.Context, b *Binding, call func(context.Context) (T, error)) (result T, err error) {
	if err := b.Refuse(); err != nil {
		return result, err
	}
	inner, look, err := b.silence.enter(ctx)
	if err != nil {
		return result, err
	}
	result, err = call(inner)
	cut := inner.Err() != nil && ctx.Err() == nil
	look(!cut && !domain.IsKind(err, domain.KindUnavailable) && !errors.Is(err, domain.ErrUnknownOutcome))
	if err != nil && cut && !errors.Is(err, domain.ErrUnknownOutcome) {
		err = domain.Unavailable(err)
	}
	return result, err
}

// enter lets a call in. leave takes whether the log answered.
func (s *silence) enter(ctx context.Context) (inner context.Context, leave func(answered bool), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.reason == "":
		if s.calls == nil {
			s.calls, s.end = context.WithCancel(context.Background())
		}
		inner, cancel := context.WithCancel(ctx)
		stop := context.AfterFunc(s.calls, cancel)
		return inner, func(bool) { stop(); cancel() }, nil
	case s.looking:
		return nil, nil, &domain.Error{
			Kind: domain.KindUnavailable, Code: domain.CodeUnavailable, Message: "the event log is not available: " + s.reason,
			Hint: "send the same request again, with the same Idempotency-Key, once it is",
		}
	}
	s.looking = true
	inner, cancel := context.WithTimeout(ctx, lookTime)
	return inner, func(answered bool) {
		cancel()
		s.mu.Lock()
		defer s.mu.Unlock()
		s.looking = false
		if answered {
			s.reason = ""
		}
	}, nil
}

type guardedLog struct{ b *Binding }

// Append implements domain.Log.
func (g guardedLog) Append(
	ctx context.Context, stream string, expected domain.ExpectedRevision, events []domain.NewEvent,
) (domain.AppendResult, error) {
	return guarded(ctx, g.b, func(ctx context.Context) (domain.AppendResult, error) {
		return g.b.log.Append(ctx, stream, expected, events)
	})
}

// Load implements domain.Log.
func (g guardedLog) Load(ctx context.Context, stream string, from uint64, each func(domain.Recorded) error) error {
	_, err := guarded(ctx, g.b, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, g.b.log.Load(ctx, stream, from, each)
	})
	return err
}

// LoadTail implements domain.Log.
func (g guardedLog) LoadTail(ctx context.Context, stream, eventType string, most int) (events []domain.Recorded, ok bool, err error) {
	ok, err = guarded(ctx, g.b, func(ctx context.Context) (ok bool, err error) {
		events, ok, err = g.b.log.LoadTail(ctx, stream, eventType, most)
		return ok, err
	})
	return events, ok, err
}

// Head is the position of the log's last event.
func (g guardedLog) Head(ctx context.Context) (domain.Position, error) {
	return guarded(ctx, g.b, g.b.log.Head)
}
