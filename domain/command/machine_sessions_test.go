package command_test

import (
	"fmt"
	"slices"

	"pgregory.net/rapid"

	"humanqa/domain"
	"humanqa/domain/command"
	"humanqa/domain/job"
	"humanqa/domain/session"
)

// What customers, checkers and robots do with sessions.

// gather opens a session.
func (w *world) gather(t *rapid.T) {
	a := w.drawTenant(t)
	in := command.NewSession{
		Test:  w.drawTest(t),
		Slots: make([]command.NewSlot, rapid.IntRange(session.MinSlots, 3).Draw(t, "slots")),
	}
	if in.Test.Type.Automatic() {
		in.Test.Type, in.Test.TypeEcho = job.Custom, "custom"
	}
	c := w.client(a)
	w.send(t, &order{
		name: "open a session", once: true,
		refuses: []string{"session.cancelled", "job.cancelled", "job.voided", "credits.refunded"},
		do:      func(s *command.Service) (any, error) { return s.CreateSession(ctx(), c, in) },
		holds: func(answer any, i int) string {
			g := answer.(command.CreatedSession)
			s := w.sessions[g.SessionID]
			var sum domain.Credits
			for _, slot := range g.Slots {
				if problem := w.submitted(a, slot.JobID, s.SlotPrice); problem != "" && !s.Closed() {
					return problem
				}
				sum += s.SlotPrice
			}
			if !s.Exists || s.AccountID != a.id || s.Status != g.Status || sum != g.CreditsDeducted {
				return fmt.Sprintf("the session is %s and costs %d", s.Status, sum)
			}
			return w.remains(a, i, g.CreditsRemaining)
		},
	})
}

// dissolve cancels a session.
func (w *world) dissolve(t *rapid.T) {
	if len(w.lobbies) == 0 {
		t.Skip("there is no session")
	}
	id := rapid.SampledFrom(w.lobbies).Draw(t, "session")
	a := w.drawTenant(t)
	c := w.client(a)
	w.send(t, &order{
		name: "cancel a session", refuses: []string{"session.completed"},
		do: func(s *command.Service) (any, error) { return s.CancelSession(ctx(), c, id) },
		holds: func(answer any, i int) string {
			out, s := answer.(command.CancelledSession), w.sessions[id]
			if s.AccountID != a.id || s.Status != session.StatusCancelled {
				return fmt.Sprintf("the session is %s", s.Status)
			}
			var sum domain.Credits
			for _, slot := range s.Slots {
				if w.jobs[slot.JobID].Status == job.StatusCompleted {
					continue
				}
				if problem := w.refunded(a, slot.JobID); problem != "" {
					return problem
				}
				sum += s.SlotPrice
			}
			if sum != out.CreditsRefunded+out.CreditsExpired {
				return fmt.Sprintf("%d were refunded", sum)
			}
			return w.remains(a, i, out.CreditsRemaining)
		},
	})
}

// pickSession draws one of the sessions that are such.
func (w *world) pickSession(t *rapid.T, such func(session.State) bool) string {
	ids := slices.DeleteFunc(slices.Clone(w.lobbies), func(id string) bool { return !such(w.sessions[id]) })
	if len(ids) == 0 {
		t.Skip("there is no such session")
	}
	return rapid.SampledFrom(ids).Draw(t, "session")
}

func (w *world) readyAs(t *rapid.T, checker, id string) {
	c := w.checker(checker)
	w.tell(t, &order{
		name: "get ready",
		do: func(s *command.Service) (any, error) {
			out, err := s.ReadySession(ctx(), c, checker, id)
			out.Position, out.ReadyCount, out.Status = domain.Position{}, 0, "" // which others change
			return out, err
		},
		holds: func(answer any, _ int) string {
			st, own := w.sessions[id], answer.(command.CheckerSession)
			if w.belongsTo[checker] == st.AccountID {
				return "the session is of the checker's own account"
			}
			if got := w.jobs[own.JobID].CheckerID; st.Status == session.StatusLobby && (got != checker || st.Ready[own.Slot].CheckerID != checker) {
				return fmt.Sprintf("slot %d is held by %q, and ready is %v", own.Slot, got, st.Ready)
			}
			return ""
		},
	})
}

func (w *world) ready(t *rapid.T) {
	id := w.pickSession(t, func(s session.State) bool { return !s.Sandbox })
	w.readyAs(t, rapid.SampledFrom(w.checkers).Draw(t, "checker"), id)
}

// allReady has checkers take the slots of a lobby and wait in it.
func (w *world) allReady(t *rapid.T) {
	id := w.pickSession(t, func(s session.State) bool { return !s.Sandbox && s.Status == session.StatusLobby })
	first := rapid.IntRange(0, 2).Draw(t, "first checker")
	for n, slot := range w.sessions[id].Slots[:rapid.IntRange(1, len(w.sessions[id].Slots)).Draw(t, "of them")] {
		checker := w.checkers[(first+n)%3]
		if w.jobs[slot.JobID].Status == job.StatusPending {
			w.claimAs(t, checker, slot.JobID)
		}
		w.readyAs(t, checker, id)
	}
}

func (w *world) leave(t *rapid.T) {
	id := w.pickSession(t, func(s session.State) bool { return !s.Sandbox && !s.Closed() })
	checker := rapid.SampledFrom(w.checkers).Draw(t, "checker")
	held := func() (n int) {
		for _, slot := range w.sessions[id].Slots {
			if j := w.jobs[slot.JobID]; j.Status == job.StatusClaimed && j.CheckerID == checker {
				n++
			}
		}
		return n
	}
	c, before := w.checker(checker), held()
	w.tell(t, &order{
		name: "leave",
		do: func(s *command.Service) (any, error) {
			_, err := s.LeaveSession(ctx(), c, checker, id)
			return true, err
		},
		holds: func(any, int) string {
			if before > 0 && held() >= before {
				return "they gave no slot up"
			}
			return ""
		},
	})
}

func (w *world) robotsReady(t *rapid.T) {
	id := w.pickSession(t, func(s session.State) bool { return s.Sandbox })
	var slots []int
	if rapid.Bool().Draw(t, "some") {
		slots = []int{1, 2}
	}
	c := w.client(w.drawTenant(t))
	w.tell(t, &order{
		name:    "have robots ready",
		refuses: []string{"job.claimed", "session.slot_ready"}, // slot by slot
		do: func(s *command.Service) (any, error) {
			_, err := s.ReadySlots(ctx(), c, id, slots)
			return true, err
		},
		holds: func(any, int) string {
			if w.sessions[id].AccountID != c.AccountID || !c.Sandbox {
				return "the session is not theirs"
			}
			return ""
		},
	})
}
