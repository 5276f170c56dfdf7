package dashboard

import (
	"errors"
	"net/url"

	"humanqa/domain"
	"humanqa/domain/command"
	"humanqa/domain/job"
	"humanqa/httpapi/input"
	"humanqa/httpapi/ui"
	"humanqa/httpapi/wire"
	"humanqa/projections/credits"
	"humanqa/projections/projects"
)

// submitView holds the common part of the forms that cost credits.
type submitView struct {
	Type     string
	Urgent   bool
	Project  string
	Projects []projects.Project
	Types    []job.Type
	Prices   prices
	Balance  credits.Balance
	Draft    *keptDraft
	Preview  *checklistView
	// Unresolved is the test's URL if its host has no address; the person may still go on.
	Unresolved string
	Notice     string
}

type newTestView struct {
	submitView
	URL, Feature, Access, Device, Browser string
}

// prices are the prices of one test for each choice of the form.
type prices struct{ Normal, Urgent, AI, AIUrgent domain.Credits }

func (d Deps) submitView(r *ui.Request, fields url.Values) (submitView, error) {
	v := submitView{
		Type: fields.Get("type"), Urgent: fields.Get("priority") == wire.Urgent, Project: fields.Get("project"),
		Types: job.HostedTypes(),
		Prices: prices{
			job.GeneralQA.Price(false), job.GeneralQA.Price(true),
			job.AIReview.Price(false), job.AIReview.Price(true),
		},
	}
	now, err := d.now(r)
	if err != nil {
		return v, err
	}
	if v.Balance, err = d.Reads.Credits.Balance(r.Context(), r.Account.ID, now); err != nil {
		return v, err
	}
	v.Projects, _, err = d.Reads.Projects.List(r.Context(), r.Account.ID, projects.Filter{Limit: projectsLooked})
	return v, err
}

// errNoCredits is the error of a form that costs more than the account has.
var errNoCredits = &domain.Error{Kind: domain.KindPayment, Message: "you do not have enough credits", Hint: "nothing was charged"}

// correctable is the error that the form shows when it is shown again; err is one of no form.
func correctable(wrong error) (shown *domain.Error, err error) {
	switch {
	case domain.IsKind(wrong, domain.KindPayment):
		return errNoCredits, nil
	case domain.IsKind(wrong, domain.KindInvalid) && errors.As(wrong, &shown):
		return shown, nil
	}
	return nil, wrong
}

// shown fills the form that is shown again, with a preview where nothing is wrong but the
// credits. It gives the error that the form shows, or the one that belongs to no form.
func (d Deps) shown(
	r *ui.Request, v *submitView, in command.HostedTest, checkers int, warned bool, wrong error, notice string,
) (shown *domain.Error, err error) {
	if shown, err = correctable(wrong); err != nil {
		return nil, err
	}
	v.Notice = notice
	if warned {
		v.Unresolved = in.URL
	}
	if shown == nil || shown == errNoCredits {
		v.Preview, err = d.preview(r, in, checkers)
	} else if rows := rowsOf(r.PostForm); len(rows) > 0 {
		v.Preview = &checklistView{Rows: rows}
	}
	nameItems(r, wrong)
	return shown, err
}

func (d Deps) testForm(r *ui.Request, fields url.Values) (v newTestView, err error) {
	v = newTestView{
		URL: fields.Get("url"), Feature: fields.Get("feature"), Access: fields.Get("access"),
		Device: fields.Get("device"), Browser: fields.Get("browser"),
	}
	v.submitView, err = d.submitView(r, fields)
	return v, err
}

func (d Deps) newTest(r *ui.Request) (ui.Answer, error) {
	fields, draft, err := d.begin(r, testDraft)
	if err != nil {
		return ui.Answer{}, err
	}
	v, err := d.testForm(r, fields)
	if err != nil {
		return ui.Answer{}, err
	}
	v.Draft = draft
	for _, p := range v.Projects {
		if p.ID == v.Project && v.URL == "" && p.DefaultURL != nil {
			v.URL = *p.DefaultURL
		}
	}
	if rows := rowsOf(fields); len(rows) > 0 { // an own list waits in the draft
		v.Preview = &checklistView{Rows: rows}
	}
	return ui.Show("newtest", "New test", v), nil
}

// readTest reads the form of a hosted test. The service finds the project and the type where
// the form names none, and the earlier failures. warned says that the host has no address.
func (d Deps) readTest(r *ui.Request) (in command.HostedTest, warned bool, err error) {
	r.Addresses("url")
	form := ui.Form(r, map[string]string{
		"url": "url", "feature": "feature", "type": "jobType", "priority": "priority", "access": "accessInstructions",
		"device": "targetDevice", "browser": "targetBrowser",
	})
	in, target := input.HostedTest(form, nil, d.Limits)
	in.Items, err = itemsOf(r.PostForm)
	if err := both(d.Limits.AdmittedForm(r.Context(), r.Account, form.Problems, target), err); err != nil {
		return in, false, err
	}
	if id := r.PostFormValue("project"); id != "" {
		if _, err := d.Reads.Projects.Get(r.Context(), r.Account.ID, id); err != nil {
			return in, false, err
		}
		in.ProjectID = id
	}
	return in, len(d.Limits.Unresolved(r.Context(), target)) > 0, nil
}

// startTest is POST /v1/hosted/test for people. It charges nothing until the person has
// seen that the host has no address, or that the cost has changed since it was shown.
func (d Deps) startTest(r *ui.Request) (ui.Answer, error) {
	in, warned, err := d.readTest(r)
	if err == nil && warned && r.PostFormValue("unresolved") != in.URL {
		return d.showTest(r, in, true, nil, "")
	}
	if err == nil && r.PostFormValue("cost") != "" {
		p, err := d.preview(r, in, 0)
		if err != nil {
			return ui.Answer{}, err
		}
		if p.changed(r) {
			return d.showTest(r, in, warned, nil, costChanged)
		}
	}
	var out command.HostedJob
	if err == nil {
		out, err = d.Commands.TestHosted(r.Context(), r.Cause(), in)
	}
	if err != nil {
		return d.showTest(r, in, false, err, "")
	}
	if err := d.forget(r, testDraft); err != nil {
		r.Log.WithError(err).Warn("the draft of a test that was submitted stays")
	}
	return r.Done(out.Position, nil, "/dashboard/jobs/"+out.JobID)
}

// costChanged explains why a form without an error is shown again.
const costChanged = "The cost has changed. Nothing was charged. Check the new cost, then start."

// previewTest shows the items of the test and its cost. It writes nothing but the draft.
func (d Deps) previewTest(r *ui.Request) (ui.Answer, error) {
	if r.PostFormValue("rewrite") != "" {
		for _, field := range checklistFields {
			r.PostForm.Del(field)
		}
	}
	in, warned, err := d.readTest(r)
	return d.showTest(r, in, warned, err, "")
}

// showTest shows the form as it was sent, with a preview where nothing is wrong.
func (d Deps) showTest(r *ui.Request, in command.HostedTest, warned bool, wrong error, notice string) (ui.Answer, error) {
	v, err := d.testForm(r, r.PostForm)
	if err != nil {
		return ui.Answer{}, err
	}
	refused, err := d.shown(r, &v.submitView, in, 0, warned, wrong, notice)
	if err != nil {
		return ui.Answer{}, err
	}
	err = d.keep(r, testDraft)
	return ui.Answer{Template: "newtest", Title: "New test", View: v, Refused: refused}, err
}
