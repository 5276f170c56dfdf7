package v1

import (
	"cmp"
	"context"
	"net/http"

	"humanqa/domain"
	"humanqa/domain/announce"
	"humanqa/domain/command"
	"humanqa/domain/job"
	"humanqa/domain/session"
	"humanqa/httpapi/input"
	"humanqa/httpapi/wire"
	"humanqa/projections/sessions"
)

// createdSession is the handle of a session. creditsCharged always equals
// creditsDeducted; checklistItemCount is per slot.
type createdSession struct {
	SessionID          string         `json:"sessionId"`
	ProjectID          string         `json:"projectId"`
	Status             session.Status `json:"status"`
	CheckerCount       int            `json:"checkerCount"`
	CreditsDeducted    domain.Credits `json:"creditsDeducted"`
	CreditsCharged     domain.Credits `json:"creditsCharged"`
	CreditsRemaining   domain.Credits `json:"creditsRemaining"`
	ChecklistItemCount int            `json:"checklistItemCount"`
	JobType            string         `json:"jobType"`
	JobTypeCode        job.Type       `json:"jobTypeCode"`
	IsHostedApp        bool           `json:"isHostedApp"`
	ReadyDeadline      wire.Timestamp `json:"readyDeadline"`
	Slots              []createdSlot  `json:"slots"`
	SessionURL         string         `json:"sessionUrl"`
}

type createdSlot struct {
	Slot         int     `json:"slot"`
	RoleLabel    string  `json:"roleLabel"`
	JobID        string  `json:"jobId"`
	TargetDevice *string `json:"targetDevice"`
	StatusURL    string  `json:"statusUrl"`
}

// createSession is POST /v1/hosted/sessions.
func (a *Handlers) createSession(r *wire.Request) (wire.Answer, error) {
	var p wire.Problems
	r.IdempotencyKey(&p)
	in, target := input.Session(r.Object(&p), a.Limits)
	in.Test.ProjectID = r.Caller.ProjectID
	for range in.Slots {
		r.Asked = append(r.Asked, in.Test.Submission)
	}
	err := a.Limits.Admitted(r, &p, target)
	return a.Writer.WriteUnless(err, r, func(ctx context.Context, cause command.Cause) (wire.Answer, error) {
		out, err := a.Commands.CreateSession(ctx, cause, in)
		if err != nil {
			return wire.Answer{}, err
		}
		a.Writer.Visible(ctx, r, out.Position)
		a.noteUnused(ctx, r, in.Test.Webhook, out.ProjectID)
		body := createdSession{
			SessionID: out.SessionID, ProjectID: out.ProjectID, Status: out.Status, CheckerCount: len(out.Slots),
			CreditsDeducted: out.CreditsDeducted, CreditsCharged: out.CreditsDeducted, CreditsRemaining: out.CreditsRemaining,
			ChecklistItemCount: out.ChecklistItemCount, JobType: out.TypeEcho, JobTypeCode: out.Type,
			IsHostedApp: in.Test.HostedApp, ReadyDeadline: wire.Timestamp(out.ReadyDeadline),
			SessionURL: announce.SessionPage(a.BaseURL, out.SessionID),
		}
		for _, slot := range out.Slots {
			body.Slots = append(body.Slots, createdSlot{
				Slot: slot.Slot, RoleLabel: slot.RoleLabel, JobID: slot.JobID,
				TargetDevice: wire.OrNull(slot.Target.Device), StatusURL: a.statusURL(slot.JobID),
			})
		}
		return wire.Reply(http.StatusCreated, body)
	})
}

// sessionBody is a session as its client reads it.
type sessionBody struct {
	SessionID          string          `json:"sessionId"`
	ProjectID          string          `json:"projectId"`
	Status             session.Status  `json:"status"`
	URL                string          `json:"url"`
	Feature            *string         `json:"feature"`
	ScenarioBrief      *string         `json:"scenarioBrief"`
	VoiceEnabled       bool            `json:"voiceEnabled"`
	JobType            string          `json:"jobType"`
	JobTypeCode        job.Type        `json:"jobTypeCode"`
	CheckerCount       int             `json:"checkerCount"`
	ReadyCount         int             `json:"readyCount"`
	ChecklistItemCount int             `json:"checklistItemCount"`
	CreditsCharged     domain.Credits  `json:"creditsCharged"`
	CreditsRefunded    domain.Credits  `json:"creditsRefunded"` // the credits that came back
	CreditsExpired     domain.Credits  `json:"creditsExpired"`
	ReadyDeadline      wire.Timestamp  `json:"readyDeadline"`
	CreatedAt          wire.Timestamp  `json:"createdAt"`
	StartedAt          *wire.Timestamp `json:"startedAt"`
	ClosedAt           *wire.Timestamp `json:"closedAt"`
	CloseReason        *string         `json:"closeReason"`
	PassCount          int             `json:"passCount"`
	FailCount          int             `json:"failCount"`
	Slots              []slotBody      `json:"slots"`
	SessionURL         string          `json:"sessionUrl"`
	AsOf               *string         `json:"asOf,omitempty"`
}

type slotBody struct {
	createdSlot
	TargetOS         *string         `json:"targetOS"`
	TargetBrowser    *string         `json:"targetBrowser"`
	TargetScreenSize *string         `json:"targetScreenSize"`
	TargetNetwork    *string         `json:"targetNetwork"`
	Status           string          `json:"status"`
	ReadyAt          *wire.Timestamp `json:"readyAt"`
	JobStatus        job.Status      `json:"jobStatus"`
	ReportID         string          `json:"reportId,omitempty"` // absent until a report exists
}

