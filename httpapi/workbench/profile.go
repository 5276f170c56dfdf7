package workbench

import (
	"strings"

	"humanqa/httpapi/ui"
)

type profileView struct {
	Languages, Devices string // an entry a line
}

// profile is what a checker says of themselves (decisions, "Profiles").
func (d Deps) profile(r *ui.Request) (ui.Answer, error) {
	p, err := d.Reads.Pools.Profile(r.Context(), r.Person.CheckerID())
	return ui.Show("profile", "Your profile", profileView{Languages: strings.Join(p.Languages, "\n"),
		Devices: strings.Join(p.Devices, "\n")}), err
}

func (d Deps) saveProfile(r *ui.Request) (ui.Answer, error) {
	at, err := d.Commands.ProfileChecker(r.Context(), r.Cause(), r.Person.CheckerID(), lines(r.PostFormValue("languages")),
		lines(r.PostFormValue("devices")))
	return r.Done(at, err, "/workbench")
}

// lines are the entries of a field that holds one a line.
func lines(text string) []string { return strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), "\n") }
