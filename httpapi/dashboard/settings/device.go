package settings

import (
	"github.com/google/uuid"

	"humanqa/domain"
	"humanqa/domain/account"
	"humanqa/httpapi/ui"
	"humanqa/httpapi/wire"
	"humanqa/internal/clientlogin"
	"humanqa/projections/projects"
)

// maxUserCode is longer than any code as a person may type it.
const maxUserCode = 40

type deviceView struct {
	Code     string               // as it was asked for
	Login    *clientlogin.Waiting // nil: no code yet, or it is not known
	Projects []projects.Project
	Done     string // confirmed or denied
}

// device asks an owner whether the command line of that code may have a key.
func (d Deps) device(r *ui.Request) (ui.Answer, error) {
	v := deviceView{Code: r.FormValue("code"), Done: r.FormValue("done")}
	if v.Done != "" && v.Done != "confirmed" {
		v.Done = "denied"
	}
	if v.Code != "" && len(v.Code) <= maxUserCode {
		switch found, err := d.Logins.Find(r.Context(), v.Code); {
		case err == nil:
			v.Login = &found
		case !domain.IsKind(err, domain.KindNotFound):
			return ui.Answer{}, err
		}
	}
	if v.Login != nil {
		var err error
		if v.Projects, _, err = d.Reads.Projects.List(r.Context(), r.Account.ID, projects.Filter{Limit: projectsOffered}); err != nil {
			return ui.Answer{}, err
		}
	}
	return ui.Show("device", "Command line", v), nil
}

// answerDevice confirms or denies. Nothing of the account changes before the client
// collects its key, which is on record under the owner's name.
func (d Deps) answerDevice(r *ui.Request) (ui.Answer, error) {
	code := r.PostFormValue("code")
	if r.PostFormValue("answer") != "confirm" {
		err := d.Logins.Answer(r.Context(), code, nil)
		return ui.Go("/dashboard/device?done=denied"), err
	}
	in := clientlogin.Approval{
		AccountID: r.Account.ID, PersonID: r.Person.ID, Sandbox: r.Account.Sandbox, Scope: account.ScopeFull,
		ProjectID: r.PostFormValue("project"),
	}
	if r.PostFormValue("scope") == string(account.ScopeRead) {
		in.Scope = account.ScopeRead
	}
	if in.ProjectID != "" {
		if uuid.Validate(in.ProjectID) != nil {
			return ui.Answer{}, domain.NotFound("project")
		}
		if _, err := d.Reads.Projects.Get(r.Context(), r.Account.ID, in.ProjectID); err != nil {
			return ui.Answer{}, err
		}
	}
	var err error
	if in.KeyDays, err = keyDays(r); err != nil {
		return ui.Answer{}, err
	}
	waits, err := d.Logins.Find(r.Context(), code)
	if err != nil {
		return ui.Answer{}, err
	}
	in.Name = wire.Clip(waits.Client, account.MaxKeyName)
	err = d.Logins.Answer(r.Context(), code, &in)
	return ui.Go("/dashboard/device?done=confirmed"), err
}
