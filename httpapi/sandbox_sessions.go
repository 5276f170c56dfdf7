package httpapi

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"humanqa/domain/account"
	"humanqa/domain/command"
	"humanqa/domain/session"
)

type readySession struct {
	SessionID    string         `json:"sessionId"`
	Status       session.Status `json:"status"`
	ReadyCount   int            `json:"readyCount"`
	CheckerCount int            `json:"checkerCount"`
}

// readySlots is POST /v1/sandbox/sessions/:id/ready: robot checkers wait in the
// lobby, in the slots that are named, or in all of them.
func (a *API) readySlots(r *request) (answer, error) {
	if !r.caller.sandbox {
		return answer{}, account.ErrNoSandbox
	}
	found, err := a.ownSession(r)
	var p problems
	o := r.optionalObject(&p)
	slots := o.slotNumbers("slots")
	if err := refusedFor(err, p.err()); err != nil {
		return answer{}, err
	}
	return a.write(r, func(ctx context.Context, cause command.Cause) (answer, error) {
		out, err := a.commands.ReadySlots(ctx, cause, found.ID, slots)
		return a.done(ctx, r, out.Position, err, http.StatusOK, readySession{
			SessionID: out.SessionID, Status: out.Status, ReadyCount: out.ReadyCount, CheckerCount: out.CheckerCount,
		})
	})
}

// slotNumbers reads the numbers of slots; whether there are such is for the
// command to say.
func (o object) slotNumbers(name string) []int {
	values, _ := o.list(name, session.MaxSlots)
	numbers := make([]int, len(values))
	for i, raw := range values {
		at := fmt.Sprintf("%s[%d]", name, i)
		number := object{path: o.path, fields: map[string]json.RawMessage{at: raw}, problems: o.problems}
		var ok bool
		if numbers[i], ok = number.integer(at); !ok {
			number.wrong(at, "must be a whole number")
		}
	}
	return numbers
}
