package dashboard

import (
	"humanqa/domain/person"
	"humanqa/httpapi/room"
	"humanqa/httpapi/ui"
	"humanqa/projections/sessions"
)

type sessionsView struct {
	Sessions []sessionLine
	Pager    ui.Pager
	MayStart bool
}

type sessionLine struct {
	sessions.Session
	Host  string
	State ui.State
}

func (d Deps) sessions(r *ui.Request) (ui.Answer, error) {
	page := ui.PageOf(r)
	all := sessions.Filter{Limit: ui.PageSize, Offset: (page - 1) * ui.PageSize}
	list, total, err := d.Reads.Sessions.List(r.Context(), r.Account.ID, all)
	if err != nil {
		return ui.Answer{}, err
	}
	v := sessionsView{Pager: ui.NewPager(r, page, len(list), total), MayStart: r.May(person.Developer)}
	for _, s := range list {
		v.Sessions = append(v.Sessions, sessionLine{s, ui.HostOf(s.URL), room.StateOf(s)})
	}
	return ui.Show("sessions", "Sessions", v, ui.Everything), nil
}
