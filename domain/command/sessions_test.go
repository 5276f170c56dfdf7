package command_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"humanqa/domain"
	"humanqa/domain/command"
	"humanqa/domain/job"
	"humanqa/domain/session"
	"humanqa/internal/testing/commandtest"
	"humanqa/internal/testing/logtest"
	"humanqa/internal/testing/must"
)

// slot means the append of that slot's job.
func slot(n int) logtest.AppendFilter {
	return func(_ string, events []domain.NewEvent) bool {
		created, ok := events[0].Event.(*job.Created)
		return ok && created.SessionSlot == n
	}
}

func aSession(slots int) command.NewSession {
	return command.NewSession{
		Test: command.HostedTest{
			Submission: job.Submission{
				URL: "https://shop.example/cart", Feature: "two buyers, one cart", Type: job.GeneralQA,
				TypeEcho: "general_qa",
			},
			Host:               "shop.example",
			AccessInstructions: "ring twice",
		},
		Slots:         append([]command.NewSlot{{RoleLabel: "Buyer", Target: job.Target{Device: "phone"}}}, make([]command.NewSlot, slots-1)...),
		ScenarioBrief: "both buy the last pair", VoiceEnabled: true,
	}
}

// opened is a session of so many slots, in its lobby.
func (b bundle) opened(t *testing.T, slots int) command.CreatedSession {
	t.Helper()
	out, err := b.CreateSession(t.Context(), b.cause(), aSession(slots))
	must.NoError(t, err)
	return out
}

// holder is a new checker who holds the slot's job.
func (b bundle) holder(t *testing.T, s command.CreatedSession, slot int) string {
	t.Helper()
	id := b.newChecker(t)
	b.takes(t, id, s, slot)
	return id
}

func (b bundle) takes(t *testing.T, checkerID string, s command.CreatedSession, slot int) {
	t.Helper()
	_, err := b.ClaimJob(t.Context(), b.checkerCause(checkerID), checkerID, s.Slots[slot-1].JobID)
	must.NoError(t, err)
}

// waiting is a new checker who holds the slot's job and is ready.
func (b bundle) waiting(t *testing.T, s command.CreatedSession, slot int) string {
	t.Helper()
	id := b.holder(t, s, slot)
	_, err := b.ReadySession(t.Context(), b.checkerCause(id), id, s.SessionID)
	must.NoError(t, err)
	return id
}

// settleAt settles the session as a timer of that time would.
func (b bundle) settleAt(t *testing.T, s command.CreatedSession, at time.Time) {
	t.Helper()
	_, err := b.SettleSession(t.Context(), timerOf(at), s.SessionID)
	must.NoError(t, err)
}

func timerOf(at time.Time) command.Cause {
	return command.Cause{CommandID: domain.NewCommandID(), Actor: "policy:session", NotBefore: at}
}

// finish completes the slot's job.
func (b bundle) finish(t *testing.T, checkerID string, s command.CreatedSession, slot int, verdict job.ItemStatus) {
	t.Helper()
	id := s.Slots[slot-1].JobID
	held, err := b.ClaimJob(t.Context(), b.checkerCause(checkerID), checkerID, id) // again: the same claim
	must.NoError(t, err)
	claim := command.Claim{CheckerID: checkerID, JobID: id, Token: held.Token}
	for _, item := range held.Checklist {
		_, _, err := b.CheckItem(t.Context(), b.checkerCause(checkerID), claim, command.CheckItem{ItemID: item.ID, Status: verdict})
		must.NoError(t, err)
	}
	_, _, err = b.CompleteJob(t.Context(), b.checkerCause(checkerID), claim, command.CompleteJob{})
	must.NoError(t, err)
}

// wantSession checks what happened to the session, and to each slot's job but
// for its creation.
func (b bundle) wantSession(t *testing.T, s command.CreatedSession, rest string, jobs ...string) {
	t.Helper()
	wantTypes(t, b.log, domain.SessionStream(s.SessionID), prefixed("session.", "created "+rest)...)
	for i, want := range jobs {
		wantTypes(t, b.log, domain.JobStream(s.Slots[i].JobID), prefixed("job.", "created "+want)...)
	}
}

