package dashboard_test

import (
	"net/url"
	"regexp"
	"strings"
	"testing"

	"humanqa/domain/command"
	"humanqa/domain/person"
	"humanqa/internal/testing/eventually"
	"humanqa/internal/testing/pagetest"
)

// What went wrong while nobody looked is shown to each person until they have
// seen it.
func TestNoticesAreShownUntilTheyAreSeen(t *testing.T) {
	t.Parallel()
	w := setup(t)
	account := w.newAccount("Trial", 22, true)
	ann := w.Joined("Ann", person.Grant{Role: person.Viewer, AccountID: account})
	bob := w.Joined("Bob", person.Grant{Role: person.Owner, AccountID: account})
	other := w.Joined("Carol", person.Grant{Role: person.Owner, AccountID: w.account("Globex", 10)})
	late := w.test(account, "Late <b>test</b>", nil) // leaves 17
	project, err := w.Commands.CreateProject(t.Context(), w.cause(account), command.CreateProject{Name: "Shop", WebhookURL: "https://hooks.example.com/x"})
	w.Shown(project.Position, err)
	w.Shown(w.Commands.DisableWebhook(t.Context(), pagetest.Operator(), project.ProjectID, "", "answered 500"))
	out, err := w.Commands.AdvanceClock(t.Context(), w.cause(account), 61*60e9)
	w.Shown(out.Position, err)
	texts := []string{"Not done in time: Late &lt;b&gt;test&lt;/b&gt;", "The webhook of Shop was disabled", "Low credits", `href="/dashboard/jobs/` + late + `">Open`}
	shows := func(g guest, want bool) func() bool {
		return func() bool {
			page := w.Call(g, "GET", "/dashboard", nil).Body
			for _, text := range texts {
				if strings.Contains(page, text) != want {
					return false
				}
			}
			return true
		}
	}
	eventually.True(t, "the notices come", shows(ann, true))
	if !shows(bob, true)() || !shows(other, false)() {
		t.Error("not everybody in the account is told, or somebody else is")
	}
	mark := regexp.MustCompile(`name="upto" value="([^"]+)"`).FindStringSubmatch(w.Call(ann, "GET", "/dashboard", nil).Body)
	if mark == nil {
		t.Fatal("they cannot be marked")
	}
	if got := w.Call(ann, "POST", "/dashboard/notices/seen", url.Values{"upto": {mark[1]}}); got.Status != 303 {
		t.Errorf("marking them: %d", got.Status)
	}
	if !shows(ann, false)() || !shows(bob, true)() {
		t.Error("they are still shown to who saw them, or not any more to who did not")
	}
	// What comes later is shown again.
	w.Shown(w.Commands.EnableWebhook(t.Context(), w.cause(account), project.ProjectID))
	w.Shown(w.Commands.DisableWebhook(t.Context(), pagetest.Operator(), project.ProjectID, "", "answered 502"))
	eventually.True(t, "the next one comes", func() bool {
		page := w.Call(ann, "GET", "/dashboard", nil).Body
		return strings.Contains(page, "answered 502") && !strings.Contains(page, "answered 500")
	})
	for _, upTo := range []string{"", "x", "1", "-1-0"} {
		if got := w.Call(ann, "POST", "/dashboard/notices/seen", url.Values{"upto": {upTo}}); got.Status != 422 {
			t.Errorf("%q: %d", upTo, got.Status)
		}
	}
}
