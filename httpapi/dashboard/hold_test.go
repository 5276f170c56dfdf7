package dashboard_test

import (
	"net/url"
	"strings"
	"testing"

	"humanqa/domain/command"
	"humanqa/domain/person"
	"humanqa/internal/testing/pagetest"
)

// An owner comes from the page of a project, or of a test, to the form that holds its
// evidence; nobody else is shown the way.
func TestAnOwnerHoldsTheEvidenceOfAProject(t *testing.T) {
	t.Parallel()
	w := setup(t)
	account := w.account("Acme", 100)
	owner := w.Joined("Ann", person.Grant{Role: person.Owner, AccountID: account})
	dev := w.Joined("Dee", person.Grant{Role: person.Developer, AccountID: account})
	project, err := w.Commands.CreateProject(t.Context(), pagetest.Client(account), command.CreateProject{Name: "Shop"})
	w.Shown(project.Position, err)
	stranger, err := w.Commands.CreateProject(t.Context(), pagetest.Client(w.account("Globex", 0)), command.CreateProject{Name: "Strange"})
	w.Shown(stranger.Position, err)
	jobID := w.test(account, "Buy", func(in *command.SubmitJob) { in.ProjectID = project.ProjectID })
	for path, link := range map[string]string{
		"/dashboard/projects/" + project.ProjectID: "/dashboard/evidence?project=" + project.ProjectID, "/dashboard/jobs/" + jobID: "/dashboard/evidence?job=" + jobID,
	} {
		for who, sees := range map[guest]bool{owner: true, dev: false} {
			if got := w.Call(who, "GET", path, nil); strings.Contains(got.Body, `href="`+link+`#holds"`) != sees {
				t.Errorf("%s leads an owner (%t) to the form: %t", path, sees, !sees)
			}
		}
		if got := w.Call(owner, "GET", link, nil); got.Status != 200 {
			t.Errorf("%s: %d", link, got.Status)
		}
	}
	chosen := w.Call(owner, "GET", "/dashboard/evidence?project="+project.ProjectID, nil)
	if _, form, _ := strings.Cut(chosen.Body, `id="hold-on"`); !strings.Contains(form, `value="`+project.ProjectID+`" selected>Shop</option>`) {
		t.Error("the form to place a hold does not have the project chosen")
	}
	place := func(project string) int {
		return w.Call(owner, "POST", "/dashboard/evidence/hold", url.Values{"kind": {"account"}, "project": {project}, "reason": {"Lawsuit"}}).Status
	}
	if status := place(stranger.ProjectID); status != 404 {
		t.Errorf("a hold on another account's project: %d", status)
	}
	if status := place(project.ProjectID); status != 303 {
		t.Fatalf("a hold on the project: %d", status)
	}
	held, err := w.Commands.Held(t.Context(), account, project.ProjectID)
	if whole, wrong := w.Commands.Held(t.Context(), account, ""); err != nil || wrong != nil || !held || whole {
		t.Errorf("the project is held: %t, the account: %t, %v %v", held, whole, err, wrong)
	}
	if got := w.Call(owner, "GET", "/dashboard/evidence", nil); got.Status != 200 || !strings.Contains(got.Body, `aria-label="Release the hold on Shop"`) {
		t.Errorf("the page does not offer to release the hold: %d", got.Status)
	}
	released := w.Call(owner, "POST", "/dashboard/evidence/release", url.Values{"kind": {"project"}, "id": {project.ProjectID}, "reason": {"Settled"}})
	if held, err = w.Commands.Held(t.Context(), account, project.ProjectID); released.Status != 303 || err != nil || held {
		t.Errorf("the hold is released: %d, %t, %v", released.Status, held, err)
	}
}
