package command_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"humanqa/domain"
	"humanqa/domain/command"
	"humanqa/domain/job"
	"humanqa/domain/session"
	"humanqa/internal/testing/logtest"
	"humanqa/internal/testing/must"
)

// cutOff lets a submission fail between its charge and its job, the n-th to be
// created, and has the policy give it up.
func (b bundle) cutOff(t *testing.T, n int, submit func() error) {
	t.Helper()
	created := 0
	b.log.Fail(func(_ string, events []domain.NewEvent) bool {
		if _, ok := events[0].Event.(*job.Created); ok {
			created++
			return created == n
		}
		return false
	}, false, errCut)
	wantKind(t, submit(), domain.KindUnavailable)
	b.log.Heal()
}

func (b bundle) giveUp(t *testing.T, jobID string) {
	t.Helper()
	_, err := b.VoidJob(t.Context(), b.cause(), jobID)
	must.NoError(t, err)
}

func TestASubmissionThatWasGivenUpBeginsAnewWithTheSameCommand(t *testing.T) {
	t.Parallel()
	for name, submit := range map[string]func(*command.Service, command.Cause) (string, error){
		"a job": func(s *command.Service, c command.Cause) (string, error) {
			out, err := s.SubmitJob(t.Context(), c, plain())
			return out.JobID, err
		},
		"a hosted test": func(s *command.Service, c command.Cause) (string, error) {
			out, err := s.TestHosted(t.Context(), c, aTest())
			return out.JobID, err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, 5) // for one job at a time
			c := b.cause()
			b.cutOff(t, 1, func() error { _, err := submit(b.Service, c); return err })
			first := domain.DeriveID(c.CommandID, "job").String()
			b.giveUp(t, first)
			second, err := submit(newService(b.log), c) // after a restart
			if err != nil || second == first {
				t.Fatalf("got %q, %v", second, err)
			}
			wantTypes(t, b.log, domain.JobStream(first), "job.voided")
			wantTypes(t, b.log, domain.JobStream(second), "job.created")
			for range 2 {
				again, err := submit(b.Service, c)
				if err != nil || again != second {
					t.Errorf("again: %q, %v", again, err)
				}
			}
			b.wantUsed(t, 5)
			b.wantIDsApart(t)
		})
	}
}

// The refund of what was given up may still be owed when the command comes.
func TestTheChargeThatIsOwedBackPaysForTheNewJob(t *testing.T) {
	t.Parallel()
	b := setup(t, 5)
	c := b.cause()
	b.cutOff(t, 1, func() error { _, err := b.SubmitJob(t.Context(), c, plain()); return err })
	b.log.Fail(logtest.To(domain.CreditsStreams), false, errCut)
	first := domain.DeriveID(c.CommandID, "job").String()
	_, err := b.VoidJob(t.Context(), b.cause(), first)
	wantKind(t, err, domain.KindUnavailable)
	b.log.Heal()
	out, err := b.SubmitJob(t.Context(), c, plain())
	if err != nil || out.CreditsRemaining != 0 {
		t.Fatalf("got %+v, %v", out, err)
	}
	if _, err := b.RefundJob(t.Context(), b.cause(), first, "job_ended"); err != nil { // as the policy does
		t.Fatal(err)
	}
	b.wantUsed(t, 5)
}

// The policy may also be faster than a submission that is still under way.
func TestASubmissionThatIsOvertakenByThePolicyGoesOn(t *testing.T) {
	t.Parallel()
	b := setup(t, 5)
	c := b.cause()
	first := domain.DeriveID(c.CommandID, "job").String()
	b.between(domain.JobStream(first), func() {
		if _, err := newService(b.log).VoidJob(t.Context(), b.cause(), first); err != nil {
			t.Error(err)
		}
	})
	out, err := b.SubmitJob(t.Context(), c, plain())
	if err != nil || out.JobID == first || out.CreditsRemaining != 0 {
		t.Fatalf("got %+v, %v", out, err)
	}
	b.wantUsed(t, 5)
	b.wantIDsApart(t)
}

