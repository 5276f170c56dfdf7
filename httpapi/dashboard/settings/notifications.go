package settings

import (
	"humanqa/domain"
	"humanqa/httpapi/ui"
	"humanqa/internal/mail"
)

type notificationsView struct {
	Off     bool // the service sends no e-mail
	Person  mail.Person
	Choices mail.Choices
	Account string
}

// notifications shows a person's e-mail address, and the kinds of e-mail they get about the
// current account.
func (d Deps) notifications(r *ui.Request) (ui.Answer, error) {
	v := notificationsView{Off: d.Mail == nil, Account: r.Account.Name}
	if v.Off {
		return ui.Show("notifications", "Notifications", v), nil
	}
	var err error
	if v.Person, err = d.Mail.Person(r.Context(), r.Person.ID); err != nil {
		return ui.Answer{}, err
	}
	if v.Choices, err = d.Mail.Choices(r.Context(), r.Account.ID, r.Person.ID); err != nil {
		return ui.Answer{}, err
	}
	if v.Person.Address == "" { // the usual choices, until the person chooses
		v.Choices = mail.Choices{Reports: mail.AllReports, Questions: true, Credits: true, Webhooks: true}
	}
	return ui.Show("notifications", "Notifications", v), nil
}

// errNoMail answers forms that another service's page sent.
var errNoMail = domain.NotFound("page").WithHint("this service sends no e-mail")

// mailing gives the handler if the service sends e-mail, else one that refuses.
func (d Deps) mailing(refusal error, handle func(*ui.Request) (ui.Answer, error)) func(*ui.Request) (ui.Answer, error) {
	if d.Mail != nil {
		return handle
	}
	return func(*ui.Request) (ui.Answer, error) { return ui.Answer{}, refusal }
}

func (d Deps) setNotifications(r *ui.Request) (ui.Answer, error) {
	address, err := r.Text("address", 254)
	choices := mail.Choices{
		Reports:   mail.Reports(r.PostFormValue("reports")),
		Questions: r.PostFormValue("questions") != "",
		Credits:   r.PostFormValue("credits") != "", Webhooks: r.PostFormValue("webhooks") != "",
	}
	if err == nil {
		err = d.Mail.Save(r.Context(), r.Account.ID, r.Person.ID, address, choices)
	}
	return r.Done(domain.Position{}, err, "/dashboard/notifications")
}

// askAgain sends another link to the address that waits for its confirmation.
func (d Deps) askAgain(r *ui.Request) (ui.Answer, error) {
	return r.Done(domain.Position{}, d.Mail.AskAgain(r.Context(), r.Person.ID), "/dashboard/notifications")
}

// mailLinkView is the page of a link in an e-mail. The link itself changes nothing, because
// mail scanners open links; they press no buttons.
type mailLinkView struct {
	Stops   bool
	All     bool // it stops all e-mail to a person
	Done    bool
	Address string
	Path    string
}

func (d Deps) mailLink(r *ui.Request, v mailLinkView, err error) (ui.Answer, error) {
	if err != nil {
		return ui.Answer{}, err
	}
	title := "Confirm your e-mail address"
	if v.Stops {
		title = "Stop e-mail"
	}
	v.Path = r.URL.Path
	return ui.Answer{Template: "mail", Title: title, View: v, Bare: true, Secret: true}, nil
}

func (d Deps) confirmMail(r *ui.Request) (ui.Answer, error) {
	_, address, err := d.Mail.Confirming(r.Context(), r.PathValue("token"))
	return d.mailLink(r, mailLinkView{Address: address}, err)
}

func (d Deps) confirmMailNow(r *ui.Request) (ui.Answer, error) {
	return d.mailLink(r, mailLinkView{Done: true}, d.Mail.Confirm(r.Context(), r.PathValue("token")))
}

func (d Deps) stopMail(r *ui.Request) (ui.Answer, error) {
	_, all, err := d.Mail.Stops(r.PathValue("token"))
	return d.mailLink(r, mailLinkView{Stops: true, All: all}, err)
}

// stopMailNow also answers mail programs (RFC 8058).
func (d Deps) stopMailNow(r *ui.Request) (ui.Answer, error) {
	_, all, err := d.Mail.Stops(r.PathValue("token"))
	if err == nil {
		err = d.Mail.Stop(r.Context(), r.PathValue("token"))
	}
	return d.mailLink(r, mailLinkView{Stops: true, All: all, Done: true}, err)
}
