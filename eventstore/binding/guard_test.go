package binding_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"humanqa/domain"
	"humanqa/eventstore/binding"
	"humanqa/internal/testing/logtest"
)

// frozen is a log that answers only while it is not frozen.
type frozen struct {
	boundLog

	thawed chan struct{} // nil: it is not frozen
	asked  int
}

func (f *frozen) wait(ctx context.Context) error {
	if f.asked++; f.thawed == nil {
		return nil
	}
	select {
	case <-f.thawed:
		return nil
	case <-ctx.Done():
		return domain.Unavailable(ctx.Err())
	}
}

func (f *frozen) Head(ctx context.Context) (domain.Position, error) {
	return domain.Position{}, f.wait(ctx)
}

func (f *frozen) Load(ctx context.Context, _ string, _ uint64, _ func(domain.Recorded) error) error {
	return f.wait(ctx)
}

// A call that waits learns nothing once the log is known to be silent.
func TestWhileTheLogIsSilentCallsAreRefusedAndOneAtATimeLooks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		log := &frozen{boundLog: boundLog{logtest.New()}, thawed: make(chan struct{})}
		b := binding.New(nil, log, time.Now)
		load := func() error { return b.Guard().Load(t.Context(), "s", 0, nil) }
		ended := make(chan error, 1)
		go func() { ended <- load() }()
		synctest.Wait()
		b.Silent("it does not answer")
		if err := <-ended; !domain.IsKind(err, domain.KindUnavailable) || b.Silence() != "it does not answer" {
			t.Errorf("a call that waited: %v, %q", err, b.Silence())
		}

		go func() { ended <- load() }() // it looks
		synctest.Wait()
		for range 3 {
			refusal := (*domain.Error)(nil)
			if err := load(); !errors.As(err, &refusal) || refusal.Message != "the event log is not available: it does not answer" {
				t.Errorf("a call beside the one that looks: %v", err)
			}
		}
		if log.asked != 2 {
			t.Errorf("the log was asked %d times, want twice", log.asked)
		}
		if err := <-ended; !domain.IsKind(err, domain.KindUnavailable) {
			t.Errorf("the look ended with %v", err)
		}

		b.Answers()
		go func() { ended <- load() }()
		synctest.Wait()
		b.Answers() // as each probe says: it cuts nothing
		synctest.Wait()
		close(log.thawed)
		if err := <-ended; err != nil {
			t.Errorf("a call that waited for its answer: %v", err)
		}

		b.Silent("it does not answer")
		log.thawed = nil
		if err := load(); err != nil || b.Silence() != "" {
			t.Errorf("the log is back: %v, %q", err, b.Silence())
		}
	})
}

func TestALogThatDoesNotTellItsEndInTimeIsSilent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		b := binding.New(nil, &frozen{boundLog: boundLog{logtest.New()}, thawed: make(chan struct{})}, time.Now)
		watched := make(chan error, 1)
		go func() { watched <- b.Watch(ctx, nil) }()
		for b.Silence() == "" {
			<-time.After(time.Second)
		}
		stop()
		if err := <-watched; err != nil || b.Silence() != "it does not answer" {
			t.Errorf("%v, %q", err, b.Silence())
		}
	})
}
