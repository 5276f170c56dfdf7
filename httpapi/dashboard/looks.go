package dashboard

import (
	"cmp"
	"strings"
	"time"

	"humanqa/domain"
	"humanqa/httpapi/ui"
	"humanqa/httpapi/wire"
	"humanqa/projections/oversight"
)

// lookLine is a look of an operator into data of the account (decisions, "Operators").
type lookLine struct {
	oversight.Act
	By   string // the operator's name
	What string
	Href string
}

type looksView struct{ Lines []lookLine }

// looksShown bounds the looks that the page lists: the latest.
const looksShown = 200

// looks lists the operators' looks into data of the account, with their reasons.
func (d Deps) looks(r *ui.Request) (ui.Answer, error) {
	lines, err := d.looksInto(r, time.Time{}, looksShown)
	return ui.Show("looks", "Looks", looksView{lines}, ui.Everything), err
}

func (d Deps) looksInto(r *ui.Request, since time.Time, limit int) (lines []lookLine, err error) {
	acts, err := d.Reads.Acts.Looks(r.Context(), r.Account.ID, since, limit)
	if err != nil {
		return nil, err
	}
	ids := wire.List(acts, func(a oversight.Act) string { return a.PersonID })
	names, err := d.Credentials.Names(r.Context(), ids...)
	if err != nil {
		return nil, err
	}
	for _, a := range acts {
		line := lookLine{Act: a, By: cmp.Or(names[a.PersonID].Name, "An operator")}
		what, href := placeOf(a.Subject)
		line.What, line.Href = cmp.Or(strings.ToLower(what), "texts of yours"), href
		lines = append(lines, line)
	}
	return lines, nil
}

// placeOf is the page of a stream, and a name for what stands there; empty: there is none.
func placeOf(stream string) (what, href string) {
	for prefix, place := range map[string][2]string{
		domain.JobStreams: {"A test", "/dashboard/jobs/"}, domain.ProjectStreams: {"A project", "/dashboard/projects/"},
		domain.SessionStreams: {"A session", "/dashboard/sessions/"},
	} {
		if id, found := strings.CutPrefix(stream, prefix); found {
			return place[0], place[1] + id
		}
	}
	return "", ""
}
