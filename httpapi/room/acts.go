package room

import (
	"context"

	"humanqa/domain"
	"humanqa/domain/command"
	"humanqa/httpapi/input"
	"humanqa/httpapi/ui"
)

// mark marks this moment for all people in the room.
func (d Deps) mark(r *ui.Request, s seat) (ui.Answer, error) {
	form := ui.Form(r, map[string]string{"note": "note"})
	note, err := input.Mark(form), form.Problems.Err()
	if err != nil {
		return ui.Answer{}, err
	}
	var at domain.Position
	if s.Watches() {
		at, err = d.Commands.MarkSession(r.Context(), r.Cause(), s.ID, r.Person.ID, note)
	} else {
		at, err = d.Commands.MarkSlot(r.Context(), r.Cause(), s.checker, s.ID, note, 0)
	}
	return d.acted(r, at, err, s.Path+"#marks")
}

// cancel ends the session for all, on the client's request. The slots that have not ended
// are refunded.
func (d Deps) cancel(r *ui.Request, s seat) (ui.Answer, error) {
	if err := r.Open(); err != nil {
		return ui.Answer{}, err
	}
	out, err := d.Commands.CancelSession(r.Context(), r.Cause(), s.ID)
	return d.acted(r, out.Position, err, s.Path)
}

// ready and leave are the checker's.
func (d Deps) ready(r *ui.Request, s seat) (ui.Answer, error) {
	return d.inLobby(r, s, d.Commands.ReadySession, s.Path)
}

func (d Deps) leave(r *ui.Request, s seat) (ui.Answer, error) {
	return d.inLobby(r, s, d.Commands.LeaveSession, "/workbench")
}

func (d Deps) inLobby(
	r *ui.Request, s seat, act func(context.Context, command.Cause, string, string) (command.CheckerSession, error), next string,
) (ui.Answer, error) {
	out, err := act(r.Context(), r.Cause(), s.checker, s.ID)
	return d.acted(r, out.Position, err, next)
}

// acted leads to the next page after a write. The page's script gets JSON, and shows the
// change itself.
func (d Deps) acted(r *ui.Request, at domain.Position, err error, next string) (ui.Answer, error) {
	if err != nil || !r.WantsJSON() {
		return r.Done(at, err, next)
	}
	r.Visible(at)
	return ui.Answer{JSON: map[string]string{"next": next}, Silent: next != "/workbench"}, nil
}
