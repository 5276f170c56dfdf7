// Package signin lets people in and out: the front page, one-time links, sign-in and
// sign-out, the fresh proof before a sensitive page, and the list of a person's
// sessions.
package signin

import (
	"context"
	"embed"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"humanqa/domain"
	"humanqa/domain/command"
	"humanqa/httpapi/ui"
	"humanqa/internal/credential"
	"humanqa/projections/people"
)

// Templates are the package's, for ui.Config.
//
//go:embed templates/*.html
var Templates embed.FS

// Deps are the dependencies of the pages. All fields are required.
type Deps struct {
	Credentials *credential.Store
	People      *people.Reads
	Join        func(ctx context.Context, cause command.Cause, personID string) (domain.Position, error)
	BaseURL     string
}

// Pages are the pages of the package.
func Pages(d Deps) []ui.Page {
	return []ui.Page{
		{Method: "GET", Pattern: "/{$}", Handle: front},

		{Method: "GET", Pattern: "/signin", Handle: d.form},
		{Method: "POST", Pattern: "/signin", Handle: d.signIn},
		{Method: "POST", Pattern: "/signin/passkey/ask", Handle: d.askPasskey},
		{Method: "POST", Pattern: "/signin/passkey", Handle: d.signInWithPasskey},
		{Method: "POST", Pattern: "/signin/out", Handle: d.signOut},

		{Method: "GET", Pattern: "/signin/confirm", For: ui.SignedIn, Handle: d.confirmForm},
		{Method: "POST", Pattern: "/signin/confirm", For: ui.SignedIn, Handle: d.confirm},
		{Method: "POST", Pattern: "/signin/confirm/resend", For: ui.SignedIn, Handle: d.resend},
		{Method: "POST", Pattern: "/signin/confirm/passkey/ask", For: ui.SignedIn, Handle: d.askPasskey},
		{Method: "POST", Pattern: "/signin/confirm/passkey", For: ui.SignedIn, Handle: d.confirmWithPasskey},

		{Method: "GET", Pattern: "/join/{token}", Handle: d.invitation},
		{Method: "POST", Pattern: "/join/{token}", Handle: d.join},
		{Method: "POST", Pattern: "/join/{token}/passkey/ask", Handle: d.askNewPasskey},
		{Method: "POST", Pattern: "/join/{token}/passkey", Handle: d.joinWithPasskey},

		{Method: "GET", Pattern: "/account", For: ui.SignedIn, Handle: d.account},
		{Method: "POST", Pattern: "/account/name", For: ui.SignedIn, Says: "Saved.", Handle: d.rename},
		{Method: "POST", Pattern: "/account/password", For: ui.SignedIn, Fresh: true,
			Says: "The password is saved. Other browsers are signed out.", Handle: d.setPassword},
		{Method: "GET", Pattern: "/account/passkeys/new", For: ui.SignedIn, Fresh: true, Handle: d.newPasskey},
		{Method: "POST", Pattern: "/account/passkeys/ask", For: ui.SignedIn, Fresh: true, Handle: d.askForPasskey},
		{Method: "POST", Pattern: "/account/passkeys", For: ui.SignedIn, Fresh: true, Says: "The passkey is added.",
			Handle: d.addPasskey},
		{Method: "POST", Pattern: "/account/passkeys/name", For: ui.SignedIn, Says: "Saved.", Handle: d.namePasskey},
		{Method: "POST", Pattern: "/account/passkeys/remove", For: ui.SignedIn, Fresh: true,
			Says: "The passkey is removed. Other browsers are signed out.", Handle: d.removePasskey},
		{Method: "POST", Pattern: "/account/sessions/end", For: ui.SignedIn, Handle: d.endSession},
		{Method: "POST", Pattern: "/account/sessions/end-others", For: ui.SignedIn, Handle: d.endOthers},
	}
}

// front leads a person who is signed in to their place, and introduces the service to all
// others.
func front(r *ui.Request) (ui.Answer, error) {
	if r.Person != nil {
		return ui.Go(r.Home()), nil
	}
	return ui.Show("front", "Human QA testing", nil), nil
}

type formView struct {
	Next     string
	Form     string // the form that waits for the proof; empty: none
	Login    string
	Wrong    string
	Passkeys bool
	// Insecure says that the browser will not keep a session at this address.
	Insecure bool
	// Ended says that a form was sent after its session had ended.
	Ended bool
}

// next is the page to which a sign-in leads: a page of this service, or the person's place.
func next(r *ui.Request) string { return ui.LocalPath(r.FormValue("next"), "/") }

func (d Deps) view(r *ui.Request) formView {
	return formView{
		Next: next(r), Form: r.FormValue(ui.FormField), Login: r.PostFormValue("login"), Passkeys: d.Credentials.Passkeys(r.Host),
		Insecure: d.insecure(r),
		Ended:    r.FormValue(ui.EndedField) != "",
	}
}

