package session_test

import (
	"errors"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"humanqa/domain"
	"humanqa/domain/session"
)

// legal lists where each event may lead from where. The status before the first
// event is empty; an end stands nowhere on the left.
var legal = map[string]map[session.Status]session.Status{
	"session.created":    {"": session.StatusLobby},
	"session.slot_ready": {session.StatusLobby: session.StatusLobby},
	"session.slot_left":  {session.StatusLobby: session.StatusLobby},
	"session.started":    {session.StatusLobby: session.StatusActive},
	"session.completed":  {session.StatusActive: session.StatusCompleted},
	"session.expired":    {session.StatusLobby: session.StatusExpired},
	"session.cancelled":  {session.StatusLobby: session.StatusCancelled, session.StatusActive: session.StatusCancelled},
}

// TestNoHistoryTakesASessionOutOfLine lets three checkers claim, get ready and
// go, clients cancel and time pass, in any order: only legal transitions
// happen, a session starts with those who are there and with two at least, and
// ends absorb.
func TestNoHistoryTakesASessionOutOfLine(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := &machine{now: t0, work: make([]session.Work, 3)}
		m.run(t, func(s session.State) ([]domain.Event, error) { return session.DecideCreate(s, *opened()) })
		slot := func(t *rapid.T) int { return rapid.IntRange(1, 3).Draw(t, "slot") }
		checker := func(t *rapid.T) string { return rapid.SampledFrom([]string{"ann", "bob", "cyd"}).Draw(t, "checker") }
		t.Repeat(map[string]func(*rapid.T){
			"": m.check,
			"claim": func(t *rapid.T) {
				if w := &m.work[slot(t)-1]; !w.Ended && w.CheckerID == "" {
					w.Claim = session.Claim{CheckerID: checker(t), Token: w.Token + 1}
				}
			},
			"release": func(t *rapid.T) {
				if w := &m.work[slot(t)-1]; !w.Ended {
					w.CheckerID = ""
				}
			},
			"end": func(t *rapid.T) {
				if w := &m.work[slot(t)-1]; w.CheckerID != "" && !w.Ended {
					w.Ended, w.OverallStatus = true, rapid.SampledFrom([]string{"", "pass", "fail", "inconclusive"}).Draw(t, "overall")
				}
			},
			"ready": func(t *rapid.T) {
				n := slot(t)
				if c := m.work[n-1].CheckerID; c != "" {
					m.run(t, ready(n, c, m.work, m.now))
				}
			},
			"leave": func(t *rapid.T) { m.run(t, leave(slot(t), checker(t))) },
			"settle": func(t *rapid.T) {
				m.run(t, timeUp(m.work, m.now))
				m.run(t, complete(m.work))
			},
			"cancel": func(t *rapid.T) {
				if rapid.IntRange(0, 9).Draw(t, "cancel") == 0 {
					m.run(t, cancel)
				}
				if w := &m.work[slot(t)-1]; m.state.Status == session.StatusActive && !w.Ended {
					w.Ended, w.Cancelled = true, true
				}
			},
			"wait": func(t *rapid.T) {
				m.now = m.now.Add(time.Duration(rapid.IntRange(1, 10).Draw(t, "minutes")) * time.Minute)
			},
		})
	})
}

type machine struct {
	now     time.Time
	work    []session.Work
	state   session.State
	history []domain.Event
}

func (m *machine) run(t *rapid.T, decide func(session.State) ([]domain.Event, error)) {
	before := m.state.Status
	events, err := decide(m.state)
	if err != nil {
		var refusal *domain.Error
		if !errors.As(err, &refusal) || len(events) > 0 {
			t.Fatalf("refused with %v and %v", err, events)
		}
		return
	}
	for _, e := range events {
		to, ok := legal[e.EventType()][before]
		if !ok {
			t.Fatalf("%s happened to a session that is %q", e.EventType(), before)
		}
		m.state = session.Evolve(m.state, e)
		m.history = append(m.history, e)
		if m.state.Status != to {
			t.Fatalf("%s led from %q to %q", e.EventType(), before, m.state.Status)
		}
		if s, ok := e.(*session.Started); ok {
			m.startedWell(t, s)
		}
		before = to
	}
}

func (m *machine) startedWell(t *rapid.T, s *session.Started) {
	if len(s.Ready) < 2 || len(s.Ready)+len(s.Dropped) != 3 {
		t.Fatalf("started with %v, without %v", s.Ready, s.Dropped)
	}
	if len(s.Dropped) > 0 && m.now.Before(deadline) {
		t.Fatalf("slots %v were dropped before the deadline", s.Dropped)
	}
	for _, slot := range s.Ready {
		if who, holds := m.state.Ready[slot], m.work[slot-1].Claim; who.CheckerID == "" || who != holds {
			t.Fatalf("slot %d started with %+v while %+v holds it", slot, who, holds)
		}
	}
}

func (m *machine) check(t *rapid.T) {
	var again session.State
	for _, e := range m.history {
		again = session.Evolve(again, e)
	}
	if !reflect.DeepEqual(again, m.state) {
		t.Fatalf("the same events fold into\n%+v, not\n%+v", again, m.state)
	}
}
