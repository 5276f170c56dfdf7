package signin

import (
	"net/http"
	"slices"
	"strings"

	"github.com/google/uuid"

	"humanqa/domain"
	"humanqa/httpapi/ui"
	"humanqa/httpapi/wire"
	"humanqa/internal/credential"
)

type accountView struct {
	Login    string
	Password bool
	Passkeys []credential.Passkey
	// Offered says that the browser can make a passkey at this address.
	Offered  bool
	Shortest int                  // password, in characters
	Sessions []credential.Session // the current one first
	Current  uuid.UUID
}

// Browser names the browser of a session.
func (accountView) Browser(agent string) string { return browser(agent) }

// Ways is the number of ways in which the person can sign in.
func (v accountView) Ways() int {
	if v.Password {
		return len(v.Passkeys) + 1
	}
	return len(v.Passkeys)
}

func (d Deps) account(r *ui.Request) (ui.Answer, error) {
	sessions, err := d.Credentials.Sessions(r.Context(), r.Person.ID)
	if err != nil {
		return ui.Answer{}, err
	}
	names, err := d.Credentials.Names(r.Context(), r.Person.ID)
	if err != nil {
		return ui.Answer{}, err
	}
	v := accountView{
		Offered: d.Credentials.Passkeys(r.Host), Shortest: credential.MinPassword, Login: wire.OrZero(names[r.Person.ID].Login),
		Current: r.Session.ID,
	}
	if v.Password, err = d.Credentials.HasPassword(r.Context(), r.Person.ID); err != nil {
		return ui.Answer{}, err
	}
	if v.Passkeys, err = d.Credentials.PasskeysOf(r.Context(), r.Person.ID); err != nil {
		return ui.Answer{}, err
	}
	current := func(s credential.Session) bool { return s.ID == r.Session.ID }
	if at := slices.IndexFunc(sessions, current); at >= 0 {
		v.Sessions = append(v.Sessions, sessions[at])
	}
	v.Sessions = append(v.Sessions, slices.DeleteFunc(sessions, current)...)
	return ui.Show("account", "You", v), nil
}

// browser names the browser and the system of an agent, as far as that is
// known.
func browser(agent string) string {
	find := func(pairs ...string) string {
		for i := 0; i < len(pairs); i += 2 {
			if strings.Contains(agent, pairs[i]) {
				return pairs[i+1]
			}
		}
		return ""
	}
	program := find("Firefox/", "Firefox", "Edg/", "Edge", "OPR/", "Opera", "Chrome/", "Chrome", "Safari/", "Safari", "curl/", "curl")
	system := find("Android", "Android", "iPhone", "iPhone", "iPad", "iPad", "Windows", "Windows", "Mac OS", "macOS", "Linux", "Linux")
	switch {
	case program == "":
		return "A browser"
	case system == "":
		return program
	}
	return program + " on " + system
}

func (d Deps) endSession(r *ui.Request) (ui.Answer, error) {
	id, err := uuid.Parse(r.PostFormValue("session"))
	if err != nil {
		return ui.Answer{}, domain.NotFound("session")
	}
	if err := d.Credentials.End(r.Context(), r.Person.ID, id); err != nil {
		return ui.Answer{}, err
	}
	if id == r.Session.ID {
		return ui.Answer{Redirect: "/", Cookies: []*http.Cookie{ui.NoSession()}}, nil
	}
	return ui.Go("/account"), nil
}

func (d Deps) endOthers(r *ui.Request) (ui.Answer, error) {
	err := d.Credentials.EndOthers(r.Context(), r.Person.ID, r.Session.ID)
	return ui.Go("/account"), err
}

func (d Deps) rename(r *ui.Request) (ui.Answer, error) {
	err := d.Credentials.Rename(r.Context(), r.Person.ID, r.PostFormValue("name"))
	return ui.Go("/account"), err
}

// setPassword ends the other sessions: another person may know the old password.
func (d Deps) setPassword(r *ui.Request) (ui.Answer, error) {
	err := d.Credentials.SetPassword(r.Context(), r.Person.ID, r.PostFormValue("login"), r.PostFormValue("password"))
	return d.changed(r, "password", err)
}

// changed answers a change of a sign-in method, and ends the other sessions.
func (d Deps) changed(r *ui.Request, what string, err error) (ui.Answer, error) {
	if err == nil {
		err = d.Credentials.EndOthers(r.Context(), r.Person.ID, r.Session.ID)
	}
	if err != nil {
		return ui.Answer{}, err
	}
	r.Log.WithField("person", r.Person.ID).WithField("changed", what).Info("a sign-in method was changed")
	return ui.Go("/account"), nil
}

type newPasskeyView struct {
	Offered bool
	Name    string
}

func (d Deps) newPasskey(r *ui.Request) (ui.Answer, error) {
	return ui.Show("passkey", "Add a passkey", newPasskeyView{Offered: d.Credentials.Passkeys(r.Host), Name: browser(r.UserAgent())}), nil
}

func (d Deps) askForPasskey(r *ui.Request) (ui.Answer, error) {
	challenge, err := d.Credentials.AskForPasskey(r.Context(), r.Person.ID, r.Person.Name)
	return ui.Answer{JSON: challenge}, err
}

func (d Deps) addPasskey(r *ui.Request) (ui.Answer, error) {
	err := d.Credentials.AddPasskey(r.Context(), r.Person.ID, r.PostFormValue("name"), r.PostFormValue("challenge"),
		[]byte(r.PostFormValue("answer")))
	if err != nil {
		return ui.Answer{}, err
	}
	r.Log.WithField("person", r.Person.ID).Info("a passkey was added")
	return led(ui.Go("/account"), nil)
}

func (d Deps) namePasskey(r *ui.Request) (ui.Answer, error) {
	err := d.Credentials.NamePasskey(r.Context(), r.Person.ID, r.PostFormValue("passkey"), r.PostFormValue("name"))
	return ui.Go("/account"), err
}

// removePasskey ends the other sessions: the device may be lost.
func (d Deps) removePasskey(r *ui.Request) (ui.Answer, error) {
	return d.changed(r, "passkeys", d.Credentials.RemovePasskey(r.Context(), r.Person.ID, r.PostFormValue("passkey")))
}
