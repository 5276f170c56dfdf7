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
	"humanqa/projections/projects"
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
	seat
	At    time.Time // the next step of the session; zero: it has no time
	Lobby bool
	Open  bool
	// Outlook is how the lobby will end if no checker comes or goes, and Refund what comes back then.
	Outlook session.Outlook
	Refund  domain.Credits
	// Back is the number of tests that were given back, of Living that have not ended.
	Back, Living int
	Project      *projects.Project // only for a person who watches
	Work         string            // the page of the checker's test; empty: nothing to do
	Beat         int               // the token of the claim that waits here; 0: none
	Slots        []slotView
	// MayCancel is true for the client's developers while the session is open.
	MayCancel bool
	Story     *story // of a session that is over
	Voice     *ui.Voice
}

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

// show is the page of the room.
func (d Deps) show(r *ui.Request, s seat) (ui.Answer, error) {
	v := view{
		seat: s, Lobby: s.Status == session.StatusLobby, Open: s.ClosedAt == nil, MayCancel: s.MayMark && s.Watches(), Voice: d.voice(s),
	}
	live := []string{domain.SessionStream(s.ID)}
	if s.Watches() {
		for _, slot := range s.Slots {
			live = append(live, domain.JobStream(slot.JobID))
		}
		if s.ProjectID != "" {
			p, err := d.Reads.Projects.Get(r.Context(), s.AccountID, s.ProjectID)
			if err != nil {
				return ui.Answer{}, err
			}
			v.Project = &p
		}
	} else if err := d.own(r, s, &v); err != nil {
		return ui.Answer{}, err
	}
	parts, err := d.parts(r.Context(), s)
	if err != nil {
		return ui.Answer{}, err
	}
	v.slots(s, parts)
	v.At = nextStep(s, parts)
	v.Back, v.Living = s.GivenBack()
	v.Outlook = session.AtDeadline(s.ReadyCount(), len(s.Slots))
	v.Refund = s.CreditsCharged / domain.Credits(max(1, len(s.Slots))) * domain.Credits(v.Outlook.Refunded)
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
	case held && c.JobID == s.Own.JobID:
		v.Beat = c.Token
		if !c.Waiting {
			v.Work = "/workbench/jobs/" + c.JobID
		}
	case s.Own.ReportID != "":
		v.Work = "/workbench/jobs/" + s.Own.JobID
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
		sv := slotView{Slot: slot, Who: s.Who(slot.Slot), State: slotState(slot),
			Mine: slot.JobID == s.Own.JobID, Total: len(items)}
		pass, fail, skip := job.Counts(items)
		sv.Done, sv.Passed, sv.Failed, sv.Skipped, sv.Open = pass+fail+skip, pass, fail, skip, len(items)-pass-fail-skip
		switch {
		case s.Watches():
			sv.Href = "/dashboard/jobs/" + slot.JobID
		case sv.Mine:
			sv.Href = v.Work
		}
		v.Slots = append(v.Slots, sv)
	}
}

// Who names a slot's checker to the person in the seat: their own slot is "You".
func (s seat) Who(slot int) string {
	if !s.Watches() && slot == s.Own.Slot {
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

// After is the time since the start, as 04:05; empty before the start.
func (s seat) After(at time.Time) string {
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

// nextStep is when the lobby closes, or when tests end that were given back; zero: neither comes.
func nextStep(s seat, parts map[string]jobs.Part) (at time.Time) {
	if s.Status == session.StatusLobby && s.now.Before(s.ReadyDeadline) {
		return s.ReadyDeadline
	}
	if back, _ := s.GivenBack(); s.Status == session.StatusActive && back > 0 {
		for _, slot := range s.Slots {
			if slot.Status == sessions.SlotActive { // the start gave all of them one time
				at = parts[slot.JobID].DueAt
			}
		}
	}
	return at
}
