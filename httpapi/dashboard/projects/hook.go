package projects

import (
	"cmp"
	"net/http"
	"strings"

	"humanqa/domain/command"
	"humanqa/domain/project"
	"humanqa/httpapi/input"
	"humanqa/httpapi/ui"
	"humanqa/httpapi/wire"
	"humanqa/projections/projects"
)

type hookView struct {
	Project projects.Project
	URL     string
	Tested  string      // the address that a call without an address tests; empty: there is none
	Rotated bool        // just now
	Schemes [][2]string // of signatures: code and name
	Trial   *input.DeployTrial

	SentBy, Body string // of the trial
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
	if v.Tested, err = input.OwnURL(r.Context(), d.Reads, v.Project); err != nil {
		return ui.Answer{}, err
	}
	return ui.Answer{Template: "hook", Title: "Deploy hook", View: v, Secret: true}, nil
}

func (d Deps) rotateHook(r *ui.Request, p projects.Project) (ui.Answer, error) {
	token, at, err := d.Commands.RotateHook(r.Context(), r.Cause(), p.ID)
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

// platformHeaders are the headers by which the platform of a signature is recognised.
var platformHeaders = map[string][2]string{
	project.SignedByGitHub: {"X-GitHub-Event", "deployment_status"}, project.SignedByVercel: {"X-Vercel-Signature", "none"},
	project.SignedByNetlify: {"X-Netlify-Event", "deploy_created"}, project.SignedByGitLab: {"X-Gitlab-Event", "Deployment Hook"},
	project.StandardSigned: {"Webhook-Id", "none"},
}

// tryHook says what a body would do, like a dry run of the hook. It writes nothing.
func (d Deps) tryHook(r *ui.Request, p projects.Project) (ui.Answer, error) {
	token, err := d.Commands.HookToken(r.Context(), p.AccountID, p.ID)
	if err != nil {
		return ui.Answer{}, err
	}
	h := http.Header{}
	if known, ok := platformHeaders[r.PostFormValue("platform")]; ok {
		h.Set(known[0], known[1])
	}
	var problems wire.Problems
	var would command.DeployTrial
	in, target, ignored := input.Deploy(h, wire.ParseObject([]byte(cmp.Or(strings.TrimSpace(r.PostFormValue("body")), "{}")), &problems))
	if ignored == "" && in.Test.URL == "" && problems.Err() == nil {
		if target, err = input.OwnTarget(r.Context(), &problems, d.Reads, p, &in.Test); err != nil {
			return ui.Answer{}, err
		}
	}
	err = d.Limits.AdmittedForm(r.Context(), r.Account, &problems, target)
	if err == nil && ignored == "" {
		d.Limits.Place(&in.Test)
		would, err = d.Commands.TryDeploy(r.Context(), r.Cause(), p.ID, in)
	}
	if err != nil {
		return ui.Answer{}, err
	}
	trial := input.Trial(in, ignored, would)
	return d.showHook(r, hookView{
		Project: p, URL: d.hookURL(token), Trial: &trial, SentBy: r.PostFormValue("platform"), Body: r.PostFormValue("body"),
	})
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
	at, err := d.Commands.SetHookSignature(r.Context(), r.Cause(), p.ID, set.Scheme, set.Secret)
	return r.Done(at, err, "/dashboard/projects/"+p.ID+"/hook#signature")
}
