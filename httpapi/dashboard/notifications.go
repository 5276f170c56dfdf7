package dashboard

import (
	"humanqa/domain"
	"humanqa/domain/credits"
	"humanqa/domain/job"
	"humanqa/domain/project"
	"humanqa/httpapi/ui"
	"humanqa/internal/mail"
	"humanqa/projections/events"
)

type notificationsView struct {
	Off     bool // the service sends no e-mail
	Person  mail.Person
	Choices mail.Choices
	Account string
}

// notifications shows where a person is told, and of what, in the account that is looked at.
func (d Deps) notifications(r *ui.Request) (ui.Answer, error) {
	v := notificationsView{Off: d.Mail == nil, Account: r.Account.Name}
	if v.Off {
		return ui.Show("notifications", "Notifications", v)
	}
	var err error
	if v.Person, err = d.Mail.Person(r.Context(), r.Person.ID); err != nil {
		return ui.Answer{}, err
	}
	if v.Choices, err = d.Mail.Choices(r.Context(), r.Account.ID, r.Person.ID); err != nil {
		return ui.Answer{}, err
	}
	if v.Person.Address == "" { // what most people want, before they choose
		v.Choices = mail.Choices{Reports: mail.AllReports, Questions: true, Credits: true, Webhooks: true}
	}
	return ui.Show("notifications", "Notifications", v)
}

// errNoMail answers forms that another service's page sent.
var errNoMail = domain.NotFound("page").WithHint("this service sends no e-mail")

func (d Deps) setNotifications(r *ui.Request) (ui.Answer, error) {
	if d.Mail == nil {
		return ui.Answer{}, errNoMail
	}
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
	if d.Mail == nil {
		return ui.Answer{}, errNoMail
	}
	return r.Done(domain.Position{}, d.Mail.AskAgain(r.Context(), r.Person.ID), "/dashboard/notifications")
}

// newsView are the events of which a browser tells its person.
type newsView struct {
	Cursor string     `json:"cursor"` // to ask with next
	News   []newsLine `json:"news"`
}

type newsLine struct {
	ID    string `json:"id"`
	Title string `json:"title"`
	Text  string `json:"text"`
	Href  string `json:"href"`
}

// newsMost bounds an answer: the script asks again.
const newsMost = 50

var newsTypes = domain.TypesOf((*job.Completed)(nil), (*job.Failed)(nil), (*job.QuestionAsked)(nil),
	(*project.WebhookDisabled)(nil), (*credits.Debited)(nil))

// news answers the script of an open page: what came behind its cursor. Without one it
// gets the newest cursor.
func (d Deps) news(r *ui.Request) (ui.Answer, error) {
	v := newsView{Cursor: r.FormValue("after"), News: []newsLine{}}
	var err error
	if v.Cursor == "" {
		v.Cursor, err = d.Reads.Events.Newest(r.Context())
		return ui.Answer{JSON: v}, err
	}
	d.Fresh.Feed(r.Context(), r.Log)
	came, err := d.Reads.Events.After(r.Context(), r.Account.ID, events.Filter{After: v.Cursor, Types: newsTypes, Limit: newsMost})
	if err != nil {
		return ui.Answer{}, err
	}
	for _, e := range came {
		v.Cursor = e.Cursor
		one := noticeOf(e)
		line := newsLine{ID: one.ID, Title: one.Text, Text: one.Detail, Href: one.Href}
		if done, ok := e.Recorded.Event.(*job.Completed); ok {
			line.Title, line.Href = "Report: "+e.About.Title, "/dashboard/jobs/"+e.Recorded.StreamID()
			line.Text = job.Tally(done.PassCount, done.FailCount, done.SkipCount)
		} else if _, asks := e.Recorded.Event.(*job.QuestionAsked); asks {
			line.Title, line.Text = "The checker asks: "+e.About.Title, "The test waits for your answer."
			line.Href = "/dashboard/jobs/" + e.Recorded.StreamID() + "#questions"
		}
		v.News = append(v.News, line)
	}
	return ui.Answer{JSON: v}, nil
}

// mailLinkView is the page of a link in a letter. The link itself changes nothing: programs
// that look through mail open links, and press no buttons.
type mailLinkView struct {
	Stops   bool
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
	if d.Mail == nil {
		return ui.Answer{}, mail.ErrNoLink
	}
	_, address, err := d.Mail.Confirming(r.Context(), r.PathValue("token"))
	return d.mailLink(r, mailLinkView{Address: address}, err)
}

func (d Deps) confirmMailNow(r *ui.Request) (ui.Answer, error) {
	if d.Mail == nil {
		return ui.Answer{}, mail.ErrNoLink
	}
	return d.mailLink(r, mailLinkView{Done: true}, d.Mail.Confirm(r.Context(), r.PathValue("token")))
}

func (d Deps) stopMail(r *ui.Request) (ui.Answer, error) {
	if d.Mail == nil {
		return ui.Answer{}, mail.ErrNoLink
	}
	return d.mailLink(r, mailLinkView{Stops: true}, d.Mail.Stops(r.PathValue("token")))
}

// stopMailNow also answers mail programs (RFC 8058).
func (d Deps) stopMailNow(r *ui.Request) (ui.Answer, error) {
	if d.Mail == nil {
		return ui.Answer{}, mail.ErrNoLink
	}
	return d.mailLink(r, mailLinkView{Stops: true, Done: true}, d.Mail.Stop(r.Context(), r.PathValue("token")))
}
