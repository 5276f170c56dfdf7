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
	"humanqa/projections/jobs"
	"humanqa/projections/projects"
)

// submitView holds the common part of the forms that cost credits.
type submitView struct {
	Fields   url.Values // as they were sent, or kept
	Projects []projects.Project
	Types    []job.Type
	Prices   prices
	Balance  credits.Balance
	Draft    *keptDraft
	Preview  *checklistView
	Others   []jobs.Checklist // of the project's latest tests, to be taken over
	// Unresolved is the test's URL if its host has no address; the person may still go on.
	Unresolved string
	Notice     string
	Checkers   checkersView // of a session
}

// Urgent says that the form asks for the dearer priority.
func (v submitView) Urgent() bool { return v.Fields.Get("priority") == wire.Urgent }

// prices are the prices of one test for each choice of the form.
type prices struct{ Normal, Urgent, AI, AIUrgent domain.Credits }

func (d Deps) submitView(r *ui.Request, fields url.Values) (submitView, error) {
	v := submitView{
		Fields: fields, Types: job.HostedTypes(),
		Prices: prices{
			job.GeneralQA.Price(false), job.GeneralQA.Price(true),
			job.AIReview.Price(false), job.AIReview.Price(true),
		},
	}
	now, err := d.Commands.AccountTime(r.Context(), r.Cause())
	if err != nil {
		return v, err
	}
	if v.Balance, err = d.Reads.Credits.Balance(r.Context(), r.Account.ID, now); err != nil {
		return v, err
	}
	v.Projects, _, err = d.Reads.Projects.List(r.Context(), r.Account.ID, projects.Filter{Archived: new(bool), Limit: projectsLooked})
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

// hostedForm is the form of a hosted test, or of a session of such tests.
type hostedForm struct {
	draftForm
	template, title string
	session         bool // several checkers test, and its cost is always shown first
	// read reads the fields; the items and the project are the same in both forms.
	read func(r *ui.Request, limits *input.Limits) (in command.NewSession, form wire.Object, target input.Target)
	// submit gives the path of the page of what was submitted.
	submit func(d Deps, r *ui.Request, in command.NewSession) (at domain.Position, path string, err error)
}

var testForm = hostedForm{
	draftForm: testDraft, template: "newtest", title: "New test",
	read: func(r *ui.Request, limits *input.Limits) (in command.NewSession, form wire.Object, target input.Target) {
		form = ui.Form(r, map[string]string{
			"url": "url", "feature": "feature", "type": "jobType", "priority": "priority", "access": "accessInstructions",
			"device": "targetDevice", "browser": "targetBrowser",
		})
		in.Test, target = input.HostedTest(form, nil, limits)
		return in, form, target
	},
	submit: func(d Deps, r *ui.Request, in command.NewSession) (domain.Position, string, error) {
		out, err := d.Commands.TestHosted(r.Context(), r.Cause(), in.Test)
		return out.Position, "/dashboard/jobs/" + out.JobID, err
	},
}

// hostedView is the form with the fields.
func (d Deps) hostedView(r *ui.Request, f hostedForm, fields url.Values) (submitView, error) {
	v, err := d.submitView(r, fields)
	if f.session {
		v.forCheckers()
	}
	if rows := rowsOf(fields); len(rows) > 0 { // an own list, which may wait in the draft
		v.Preview = &checklistView{Rows: rows}
	}
	return v, err
}

func (d Deps) newHosted(f hostedForm) func(*ui.Request) (ui.Answer, error) {
	return func(r *ui.Request) (ui.Answer, error) {
		fields, draft, err := d.begin(r, f.draftForm)
		if err == nil {
			err = d.takeOver(r, fields)
		}
		if err != nil {
			return ui.Answer{}, err
		}
		v, err := d.hostedView(r, f, fields)
		if err != nil {
			return ui.Answer{}, err
		}
		v.Draft = draft
		for _, p := range v.Projects {
			if p.ID == fields.Get("project") && fields.Get("url") == "" && p.DefaultURL != nil {
				fields.Set("url", *p.DefaultURL)
			}
		}
		err = d.offerOthers(r, &v)
		return ui.Show(f.template, f.title, v), err
	}
}

// readHosted reads a form. The service finds the project and the type where the form names
// none, and the earlier failures. warned says that the host has no address.
func (d Deps) readHosted(r *ui.Request, f hostedForm) (in command.NewSession, warned bool, err error) {
	r.Addresses("url")
	in, form, target := f.read(r, d.Limits)
	in.Test.Items, err = itemsOf(r.PostForm)
	if err := both(d.Limits.AdmittedForm(r.Context(), r.Account, form.Problems, target), err); err != nil {
		return in, false, err
	}
	if id := r.PostFormValue("project"); id != "" {
		if _, err := d.Reads.Projects.Get(r.Context(), r.Account.ID, id); err != nil {
			return in, false, err
		}
		in.Test.ProjectID = id
	}
	return in, len(d.Limits.Unresolved(r.Context(), target)) > 0, nil
}

// startHosted is POST /v1/hosted/test or /v1/hosted/sessions for people. It charges nothing
// until the person has seen that the host has no address, or that the cost has changed since
// it was shown.
func (d Deps) startHosted(f hostedForm) func(*ui.Request) (ui.Answer, error) {
	return func(r *ui.Request) (ui.Answer, error) {
		in, warned, err := d.readHosted(r, f)
		shown := r.PostFormValue("cost") != ""
		switch {
		case err != nil:
			return d.showHosted(r, f, in, false, err, "")
		case warned && r.PostFormValue("unresolved") != in.Test.URL:
			return d.showHosted(r, f, in, true, nil, "")
		case f.session && !shown:
			return d.showHosted(r, f, in, warned, nil, "Nothing was charged yet. Check the cost, then start.")
		case shown:
			p, err := d.preview(r, in.Test, len(in.Slots))
			if err != nil {
				return ui.Answer{}, err
			}
			if p.changed(r) {
				return d.showHosted(r, f, in, warned, nil, "The cost has changed. Nothing was charged. Check the new cost, then start.")
			}
		}
		at, path, err := f.submit(d, r, in)
		if err != nil {
			return d.showHosted(r, f, in, false, err, "")
		}
		if err := d.forget(r, f.draftForm); err != nil {
			r.Log.WithError(err).Warn("the draft of a form that was submitted stays")
		}
		return r.Done(at, nil, path)
	}
}

// previewHosted shows the items and the cost. It writes nothing but the draft.
func (d Deps) previewHosted(f hostedForm) func(*ui.Request) (ui.Answer, error) {
	return func(r *ui.Request) (ui.Answer, error) {
		if r.PostFormValue("rewrite") != "" {
			for _, field := range checklistFields {
				r.PostForm.Del(field)
			}
		}
		if err := d.takeOver(r, r.PostForm); err != nil {
			return ui.Answer{}, err
		}
		in, warned, err := d.readHosted(r, f)
		return d.showHosted(r, f, in, warned, err, "")
	}
}

// showHosted shows the form as it was sent, with a preview where nothing is wrong but the
// credits. notice explains why a form without an error is shown again.
func (d Deps) showHosted(
	r *ui.Request, f hostedForm, in command.NewSession, warned bool, wrong error, notice string,
) (ui.Answer, error) {
	v, err := d.hostedView(r, f, r.PostForm)
	if err != nil {
		return ui.Answer{}, err
	}
	refused, err := correctable(wrong)
	if err != nil {
		return ui.Answer{}, err
	}
	v.Notice = notice
	if warned {
		v.Unresolved = in.Test.URL
	}
	if refused == nil || refused == errNoCredits {
		if v.Preview, err = d.preview(r, in.Test, len(in.Slots)); err != nil {
			return ui.Answer{}, err
		}
	}
	nameItems(r, wrong)
	if err := d.offerOthers(r, &v); err != nil {
		return ui.Answer{}, err
	}
	err = d.keep(r, f.draftForm)
	return ui.Answer{Template: f.template, Title: f.title, View: v, Refused: refused}, err
}
