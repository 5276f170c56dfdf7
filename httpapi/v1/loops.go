package v1

import (
	"context"
	"net/http"

	"humanqa/domain"
	"humanqa/domain/command"
	"humanqa/domain/loop"
	"humanqa/httpapi/wire"
	"humanqa/projections/loops"
)

type loopSession struct {
	ID            string          `json:"id"`
	ProjectID     string          `json:"projectId"`
	Skill         string          `json:"skill"`
	Status        loop.Status     `json:"status"`
	Iterations    int             `json:"iterations"`
	MaxIterations int             `json:"maxIterations"`
	CreditsSpent  domain.Credits  `json:"creditsSpent"`
	FinalReportID *string         `json:"finalReportId"`
	FailingKeys   []string        `json:"failingKeys"`
	JobIDs        []string        `json:"jobIds"`
	StartedAt     wire.Timestamp  `json:"startedAt"`
	LastSeenAt    wire.Timestamp  `json:"lastSeenAt"`
	EndedAt       *wire.Timestamp `json:"endedAt"`
}

// getLoop is GET /v1/loop-sessions/:id.
func (a *Handlers) getLoop(r *wire.Request) (wire.Answer, error) {
	s, err := a.ownLoop(r)
	return wire.ReplyUnless(err, http.StatusOK, loopSessionOf(s))
}

// finalizeLoop is POST /v1/loop-sessions/:id/finalize: the agent ends its loop.
func (a *Handlers) finalizeLoop(r *wire.Request) (wire.Answer, error) {
	found, err := a.ownLoop(r)
	var p wire.Problems
	o := r.Object(&p)
	final := loop.Status(o.RequiredOneOf("finalStatus", wire.Words(loop.Ends())...))
	return a.Writer.WriteUnless(wire.RefusedFor(err, p.Err()), r, func(ctx context.Context, cause command.Cause) (wire.Answer, error) {
		at, err := a.Commands.FinalizeLoop(ctx, cause, found.LoopID, found.ID, final)
		if err != nil {
			return wire.Answer{}, err
		}
		a.Writer.Visible(ctx, r, at)
		s, err := a.Reads.Loops.Session(ctx, r.Caller.AccountID, found.ID)
		return wire.ReplyUnless(err, http.StatusOK, loopSessionOf(s))
	})
}

// ownLoop reads the loop session the path names.
func (a *Handlers) ownLoop(r *wire.Request) (loops.Session, error) {
	return own(r, "loop session", r.Vars["id"], a.Reads.Loops.Session, func(s loops.Session) string { return s.ProjectID })
}

func loopSessionOf(s loops.Session) loopSession {
	return loopSession{
		ID: s.ID, ProjectID: s.ProjectID, Skill: s.Skill, Status: s.Status,
		Iterations: s.Iterations, MaxIterations: s.MaxIterations, CreditsSpent: s.CreditsSpent,
		FinalReportID: wire.OrNull(s.FinalReportID), FailingKeys: s.FailingKeys, JobIDs: s.JobIDs,
		StartedAt: wire.Timestamp(s.StartedAt), LastSeenAt: wire.Timestamp(s.LastSeenAt), EndedAt: wire.Stamp(s.EndedAt),
	}
}