func prefixed(prefix, words string) (out []string) {
	for _, w := range strings.Fields(words) {
		out = append(out, prefix+w)
	}
	return out
}

func (b bundle) wantUsed(t *testing.T, want domain.Credits) {
	t.Helper()
	if used := b.ledger().Used(); used != want {
		t.Errorf("%d credits used, want %d", used, want)
	}
}

// eventOf is the first event of that type in the stream.
func eventOf[E domain.Event](t *testing.T, b bundle, stream string) (found E) {
	t.Helper()
	for _, r := range b.log.All() {
		if e, ok := r.Event.(E); ok && r.Stream == stream {
			return e
		}
	}
	t.Fatalf("%s holds no %T", stream, found)
	return found
}

func TestASessionIsOneChargeAndAJobPerSlot(t *testing.T) {
	t.Parallel()
	b := setup(t, 20)
	appends := b.log.Appends(domain.CreditsStream(b.account))
	out := b.opened(t, 3)
	if out.Status != session.StatusLobby || out.CreditsDeducted != 15 || out.CreditsRemaining != 5 || out.ChecklistItemCount != 1 || len(out.Slots) != 3 {
		t.Errorf("handle: %+v", out)
	}
	if n := b.log.Appends(domain.CreditsStream(b.account)) - appends; n != 1 {
		t.Errorf("%d appends to the ledger, want 1", n)
	}
	opened := eventOf[*session.Created](t, b, domain.SessionStream(out.SessionID))
	if want := opened.At.Add(15 * time.Minute); !opened.ReadyDeadline.Equal(want) || !out.ReadyDeadline.Equal(want) {
		t.Errorf("the deadline is %s, %s after %s", out.ReadyDeadline, opened.ReadyDeadline, opened.At)
	}
	labels := []string{"Buyer", "Checker 2", "Checker 3"}
	for i, slot := range out.Slots {
		j := eventOf[*job.Created](t, b, domain.JobStream(slot.JobID))
		if slot.Slot != i+1 || slot.RoleLabel != labels[i] || slot.Target != j.Target || slot.Target != aSession(3).Slots[i].Target {
			t.Errorf("slot %d: %+v of %+v", i+1, slot, j.Target)
		}
		if j.SessionID != out.SessionID || j.SessionSlot != i+1 || j.Source != "session" || j.ProjectID != out.ProjectID || j.Price != 5 || len(j.Items) != 1 {
			t.Errorf("job %d: %+v", i+1, j)
		}
		if want := "sealed:" + b.account + ":" + domain.JobStream(slot.JobID) + ":ring twice"; j.AccessInstructions != want {
			t.Errorf("slot %d was sealed as %q", i+1, j.AccessInstructions)
		}
	}
}

func TestASessionThatCannotBePaidWritesNothing(t *testing.T) {
	t.Parallel()
	b := setup(t, 14)
	before := len(b.log.All())
	_, err := b.CreateSession(t.Context(), b.cause(), aSession(3))
	wantKind(t, err, domain.KindPayment)
	if after := len(b.log.All()); after != before {
		t.Errorf("%d events were written", after-before)
	}
}

// Each append of a session fails once persisted and once not. Whatever
// happened, the same command sent again ends in one session, its jobs and one
// charge for each.
func TestASessionThatFailsAnywhereCanBeRepeated(t *testing.T) {
	t.Parallel()
	const writes = 7 // host, project, ledger, session, three jobs
	for write := range writes {
		for _, persist := range []bool{false, true} {
			t.Run(fmt.Sprintf("write %d persisted %v", write+1, persist), func(t *testing.T) {
				t.Parallel()
				b := setup(t, 100)
				b.log.Fail(logtest.Nth(write+1), persist, errCut)
				c := b.cause()
				_, err := b.CreateSession(t.Context(), c, aSession(3))
				wantKind(t, err, domain.KindUnavailable)
				b.log.Heal()
				again := bundle{Service: newService(b.log), log: b.log, account: b.account}
				out, err := again.CreateSession(t.Context(), c, aSession(3))
				must.NoError(t, err)
				b.wantSession(t, out, "", "", "", "")
				b.wantUsed(t, 15)
				repeat, err := b.CreateSession(t.Context(), c, aSession(3))
				if err != nil || repeat.SessionID != out.SessionID || repeat.CreditsDeducted != 15 || repeat.CreditsRemaining != 85 {
					t.Errorf("repeat: %+v, %v", repeat, err)
				}
			})
		}
	}
}

