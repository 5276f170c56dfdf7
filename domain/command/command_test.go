package command_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"humanqa/domain"
	"humanqa/domain/job"
	"humanqa/domain/policy"
)

func TestTwentyParallelSubmitsWithCreditsForOneMakeOneJob(t *testing.T) {
	t.Parallel()
	b := setup(t, 5)
	good := together(20, func(int) error {
		_, err := b.submit(t.Context(), b.cause())
		return err
	}, func(err error) { wantKind(t, err, domain.KindPayment) })
	if good != 1 {
		t.Errorf("%d submissions succeeded, want 1", good)
	}
}

func TestAHotLedgerPaysForOneAppendABatch(t *testing.T) {
	t.Parallel()
	const jobs = 400
	b := setup(t, 5*jobs)
	good := together(jobs, func(int) error {
		_, err := b.submit(t.Context(), b.cause())
		return err
	}, func(err error) { t.Error(err) })
	if got := b.ledger().Balance(); good != jobs || got != 0 {
		t.Errorf("%d jobs and %d credits left, want %d and 0", good, got, jobs)
	}
	if n := b.log.appends[domain.CreditsStream(b.account)]; n >= jobs {
		t.Errorf("%d appends for %d charges: nothing was batched", n, jobs)
	}
}

func TestTwoProcessesOnOneLedgerNeverOverdrawIt(t *testing.T) {
	t.Parallel()
	b := setup(t, 5*50)
	other := bundle{Service: newService(b.log), log: b.log, account: b.account}
	both := []bundle{b, other}
	good := together(100, func(i int) error {
		_, err := both[i%2].submit(t.Context(), b.cause())
		return err
	}, func(err error) {
		if !domain.IsKind(err, domain.KindPayment) && !domain.IsKind(err, domain.KindUnavailable) {
			t.Error(err)
		}
	})
	if got := b.ledger().Used(); got != domain.Credits(5*good) {
		t.Errorf("%d credits used for %d jobs", got, good)
	}
}

func TestARefusalRestsOnTheLogNotOnTheCache(t *testing.T) {
	t.Parallel()
	b := setup(t, 0)
	_, err := b.submit(t.Context(), b.cause()) // now the empty ledger is cached
	wantKind(t, err, domain.KindPayment)
	elsewhere := newService(b.log)
	if _, _, err := elsewhere.GrantCredits(t.Context(), operator(), b.account, 5, nil, ""); err != nil {
		t.Fatal(err)
	}
	if _, err := b.submit(t.Context(), b.cause()); err != nil {
		t.Errorf("submit after a grant by another process: %v", err)
	}
}