func (a *Handlers) sessionBody(s sessions.Session) sessionBody {
	out := sessionBody{
		SessionID: s.ID, ProjectID: s.ProjectID, Status: s.Status, URL: s.URL, Feature: wire.OrNull(s.Feature),
		ScenarioBrief: wire.OrNull(s.ScenarioBrief), VoiceEnabled: s.VoiceEnabled, JobType: s.TypeEcho, JobTypeCode: s.Type,
		CheckerCount: len(s.Slots), ReadyCount: s.ReadyCount(), ChecklistItemCount: s.ItemCount,
		CreditsCharged: s.CreditsCharged, CreditsRefunded: s.CreditsRefunded, CreditsExpired: s.CreditsExpired,
		ReadyDeadline: wire.Timestamp(s.ReadyDeadline), CreatedAt: wire.Timestamp(s.CreatedAt),
		StartedAt: wire.Stamp(s.StartedAt), ClosedAt: wire.Stamp(s.ClosedAt), CloseReason: wire.OrNull(s.CloseReason),
		PassCount: s.PassCount, FailCount: s.FailCount, SessionURL: announce.SessionPage(a.BaseURL, s.ID),
	}
	for _, slot := range s.Slots {
		out.Slots = append(out.Slots, slotBody{
			createdSlot: createdSlot{
				Slot: slot.Slot, RoleLabel: slot.RoleLabel, JobID: slot.JobID,
				TargetDevice: wire.OrNull(slot.Target.Device), StatusURL: a.statusURL(slot.JobID),
			},
			TargetOS: wire.OrNull(slot.Target.OS), TargetBrowser: wire.OrNull(slot.Target.Browser),
			TargetScreenSize: wire.OrNull(slot.Target.ScreenSize), TargetNetwork: wire.OrNull(slot.Target.Network),
			Status: slot.Status, ReadyAt: wire.Stamp(slot.ReadyAt), JobStatus: slot.JobStatus, ReportID: slot.ReportID,
		})
	}
	return out
}

type sessionPage struct {
	Sessions []sessionBody `json:"sessions"`
	Total    int           `json:"total"`
	Limit    int           `json:"limit"`
	Offset   int           `json:"offset"`
	AsOf     *string       `json:"asOf,omitempty"`
}

var sessionStatuses = []session.Status{session.StatusLobby, session.StatusActive, session.StatusCompleted, session.StatusExpired,
	session.StatusCancelled}

// listSessions is GET /v1/hosted/sessions.
func (a *Handlers) listSessions(r *wire.Request) (wire.Answer, error) {
	var p wire.Problems
	q := r.Query(&p)
	f := sessions.Filter{
		Status: session.Status(q.OneOf("status", wire.Words(sessionStatuses))), ProjectID: q.Text("projectId"),
		Limit: q.Integer("limit", 20, 1, 100), Offset: q.Integer("offset", 0, 0, maxOffset),
	}
	at, err := a.asOf(r, &p)
	if err := cmp.Or(p.Err(), err); err != nil {
		return wire.Answer{}, err
	}
	page := sessionPage{Sessions: []sessionBody{}, Limit: f.Limit, Offset: f.Offset, AsOf: at.then()}
	none, err := a.narrow(r, &f.ProjectID)
	switch {
	case err != nil:
		return wire.Answer{}, err
	case none:
		return wire.Reply(http.StatusOK, page)
	}
	found, total, err := listThen(r, f, at, a.Reads.Sessions.List, a.past.Sessions)
	page.Total = total
	page.Sessions = wire.List(found, a.sessionBody)
	return wire.ReplyUnless(err, http.StatusOK, page)
}

// getSession is GET /v1/hosted/sessions/:id.
func (a *Handlers) getSession(r *wire.Request) (wire.Answer, error) {
	s, err := a.ownSession(r)
	var p wire.Problems
	at, failed := a.asOf(r, &p)
	if err := wire.RefusedFor(err, cmp.Or(p.Err(), failed)); err != nil {
		return wire.Answer{}, err
	}
	if at != nil {
		if s, err = a.past.Session(r.Context(), r.Caller.AccountID, s.ID, at.Until); err != nil {
			return wire.Answer{}, at.orNotThen("session", err)
		}
	}
	body := a.sessionBody(s)
	body.AsOf = at.then()
	return wire.Reply(http.StatusOK, body)
}

// ownSession reads the session the path names.
func (a *Handlers) ownSession(r *wire.Request) (sessions.Session, error) {
	return own(r, "session", r.Vars["id"], a.Reads.Sessions.Session, func(s sessions.Session) string { return s.ProjectID })
}

// cancelSession is POST /v1/hosted/sessions/:id/cancel. A repeat needs no
// Idempotency-Key: it answers the same.
func (a *Handlers) cancelSession(r *wire.Request) (wire.Answer, error) {
	s, err := a.ownSession(r)
	return a.Writer.WriteUnless(err, r, func(ctx context.Context, cause command.Cause) (wire.Answer, error) {
		out, err := a.Commands.CancelSession(ctx, cause, s.ID)
		return a.Writer.Done(ctx, r, out.Position, err, http.StatusOK, out)
	})
}
