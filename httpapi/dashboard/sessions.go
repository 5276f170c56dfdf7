package dashboard

import (
	"humanqa/domain/person"
	"humanqa/httpapi/room"
	"humanqa/httpapi/ui"
	"humanqa/projections/sessions"
)

type sessionsView struct {
	Sessions []sessionLine
	Pager    pager
	MayStart bool
}

type sessionLine struct {
	sessions.Session
	Host  string
	State ui.State
}

func (d Deps) sessions(r *ui.Request) (ui.Answer, error) {
	page := pageOf(r)
	list, total, err := d.Reads.Sessions.List(r.Context(), r.Account.ID, sessions.Filter{Limit: pageSize, Offset: (page - 1) * pageSize})
	if err != nil {
		return ui.Answer{}, err
	}
	v := sessionsView{Pager: newPager(r, page, len(list), total), MayStart: r.May(person.Developer)}
	for _, s := range list {
		v.Sessions = append(v.Sessions, sessionLine{s, hostOf(s.URL), room.StateOf(s)})
	}
	return ui.Show("sessions", "Sessions", v, ui.Everything), nil
}
