package session_test

import (
	"fmt"
	"testing"

	"humanqa/domain"
	"humanqa/domain/session"
	"humanqa/internal/testing/scenario"
)

func marked(id string, slot int, checkerID string) session.Marked {
	m := session.Marked{ID: id, Slot: slot, CheckerID: checkerID, Note: "here", At: minutes(2)}
	if checkerID == "" {
		m.PersonID = "person"
	}
	return m
}

func mark(m session.Marked) scenario.Decide[session.State] {
	return func(s session.State) ([]domain.Event, error) { return session.DecideMark(s, m) }
}

func TestMarks(t *testing.T) {
	t.Parallel()
	begun := startedAt(minutes(2), []int{1, 2}, []int{3})
	ann, owner := marked("m1", 1, "ann"), marked("m2", 0, "")
	t.Run("are kept by checkers and by the account's people, before and after the start", func(t *testing.T) {
		given(t, opened()).When(mark(ann)).Happens(&ann)
		given(t, opened(), isReady(1, "ann"), isReady(2, "bob"), begun, &ann).When(mark(owner)).Happens(&owner)
	})
	t.Run("are kept once", func(t *testing.T) {
		given(t, opened(), &ann).When(mark(ann)).Happens()
		given(t, opened(), &ann, &session.Cancelled{Reason: session.CancelClient, At: minutes(3)}).When(mark(ann)).Happens()
	})
	t.Run("need a place in the session", func(t *testing.T) {
		given(t, opened()).When(mark(marked("m", 0, "eve"))).Conflict("you hold none of the session's slots")
		given(t, opened(), isReady(1, "ann"), isReady(2, "bob"), begun).When(mark(marked("m", 3, "cay"))).
			Conflict("the session started without this slot")
	})
	t.Run("end with the session", func(t *testing.T) {
		given(t, opened(), &session.Expired{At: minutes(15)}).When(mark(ann)).Conflict("the session is closed")
	})
	t.Run("are bounded", func(t *testing.T) {
		events := []domain.Event{opened()}
		for i := range session.MaxMarks {
			m := marked(fmt.Sprint("m", i), 1, "ann")
			events = append(events, &m)
		}
		given(t, events...).When(mark(marked("one more", 1, "ann"))).Conflict("the session has 200 marks, the most it holds")
	})
}

// What a lobby is told of its deadline is what the deadline does.
func TestTheOutlookIsWhatTheDeadlineDoes(t *testing.T) {
	t.Parallel()
	checkers := []string{"ann", "bob", "cay"}
	for ready := range len(checkers) + 1 {
		s := session.Evolve(session.State{}, opened())
		for i, c := range checkers[:ready] {
			s = session.Evolve(s, isReady(i+1, c))
		}
		out := session.AtDeadline(ready, len(checkers))
		events := session.DecideDeadline(s, held(checkers...), deadline)
		switch e := events[len(events)-1].(type) {
		case *session.Started:
			if !out.Starts || out.Refunded != len(e.Dropped) {
				t.Errorf("%d ready: it starts without %v, the outlook is %+v", ready, e.Dropped, out)
			}
		case *session.Expired:
			if out.Starts || out.Refunded != len(checkers) {
				t.Errorf("%d ready: it expires, the outlook is %+v", ready, out)
			}
		}
	}
}
