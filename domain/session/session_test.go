package session_test

import (
	"slices"
	"testing"
	"time"

	"humanqa/domain"
	"humanqa/domain/session"
	"humanqa/internal/testing/scenario"
)

var (
	t0       = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	deadline = t0.Add(session.LobbyTime)
)

func minutes(n int) time.Time { return t0.Add(time.Duration(n) * time.Minute) }

// opened is a session of three slots with the jobs j1, j2 and j3.
func opened() *session.Created {
	return &session.Created{
		Submission: session.Submission{
			AccountID: "acc", ProjectID: "p1", URL: "https://app.example", Type: "general_qa", TypeEcho: "General QA",
			SLAMinutes: 30, SlotPrice: 5, ItemCount: 4, Slots: []session.Slot{
				{Slot: 1, RoleLabel: "Buyer", JobID: "j1"},
				{Slot: 2, RoleLabel: "Seller", JobID: "j2"},
				{Slot: 3, RoleLabel: "Checker 3", JobID: "j3"},
			},
		},
		ReadyDeadline: deadline, At: t0,
	}
}

func isReady(slot int, checkerID string) *session.SlotReady {
	return &session.SlotReady{Slot: slot, CheckerID: checkerID, Token: 1, At: minutes(1)}
}

func left(slot int, checkerID string) *session.SlotLeft {
	return &session.SlotLeft{Slot: slot, CheckerID: checkerID, At: minutes(1)}
}

func startedAt(at time.Time, ready, dropped []int) *session.Started {
	return &session.Started{Ready: ready, Dropped: dropped, DueAt: at.Add(30 * time.Minute), At: at}
}

// held are jobs that these checkers hold, in the slots' order, by their first
// claim; "" is nobody.
func held(checkers ...string) []session.Work {
	work := make([]session.Work, len(checkers))
	for i, c := range checkers {
		work[i].Claim = session.Claim{CheckerID: c, Token: 1}
	}
	return work
}

// heldAgain are the same, but who holds the first gave it up before and claimed
// it again.
func heldAgain(checkers ...string) []session.Work {
	work := held(checkers...)
	work[0].Token = 2
	return work
}

// ended are jobs that ended with these reports; "" is none, "…" still runs.
func ended(overall ...string) []session.Work {
	work := make([]session.Work, len(overall))
	for i, o := range overall {
		if o != "…" {
			work[i] = session.Work{Ended: true, OverallStatus: o}
		}
	}
	return work
}

func given(t *testing.T, events ...domain.Event) *scenario.Given[session.State] {
	return scenario.New(t, session.Evolve, events...)
}

func create(c session.Created) scenario.Decide[session.State] {
	return func(s session.State) ([]domain.Event, error) { return session.DecideCreate(s, c) }
}

func ready(slot int, checkerID string, work []session.Work, at time.Time) scenario.Decide[session.State] {
	return func(s session.State) ([]domain.Event, error) {
		return session.DecideReady(s, slot, checkerID, work, at)
	}
}

func leave(slot int, checkerID string) scenario.Decide[session.State] {
	return func(s session.State) ([]domain.Event, error) {
		return session.DecideLeave(s, slot, checkerID, minutes(1))
	}
}

func timeUp(work []session.Work, at time.Time) scenario.Decide[session.State] {
	return func(s session.State) ([]domain.Event, error) { return session.DecideDeadline(s, work, at), nil }
}

func complete(work []session.Work) scenario.Decide[session.State] {
	return func(s session.State) ([]domain.Event, error) {
		return session.DecideComplete(s, work, minutes(20)), nil
	}
}

func cancel(s session.State) ([]domain.Event, error) {
	return session.DecideCancel(s, session.CancelClient, minutes(5))
}

func TestCreate(t *testing.T) {
	t.Parallel()
	t.Run("opens the lobby", func(t *testing.T) {
		given(t).When(create(*opened())).Happens(opened())
	})
	t.Run("twice is a conflict", func(t *testing.T) {
		given(t, opened()).When(create(*opened())).Conflict("the session exists already")
	})
	t.Run("wants two to ten slots", func(t *testing.T) {
		for _, n := range []int{0, 1, 11} {
			c := opened()
			c.Slots = slices.Repeat(c.Slots[:1], n)
			given(t).When(create(*c)).Invalid("slots")
		}
	})
}

