package command_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"humanqa/domain"
	"humanqa/domain/command"
	"humanqa/domain/job"
	"humanqa/domain/policy"
	"humanqa/internal/testing/logtest"
	"humanqa/internal/testing/must"
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
	if n := b.log.Appends(domain.CreditsStream(b.account)); n >= jobs {
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
	}, func(err error) { wantKind(t, err, domain.KindPayment) })
	if got := b.ledger().Used(); good != 50 || got != 5*50 {
		t.Errorf("%d credits used for %d jobs, want 250 for 50", got, good)
	}
}

func TestARefusalRestsOnTheLogNotOnTheCache(t *testing.T) {
	t.Parallel()
	b := setup(t, 0)
	_, err := b.submit(t.Context(), b.cause()) // now the empty ledger is cached
	wantKind(t, err, domain.KindPayment)
	elsewhere := newService(b.log)
	_, _, err = elsewhere.GrantCredits(t.Context(), operator(), b.account, 5, nil, "")
	must.NoError(t, err)
	if _, err := b.submit(t.Context(), b.cause()); err != nil {
		t.Errorf("submit after a grant by another process: %v", err)
	}
}

func TestTheSameCommandSubmitsOneJob(t *testing.T) {
	t.Parallel()
	b := setup(t, 100)
	c := b.cause()
	first, err := b.submit(t.Context(), c)
	must.NoError(t, err)
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
				b.log.Fail(logtest.To(category), persist, errCut)
				c := b.cause()
				_, err := b.submit(t.Context(), c)
				wantKind(t, err, domain.KindUnavailable)
				b.log.Heal()
				j, err := b.submit(t.Context(), c)
				must.NoError(t, err)
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
	for _, e := range b.log.All() {
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
	due := slices.SortedFunc(maps.Values(set), func(a, b policy.Timer) int {
		return cmp.Or(a.DueAt.Compare(b.DueAt), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Key, b.Key))
	})
	for _, timer := range due {
		for _, p := range policies {
			if p.Kind == timer.Kind {
				if err := p.Fire(context.Background(), timer); err != nil {
					t.Errorf("fire %+v: %v", timer, err)
				}
			}
		}
	}
}

func TestADebitWhoseJobNeverCameIsRefundedOnce(t *testing.T) {
	t.Parallel()
	b := setup(t, 100)
	b.log.Fail(logtest.To(domain.JobStreams), false, errCut)
	c := b.cause()
	_, err := b.submit(t.Context(), c)
	wantKind(t, err, domain.KindUnavailable)
	b.log.Heal()
	jobID := domain.DeriveID(c.CommandID, "job").String()

	b.settle(t)
	b.settle(t)
	wantTypes(t, b.log, domain.JobStream(jobID), "job.voided")
	wantTypes(t, b.log, domain.CreditsStream(b.account), "credits.granted", "credits.debited", "credits.refunded")

	t.Run("and the late submission loses: it begins anew", func(t *testing.T) {
		out, err := b.submit(t.Context(), c)
		if err != nil || out.JobID == jobID {
			t.Errorf("got %+v, %v", out, err)
		}
		wantTypes(t, b.log, domain.JobStream(jobID), "job.voided")
		b.wantUsed(t, 5)
	})
}

func TestASettlementLeavesAJobThatCameAlone(t *testing.T) {
	t.Parallel()
	b := setup(t, 100)
	id := b.submitted(t)
	cause := b.cause()
	_, err := b.VoidJob(t.Context(), cause, id)
	must.NoError(t, err)
	wantTypes(t, b.log, domain.JobStream(id), "job.created")
	if used := b.ledger().Used(); used != 5 {
		t.Errorf("%d credits used, want 5", used)
	}
}

func TestACancellationThatCrashesBeforeItsRefundIsRefundedByThePolicy(t *testing.T) {
	t.Parallel()
	b := setup(t, 100)
	id := b.submitted(t)
	b.log.Fail(logtest.To(domain.CreditsStreams), false, errors.New("no log"))
	_, err := b.CancelJob(t.Context(), b.cause(), id, job.CancelClient)
	wantKind(t, err, domain.KindUnavailable)
	b.log.Heal()
	b.settle(t)
	if used := b.ledger().Used(); used != 0 {
		t.Errorf("%d credits used, want 0", used)
	}
}

