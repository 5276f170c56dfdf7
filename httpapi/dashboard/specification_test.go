package dashboard_test

import (
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"

	"humanqa/domain"
	"humanqa/domain/command"
	"humanqa/domain/person"
	"humanqa/internal/testing/must"
	"humanqa/internal/testing/pagetest"
)

// docs/dashboard.md names pages that are there; what no other test of its table
// holds is held here.
func TestTheSpecificationsWordsOnTheDashboard(t *testing.T) {
	t.Parallel()
	w := setup(t)
	text, err := os.ReadFile("../../docs/dashboard.md")
	must.NoError(t, err)
	const room = "GET /dashboard/sessions/{id}" // httpapi/room's
	there := map[string]bool{room: true}
	for _, page := range w.Site.Pages {
		there[page.Method+" "+page.Pattern] = true
	}
	named := regexp.MustCompile("`((?:GET|POST) /dashboard[^`]*)`").FindAllStringSubmatch(string(text), -1)
	for _, page := range named {
		if !there[page[1]] {
			t.Errorf("docs/dashboard.md names %s, which is no page", page[1])
		}
	}
	if len(named) < 10 {
		t.Errorf("docs/dashboard.md names %d pages only", len(named))
	}

	account := w.account("Acme", 100)
	owner := w.Joined("Ann", person.Grant{Role: person.Owner, AccountID: account})
	project, err := w.Commands.CreateProject(t.Context(), pagetest.Client(account), command.CreateProject{Name: "Shop"})
	w.Shown(project.Position, err)
	page := "/dashboard/projects/" + project.ProjectID
	form := url.Values{"name": {"Shop"}, "webhook": {"https://hooks.example.com/in"}}
	if got := w.Call(owner, "POST", page, form); got.Status != 303 {
		t.Fatalf("the webhook is set: %d", got.Status)
	}
	if p, err := w.Reads.Projects.Get(t.Context(), account, project.ProjectID); err != nil || p.WebhookURL != "https://hooks.example.com/in" {
		t.Errorf("the webhook is %q, %v", p.WebhookURL, err)
	}
	secret, err := w.Commands.WebhookSecret(t.Context(), project.ProjectID)
	w.Must(err)
	shown := w.Call(owner, "GET", page+"/webhook/secret", nil)
	if shown.Status != 200 || !strings.Contains(strings.ReplaceAll(shown.Body, "&#43;", "+"), secret) || shown.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("the secret is not read from the dashboard: %d", shown.Status)
	}
	if dev := w.Joined("Bob", person.Grant{Role: person.Developer, AccountID: account}); w.Call(dev, "GET", page+"/webhook/secret", nil).Status != 403 {
		t.Error("a developer reads the secret")
	}

	made := w.Call(owner, "POST", "/dashboard/keys", url.Values{"scope": {"full"}})
	key := regexp.MustCompile(`qa_live_[A-Za-z0-9_-]{20,}`).FindString(made.Body)
	if key == "" {
		t.Fatalf("no key is made: %d", made.Status)
	}
	if k, found, err := w.Reads.Access.Key(t.Context(), domain.HashToken(key)); err != nil || !found || k.AccountID != account {
		t.Errorf("the key is %+v, %t, %v", k, found, err)
	}
	if again := w.Call(owner, "GET", "/dashboard/keys", nil); strings.Contains(again.Body, key) {
		t.Error("the key is shown twice")
	}
}