func TestReady(t *testing.T) {
	t.Parallel()
	t.Run("one checker waits", func(t *testing.T) {
		given(t, opened()).
			When(ready(2, "bob", held("", "bob", ""), minutes(1))).
			Events(isReady(2, "bob"))
	})
	t.Run("the last of all starts the session", func(t *testing.T) {
		given(t, opened(), isReady(1, "ann"), isReady(2, "bob")).
			When(ready(3, "cyd", held("ann", "bob", "cyd"), minutes(1))).
			Events(isReady(3, "cyd"), startedAt(minutes(1), []int{1, 2, 3}, []int{}))
	})
	t.Run("one who gave the claim up waits no more", func(t *testing.T) {
		given(t, opened(), isReady(1, "ann"), isReady(2, "bob")).
			When(ready(3, "cyd", held("", "bob", "cyd"), minutes(1))).
			Events(left(1, "ann"), isReady(3, "cyd"))
	})
	t.Run("who gave the claim up and took it again says so again", func(t *testing.T) {
		given(t, opened(), isReady(1, "ann"), isReady(2, "bob")).
			When(ready(3, "cyd", heldAgain("ann", "bob", "cyd"), minutes(1))).
			Events(left(1, "ann"), isReady(3, "cyd")).
			When(ready(1, "ann", heldAgain("ann", "bob", "cyd"), minutes(1))).
			Events(&session.SlotReady{Slot: 1, CheckerID: "ann", Token: 2, At: minutes(1)}, startedAt(minutes(1), []int{1, 2, 3}, []int{}))
	})
	t.Run("of a slot that somebody else holds", func(t *testing.T) {
		given(t, opened()).
			When(ready(1, "ann", held("bob", "", ""), minutes(1))).
			Conflict("you hold none of the session's slots")
	})
	t.Run("of a slot whose job has ended", func(t *testing.T) {
		given(t, opened()).
			When(ready(1, "ann", []session.Work{{Claim: session.Claim{CheckerID: "ann", Token: 1}, Ended: true}, {}, {}}, minutes(1))).
			Conflict("you hold none of the session's slots")
	})
	t.Run("another checker takes over a place", func(t *testing.T) {
		given(t, opened(), isReady(1, "ann")).
			When(ready(1, "dan", held("dan", "", ""), minutes(1))).
			Events(left(1, "ann"), isReady(1, "dan"))
	})
	t.Run("the last millisecond counts", func(t *testing.T) {
		given(t, opened()).
			When(ready(1, "ann", held("ann", "", ""), deadline.Add(-time.Millisecond))).
			Happens(&session.SlotReady{Slot: 1, CheckerID: "ann", Token: 1, At: deadline.Add(-time.Millisecond)})
	})
	t.Run("at the deadline it is too late", func(t *testing.T) {
		given(t, opened()).
			When(ready(1, "ann", held("ann", "", ""), deadline)).
			Conflict("the time to get ready is over")
	})
	t.Run("after the start it is a repeat", func(t *testing.T) {
		given(t, opened(), isReady(1, "ann"), isReady(2, "bob"), startedAt(deadline, []int{1, 2}, []int{3})).
			When(ready(1, "ann", held("ann", "bob", ""), deadline)).
			Nothing()
	})
	t.Run("a slot that was dropped takes nobody", func(t *testing.T) {
		given(t, opened(), isReady(1, "ann"), isReady(2, "bob"), startedAt(deadline, []int{1, 2}, []int{3})).
			When(ready(3, "cyd", held("ann", "bob", "cyd"), deadline)).
			Conflict("the session started without this slot")
	})
	t.Run("of no session", func(t *testing.T) {
		given(t).When(ready(1, "ann", nil, t0)).NotFound("session")
	})
}

func TestLeave(t *testing.T) {
	t.Parallel()
	t.Run("without a slot", func(t *testing.T) {
		given(t, opened()).When(leave(0, "ann")).Conflict("you hold none of the session's slots")
	})
	t.Run("takes the readiness back", func(t *testing.T) {
		given(t, opened(), isReady(1, "ann")).When(leave(1, "ann")).Events(left(1, "ann"))
	})
	t.Run("of one who never was ready changes nothing", func(t *testing.T) {
		given(t, opened()).When(leave(1, "ann")).Nothing()
	})
	t.Run("does not take another's readiness back", func(t *testing.T) {
		given(t, opened(), isReady(1, "dan")).When(leave(1, "ann")).Nothing()
	})
	t.Run("of a session that has started only gives the job back", func(t *testing.T) {
		given(t, opened(), isReady(1, "ann"), isReady(2, "bob"), startedAt(deadline, []int{1, 2}, []int{3})).
			When(leave(1, "ann")).Nothing()
	})
	t.Run("of no session", func(t *testing.T) {
		given(t).When(leave(1, "ann")).NotFound("session")
	})
}

