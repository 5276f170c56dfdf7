package v1

import (
	"context"
	"net/http"

	"humanqa/domain/account"
	"humanqa/domain/command"
	"humanqa/domain/session"
	"humanqa/httpapi/wire"
)

type readySession struct {
	SessionID    string         `json:"sessionId"`
	Status       session.Status `json:"status"`
	ReadyCount   int            `json:"readyCount"`
	CheckerCount int            `json:"checkerCount"`
}

// readySlots is POST /v1/sandbox/sessions/:id/ready: robot checkers wait in the
// lobby, in the slots that are named, or in all of them.
func (a *Handlers) readySlots(r *wire.Request) (wire.Answer, error) {
	if !r.Caller.Sandbox {
		return wire.Answer{}, account.ErrNoSandbox
	}
	found, err := a.ownSession(r)
	var p wire.Problems
	o := r.OptionalObject(&p)
	slots := o.Integers("slots", session.MaxSlots) // the command decides whether they exist
	return a.Writer.WriteUnless(wire.RefusedFor(err, p.Err()), r, func(ctx context.Context, cause command.Cause) (wire.Answer, error) {
		out, err := a.Commands.ReadySlots(ctx, cause, found.ID, slots)
		return a.Writer.Done(ctx, r, out.Position, err, http.StatusOK, readySession{
			SessionID: out.SessionID, Status: out.Status, ReadyCount: out.ReadyCount, CheckerCount: out.CheckerCount,
		})
	})
}
