package webhooks

import (
	"slices"

	"humanqa/domain"
	"humanqa/domain/loop"
	"humanqa/domain/session"
)

// sessionData is what data holds for the events about a session (decisions,
// section 7).
type sessionData struct {
	ProjectID    string         `json:"projectId"`
	SessionID    string         `json:"sessionId"`
	Status       session.Status `json:"status"`
	CheckerCount int            `json:"checkerCount"`
	ReadyCount   int            `json:"readyCount"` // slots that the test started with
	Slots        []slotData     `json:"slots"`
	SessionURL   string         `json:"sessionUrl"`
}

type slotData struct {
	Slot      int    `json:"slot"`
	RoleLabel string `json:"roleLabel"`
	JobID     string `json:"jobId"`
	Status    string `json:"status"` // active, ended, dropped
}

type sessionCompletedData struct {
	sessionData
	PassCount int `json:"passCount"` // jobs
	FailCount int `json:"failCount"`
}

func startedSession(baseURL, sessionID string, e *session.Started, f Facts) sessionData {
	f.Dropped = e.Dropped
	return f.session(baseURL, sessionID, session.Active, "active")
}

func completedSession(baseURL, sessionID string, e *session.CompletedWith, f Facts) sessionCompletedData {
	return sessionCompletedData{
		sessionData: f.session(baseURL, sessionID, session.Completed, "ended"),
		PassCount:   e.PassCount, FailCount: e.FailCount,
	}
}

// session describes the session; live is the status of the slots that the test
// started with.
func (f Facts) session(baseURL, sessionID string, status session.Status, live string) sessionData {
	d := sessionData{
		ProjectID: f.ProjectID, SessionID: sessionID, Status: status, CheckerCount: len(f.Slots),
		ReadyCount: len(f.Slots) - len(f.Dropped), Slots: make([]slotData, 0, len(f.Slots)),
		SessionURL: SessionPage(baseURL, sessionID),
	}
	for _, s := range f.Slots {
		slot := slotData{Slot: s.Slot, RoleLabel: s.RoleLabel, JobID: s.JobID, Status: live}
		if slices.Contains(f.Dropped, s.Slot) {
			slot.Status = "dropped"
		}
		d.Slots = append(d.Slots, slot)
	}
	return d
}

// loopData tells of an agent that got stuck (specification, "Delivery
// envelope").
type loopData struct {
	ProjectID     string         `json:"projectId"`
	LoopSessionID string         `json:"loopSessionId"`
	FinalStatus   loop.Status    `json:"finalStatus"`
	Iterations    int            `json:"iterations"`
	CreditsSpent  domain.Credits `json:"creditsSpent"`
	Platform      string         `json:"platform"` // the agent's skill
	ProjectName   string         `json:"projectName"`
	FinalReportID *string        `json:"finalReportId"`
}

func endedLoop(e *loop.Ended) loopData {
	d := loopData{
		ProjectID: e.ProjectID, LoopSessionID: e.SessionID, FinalStatus: e.FinalStatus, Iterations: e.Iterations,
		CreditsSpent: e.CreditsSpent, Platform: e.Skill, ProjectName: e.ProjectName,
	}
	if e.FinalReportID != "" {
		d.FinalReportID = &e.FinalReportID
	}
	return d
}