func TestDeadline(t *testing.T) {
	t.Parallel()
	t.Run("before it nothing happens", func(t *testing.T) {
		given(t, opened()).When(timeUp(held("", "", ""), deadline.Add(-time.Millisecond))).Nothing()
	})
	t.Run("with two ready the session starts without the third", func(t *testing.T) {
		given(t, opened(), isReady(1, "ann"), isReady(3, "cyd")).
			When(timeUp(held("ann", "bob", "cyd"), deadline)).
			Events(startedAt(deadline, []int{1, 3}, []int{2}))
	})
	t.Run("with one ready it expires", func(t *testing.T) {
		given(t, opened(), isReady(1, "ann")).
			When(timeUp(held("ann", "", ""), deadline)).
			Events(&session.Expired{ReadyCount: 1, At: deadline})
	})
	t.Run("who was ready and gave the claim up does not count", func(t *testing.T) {
		given(t, opened(), isReady(1, "ann"), isReady(2, "bob")).
			When(timeUp(held("ann", "eve", ""), minutes(16))).
			Events(&session.SlotLeft{Slot: 2, CheckerID: "bob", At: minutes(16)}, &session.Expired{ReadyCount: 1, At: minutes(16)})
	})
	t.Run("of no session is nothing", func(t *testing.T) {
		given(t).When(timeUp(nil, deadline)).Nothing()
	})
}

func TestComplete(t *testing.T) {
	t.Parallel()
	running := []domain.Event{opened(), isReady(1, "ann"), isReady(2, "bob"), startedAt(deadline, []int{1, 2}, []int{3})}
	t.Run("counts the live slots' reports", func(t *testing.T) {
		given(t, running...).When(complete(ended("pass", "fail", "…"))).
			Events(&session.Completed{PassCount: 1, FailCount: 1, At: minutes(20)})
	})
	t.Run("a job without a verdict counts for neither", func(t *testing.T) {
		given(t, running...).When(complete(ended("", "inconclusive", ""))).
			Events(&session.Completed{At: minutes(20)})
	})
	t.Run("waits for every live slot", func(t *testing.T) {
		given(t, running...).When(complete(ended("pass", "…", ""))).Nothing()
	})
	t.Run("not before the start", func(t *testing.T) {
		given(t, opened()).When(complete(ended("pass", "pass", "pass"))).Nothing()
	})
}

func TestCancel(t *testing.T) {
	t.Parallel()
	cancelled := &session.Cancelled{Reason: "client", At: minutes(5)}
	started := startedAt(minutes(1), []int{1, 2, 3}, []int{})
	t.Run("a lobby", func(t *testing.T) { given(t, opened()).When(cancel).Events(cancelled) })
	t.Run("a session that has started is, once its jobs are", func(t *testing.T) {
		given(t, opened(), started).When(cancel).Nothing()
		work := ended("pass", "…", "pass")
		work[2].Cancelled = true
		given(t, opened(), started).When(complete(work)).Nothing()
		work[1].Ended = true
		given(t, opened(), started).When(complete(work)).Events(&session.Cancelled{Reason: "client", At: minutes(20)})
	})
	t.Run("a slot that it started without does not cancel it", func(t *testing.T) {
		work := ended("pass", "pass", "")
		work[2].Cancelled = true
		given(t, opened(), startedAt(minutes(1), []int{1, 2}, []int{3})).When(complete(work)).
			Events(&session.Completed{PassCount: 2, At: minutes(20)})
	})
	t.Run("of no session", func(t *testing.T) { given(t).When(cancel).NotFound("session") })
}

// A write on a closed session is a conflict; what happens by itself, nothing.
func TestEndsAbsorb(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]domain.Event{
		"completed": &session.Completed{At: t0},
		"expired":   &session.Expired{At: t0},
		"cancelled": &session.Cancelled{Reason: "client", At: t0},
	} {
		t.Run(name, func(t *testing.T) {
			closed := []domain.Event{opened(), isReady(1, "ann"), end}
			given(t, closed...).When(ready(1, "ann", held("ann", "", ""), t0)).Conflict("the session is closed")
			given(t, closed...).When(leave(1, "ann")).Conflict("the session is closed")
			given(t, closed...).When(timeUp(held("ann", "bob", "cyd"), deadline)).Nothing()
			given(t, closed...).When(complete(ended("pass", "pass", "pass"))).Nothing()
			if name == "cancelled" {
				given(t, closed...).When(cancel).Nothing()
			} else {
				given(t, closed...).When(cancel).Conflict("the session is closed")
			}
		})
	}
}
