package projects

import (
	"strings"

	"humanqa/domain/project"
	"humanqa/httpapi/input"
	"humanqa/httpapi/ui"
	"humanqa/projections/projects"
)

type hookView struct {
	Project projects.Project
	URL     string
	Tested  string      // the address that a call without an address tests; empty: there is none
	Rotated bool        // just now
	Schemes [][2]string // of signatures: code and name
}

func (d Deps) hookURL(token string) string { return d.BaseURL + "/v1/hooks/deploy/" + token }

// hook shows the deploy hook to an owner who has just proved their identity: a holder of
// its URL can spend the account's credits.
func (d Deps) hook(r *ui.Request, p projects.Project) (ui.Answer, error) {
	token, err := d.Commands.HookToken(r.Context(), p.AccountID, p.ID)
	if err != nil {
		return ui.Answer{}, err
	}
	return d.showHook(r, hookView{Project: p, URL: d.hookURL(token)})
}

func (d Deps) showHook(r *ui.Request, v hookView) (_ ui.Answer, err error) {
	v.Schemes = hookSchemes
	if v.Project.DefaultURL != nil {
		v.Tested = *v.Project.DefaultURL
	} else if v.Tested, err = d.Reads.Jobs.FirstURL(r.Context(), v.Project.AccountID, v.Project.ID); err != nil {
		return ui.Answer{}, err
	}
	return ui.Answer{Template: "hook", Title: "Deploy hook", View: v, Secret: true}, nil
}

func (d Deps) rotateHook(r *ui.Request, p projects.Project) (ui.Answer, error) {
	token, at, err := d.Commands.RotateHook(r.Context(), r.Cause(), p.ID, &r.Person.ID)
	if err != nil {
		return ui.Answer{}, err
	}
	r.Visible(at)
	return d.showHook(r, hookView{Project: p, URL: d.hookURL(token), Rotated: true})
}

// hookSchemes are the signatures that a form offers.
var hookSchemes = [][2]string{
	{project.SignedByGitHub, "GitHub"}, {project.SignedByVercel, "Vercel"}, {project.SignedByNetlify, "Netlify"},
	{project.SignedByGitLab, "GitLab"}, {project.StandardSigned, "Render, or Standard Webhooks"},
}

// signHook sets the signature that calls of the hook need, or removes it.
func (d Deps) signHook(r *ui.Request, p projects.Project) (ui.Answer, error) {
	body := map[string]any{"deployHookSignature": nil}
	if r.PostFormValue("remove") == "" {
		body["deployHookSignature"] = map[string]any{
			"scheme": r.PostFormValue("scheme"), "secret": strings.TrimSpace(r.PostFormValue("secret")),
		}
	}
	o := ui.Object(body)
	set := input.HookSignature(o)
	if err := o.Problems.Err(); err != nil {
		return ui.Answer{}, err
	}
	at, err := d.Commands.SetHookSignature(r.Context(), r.Cause(), p.ID, set.Scheme, set.Secret, &r.Person.ID)
	return r.Done(at, err, "/dashboard/projects/"+p.ID+"/hook#signature")
}
