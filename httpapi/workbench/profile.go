package workbench

import (
	"strings"

	"humanqa/httpapi/ui"
)

type profileView struct {
	Languages, Devices string // one entry a line
}

// profile shows the checker's languages and devices (decisions, "Profiles").
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

// lines are the entries of a field with one entry a line.
func lines(text string) []string { return strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), "\n") }
