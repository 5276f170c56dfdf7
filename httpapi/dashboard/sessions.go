package dashboard

import (
	"humanqa/httpapi/ui"
	"humanqa/projections/sessions"
)

func (d Deps) sessions(r *ui.Request) (ui.Answer, error) {
	list, err := ui.List(r, func(limit, offset int) ([]sessions.Session, int, error) {
		return d.Reads.Sessions.List(r.Context(), r.Account.ID, sessions.Filter{Limit: limit, Offset: offset})
	})
	return ui.Show("sessions", "Sessions", list, ui.Everything), err
}
