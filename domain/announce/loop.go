package announce

import (
	"humanqa/domain"
	"humanqa/domain/loop"
)

var loopKinds = []Kind{
	where(func(e *loop.Ended) bool { return e.Alert }, kind("loop_session.ended", endedLoop)),
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
	FinalReportID orNull         `json:"finalReportId"`
}

func endedLoop(_ subject, e *loop.Ended) any {
	return loopData{
		ProjectID: e.ProjectID, LoopSessionID: e.SessionID, FinalStatus: e.FinalStatus, Iterations: e.Iterations,
		CreditsSpent: e.CreditsSpent, Platform: e.Skill, ProjectName: e.ProjectName, FinalReportID: orNull(e.FinalReportID),
	}
}