// insecure says that browsers keep no secure cookie here.
func (d Deps) insecure(r *ui.Request) bool {
	base, err := url.Parse(d.BaseURL)
	host, _, _ := strings.Cut(r.Host, ":")
	return err == nil && base.Scheme == "http" && r.URL.Scheme != "https" && host != "localhost" && !strings.HasPrefix(host, "127.")
}

func (d Deps) form(r *ui.Request) (ui.Answer, error) {
	if r.Person != nil && r.FormValue("next") == "" {
		return ui.Go(r.Home()), nil
	}
	return ui.Show("signin", "Sign in", d.view(r)), nil
}

// failed shows the form again with advice to the person. An error that is not their fault
// stays an error.
func (d Deps) failed(template, title string, v formView, err error) (ui.Answer, error) {
	var known *domain.Error
	if !errors.As(err, &known) || known.Kind != domain.KindUnauthorized && known.Kind != domain.KindRateLimited {
		return ui.Answer{}, err
	}
	v.Wrong = "Wrong name or password."
	status := 401
	if known.Kind == domain.KindRateLimited {
		v.Wrong, status = "Too many attempts. "+ui.Sentence(known.Hint), 429
	}
	return ui.Answer{Template: template, Title: title, View: v, Status: status}, nil
}

func (d Deps) signIn(r *ui.Request) (ui.Answer, error) {
	id, err := d.Credentials.SignIn(r.Context(), r.PostFormValue("login"), r.PostFormValue("password"), r.Address, r.DeviceToken())
	var ans ui.Answer
	if err == nil {
		ans, err = d.enter(r, id)
	}
	if err != nil {
		return d.failed("signin", "Sign in", d.view(r), err)
	}
	return ans, nil
}

// enter opens a session for a person who has just proved their identity. A disabled
// person gets the same answer as a wrong password. A join that crashed between its two
// writes is completed here.
func (d Deps) enter(r *ui.Request, personID string) (ui.Answer, error) {
	who, err := d.People.Person(r.Context(), personID)
	switch {
	case domain.IsKind(err, domain.KindNotFound), err == nil && who.Disabled:
		return ui.Answer{}, credential.ErrWrong
	case err != nil:
		return ui.Answer{}, err
	}
	if who.JoinedAt == nil {
		at, err := d.Join(r.Context(), command.Cause{
			CommandID: domain.CommandIDFor("join", personID), CorrelationID: r.ID, Actor: "person:" + personID,
		}, personID)
		if err != nil {
			return ui.Answer{}, err
		}
		r.Visible(at)
	}
	token, err := d.Credentials.Begin(r.Context(), personID, r.Address, r.UserAgent(), r.SessionToken())
	if err != nil {
		return ui.Answer{}, err
	}
	device, err := d.Credentials.Remember(r.Context(), personID, r.DeviceToken())
	if err != nil {
		return ui.Answer{}, err
	}
	return ui.Answer{Redirect: next(r), Cookies: []*http.Cookie{ui.SessionCookie(token), ui.DeviceCookie(device)}}, nil
}

// led turns a redirect into JSON that a script follows.
func led(ans ui.Answer, err error) (ui.Answer, error) {
	return ui.Answer{JSON: map[string]string{"next": ans.Redirect}, Cookies: ans.Cookies}, err
}

func (d Deps) askPasskey(r *ui.Request) (ui.Answer, error) {
	challenge, err := d.Credentials.AskToSignIn(r.Context())
	return ui.Answer{JSON: challenge}, err
}

func (d Deps) signInWithPasskey(r *ui.Request) (ui.Answer, error) {
	id, err := d.Credentials.SignInWithPasskey(r.Context(), r.PostFormValue("challenge"), []byte(r.PostFormValue("answer")))
	if err != nil {
		return ui.Answer{}, err
	}
	return led(d.enter(r, id))
}

func (d Deps) signOut(r *ui.Request) (ui.Answer, error) {
	if r.Session != nil {
		if err := d.Credentials.End(r.Context(), r.Person.ID, r.Session.ID); err != nil {
			return ui.Answer{}, err
		}
	}
	return ui.Answer{Redirect: "/", Cookies: []*http.Cookie{ui.NoSession()}}, nil
}

type confirmView struct {
	formView
	HasPassword, HasPasskey bool
	Proven                  bool // nothing is missing but the form's button
}

func (d Deps) confirmView(r *ui.Request) (v confirmView, err error) {
	v.formView, v.Proven = d.view(r), r.Proven()
	if v.HasPassword, err = d.Credentials.HasPassword(r.Context(), r.Person.ID); err != nil {
		return v, err
	}
	v.HasPasskey, err = d.Credentials.HasPasskey(r.Context(), r.Person.ID)
	v.HasPasskey = v.HasPasskey && v.Passkeys
	return v, err
}

func (d Deps) confirmForm(r *ui.Request) (ui.Answer, error) {
	v, err := d.confirmView(r)
	return ui.Show("confirm", "Confirm your identity", v), err
}

