package dashboard

import (
	"time"

	"humanqa/domain"
	"humanqa/domain/session"
	"humanqa/httpapi/ui"
	"humanqa/projections/projects"
	"humanqa/projections/sessions"
)

type sessionsView struct {
	Sessions []sessionLine
	Pager    pager
}

type sessionLine struct {
	sessions.Session
	Host  string
	State state
}

func sessionState(s sessions.Session) state {
	switch s.Status {
	case session.StatusLobby:
		return state{"Lobby", "warn", "clock"}
	case session.StatusActive:
		return state{"Testing", "live", ""}
	case session.StatusExpired:
		return state{"Expired", "", "skip"}
	case session.StatusCancelled:
		return state{"Cancelled", "", "skip"}
	case session.StatusCompleted:
	}
	if s.FailCount > 0 {
		return state{"Failed", "fail", "cross"}
	}
	return state{"Completed", "pass", "check"}
}

func (d Deps) sessions(r *ui.Request) (ui.Answer, error) {
	page := pageOf(r)
	list, total, err := d.Reads.Sessions.List(r.Context(), r.Account.ID, sessions.Filter{Limit: pageSize, Offset: (page - 1) * pageSize})
	if err != nil {
		return ui.Answer{}, err
	}
	v := sessionsView{Pager: newPager(r, page, len(list), total)}
	for _, s := range list {
		v.Sessions = append(v.Sessions, sessionLine{s, hostOf(s.URL), sessionState(s)})
	}
	return ui.Show("sessions", "Sessions", v, ui.Everything)
}

type sessionView struct {
	sessions.Session
	Host    string
	Link    string
	State   state
	Saying  string
	Slots   []slotView
	Project *projects.Project
}

type slotView struct {
	sessions.Slot
	State state
	On    string // what it is tested on
}

func (d Deps) session(r *ui.Request) (ui.Answer, error) {
	s, err := find(r, "session", d.Reads.Sessions.Session)
	if err != nil {
		return ui.Answer{}, err
	}
	now, err := d.now(r)
	if err != nil {
		return ui.Answer{}, err
	}
	v := sessionView{Session: s, Host: hostOf(s.URL), Link: safeLink(s.URL), State: sessionState(s), Saying: saying(s, now)}
	if s.ProjectID != "" {
		p, err := d.Reads.Projects.Get(r.Context(), s.AccountID, s.ProjectID)
		if err != nil {
			return ui.Answer{}, err
		}
		v.Project = &p
	}
	live := []string{domain.SessionStream(s.ID)}
	for _, slot := range s.Slots {
		live = append(live, domain.JobStream(slot.JobID))
		v.Slots = append(v.Slots, slotView{slot, slotState(slot), target(slot)})
	}
	return ui.Show("session", "Session on "+v.Host, v, live...)
}

// saying tells where the session is, and what happens next.
func saying(s sessions.Session, now time.Time) string {
	switch s.Status {
	case session.StatusLobby:
		return "Checkers gather. " + ui.Count(s.ReadyCount, "checker") + " ready; it starts as soon as all are, or with those who are (at least two) " +
			ui.Until(now, s.ReadyDeadline) + ". Places that stay empty are refunded."
	case session.StatusActive:
		return "All who are ready test at the same moment."
	case session.StatusExpired:
		return "Fewer than two checkers were ready in time. Everything was refunded."
	case session.StatusCancelled:
		return "It was cancelled before it was done. What was not tested was refunded."
	case session.StatusCompleted:
	}
	return ui.Count(s.PassCount, "test") + " passed, " + ui.Count(s.FailCount, "test") + " failed."
}

func slotState(s sessions.Slot) state {
	switch s.Status {
	case sessions.SlotReady:
		return state{"Ready", "pass", "check"}
	case sessions.SlotActive:
		return state{"Testing", "live", ""}
	case sessions.SlotDropped:
		return state{"Not filled", "", "skip"}
	case sessions.SlotEnded:
		if s.ReportID != "" {
			return state{"Done", "pass", "check"}
		}
		return state{"Ended", "", "skip"}
	}
	return state{"Waiting", "warn", "clock"}
}

func target(s sessions.Slot) string {
	out := ""
	for _, part := range []string{s.Target.Device, s.Target.OS, s.Target.Browser, s.Target.ScreenSize, s.Target.Network} {
		if part != "" && out != "" {
			out += ", "
		}
		out += part
	}
	return out
}
