package httpapi

import (
	"context"
	"net/http"
	"strings"

	"humanqa/domain"
	"humanqa/domain/command"
	"humanqa/domain/loop"
	"humanqa/projections/loops"
)

type loopSession struct {
	ID            string         `json:"id"`
	ProjectID     string         `json:"projectId"`
	Skill         string         `json:"skill"`
	Status        loop.Status    `json:"status"`
	Iterations    int            `json:"iterations"`
	MaxIterations int            `json:"maxIterations"`
	CreditsSpent  domain.Credits `json:"creditsSpent"`
	FinalReportID *string        `json:"finalReportId"`
	FailingKeys   []string       `json:"failingKeys"`
	JobIDs        []string       `json:"jobIds"`
	StartedAt     timestamp      `json:"startedAt"`
	LastSeenAt    timestamp      `json:"lastSeenAt"`
	EndedAt       *timestamp     `json:"endedAt"`
}

// getLoop is GET /v1/loop-sessions/:id.
func (a *API) getLoop(r *request) (answer, error) {
	s, err := a.ownLoop(r)
	if err != nil {
		return answer{}, err
	}
	return reply(http.StatusOK, loopSessionOf(s))
}

// finalizeLoop is POST /v1/loop-sessions/:id/finalize: the agent ends its loop.
func (a *API) finalizeLoop(r *request) (answer, error) {
	found, err := a.ownLoop(r)
	var p problems
	o := r.object(&p)
	final := o.required("finalStatus", maxWord)
	if strings.TrimSpace(final) != "" {
		o.oneOf("finalStatus", "", words(loop.Ends())...)
	}
	if err := refusedFor(err, p.err()); err != nil {
		return answer{}, err
	}
	return a.write(r, func(ctx context.Context, cause command.Cause) (answer, error) {
		at, err := a.commands.FinalizeLoop(ctx, cause, found.LoopID, found.ID, loop.Status(final))
		if err != nil {
			return answer{}, err
		}
		a.visible(ctx, r, at)
		s, err := a.reads.Loops.Session(ctx, r.caller.accountID, found.ID)
		if err != nil {
			return answer{}, err
		}
		return reply(http.StatusOK, loopSessionOf(s))
	})
}

// ownLoop reads the loop session the path names.
func (a *API) ownLoop(r *request) (loops.Session, error) {
	return own(r, "loop session", r.vars["id"], a.reads.Loops.Session, func(s loops.Session) string { return s.ProjectID })
}

func loopSessionOf(s loops.Session) loopSession {
	return loopSession{
		ID: s.ID, ProjectID: s.ProjectID, Skill: s.Skill, Status: s.Status,
		Iterations: s.Iterations, MaxIterations: s.MaxIterations, CreditsSpent: s.CreditsSpent,
		FinalReportID: orNull(s.FinalReportID), FailingKeys: s.FailingKeys, JobIDs: s.JobIDs,
		StartedAt: timestamp(s.StartedAt), LastSeenAt: timestamp(s.LastSeenAt), EndedAt: stamp(s.EndedAt),
	}
}
