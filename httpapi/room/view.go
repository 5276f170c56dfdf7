package room

import (
	"context"
	"fmt"
	"time"

	"humanqa/domain"
	"humanqa/domain/job"
	"humanqa/domain/session"
	"humanqa/httpapi/ui"
	"humanqa/httpapi/wire"
	"humanqa/projections/jobs"
	"humanqa/projections/sessions"
)

func slotState(s sessions.Slot) ui.State {
	switch s.Status {
	case sessions.SlotReady:
		return ui.NewState("Ready", "pass", "check")
	case sessions.SlotActive:
		if s.JobStatus == job.StatusPending {
			return ui.NewState("Given back", "warn", "clock")
		}
		return ui.NewState("Testing", "live", "")
	case sessions.SlotDropped:
		return ui.NewState("Not filled", "", "skip")
	case sessions.SlotEnded:
		if s.ReportID != "" {
			return ui.NewState("Done", "pass", "check")
		}
		return ui.NewState("Ended", "", "skip")
	}
	if s.JobStatus == job.StatusClaimed {
		return ui.NewState("In the lobby", "warn", "person")
	}
	return ui.NewState("Waiting", "warn", "clock")
}

type view struct {
	sessions.Session
	Path    string
	Watches bool
	Saying  string
	At      time.Time // Saying follows it; zero: it has no time
	Lobby   bool
	Open    bool
	Project *project // only for a person who watches
	Own     sessions.Slot
	Work    string // the page of the checker's test; empty: nothing to do
	Beat    int    // the token of the claim that waits here; 0: none
	Slots   []slotView
	MayMark bool
	// MayCancel is true for the client's developers while the session is open.
	MayCancel bool
	Marks     []markView
	Story     *story // of a session that is over
	Voice     *ui.Voice
}

type project struct{ ID, Name string }

type slotView struct {
	sessions.Slot
	Who            string
	State          ui.State
	Mine           bool
	Href           string // of its test; empty: the person may not open it
	Done, Total    int
	Passed, Failed int
	Skipped, Open  int
}

type markView struct {
	sessions.Mark
	Who   string
	After string // since the start, as 04:05; empty before it
}

// show is the page of the room.
func (d Deps) show(r *ui.Request, s seat) (ui.Answer, error) {
	v := view{
		Session: s.Session, Path: s.path, Watches: s.watches(), Lobby: s.Status == session.StatusLobby, Open: s.ClosedAt == nil,
		Own: s.own, MayMark: s.mayMark, MayCancel: s.mayMark && s.watches(), Voice: d.voice(s),
	}
	live := []string{domain.SessionStream(s.ID)}
	if s.watches() {
		for _, slot := range s.Slots {
			live = append(live, domain.JobStream(slot.JobID))
		}
		if s.ProjectID != "" {
			p, err := d.Reads.Projects.Get(r.Context(), s.AccountID, s.ProjectID)
			if err != nil {
				return ui.Answer{}, err
			}
			v.Project = &project{p.ID, p.Name}
		}
	} else if err := d.own(r, s, &v); err != nil {
		return ui.Answer{}, err
	}
	parts, err := d.parts(r.Context(), s)
	if err != nil {
		return ui.Answer{}, err
	}
	v.slots(s, parts)
	v.Saying, v.At = saying(s, parts)
	for _, m := range s.Marks {
		v.Marks = append(v.Marks, markView{m, s.who(m.Slot), s.after(m.At)})
	}
	if s.StartedAt != nil && s.ClosedAt != nil {
		told, err := d.story(r.Context(), s, parts)
		if err != nil {
			return ui.Answer{}, err
		}
		v.Story = told
	}
	return ui.Show("room", "Session on "+ui.HostOf(s.URL), &v, live...), nil
}

// own adds the checker's claim and work in this session.
func (d Deps) own(r *ui.Request, s seat, v *view) error {
	c, held, err := d.Commands.LiveClaim(r.Context(), s.checker)
	switch {
	case err != nil:
		return err
	case held && c.JobID == s.own.JobID:
		v.Beat = c.Token
		if !c.Waiting {
			v.Work = "/workbench/jobs/" + c.JobID
		}
	case s.own.ReportID != "":
		v.Work = "/workbench/jobs/" + s.own.JobID
	}
	return nil
}