func TestARefundTellsWhatCameBackAndWhatHadExpired(t *testing.T) {
	t.Parallel()
	b := setupHosted(t, 0)
	soon := b.clock.now().Add(10 * time.Minute)
	for _, lot := range []struct {
		amount  domain.Credits
		expires *time.Time
	}{{3, &soon}, {10, nil}} {
		_, _, err := b.GrantCredits(t.Context(), operator(), b.account, lot.amount, lot.expires, "")
		must.NoError(t, err)
	}
	id, other := b.submitted(t), b.submitted(t) // 3 and 2, then 5
	b.clock.pass(11 * time.Minute)
	for range 2 { // a repeat tells the same
		got, err := b.CancelJob(t.Context(), b.cause(), id, job.CancelClient)
		got.Position = domain.Position{}
		want := command.EndedJob{JobID: id, Status: job.StatusCancelled, CreditsRefunded: 2, CreditsExpired: 3, CreditsRemaining: 5}
		if err != nil || got != want {
			t.Errorf("got %+v, %v", got, err)
		}
	}
	if e := eventOf[*job.Cancelled](t, b.bundle, domain.JobStream(id)); e.Refund != 5 || e.RefundExpired != 3 {
		t.Errorf("the job tells %+v", e)
	}
	got, err := b.FailJob(t.Context(), b.cause(), other, job.FailOperator)
	if e := eventOf[*job.Failed](t, b.bundle, domain.JobStream(other)); err != nil || got.CreditsRefunded != 5 || got.CreditsExpired != 0 || e.RefundExpired != 0 {
		t.Errorf("got %+v, %v", got, err)
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
	b.log.Before(func(stream string) {
		if strings.HasPrefix(stream, domain.CreditsStreams) {
			<-*gate.Load()
		}
	})
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
	b.log.Before(func(string) { <-hold })
	tooMuch := b.cause()
	b.log.Fail(func(_ string, events []domain.NewEvent) bool {
		return slices.ContainsFunc(events, func(e domain.NewEvent) bool { return e.Meta.CommandID == tooMuch.CommandID })
	}, false, fmt.Errorf("17 MiB: %w", domain.ErrRefused))
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

// An event that no read model could show is refused with the codec's words; commands of
// the same batch are not.
func TestATextThatTheLogDoesNotTakeFailsAlone(t *testing.T) {
	t.Parallel()
	b := setup(t, 0)
	hold := make(chan struct{})
	b.log.Before(func(string) { <-hold })
	grants := make(chan error, 10)
	for i := range cap(grants) {
		reason := "Welcome"
		if i == 4 {
			reason = "Wel\x00come"
		}
		go func() {
			_, _, err := b.GrantCredits(t.Context(), operator(), b.account, 10, nil, reason)
			grants <- err
		}()
	}
	close(hold)
	var refused []error
	for range cap(grants) {
		if err := <-grants; err != nil {
			refused = append(refused, err)
		}
	}
	if len(refused) != 1 {
		t.Fatalf("%d were refused, want 1: %v", len(refused), refused)
	}
	wantKind(t, refused[0], domain.KindInvalid)
	if text := refused[0].Error(); !strings.Contains(text, "reason: must not contain NUL") {
		t.Errorf("refused by %q", text)
	}
	if st := b.ledger(); st.Granted() != 90 {
		t.Errorf("%d credits granted, want 90", st.Granted())
	}
}

func TestAStreamWithAnUnknownEventIsNotDecidedOn(t *testing.T) {
	t.Parallel()
	b := setup(t, 100)
	id := b.submitted(t)
	b.log.Record(domain.JobStream(id), logtest.Unknown("job.from_the_future"))
	_, err := newService(b.log).CancelJob(t.Context(), b.cause(), id, job.CancelClient)
	wantKind(t, err, domain.KindUnavailable)
}
