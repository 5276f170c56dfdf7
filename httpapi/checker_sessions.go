package httpapi

import (
	"net/http"

	"humanqa/domain/job"
	"humanqa/domain/session"
	"humanqa/projections/jobs"
	"humanqa/projections/sessions"
)

// sessionRoom is a session as a checker in it sees it: how far all are, what was
// marked, and what the deadline does. Neither whose it is is in it, nor what it
// costs, nor the other slots' jobs.
type sessionRoom struct {
	SessionID     string         `json:"sessionId"`
	Status        session.Status `json:"status"`
	URL           string         `json:"url"`
	Feature       *string        `json:"feature"`
	ScenarioBrief *string        `json:"scenarioBrief"`
	VoiceEnabled  bool           `json:"voiceEnabled"`
	Slot          int            `json:"slot"` // the checker's
	JobID         string         `json:"jobId"`
	ReadyCount    int            `json:"readyCount"`
	CheckerCount  int            `json:"checkerCount"`
	ReadyDeadline timestamp      `json:"readyDeadline"`
	StartsWith    *int           `json:"startsWith"` // at the deadline, as it stands; null: not at all, or it is no lobby
	StartedAt     *timestamp     `json:"startedAt"`
	ClosedAt      *timestamp     `json:"closedAt"`
	Slots         []roomSlot     `json:"slots"`
	Marks         []roomMark     `json:"marks"`
	RoomURL       string         `json:"roomUrl"`
}

type roomSlot struct {
	Slot             int            `json:"slot"`
	RoleLabel        string         `json:"roleLabel"`
	TargetDevice     *string        `json:"targetDevice"`
	TargetOS         *string        `json:"targetOS"`
	TargetBrowser    *string        `json:"targetBrowser"`
	TargetScreenSize *string        `json:"targetScreenSize"`
	TargetNetwork    *string        `json:"targetNetwork"`
	Status           string         `json:"status"`
	ReadyAt          *timestamp     `json:"readyAt"`
	Checklist        checklistState `json:"checklist"`
}

type roomMark struct {
	At   timestamp `json:"at"`
	Slot *int      `json:"slot"` // null: the client
	Note string    `json:"note"`
}

// checkerSession is GET /v1/checker/sessions/:id: for the checker who holds one of
// its slots, or has completed it.
func (a *API) checkerSession(r *request) (answer, error) {
	id, err := sessionID(r)
	if err != nil {
		return answer{}, err
	}
	place, err := a.reads.Jobs.PlaceIn(r.Context(), r.caller.checkerID, id)
	if err != nil {
		return answer{}, err
	}
	s, err := a.reads.Sessions.Session(r.Context(), place.AccountID, id)
	if err != nil {
		return answer{}, err
	}
	ids := make([]string, len(s.Slots))
	for i, slot := range s.Slots {
		ids[i] = slot.JobID
	}
	parts, err := a.reads.Jobs.Parts(r.Context(), place.AccountID, ids)
	if err != nil {
		return answer{}, err
	}
	return reply(http.StatusOK, a.sessionRoom(s, place.JobID, parts))
}

func (a *API) sessionRoom(s sessions.Session, ownJob string, parts map[string]jobs.Part) sessionRoom {
	out := sessionRoom{
		SessionID: s.ID, Status: s.Status, URL: s.URL, Feature: orNull(s.Feature), ScenarioBrief: orNull(s.ScenarioBrief),
		VoiceEnabled: s.VoiceEnabled, JobID: ownJob, ReadyCount: s.ReadyCount, CheckerCount: len(s.Slots),
		ReadyDeadline: timestamp(s.ReadyDeadline), StartedAt: stamp(s.StartedAt), ClosedAt: stamp(s.ClosedAt),
		Marks: []roomMark{}, RoomURL: a.baseURL + "/workbench/sessions/" + s.ID,
	}
	if s.Status == session.StatusLobby && session.AtDeadline(s.ReadyCount, len(s.Slots)).Starts {
		out.StartsWith = &s.ReadyCount
	}
	for _, slot := range s.Slots {
		if slot.JobID == ownJob {
			out.Slot = slot.Slot
		}
		out.Slots = append(out.Slots, roomSlot{
			Slot: slot.Slot, RoleLabel: slot.RoleLabel, TargetDevice: orNull(slot.Target.Device), TargetOS: orNull(slot.Target.OS),
			TargetBrowser: orNull(slot.Target.Browser), TargetScreenSize: orNull(slot.Target.ScreenSize),
			TargetNetwork: orNull(slot.Target.Network), Status: slot.Status, ReadyAt: stamp(slot.ReadyAt),
			Checklist: progressOf(parts[slot.JobID].Items),
		})
	}
	for _, m := range s.Marks {
		mark := roomMark{At: timestamp(m.At), Note: m.Note}
		if m.Slot != 0 {
			mark.Slot = &m.Slot
		}
		out.Marks = append(out.Marks, mark)
	}
	return out
}

func progressOf(items []job.ReportItem) checklistState {
	pass, fail, skip := job.Counts(items)
	return checklistState{
		TotalItems: len(items), CheckedItems: pass + fail + skip, PassedItems: pass, FailedItems: fail, SkippedItems: skip,
	}
}
