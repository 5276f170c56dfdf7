package dashboard

import (
	"errors"

	"humanqa/domain"
	"humanqa/domain/command"
	"humanqa/domain/job"
	"humanqa/httpapi/input"
	"humanqa/httpapi/ui"
	"humanqa/projections/credits"
	"humanqa/projections/projects"
)

type newTestView struct {
	URL, Feature, Type, Access, Device, Browser string
	Urgent                                      bool
	Project                                     string
	Projects                                    []projects.Project
	Types                                       []job.Type
	Prices                                      prices
	Balance                                     credits.Balance
	Wrong                                       map[string]string
	Errors                                      []string
}

// prices are of one test, as the form's choices make them.
type prices struct{ Normal, Urgent, AI, AIUrgent domain.Credits }

func (d Deps) testForm(r *ui.Request, value func(string) string) (newTestView, error) {
	v := newTestView{
		URL: value("url"), Feature: value("feature"), Type: value("type"), Access: value("access"),
		Device: value("device"), Browser: value("browser"), Urgent: value("priority") == "urgent", Project: value("project"),
		Types: job.Types()[:5], Wrong: map[string]string{},
		Prices: prices{
			command.Price(job.GeneralQA, false), command.Price(job.GeneralQA, true),
			command.Price(job.AIReview, false), command.Price(job.AIReview, true),
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

func (d Deps) newTest(r *ui.Request) (ui.Answer, error) {
	v, err := d.testForm(r, r.URL.Query().Get)
	if err != nil {
		return ui.Answer{}, err
	}
	for _, p := range v.Projects {
		if p.ID == v.Project && v.URL == "" && p.DefaultURL != nil {
			v.URL = *p.DefaultURL
		}
	}
	return ui.Show("newtest", "New test", v)
}

// startTest is POST /v1/hosted/test for people: the project, the type and what
// failed before are found by themselves.
func (d Deps) startTest(r *ui.Request) (ui.Answer, error) {
	if err := open(r); err != nil {
		return ui.Answer{}, err
	}
	form := ui.Form(r, map[string]string{
		"url": "url", "feature": "feature", "type": "jobType", "priority": "priority", "access": "accessInstructions",
		"device": "targetDevice", "browser": "targetBrowser",
	})
	in := input.HostedTest(form, d.Limits)
	err := d.Limits.AdmittedForm(r.Context(), r.Account, form.Problems)
	if id := r.PostFormValue("project"); err == nil && id != "" {
		if _, err := d.Reads.Projects.Get(r.Context(), r.Account.ID, id); err != nil {
			return ui.Answer{}, err
		}
		in.ProjectID = id
	}
	var out command.HostedJob
	if err == nil {
		out, err = d.Commands.TestHosted(r.Context(), r.Cause(), in)
	}
	if err == nil {
		r.Visible(out.Position)
		return ui.Go("/dashboard/jobs/" + out.JobID)
	}
	status := 422
	wrong := wrongs(err)
	var short *domain.Error
	if wrong == nil && errors.As(err, &short) && short.Kind == domain.KindPayment {
		status = 402
	} else if wrong == nil {
		return ui.Answer{}, err
	}
	v, errView := d.testForm(r, r.PostFormValue)
	if errView != nil {
		return ui.Answer{}, errView
	}
	if wrong != nil {
		v.Wrong = wrong
		v.Errors = sentences(wrong, "url", "The address", "feature", "What to test", "jobType", "The kind of test",
			"accessInstructions", "How to get in", "targetDevice", "The device", "targetBrowser", "The browser")
	} else {
		v.Errors = []string{"Your credits do not suffice for this test. Nothing was charged."}
	}
	return ui.Answer{Template: "newtest", Title: "New test", View: v, Status: status}, nil
}
