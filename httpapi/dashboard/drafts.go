package dashboard

import (
	"net/url"
	"slices"
	"strings"
	"time"

	"humanqa/httpapi/ui"
)

// draftForm is a form that is kept while it is half filled in.
type draftForm struct {
	name   string
	page   string   // the path of the page with the form
	fields []string // the fields that are kept: never a secret
}

// The forms. Their field "access" is left out: it may hold a login.
var (
	testDraft = draftForm{"test", "/dashboard/jobs/new", append([]string{
		"url", "feature", "type", "priority", "device", "browser", "project",
	}, checklistFields...)}
	sessionDraft = draftForm{"session", "/dashboard/sessions/new", append([]string{
		"url", "feature", "type", "priority", "brief", "checkers", "role", "device", "browser", "silent",
	}, checklistFields...)}
	batchDraft = draftForm{"batch", "/dashboard/batches/new", append([]string{
		"name", "tests", "type", "priority", "project", "of",
	}, checklistFields...)}
)

// keptDraft describes the draft that a form was filled with.
type keptDraft struct {
	SavedAt time.Time
	Discard string // the path that drops it
}

// begin gives the fields that a new form shows: those that the URL asks for, or the
// person's draft.
func (d Deps) begin(r *ui.Request, form draftForm) (url.Values, *keptDraft, error) {
	asked := r.URL.Query()
	if slices.ContainsFunc(form.fields, asked.Has) {
		return asked, nil, nil
	}
	kept, found, err := d.Preferences.Draft(r.Context(), r.Account.ID, r.Person.ID, form.name)
	if err != nil || !found {
		return url.Values{}, nil, err
	}
	return kept.Fields, &keptDraft{kept.SavedAt, strings.TrimSuffix(form.page, "/new") + "/draft"}, nil
}

// keep keeps a form that was sent as the person's draft; an empty one ends the draft.
func (d Deps) keep(r *ui.Request, form draftForm) error {
	kept := url.Values{}
	typed := false
	for _, field := range form.fields {
		if values := r.PostForm[field]; len(values) > 0 {
			kept[field] = values
			typed = typed || form.typed(field) && strings.TrimSpace(strings.Join(values, "")) != ""
		}
	}
	if !typed {
		return d.forget(r, form)
	}
	return d.Preferences.KeepDraft(r.Context(), r.Account.ID, r.Person.ID, form.name, kept)
}

// typed says that a person writes the field: choices alone are no draft.
func (f draftForm) typed(field string) bool {
	return slices.Contains([]string{"url", "feature", "brief", "name", "tests", "item", "role"}, field)
}

func (d Deps) forget(r *ui.Request, form draftForm) error {
	return d.Preferences.DropDraft(r.Context(), r.Account.ID, r.Person.ID, form.name)
}

// draft keeps a form while it is filled in, and drops it if the person asks for that.
func (d Deps) draft(form draftForm) func(*ui.Request) (ui.Answer, error) {
	return func(r *ui.Request) (ui.Answer, error) {
		act := d.keep
		if r.PostFormValue("discard") != "" {
			act = d.forget
		}
		if err := act(r, form); err != nil {
			return ui.Answer{}, err
		}
		if r.WantsJSON() {
			return ui.Answer{JSON: map[string]bool{"kept": true}}, nil
		}
		return ui.Go(form.page), nil
	}
}