func (d Deps) confirm(r *ui.Request) (ui.Answer, error) {
	err := d.Credentials.ProvePassword(r.Context(), r.Person.ID, r.PostFormValue("password"), r.Address)
	if err == nil {
		return d.proved(r)
	}
	v, errView := d.confirmView(r)
	if errView != nil {
		return ui.Answer{}, errView
	}
	ans, err := d.failed("confirm", "Confirm your identity", v.formView, err)
	if err != nil {
		return ui.Answer{}, err
	}
	v.formView, _ = ans.View.(formView)
	if ans.Status == 401 {
		v.Wrong = "That is not your password."
	}
	ans.View = v
	return ans, nil
}

func (d Deps) confirmWithPasskey(r *ui.Request) (ui.Answer, error) {
	id, err := d.Credentials.SignInWithPasskey(r.Context(), r.PostFormValue("challenge"), []byte(r.PostFormValue("answer")))
	switch {
	case err != nil:
		return ui.Answer{}, err
	case id != r.Person.ID:
		return ui.Answer{}, credential.ErrWrong
	}
	if err := d.Credentials.Proved(r.Context(), r.Session.ID); err != nil {
		return ui.Answer{}, err
	}
	then := map[string]string{"next": next(r)}
	if r.PostFormValue(ui.FormField) != "" {
		then["post"] = ui.ConfirmPath + "/resend" // the answer may be a page, which a script cannot show
	}
	return ui.Answer{JSON: then}, nil
}

func (d Deps) proved(r *ui.Request) (ui.Answer, error) {
	if err := d.Credentials.Proved(r.Context(), r.Session.ID); err != nil {
		return ui.Answer{}, err
	}
	if form := r.PostFormValue(ui.FormField); form != "" {
		return r.Resend(form)
	}
	return ui.Go(next(r)), nil
}

// resend carries out a form whose proof was given by passkey, or before a crash.
func (d Deps) resend(r *ui.Request) (ui.Answer, error) {
	form := r.PostFormValue(ui.FormField)
	if !r.Proven() {
		return ui.Go(ui.ConfirmPath + "?" + url.Values{"next": {next(r)}, ui.FormField: {form}}.Encode()), nil
	}
	return r.Resend(form)
}

type joinView struct {
	Token    string
	Name     string
	Roles    []people.PersonRole // that the invitation gives
	Again    bool                // they have joined before
	Ends     time.Time
	Passkeys bool
	Insecure bool
	Shortest int
}

// invitation shows the purpose of a link. This does not spend the link, because mail
// scanners open links.
func (d Deps) invitation(r *ui.Request) (ui.Answer, error) {
	v, err := d.joinView(r)
	return ui.Answer{Template: "join", Title: "Join", View: v, Secret: true}, err
}

func (d Deps) joinView(r *ui.Request) (joinView, error) {
	token := r.PathValue("token")
	i, err := d.Credentials.Invitation(r.Context(), token)
	if err != nil {
		return joinView{}, err
	}
	who, err := d.People.Person(r.Context(), i.PersonID)
	switch {
	case err != nil:
		return joinView{}, err
	case who.Disabled:
		return joinView{}, credential.ErrNoLink
	}
	return joinView{
		Token: token, Name: i.Name, Roles: who.Roles, Again: who.JoinedAt != nil, Ends: i.ExpiresAt,
		Passkeys: d.Credentials.Passkeys(r.Host), Insecure: d.insecure(r), Shortest: credential.MinPassword,
	}, nil
}

func (d Deps) join(r *ui.Request) (ui.Answer, error) {
	token := r.PathValue("token")
	if _, err := d.joinView(r); err != nil {
		return ui.Answer{}, err
	}
	id, err := d.Credentials.JoinWithPassword(r.Context(), token, credential.Joining{
		Name: r.PostFormValue("name"), Login: r.PostFormValue("login"), Password: r.PostFormValue("password"),
	}, r.Address)
	var refused *domain.Error
	if errors.As(err, &refused) && refused.Kind == domain.KindRateLimited {
		ans, err := d.invitation(r)
		ans.Refused = refused
		return ans, err
	}
	if err != nil {
		return ui.Answer{}, err
	}
	return d.enter(r, id)
}

func (d Deps) askNewPasskey(r *ui.Request) (ui.Answer, error) {
	if _, err := d.joinView(r); err != nil {
		return ui.Answer{}, err
	}
	challenge, err := d.Credentials.AskToJoin(r.Context(), r.PathValue("token"), r.PostFormValue("name"))
	return ui.Answer{JSON: challenge}, err
}

func (d Deps) joinWithPasskey(r *ui.Request) (ui.Answer, error) {
	if _, err := d.joinView(r); err != nil {
		return ui.Answer{}, err
	}
	id, err := d.Credentials.JoinWithPasskey(r.Context(), r.PathValue("token"), r.PostFormValue("challenge"),
		[]byte(r.PostFormValue("answer")))
	if err != nil {
		return ui.Answer{}, err
	}
	return led(d.enter(r, id))
}