func TestTheSameCommandSubmitsOneJob(t *testing.T) {
	t.Parallel()
	b := setup(t, 100)
	c := b.cause()
	first, err := b.submit(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	again, err := bundle{Service: newService(b.log), log: b.log, account: b.account}.submit(t.Context(), c)
	if err != nil || again.JobID != first.JobID {
		t.Errorf("repeat: %+v, %v; want job %s", again, err, first.JobID)
	}
	if used := b.ledger().Used(); used != 5 {
		t.Errorf("%d credits used, want 5", used)
	}
}

// Each append of a submission fails once persisted and once not. Whatever
// happened, the same command sent again ends in one job and one charge.
func TestASubmissionThatFailsAnywhereCanBeRepeated(t *testing.T) {
	t.Parallel()
	for _, category := range []string{domain.CreditsStreams, domain.JobStreams} {
		for _, persist := range []bool{false, true} {
			t.Run(category+map[bool]string{true: "persisted", false: "lost"}[persist], func(t *testing.T) {
				t.Parallel()
				b := setup(t, 100)
				b.log.fault = func(stream string, _ []domain.NewEvent) *fault {
					if strings.HasPrefix(stream, category) {
						return &fault{persist: persist, err: errCut}
					}
					return nil
				}
				c := b.cause()
				_, err := b.submit(t.Context(), c)
				wantKind(t, err, domain.KindUnavailable)
				b.log.fault = nil
				j, err := b.submit(t.Context(), c)
				if err != nil {
					t.Fatal(err)
				}
				wantTypes(t, b.log, domain.JobStream(j.JobID), "job.created")
				if used := b.ledger().Used(); used != 5 {
					t.Errorf("%d credits used, want 5", used)
				}
			})
		}
	}
}

// settle fires every timer that the log's events leave set, as the policy
// would once they are due.
func (b bundle) settle(t *testing.T) {
	t.Helper()
	policies := policy.All(b)
	type id struct{ kind, key string }
	set := map[id]policy.Timer{}
	for _, e := range b.log.all() {
		for _, p := range policies {
			for _, c := range p.React(e) {
				if c.Clear {
					delete(set, id{c.Kind, c.Key})
				} else {
					set[id{c.Kind, c.Key}] = c.Timer
				}
			}
		}
	}
	for k, timer := range set {
		for _, p := range policies {
			if p.Kind() == k.kind {
				if err := p.Fire(context.Background(), timer); err != nil {
					t.Errorf("fire %v: %v", k, err)
				}
			}
		}
	}
}

func TestADebitWhoseJobNeverCameIsRefundedOnce(t *testing.T) {
	t.Parallel()
	b := setup(t, 100)
	b.log.fault = func(stream string, _ []domain.NewEvent) *fault {
		if strings.HasPrefix(stream, domain.JobStreams) {
			return &fault{err: errCut}
		}
		return nil
	}
	c := b.cause()
	_, err := b.submit(t.Context(), c)
	wantKind(t, err, domain.KindUnavailable)
	b.log.fault = nil
	jobID := domain.DeriveID(c.CommandID, "job").String()

	b.settle(t)
	b.settle(t)
	wantTypes(t, b.log, domain.JobStream(jobID), "job.voided")
	wantTypes(t, b.log, domain.CreditsStream(b.account), "credits.granted", "credits.debited", "credits.refunded")

	t.Run("and the late submission loses", func(t *testing.T) {
		_, err := b.submit(t.Context(), c)
		wantKind(t, err, domain.KindConflict)
		wantTypes(t, b.log, domain.JobStream(jobID), "job.voided")
	})
}

func TestASettlementLeavesAJobThatCameAlone(t *testing.T) {
	t.Parallel()
	b := setup(t, 100)
	id := b.submitted(t)
	cause := b.cause()
	if _, err := b.VoidJob(t.Context(), cause, id); err != nil {
		t.Fatal(err)
	}
	wantTypes(t, b.log, domain.JobStream(id), "job.created")
	if used := b.ledger().Used(); used != 5 {
		t.Errorf("%d credits used, want 5", used)
	}
}

func TestACancellationThatCrashesBeforeItsRefundIsRefundedByThePolicy(t *testing.T) {
	t.Parallel()
	b := setup(t, 100)
	id := b.submitted(t)
	b.log.fault = func(stream string, _ []domain.NewEvent) *fault {
		if strings.HasPrefix(stream, domain.CreditsStreams) {
			return &fault{err: errors.New("no log")}
		}
		return nil
	}
	_, err := b.CancelJob(t.Context(), b.cause(), id, job.CancelClient)
	wantKind(t, err, domain.KindUnavailable)
	b.log.fault = nil
	b.settle(t)
	if used := b.ledger().Used(); used != 0 {
		t.Errorf("%d credits used, want 0", used)
	}
}

func TestCancel(t *testing.T) {
	t.Parallel()
	b := setup(t, 100)
	id := b.submitted(t)
	first, err := b.CancelJob(t.Context(), b.cause(), id, job.CancelClient)
	if err != nil || first.CreditsRefunded != 5 || first.CreditsRemaining != 100 {
		t.Fatalf("cancel: %+v, %v", first, err)
	}
	t.Run("again answers the same and refunds nothing more", func(t *testing.T) {
		again, err := b.CancelJob(t.Context(), b.cause(), id, job.CancelClient)
		if err != nil || again.CreditsRefunded != 5 || again.CreditsRemaining != 100 {
			t.Errorf("again: %+v, %v", again, err)
		}
	})
	t.Run("another account's job is not found", func(t *testing.T) {
		other := b.cause()
		other.AccountID = "somebody-else"
		_, err := b.CancelJob(t.Context(), other, id, job.CancelClient)
		wantKind(t, err, domain.KindNotFound)
	})
}

func TestACallerThatGoesAwayDoesNotTakeTheBatchWithIt(t *testing.T) {
	t.Parallel()
	b := setup(t, 100)
	var gate atomic.Pointer[chan struct{}]
	hold := make(chan struct{})
	gate.Store(&hold)
	b.log.before = func(stream string) {
		if strings.HasPrefix(stream, domain.CreditsStreams) {
			<-*gate.Load()
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	gone := make(chan error)
	go func() {
		_, err := b.submit(ctx, b.cause())
		gone <- err
	}()
	stays := make(chan error)
	go func() {
		_, err := b.submit(t.Context(), b.cause())
		stays <- err
	}()
	cancel()
	wantKind(t, <-gone, domain.KindUnavailable)
	close(hold)
	if err := <-stays; err != nil {
		t.Errorf("the other caller: %v", err)
	}
	b.Drain()
	b.settle(t) // what the gone caller was charged for has no job
	if used := b.ledger().Used(); used != 5 {
		t.Errorf("%d credits used, want 5", used)
	}
}

func TestWhatTheLogRefusesFailsAlone(t *testing.T) {
	t.Parallel()
	b := setup(t, 1000)
	hold := make(chan struct{})
	b.log.before = func(string) { <-hold }
	tooMuch := b.cause()
	b.log.fault = func(_ string, events []domain.NewEvent) *fault {
		for _, e := range events {
			if e.Meta.CommandID == tooMuch.CommandID {
				return &fault{err: fmt.Errorf("17 MiB: %w", domain.ErrRefused)}
			}
		}
		return nil
	}
	var refused []error
	submits := make(chan error, 10)
	for i := range cap(submits) {
		c := b.cause()
		if i == 4 {
			c = tooMuch
		}
		go func() {
			_, err := b.submit(t.Context(), c)
			submits <- err
		}()
	}
	close(hold)
	for range cap(submits) {
		if err := <-submits; err != nil {
			refused = append(refused, err)
		}
	}
	if len(refused) != 1 {
		t.Fatalf("%d were refused, want 1: %v", len(refused), refused)
	}
	wantKind(t, refused[0], domain.KindTooLarge)
}

func TestAStreamWithAnUnknownEventIsNotDecidedOn(t *testing.T) {
	t.Parallel()
	b := setup(t, 100)
	id := b.submitted(t)
	stream := domain.JobStream(id)
	b.log.streams[stream] = append(b.log.streams[stream], domain.Recorded{
		Stream: stream, Revision: 1, Type: "job.from_the_future", Position: domain.Position{Commit: b.log.next},
	})
	b.log.next++
	_, err := newService(b.log).CancelJob(t.Context(), b.cause(), id, job.CancelClient)
	wantKind(t, err, domain.KindUnavailable)
}