func (d Deps) parts(ctx context.Context, s seat) (map[string]jobs.Part, error) {
	ids := wire.List(s.Slots, func(slot sessions.Slot) string { return slot.JobID })
	return d.Reads.Jobs.Parts(ctx, s.AccountID, ids)
}

func (v *view) slots(s seat, parts map[string]jobs.Part) {
	for _, slot := range s.Slots {
		items := parts[slot.JobID].Items
		sv := slotView{Slot: slot, Who: s.who(slot.Slot), State: slotState(slot),
			Mine: slot.JobID == s.own.JobID, Total: len(items)}
		pass, fail, skip := job.Counts(items)
		sv.Done, sv.Passed, sv.Failed, sv.Skipped, sv.Open = pass+fail+skip, pass, fail, skip, len(items)-pass-fail-skip
		switch {
		case s.watches():
			sv.Href = "/dashboard/jobs/" + slot.JobID
		case sv.Mine:
			sv.Href = v.Work
		}
		v.Slots = append(v.Slots, sv)
	}
}

// who names a slot's checker to the person in the seat: their own slot is "You".
func (s seat) who(slot int) string {
	if !s.watches() && slot == s.own.Slot {
		return "You (" + s.label(slot) + ")"
	}
	return s.label(slot)
}

// label names a slot's checker to everyone; slot 0 is the client.
func (s seat) label(slot int) string {
	for _, known := range s.Slots {
		if known.Slot == slot {
			return known.RoleLabel
		}
	}
	return "The client"
}

// after is the time since the start; empty before the start.
func (s seat) after(at time.Time) string {
	if s.StartedAt == nil || at.Before(*s.StartedAt) {
		return ""
	}
	return clock(at.Sub(*s.StartedAt))
}

// clock writes a duration as 04:05, or 1:04:05.
func clock(d time.Duration) string {
	seconds := int(d / time.Second)
	if seconds >= 3600 {
		return fmt.Sprintf("%d:%02d:%02d", seconds/3600, seconds/60%60, seconds%60)
	}
	return fmt.Sprintf("%02d:%02d", seconds/60, seconds%60)
}

// saying tells the state of the session, and its next step. The words follow the time at
// which that comes, if there is one.
func saying(s seat, parts map[string]jobs.Part) (words string, at time.Time) {
	switch s.Status {
	case session.StatusLobby:
		if !s.now.Before(s.ReadyDeadline) {
			return "The lobby has closed. The session starts or ends in a moment.", at
		}
		return outlook(s), s.ReadyDeadline
	case session.StatusActive:
		back, live := s.GivenBack()
		if back == 0 {
			return "All checkers who were ready test at the same time.", at
		}
		for _, slot := range s.Slots {
			if slot.Status == sessions.SlotActive { // the start gave all of them one time
				at = parts[slot.JobID].DueAt
			}
		}
		words = fmt.Sprintf("%d of %d tests end, unless other checkers take them.", back, live)
		if back == live {
			words = "the session ends, unless other checkers take its tests: all were given back."
		}
		return words + refunded(s, " What has no report is refunded."), at
	case session.StatusExpired:
		return "Fewer than two checkers were ready in time." + refunded(s, " All credits were refunded."), at
	case session.StatusCancelled:
		return "The session was cancelled before its end." + refunded(s, " Tests without a report were refunded."), at
	case session.StatusCompleted:
	}
	return ui.Count(s.PassCount, "test") + " passed, " + ui.Count(s.FailCount, "test") + " failed.", at
}

func refunded(s seat, words string) string {
	if s.watches() {
		return words
	}
	return ""
}

// outlook says how the lobby will end if no checker comes or goes, by the rule that decides
// it at the deadline.
func outlook(s seat) string {
	all := len(s.Slots)
	out := session.AtDeadline(s.ReadyCount(), all)
	words := fmt.Sprintf("the session will start with %d of %d checkers", s.ReadyCount(), all)
	if !out.Starts {
		words = fmt.Sprintf("the session will not start, with %d of %d checkers ready", s.ReadyCount(), all)
	}
	if out.Refunded > 0 && s.watches() {
		price := s.CreditsCharged / domain.Credits(all)
		words += fmt.Sprintf("; %s refunded", ui.Credits(price*domain.Credits(out.Refunded)))
	}
	return words + ". It starts at once when all are ready."
}
