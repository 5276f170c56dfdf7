package command_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"humanqa/domain"
	"humanqa/domain/command"
	"humanqa/domain/credits"
	"humanqa/domain/job"
	"humanqa/internal/testing/commandtest"
	"humanqa/internal/testing/logtest"
	"humanqa/internal/testing/must"
)

// closed closes the account's book, and says how many debits it kept.
func (s stage) closed(t *testing.T) (kept int) {
	t.Helper()
	_, err := s.CloseBook(t.Context(), s.cause())
	must.NoError(t, err)
	var st credits.State
	for _, r := range s.log.Stream(domain.CreditsStream(s.account)) {
		st = credits.Evolve(st, r.Event)
	}
	return st.Book().Debits
}

// A repeat comes when the debit of its job is left behind: whatever was done
// then is not done again, by whichever process, and says the same.
func TestARepeatBehindACloseDoesNothing(t *testing.T) {
	t.Parallel()
	s := setStage(t, 100)
	completed, cancelled, pending := s.cause(), s.cause(), s.cause()
	pending.AskedAt = time.Now()
	submit := func(c command.Cause) command.SubmittedJob {
		t.Helper()
		j, err := s.submit(t.Context(), c)
		must.NoError(t, err)
		return j
	}
	s.completed(t, submit(completed).JobID)
	id := submit(cancelled).JobID
	cancel := s.cause()
	first, err := s.CancelJob(t.Context(), cancel, id, job.CancelClient)
	must.NoError(t, err)
	submit(pending)
	if kept := s.closed(t); kept != 1 {
		t.Errorf("the close keeps %d debits, not that of the pending job only", kept)
	}
	before := len(s.log.All())
	for range 2 { // in this process, then in one that begins at the close
		if j := submit(completed); j.CreditsRemaining != 90 {
			t.Errorf("the repeat leaves %d credits", j.CreditsRemaining)
		}
		if j := submit(pending); j.CreditsRemaining != 90 {
			t.Errorf("the repeat leaves %d credits", j.CreditsRemaining)
		}
		if _, err := s.submit(t.Context(), cancelled); !domain.IsKind(err, domain.KindConflict) {
			t.Errorf("the repeat of what was given back: %v", err)
		}
		again, err := s.CancelJob(t.Context(), cancel, id, job.CancelClient)
		first.CreditsRemaining, again.Position = 90, first.Position
		if err != nil || again != first {
			t.Errorf("cancelled first %+v, then %+v, %v", first, again, err)
		}
		s.Service = s.service()
	}
	if news := s.log.All()[before:]; len(news) > 0 {
		t.Errorf("the repeats write %s into %s", news[0].Type, news[0].Stream)
	}
}

// A session's refunds are told after a close as before it.
func TestASessionThatWasCancelledSaysTheSameBehindAClose(t *testing.T) {
	t.Parallel()
	s := setStage(t, 100)
	c, cancel := s.cause(), s.cause()
	opened, err := s.CreateSession(t.Context(), c, command.NewSession{
		Test:  command.HostedTest{Submission: job.Submission{URL: "https://shop.example", Type: job.GeneralQA, TypeEcho: "general_qa"}, Host: "shop.example"},
		Slots: []command.NewSlot{{RoleLabel: "a"}, {RoleLabel: "b"}},
	})
	must.NoError(t, err)
	first, err := s.CancelSession(t.Context(), cancel, opened.SessionID)
	must.NoError(t, err)
	if kept := s.closed(t); kept != 0 {
		t.Errorf("the close keeps %d debits", kept)
	}
	again, err := s.CancelSession(t.Context(), cancel, opened.SessionID)
	if again.Position = first.Position; err != nil || again != first || first.CreditsRefunded != 10 {
		t.Errorf("cancelled first %+v, then %+v, %v", first, again, err)
	}
}

// counted counts the events that are loaded of ledgers.
type counted struct {
	*logtest.Memory
	loaded atomic.Int64
	breaks atomic.Int64 // after so many events a load breaks; 0: never
}

func (c *counted) Load(ctx context.Context, stream string, from uint64, each func(domain.Recorded) error) error {
	if !strings.HasPrefix(stream, domain.CreditsStreams) {
		return c.Memory.Load(ctx, stream, from, each)
	}
	left := c.breaks.Load()
	return c.Memory.Load(ctx, stream, from, func(r domain.Recorded) error {
		if left--; left == 0 {
			return errors.New("the time is up")
		}
		c.loaded.Add(1)
		return each(r)
	})
}

// LoadTail gives a ledger that breaks as one that is too long for it.
func (c *counted) LoadTail(ctx context.Context, stream, eventType string, most int) ([]domain.Recorded, bool, error) {
	if !strings.HasPrefix(stream, domain.CreditsStreams) {
		return c.Memory.LoadTail(ctx, stream, eventType, most)
	}
	if c.breaks.Load() > 0 {
		return nil, false, nil
	}
	events, ok, err := c.Memory.LoadTail(ctx, stream, eventType, most)
	c.loaded.Add(int64(len(events)))
	return events, ok, err
}

