package workbench

import (
	"strings"

	"humanqa/domain"
	"humanqa/httpapi/ui"
)

type profileView struct {
	Languages, Devices string // an entry a line
	Errors             []string
}

// profile is what a checker says of themselves (decisions, "Profiles").
func (d Deps) profile(r *ui.Request) (ui.Answer, error) {
	p, err := d.Reads.Pools.Profile(r.Context(), r.Person.CheckerID())
	if err != nil {
		return ui.Answer{}, err
	}
	return ui.Show("profile", "Your profile", profileView{Languages: strings.Join(p.Languages, "\n"),
		Devices: strings.Join(p.Devices, "\n")})
}

func (d Deps) saveProfile(r *ui.Request) (ui.Answer, error) {
	v := profileView{Languages: r.PostFormValue("languages"), Devices: r.PostFormValue("devices")}
	at, err := d.Commands.ProfileChecker(r.Context(), r.Cause(), r.Person.CheckerID(), lines(v.Languages), lines(v.Devices))
	if wrong := ui.Wrongs(err); wrong != nil {
		v.Errors = ui.Sentences(wrong, "languages", "The languages", "devices", "What you test on")
		return ui.Answer{Status: ui.StatusOf(domain.KindInvalid), Template: "profile", Title: "Your profile", View: v}, nil
	}
	if err != nil {
		return ui.Answer{}, err
	}
	r.Visible(at)
	return ui.Go("/workbench")
}

// lines are the entries of a field that holds one a line.
func lines(text string) []string { return strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), "\n") }