// moody writes another list each time, and takes its time for it.
type moody struct {
	commandtest.AI
	lists *atomic.Int32
}

func (moody) Instant() bool { return false }

func (m moody) Checklist(context.Context, command.ChecklistBrief) ([]command.NewItem, string, error) {
	n := m.lists.Add(1)
	return []command.NewItem{{Description: fmt.Sprintf("list %d", n), Severity: job.Major}}, "moody", nil
}

// busy has seen tests of every project.
type busy struct{ commandtest.NoReads }

func (busy) Tested(context.Context, string, string) (bool, error) { return true, nil }

// Between a crash and the retry a project may have become another: what was
// settled then holds, and all slots check the same list.
func TestARetryCompletesTheSessionThatWasBegun(t *testing.T) {
	t.Parallel()
	b := setup(t, 100)
	ai := moody{lists: new(atomic.Int32)}
	b.log.Fail(slot(2), false, errCut)
	in := aSession(3)
	in.Test.Feature, in.Test.Type, in.Test.TypeEcho = "", "", "" // the type is detected
	c := b.cause()
	_, err := serviceWith(b.log, ai, commandtest.NoReads{}).CreateSession(t.Context(), c, in)
	wantKind(t, err, domain.KindUnavailable)
	if n := ai.lists.Load(); n != 1 {
		t.Errorf("%d lists were written for three slots", n)
	}
	b.log.Heal()
	out, err := serviceWith(b.log, ai, busy{}).CreateSession(t.Context(), c, in)
	if err != nil || out.Type != job.FirstImpression {
		t.Fatalf("retry: %+v, %v", out, err)
	}
	for _, slot := range out.Slots {
		j := eventOf[*job.Created](t, b, domain.JobStream(slot.JobID))
		if j.Type != job.FirstImpression || len(j.Items) != 1 || j.Items[0].Description != "list 1" || j.GeneratedBy != "moody" {
			t.Errorf("slot %d: %s, %+v by %s", slot.Slot, j.Type, j.Items, j.GeneratedBy)
		}
	}
}

func serviceWith(log domain.Log, ai command.AI, reads command.Reads) *command.Service {
	return command.New(command.Deps{
		Log: log, Sealer: openSealer{}, AI: ai, Reads: reads, Now: time.Now, ClaimsPerChecker: 1,
	})
}

// The jobs of a session were so late that the policy gave their charges back.
func TestASessionThatCannotBecomeWholeIsGivenUp(t *testing.T) {
	t.Parallel()
	b := setup(t, 100)
	c := b.cause()
	b.log.Fail(slot(2), false, errCut)
	_, err := b.CreateSession(t.Context(), c, aSession(3))
	wantKind(t, err, domain.KindUnavailable)
	b.log.Heal()
	late := domain.DeriveID(c.CommandID, "slot 2").String()
	_, err = b.VoidJob(t.Context(), b.cause(), late)
	must.NoError(t, err)
	out, err := b.CreateSession(t.Context(), c, aSession(3))
	must.NoError(t, err)
	b.wantSession(t, out, "", "", "", "") // begun anew
	stream := domain.SessionStream(domain.DeriveID(c.CommandID, "session").String())
	wantTypes(t, b.log, stream, "session.created", "session.cancelled")
	for _, slot := range eventOf[*session.Created](t, b, stream).Slots {
		types := b.log.Types(domain.JobStream(slot.JobID))
		if last := types[len(types)-1]; last != "job.cancelled" && last != "job.voided" {
			t.Errorf("slot %d ended with %s", slot.Slot, last)
		}
	}
	b.wantUsed(t, 15)
	b.wantIDsApart(t)
}