// The commands close a ledger by themselves, so that what the first command of
// another process reads does not grow with it.
func TestTheFirstCommandAfterARestartReadsOneBook(t *testing.T) {
	t.Parallel()
	s := setStage(t, 1_000_000)
	log := &counted{Memory: s.log}
	fresh := func() *command.Service {
		service := command.New(command.Deps{
			Log: log, Sealer: openSealer{}, AI: s.ai, Reads: s.ai, ClaimsPerChecker: 1, Now: time.Now, CloseEvery: 20,
		})
		t.Cleanup(service.Drain)
		return service
	}
	service := fresh()
	for n := 0; s.log.Count("credits.closed") < 3; n++ { // closes come behind the commands
		c := s.cause()
		c.AskedAt = time.Now()
		j, err := s.submitTo(t.Context(), service, c)
		if err == nil && n%2 == 0 {
			_, err = service.CancelJob(t.Context(), s.cause(), j.JobID, job.CancelClient)
		}
		must.NoError(t, err)
	}
	service.Drain()
	log.loaded.Store(0)
	types := s.log.Types(domain.CreditsStream(s.account))
	book := 0
	for types[len(types)-1-book] != "credits.closed" {
		book++
	}
	_, err := s.submitTo(t.Context(), fresh(), s.cause())
	must.NoError(t, err)
	if n := log.loaded.Load(); n != int64(book+1) || book > len(types)/2 {
		t.Errorf("%d of %d events are loaded, the book has %d", n, len(types), book)
	}
}

// A ledger that is too long to be folded within one command's time is not lost:
// the next command goes on where that one stopped.
func TestALoadThatBreaksGoesOnWithTheNextCommand(t *testing.T) {
	t.Parallel()
	b := setup(t, 1000)
	for range 40 {
		b.submitted(t)
	}
	log := &counted{Memory: b.log}
	log.breaks.Store(12)
	service := command.New(command.Deps{
		Log: log, Sealer: openSealer{}, AI: commandtest.AI{}, Reads: commandtest.NoReads{}, Now: time.Now, ClaimsPerChecker: 1,
	})
	t.Cleanup(service.Drain)
	for try := range 10 {
		j, err := b.submitTo(t.Context(), service, b.cause())
		if err == nil {
			if try < 3 || j.CreditsRemaining != 1000-41*5 {
				t.Errorf("%d credits are left at try %d", j.CreditsRemaining, try)
			}
			return
		}
		if !domain.IsKind(err, domain.KindUnavailable) {
			t.Fatal(err)
		}
	}
	t.Error("the ledger is never loaded")
}

// A close that fails is told once, and not tried again by each command.
func TestACloseThatFailsIsToldAndLeftAloneForAMinute(t *testing.T) {
	t.Parallel()
	s := setStage(t, 1_000_000)
	began := time.Now()
	var passed atomic.Int64
	now := func() time.Time { return began.Add(time.Duration(passed.Load())) }
	told := make(chan string, 10)
	reads := &endless{Reads: s.ai}
	service := command.New(command.Deps{
		Log: s.log, Sealer: openSealer{}, AI: s.ai, Reads: reads, ClaimsPerChecker: 1,
		Now: now, CloseEvery: 5,
		CloseFailed: func(accountID string, err error) { told <- accountID + ": " + err.Error() },
	})
	t.Cleanup(service.Drain)
	submit := func(n int) {
		t.Helper()
		for range n {
			c := s.cause()
			c.AskedAt = now()
			_, err := s.submitTo(t.Context(), service, c)
			must.NoError(t, err)
		}
	}
	submit(5)
	if was := <-told; !strings.HasPrefix(was, s.account+": ") || !strings.Contains(was, "nobody knows") {
		t.Errorf("told: %s", was)
	}
	submit(10)
	passed.Store(int64(time.Minute))
	submit(1)
	<-told
	if n := reads.asked.Load(); n != 2 {
		t.Errorf("%d closes were begun, want 2", n)
	}
}

// endless never says which jobs have ended.
type endless struct {
	command.Reads
	asked atomic.Int32
}

func (e *endless) Ended(context.Context, string, []string) ([]string, error) {
	e.asked.Add(1)
	return nil, errors.New("nobody knows")
}

// Two processes close at the same moment: there is one close, and the ledger is
// sound.
func TestTwoProcessesCloseABookOnce(t *testing.T) {
	t.Parallel()
	b := setup(t, 100)
	b.submitted(t)
	done := make(chan error)
	for range 2 {
		service := newService(b.log)
		go func() {
			_, err := service.CloseBook(context.WithoutCancel(t.Context()), b.cause())
			done <- err
		}()
	}
	must.NoError(t, errors.Join(<-done, <-done))
	types := b.log.Types(domain.CreditsStream(b.account))
	if want := []string{"credits.granted", "credits.debited", "credits.closed"}; !slices.Equal(types, want) {
		t.Error(fmt.Sprint(types))
	}
}
