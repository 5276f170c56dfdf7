package settings

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"humanqa/domain"
	"humanqa/domain/account"
	"humanqa/domain/command"
	"humanqa/httpapi/dashboard/words"
	"humanqa/httpapi/ui"
	"humanqa/httpapi/wire"
	"humanqa/projections/access"
	"humanqa/projections/projects"
)

// keysShown bounds the keys on the page; the keys that work come first.
const keysShown = 200

type keysView struct {
	Keys     []access.IssuedKey
	Projects []projects.Project
	Names    map[string]string  // of projects
	Demo     string             // the id of the key that the demo of the service uses; empty: there is none
	New      *command.IssuedKey // shown once, right after it was made

	name func(actor string) string
}

// Maker is the name of the person who made a key; empty: the operator of the service did.
func (v keysView) Maker(k access.IssuedKey) string {
	if strings.HasPrefix(k.IssuedBy, "person:") {
		return v.name(k.IssuedBy)
	}
	return ""
}

func (d Deps) keysView(r *ui.Request) (v keysView, err error) {
	if v.Keys, _, err = d.Reads.Access.Keys(r.Context(), r.Account.ID, access.Page{Limit: keysShown}); err != nil {
		return v, err
	}
	if v.Projects, _, err = d.Reads.Projects.List(r.Context(), r.Account.ID, projects.Filter{Limit: projectsOffered}); err != nil {
		return v, err
	}
	v.Names = words.ProjectNames(v.Projects)
	makers := wire.List(v.Keys, func(k access.IssuedKey) string { return k.IssuedBy })
	if v.name, err = words.AuthorsOf(r.Context(), d.Credentials, d.Reads, r.Account.ID, makers...); err != nil {
		return v, err
	}
	v.Demo, err = d.demoKeyID(r)
	return v, err
}

// demoKeyID is the id of the key in the demo's file; empty: there is no demo.
func (d Deps) demoKeyID(r *ui.Request) (string, error) {
	if d.DemoKey == nil || d.DemoKey() == "" {
		return "", nil
	}
	key, _, err := d.Reads.Access.Key(r.Context(), domain.HashToken(d.DemoKey()))
	return key.KeyID, err
}

func (d Deps) keys(r *ui.Request) (ui.Answer, error) {
	v, err := d.keysView(r)
	return ui.Show("keys", "API keys", v, domain.AccountStream(r.Account.ID)), err
}

// createKey answers with the page itself, not a redirect: the key is on it, and
// nowhere else.
func (d Deps) createKey(r *ui.Request) (ui.Answer, error) {
	name, err := r.Text("name", account.MaxKeyName)
	if err != nil {
		return ui.Answer{}, err
	}
	in := command.IssueKey{Name: name, Scope: account.Scope(r.PostFormValue("scope")), ProjectID: r.PostFormValue("project")}
	if in.ProjectID != "" && uuid.Validate(in.ProjectID) != nil { // it names no stream
		return ui.Answer{}, domain.NotFound("project")
	}
	days, err := keyDays(r)
	if err != nil {
		return ui.Answer{}, err
	}
	if days > 0 {
		at := d.Now().Add(time.Duration(days) * 24 * time.Hour).UTC()
		in.ExpiresAt = &at
	}
	key, err := d.Commands.IssueKey(r.Context(), r.Cause(), r.Account.ID, in)
	if domain.IsKind(err, domain.KindConflict) {
		return ui.Answer{}, domain.Conflict("this key was created already").WithHint("a key is shown only once; if you lost it, revoke it and create another one")
	}
	if err != nil {
		return ui.Answer{}, err
	}
	r.Visible(key.Position)
	v, err := d.keysView(r)
	v.New = &key
	return ui.Answer{Template: "keys", Title: "API keys", View: v, Secret: true}, err
}

// maxKeyDays is ten years.
const maxKeyDays = 3650

// keyDays reads how long a key works; 0: for ever, which only an empty field says.
func keyDays(r *ui.Request) (days int, err error) {
	text := strings.TrimSpace(r.PostFormValue("days"))
	if text == "" {
		return 0, nil
	}
	if days, err = strconv.Atoi(text); err != nil || days < 1 || days > maxKeyDays {
		return 0, domain.Invalid(domain.Detail{
			Path: "days", Message: fmt.Sprintf("must be 1 to %d, or empty for a key without an end", maxKeyDays),
		})
	}
	return days, nil
}

func (d Deps) revokeKey(r *ui.Request) (ui.Answer, error) {
	at, err := d.Commands.RevokeKey(r.Context(), r.Cause(), r.Account.ID, r.PostFormValue("key"))
	return r.Done(at, err, "/dashboard/keys")
}
