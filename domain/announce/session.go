package announce

import (
	"slices"

	"humanqa/domain/session"
)

var sessionKinds = []Kind{
	kind("job.session_ready", startedSession),
	kind("job.session_completed", completedSession),
}

// sessionData has the fields of data for the events about a session (decisions, "Session
// payloads").
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

func startedSession(s subject, e *session.Started) any {
	s.Dropped = e.Dropped
	return s.session(session.StatusActive, "active")
}

func completedSession(s subject, e *session.Completed) any {
	return sessionCompletedData{
		sessionData: s.session(session.StatusCompleted, "ended"), PassCount: e.PassCount, FailCount: e.FailCount,
	}
}

// session describes the session; live is the status of the slots that the test
// started with.
func (s subject) session(status session.Status, live string) sessionData {
	d := sessionData{
		ProjectID: s.ProjectID, SessionID: s.id, Status: status, CheckerCount: len(s.Slots),
		ReadyCount: len(s.Slots) - len(s.Dropped), Slots: make([]slotData, 0, len(s.Slots)),
		SessionURL: SessionPage(s.baseURL, s.id),
	}
	for _, slot := range s.Slots {
		data := slotData{Slot: slot.Slot, RoleLabel: slot.RoleLabel, JobID: slot.JobID, Status: live}
		if slices.Contains(s.Dropped, slot.Slot) {
			data.Status = "dropped"
		}
		d.Slots = append(d.Slots, data)
	}
	return d
}
