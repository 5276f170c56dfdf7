package httpapi

import (
	"cmp"
	"context"
	"net/http"
	"strings"

	"humanqa/domain"
	"humanqa/domain/announce"
	"humanqa/domain/command"
	"humanqa/domain/job"
	"humanqa/domain/session"
	"humanqa/projections/sessions"
)

const (
	maxRoleLabel     = 80
	maxScenarioBrief = 2000
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
	ReadyDeadline      timestamp      `json:"readyDeadline"`
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
func (a *API) createSession(r *request) (answer, error) {
	var p problems
	r.idempotencyKey(&p)
	in := a.readSession(r, r.object(&p))
	if err := a.admitted(r, &p); err != nil {
		return answer{}, err
	}
	return a.write(r, func(ctx context.Context, cause command.Cause) (answer, error) {
		out, err := a.commands.CreateSession(ctx, cause, in)
		if err != nil {
			return answer{}, err
		}
		a.visible(ctx, r, out.Position)
		a.noteUnused(ctx, r, in.Test.Webhook, out.ProjectID)
		body := createdSession{
			SessionID: out.SessionID, ProjectID: out.ProjectID, Status: out.Status, CheckerCount: len(out.Slots),
			CreditsDeducted: out.CreditsDeducted, CreditsCharged: out.CreditsDeducted, CreditsRemaining: out.CreditsRemaining,
			ChecklistItemCount: out.ChecklistItemCount, JobType: out.TypeEcho, JobTypeCode: out.Type,
			IsHostedApp: in.Test.HostedApp, ReadyDeadline: timestamp(out.ReadyDeadline),
			SessionURL: announce.SessionPage(a.baseURL, out.SessionID),
		}
		for _, slot := range out.Slots {
			body.Slots = append(body.Slots, createdSlot{
				Slot: slot.Slot, RoleLabel: slot.RoleLabel, JobID: slot.JobID,
				TargetDevice: orNull(slot.Target.Device), StatusURL: a.statusURL(slot.JobID),
			})
		}
		return reply(http.StatusCreated, body)
	})
}

// readSession reads a session: what a hosted test has, and its slots. An AI
// review is no work for checkers who meet.
func (a *API) readSession(r *request, o object) command.NewSession {
	in := command.NewSession{
		Test:          a.readHosted(r, o),
		Slots:         readSlots(o),
		ScenarioBrief: strings.TrimSpace(o.optional("scenarioBrief", maxScenarioBrief)),
		VoiceEnabled:  o.boolean("voiceEnabled", true),
	}
	if in.Test.Type == job.AIReview {
		o.wrong("jobType", "must be a type that checkers test")
	}
	return in
}

func readSlots(o object) []command.NewSlot {
	const name = "slots"
	if o.fields == nil { // the body itself is what is wrong
		return nil
	}
	if _, there := o.given(name); !there {
		o.wrong(name, "is required: %d to %d slots", session.MinSlots, session.MaxSlots)
		return nil
	}
	if values, ok := o.list(name, session.MaxSlots); ok && len(values) < session.MinSlots {
		o.wrong(name, "must have at least %d entries", session.MinSlots)
	}
	var slots []command.NewSlot
	for _, slot := range o.objects(name, session.MaxSlots) {
		slots = append(slots, command.NewSlot{
			RoleLabel: strings.TrimSpace(slot.optional("roleLabel", maxRoleLabel)), Target: readTarget(slot),
		})
	}
	return slots
}

// boolean reads true or false; absent or null it is the default.
func (o object) boolean(name string, whenAbsent bool) bool {
	raw, ok := o.given(name)
	if !ok {
		return whenAbsent
	}
	value := string(raw) == "true"
	if !value && string(raw) != "false" {
		o.wrong(name, "must be true or false")
	}
	return value
}

// sessionBody is a session as its client reads it.
type sessionBody struct {
	SessionID          string         `json:"sessionId"`
	ProjectID          string         `json:"projectId"`
	Status             session.Status `json:"status"`
	URL                string         `json:"url"`
	Feature            *string        `json:"feature"`
	ScenarioBrief      *string        `json:"scenarioBrief"`
	VoiceEnabled       bool           `json:"voiceEnabled"`
	JobType            string         `json:"jobType"`
	JobTypeCode        job.Type       `json:"jobTypeCode"`
	CheckerCount       int            `json:"checkerCount"`
	ReadyCount         int            `json:"readyCount"`
	ChecklistItemCount int            `json:"checklistItemCount"`
	CreditsCharged     domain.Credits `json:"creditsCharged"`
	CreditsRefunded    domain.Credits `json:"creditsRefunded"` // what came back
	CreditsExpired     domain.Credits `json:"creditsExpired"`
	ReadyDeadline      timestamp      `json:"readyDeadline"`
	CreatedAt          timestamp      `json:"createdAt"`
	StartedAt          *timestamp     `json:"startedAt"`
	ClosedAt           *timestamp     `json:"closedAt"`
	CloseReason        *string        `json:"closeReason"`
	PassCount          int            `json:"passCount"`
	FailCount          int            `json:"failCount"`
	Slots              []slotBody     `json:"slots"`
	SessionURL         string         `json:"sessionUrl"`
	AsOf               *string        `json:"asOf,omitempty"`
}

type slotBody struct {
	createdSlot
	TargetOS         *string    `json:"targetOS"`
	TargetBrowser    *string    `json:"targetBrowser"`
	TargetScreenSize *string    `json:"targetScreenSize"`
	TargetNetwork    *string    `json:"targetNetwork"`
	Status           string     `json:"status"`
	ReadyAt          *timestamp `json:"readyAt"`
	JobStatus        job.Status `json:"jobStatus"`
	ReportID         string     `json:"reportId,omitempty"` // absent until a report exists
}

func (a *API) sessionBody(s sessions.Session) sessionBody {
	out := sessionBody{
		SessionID: s.ID, ProjectID: s.ProjectID, Status: s.Status, URL: s.URL, Feature: orNull(s.Feature),
		ScenarioBrief: orNull(s.ScenarioBrief), VoiceEnabled: s.VoiceEnabled, JobType: s.TypeEcho, JobTypeCode: s.Type,
		CheckerCount: len(s.Slots), ReadyCount: s.ReadyCount, ChecklistItemCount: s.ItemCount,
		CreditsCharged: s.CreditsCharged, CreditsRefunded: s.CreditsRefunded, CreditsExpired: s.CreditsExpired,
		ReadyDeadline: timestamp(s.ReadyDeadline), CreatedAt: timestamp(s.CreatedAt),
		StartedAt: stamp(s.StartedAt), ClosedAt: stamp(s.ClosedAt), CloseReason: orNull(s.CloseReason),
		PassCount: s.PassCount, FailCount: s.FailCount, SessionURL: announce.SessionPage(a.baseURL, s.ID),
	}
	for _, slot := range s.Slots {
		out.Slots = append(out.Slots, slotBody{
			createdSlot: createdSlot{
				Slot: slot.Slot, RoleLabel: slot.RoleLabel, JobID: slot.JobID,
				TargetDevice: orNull(slot.Target.Device), StatusURL: a.statusURL(slot.JobID),
			},
			TargetOS: orNull(slot.Target.OS), TargetBrowser: orNull(slot.Target.Browser),
			TargetScreenSize: orNull(slot.Target.ScreenSize), TargetNetwork: orNull(slot.Target.Network),
			Status: slot.Status, ReadyAt: stamp(slot.ReadyAt), JobStatus: slot.JobStatus, ReportID: slot.ReportID,
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

var sessionStatuses = []session.Status{session.StatusLobby, session.StatusActive, session.StatusCompleted, session.StatusExpired, session.StatusCancelled}

// listSessions is GET /v1/hosted/sessions.
func (a *API) listSessions(r *request) (answer, error) {
	var p problems
	q := r.query(&p)
	f := sessions.Filter{
		Status: session.Status(q.oneOf("status", words(sessionStatuses))), ProjectID: q.text("projectId"),
		Limit: q.integer("limit", 20, 1, 100), Offset: q.integer("offset", 0, 0, maxOffset),
	}
	at, err := a.asOf(r, &p)
	if err := cmp.Or(p.err(), err); err != nil {
		return answer{}, err
	}
	page := sessionPage{Sessions: []sessionBody{}, Limit: f.Limit, Offset: f.Offset, AsOf: at.then()}
	none, err := a.narrow(r, &f.ProjectID)
	switch {
	case err != nil:
		return answer{}, err
	case none:
		return reply(http.StatusOK, page)
	}
	found, total, err := a.sessionsThen(r, f, at)
	if err != nil {
		return answer{}, err
	}
	page.Total = total
	for _, s := range found {
		page.Sessions = append(page.Sessions, a.sessionBody(s))
	}
	return reply(http.StatusOK, page)
}

// getSession is GET /v1/hosted/sessions/:id.
func (a *API) getSession(r *request) (answer, error) {
	s, err := a.ownSession(r)
	var p problems
	at, failed := a.asOf(r, &p)
	if err := refusedFor(err, cmp.Or(p.err(), failed)); err != nil {
		return answer{}, err
	}
	if at != nil {
		if s, err = a.past.Session(r.Context(), r.caller.accountID, s.ID, at.Until); err != nil {
			return answer{}, at.orNotThen("session", err)
		}
	}
	body := a.sessionBody(s)
	body.AsOf = at.then()
	return reply(http.StatusOK, body)
}

// sessionsThen is the list, as ?asOf= asks for it.
func (a *API) sessionsThen(r *request, f sessions.Filter, at *asked) ([]sessions.Session, int, error) {
	if at != nil {
		return a.past.Sessions(r.Context(), r.caller.accountID, f, at.Until)
	}
	return a.reads.Sessions.List(r.Context(), r.caller.accountID, f)
}

// ownSession reads the session the path names.
func (a *API) ownSession(r *request) (sessions.Session, error) {
	return own(r, "session", r.vars["id"], a.reads.Sessions.Session, func(s sessions.Session) string { return s.ProjectID })
}

func sessionID(r *request) (string, error) {
	id := r.vars["id"]
	if !idPattern.MatchString(id) {
		return "", domain.NotFound("session")
	}
	return id, nil
}

type cancelledSession struct {
	SessionID        string         `json:"sessionId"`
	Status           session.Status `json:"status"`
	CreditsRefunded  domain.Credits `json:"creditsRefunded"`
	CreditsExpired   domain.Credits `json:"creditsExpired"`
	CreditsRemaining domain.Credits `json:"creditsRemaining"`
}

// cancelSession is POST /v1/hosted/sessions/:id/cancel. A repeat needs no
// Idempotency-Key: it answers the same.
func (a *API) cancelSession(r *request) (answer, error) {
	s, err := a.ownSession(r)
	if err != nil {
		return answer{}, err
	}
	return a.write(r, func(ctx context.Context, cause command.Cause) (answer, error) {
		out, err := a.commands.CancelSession(ctx, cause, s.ID)
		return a.done(ctx, r, out.Position, err, http.StatusOK, cancelledSession{
			SessionID: out.SessionID, Status: out.Status,
			CreditsRefunded: out.CreditsRefunded, CreditsExpired: out.CreditsExpired, CreditsRemaining: out.CreditsRemaining,
		})
	})
}

// sessionStanding is where a checker stands in the session they are in.
type sessionStanding struct {
	SessionID     string         `json:"sessionId"`
	Status        session.Status `json:"status"`
	Slot          int            `json:"slot"`
	JobID         string         `json:"jobId"`
	ReadyCount    int            `json:"readyCount"`
	CheckerCount  int            `json:"checkerCount"`
	ReadyDeadline timestamp      `json:"readyDeadline"`
}

// sessionReady is POST /v1/checker/sessions/:id/ready.
func (a *API) sessionReady(r *request) (answer, error) {
	return a.inSession(r, a.commands.ReadySession)
}

// sessionLeave is POST /v1/checker/sessions/:id/leave.
func (a *API) sessionLeave(r *request) (answer, error) {
	return a.inSession(r, a.commands.LeaveSession)
}

// inSession issues a checker's command on a session; a repeat is harmless.
func (a *API) inSession(
	r *request, do func(ctx context.Context, cause command.Cause, checkerID, sessionID string) (command.CheckerSession, error),
) (answer, error) {
	id, err := sessionID(r)
	if err != nil {
		return answer{}, err
	}
	return a.write(r, func(ctx context.Context, cause command.Cause) (answer, error) {
		out, err := do(ctx, cause, r.caller.checkerID, id)
		return a.done(ctx, r, out.Position, err, http.StatusOK, sessionStanding{
			SessionID: out.SessionID, Status: out.Status, Slot: out.Slot, JobID: out.JobID,
			ReadyCount: out.ReadyCount, CheckerCount: out.CheckerCount, ReadyDeadline: timestamp(out.ReadyDeadline),
		})
	})
}