func TestABatchIsCompletedWithNewJobsForThoseThatWereGivenUp(t *testing.T) {
	t.Parallel()
	b := setup(t, 15)
	c := b.cause()
	three := []command.SubmitJob{plain(), plain(), plain()}
	b.cutOff(t, 2, func() error { _, err := b.SubmitBulk(t.Context(), c, three); return err })
	var lost string
	for i := range three {
		id := domain.DeriveID(c.CommandID, "job-"+string(rune('0'+i))).String()
		if len(b.log.Types(domain.JobStream(id))) == 0 {
			lost = id
		}
	}
	b.giveUp(t, lost)
	out, err := newService(b.log).SubmitBulk(t.Context(), c, three)
	if err != nil || out.CreditsDeducted != 15 || out.CreditsRemaining != 0 {
		t.Fatalf("got %+v, %v", out, err)
	}
	for _, id := range out.JobIDs {
		if id == lost {
			t.Error("the job that was given up is answered")
		}
		wantTypes(t, b.log, domain.JobStream(id), "job.created")
	}
	again, err := b.SubmitBulk(t.Context(), c, three)
	if err != nil || strings.Join(again.JobIDs, " ") != strings.Join(out.JobIDs, " ") || again.BatchID != out.BatchID {
		t.Errorf("again: %+v, %v", again, err)
	}
	b.wantUsed(t, 15)
	b.wantIDsApart(t)
}

// A session is given up when a slot's job never came, whether the session had
// begun or not, and whichever write of the giving up was the last.
func TestASessionThatWasGivenUpBeginsAnewWithTheSameCommand(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		lost   logtest.AppendFilter // the write that is cut off
		giveUp func(*testing.T, bundle, command.Cause)
	}{
		"before it began": {logtest.To(domain.SessionStreams), func(t *testing.T, b bundle, c command.Cause) {
			b.giveUp(t, slotOf(c, 1)) // the others are still charged
		}},
		"before a job came": {slot(2), func(t *testing.T, b bundle, c command.Cause) {
			b.giveUp(t, slotOf(c, 2))
		}},
		"and expired": {slot(2), func(t *testing.T, b bundle, c command.Cause) {
			over := timerOf(time.Now().Add(session.LobbyTime + time.Minute))
			_, err := b.SettleSession(t.Context(), over, sessionOf(c))
			must.NoError(t, err)
		}},
		"and was cut off again after its cancellation": {slot(2), func(t *testing.T, b bundle, c command.Cause) {
			b.giveUp(t, slotOf(c, 2))
			b.log.Fail(logtest.Of("session.cancelled"), true, errCut)
			_, err := b.CreateSession(t.Context(), c, aSession(3))
			wantKind(t, err, domain.KindUnavailable)
			b.log.Heal()
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, 15) // for one session at a time
			cause := b.cause()
			b.log.Fail(c.lost, false, errCut)
			_, err := b.CreateSession(t.Context(), cause, aSession(3))
			wantKind(t, err, domain.KindUnavailable)
			b.log.Heal()
			c.giveUp(t, b, cause)
			out, err := newService(b.log).CreateSession(t.Context(), cause, aSession(3)) // after a restart
			if err != nil || out.SessionID == sessionOf(cause) || out.CreditsRemaining != 0 {
				t.Fatalf("got %+v, %v", out, err)
			}
			b.wantSession(t, out, "", "", "", "")
			for range 2 {
				again, err := b.CreateSession(t.Context(), cause, aSession(3))
				if err != nil || again.SessionID != out.SessionID {
					t.Errorf("again: %+v, %v", again, err)
				}
			}
			if types := b.log.Types(domain.SessionStream(sessionOf(cause))); len(types) == 1 {
				t.Error("the session that was given up lives")
			}
			b.wantUsed(t, 15)
			b.wantIDsApart(t)
		})
	}
}

// Who cancels a session wants none, whatever of it had come.
func TestASessionThatItsClientCancelledDoesNotBeginAnew(t *testing.T) {
	t.Parallel()
	b := setup(t, 15)
	c := b.cause()
	b.log.Fail(slot(2), false, errCut)
	_, err := b.CreateSession(t.Context(), c, aSession(3))
	wantKind(t, err, domain.KindUnavailable)
	b.log.Heal()
	_, err = b.CancelSession(t.Context(), b.cause(), sessionOf(c))
	must.NoError(t, err)
	out, err := b.CreateSession(t.Context(), c, aSession(3))
	if err != nil || out.SessionID != sessionOf(c) || out.Status != session.StatusCancelled {
		t.Errorf("got %+v, %v", out, err)
	}
	b.wantUsed(t, 0)
}

func sessionOf(c command.Cause) string { return domain.DeriveID(c.CommandID, "session").String() }

func slotOf(c command.Cause, n int) string {
	return domain.DeriveID(c.CommandID, fmt.Sprintf("slot %d", n)).String()
}
