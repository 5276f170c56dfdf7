package checkers

import (
	"context"
	"net/http"

	"humanqa/domain"
	"humanqa/domain/command"
	"humanqa/domain/session"
	v1 "humanqa/httpapi/v1"
	"humanqa/httpapi/wire"
	"humanqa/projections/jobs"
	"humanqa/projections/sessions"
)

// sessionRoom is a session as a checker in it sees it: the progress of all, the marks,
// and the effect of the deadline. It shows neither the account, nor the cost, nor the
// other slots' jobs.
type sessionRoom struct {
	SessionID     string          `json:"sessionId"`
	Status        session.Status  `json:"status"`
	URL           string          `json:"url"`
	Feature       *string         `json:"feature"`
	ScenarioBrief *string         `json:"scenarioBrief"`
	VoiceEnabled  bool            `json:"voiceEnabled"`
	Slot          int             `json:"slot"` // the checker's
	JobID         string          `json:"jobId"`
	ReadyCount    int             `json:"readyCount"`
	CheckerCount  int             `json:"checkerCount"`
	ReadyDeadline wire.Timestamp  `json:"readyDeadline"`
	StartsWith    *int            `json:"startsWith"` // the checkers ready for the deadline; null: it will not start, or is no lobby
	StartedAt     *wire.Timestamp `json:"startedAt"`
	ClosedAt      *wire.Timestamp `json:"closedAt"`
	Slots         []roomSlot      `json:"slots"`
	Marks         []roomMark      `json:"marks"`
	RoomURL       string          `json:"roomUrl"`
}

type roomSlot struct {
	Slot             int               `json:"slot"`
	RoleLabel        string            `json:"roleLabel"`
	TargetDevice     *string           `json:"targetDevice"`
	TargetOS         *string           `json:"targetOS"`
	TargetBrowser    *string           `json:"targetBrowser"`
	TargetScreenSize *string           `json:"targetScreenSize"`
	TargetNetwork    *string           `json:"targetNetwork"`
	Status           string            `json:"status"`
	ReadyAt          *wire.Timestamp   `json:"readyAt"`
	Checklist        v1.ChecklistState `json:"checklist"`
}

type roomMark struct {
	At   wire.Timestamp `json:"at"`
	Slot *int           `json:"slot"` // null: the client
	Note string         `json:"note"`
}

// checkerSession is GET /v1/checker/sessions/:id: for the checker who holds one of
// its slots, or has completed it.
func (a *Handlers) checkerSession(r *wire.Request) (wire.Answer, error) {
	id, err := sessionID(r)
	if err != nil {
		return wire.Answer{}, err
	}
	place, err := a.Reads.Jobs.PlaceIn(r.Context(), r.Caller.CheckerID, id)
	if err != nil {
		return wire.Answer{}, err
	}
	s, err := a.Reads.Sessions.Session(r.Context(), place.AccountID, id)
	if err != nil {
		return wire.Answer{}, err
	}
	ids := wire.List(s.Slots, func(slot sessions.Slot) string { return slot.JobID })
	parts, err := a.Reads.Jobs.Parts(r.Context(), place.AccountID, ids)
	return wire.ReplyUnless(err, http.StatusOK, a.sessionRoom(s, place.JobID, parts))
}

func (a *Handlers) sessionRoom(s sessions.Session, ownJob string, parts map[string]jobs.Part) sessionRoom {
	out := sessionRoom{
		SessionID: s.ID, Status: s.Status, URL: s.URL, Feature: wire.OrNull(s.Feature), ScenarioBrief: wire.OrNull(s.ScenarioBrief),
		VoiceEnabled: s.VoiceEnabled, JobID: ownJob, ReadyCount: s.ReadyCount(), CheckerCount: len(s.Slots),
		ReadyDeadline: wire.Timestamp(s.ReadyDeadline), StartedAt: wire.Stamp(s.StartedAt), ClosedAt: wire.Stamp(s.ClosedAt),
		Marks: []roomMark{}, RoomURL: a.BaseURL + "/workbench/sessions/" + s.ID,
	}
	if s.Status == session.StatusLobby && session.AtDeadline(s.ReadyCount(), len(s.Slots)).Starts {
		out.StartsWith = new(s.ReadyCount())
	}
	for _, slot := range s.Slots {
		if slot.JobID == ownJob {
			out.Slot = slot.Slot
		}
		out.Slots = append(out.Slots, roomSlot{
			Slot: slot.Slot, RoleLabel: slot.RoleLabel, TargetDevice: wire.OrNull(slot.Target.Device),
			TargetOS:      wire.OrNull(slot.Target.OS),
			TargetBrowser: wire.OrNull(slot.Target.Browser), TargetScreenSize: wire.OrNull(slot.Target.ScreenSize),
			TargetNetwork: wire.OrNull(slot.Target.Network), Status: slot.Status, ReadyAt: wire.Stamp(slot.ReadyAt),
			Checklist: v1.ProgressOf(parts[slot.JobID].Items),
		})
	}
	for _, m := range s.Marks {
		mark := roomMark{At: wire.Timestamp(m.At), Note: m.Note}
		if m.Slot != 0 {
			mark.Slot = &m.Slot
		}
		out.Marks = append(out.Marks, mark)
	}
	return out
}

// sessionStanding is the state of a session and of the checker's slot in it.
type sessionStanding struct {
	SessionID     string         `json:"sessionId"`
	Status        session.Status `json:"status"`
	Slot          int            `json:"slot"`
	JobID         string         `json:"jobId"`
	ReadyCount    int            `json:"readyCount"`
	CheckerCount  int            `json:"checkerCount"`
	ReadyDeadline wire.Timestamp `json:"readyDeadline"`
}

// sessionReady is POST /v1/checker/sessions/:id/ready.
func (a *Handlers) sessionReady(r *wire.Request) (wire.Answer, error) {
	return a.inSession(r, a.Commands.ReadySession)
}

// sessionLeave is POST /v1/checker/sessions/:id/leave.
func (a *Handlers) sessionLeave(r *wire.Request) (wire.Answer, error) {
	return a.inSession(r, a.Commands.LeaveSession)
}

// inSession issues a checker's command on a session; a repeat is harmless.
func (a *Handlers) inSession(
	r *wire.Request, do func(ctx context.Context, cause command.Cause, checkerID, sessionID string) (command.CheckerSession, error),
) (wire.Answer, error) {
	id, err := sessionID(r)
	return a.Writer.WriteUnless(err, r, func(ctx context.Context, cause command.Cause) (wire.Answer, error) {
		out, err := do(ctx, cause, r.Caller.CheckerID, id)
		return a.Writer.Done(ctx, r, out.Position, err, http.StatusOK, sessionStanding{
			SessionID: out.SessionID, Status: out.Status, Slot: out.Slot, JobID: out.JobID,
			ReadyCount: out.ReadyCount, CheckerCount: out.CheckerCount, ReadyDeadline: wire.Timestamp(out.ReadyDeadline),
		})
	})
}

func sessionID(r *wire.Request) (string, error) {
	id := r.Vars["id"]
	if !wire.IDPattern.MatchString(id) {
		return "", domain.NotFound("session")
	}
	return id, nil
}
