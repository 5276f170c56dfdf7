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
	"humanqa/internal/must"
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
	for _, page := range w.site.Table() {
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
	owner := w.joined("Ann", person.Grant{Role: person.Owner, AccountID: account})
	project, err := w.commands.CreateProject(t.Context(), cause(account), command.CreateProject{Name: "Shop"})
	w.shown(project.Position, err)
	page := "/dashboard/projects/" + project.ProjectID
	form := url.Values{"name": {"Shop"}, "webhook": {"https://hooks.example.com/in"}}
	if got := w.call(owner, "POST", page, form); got.status != 303 {
		t.Fatalf("the webhook is set: %d", got.status)
	}
	if p, err := w.reads.Projects.Get(t.Context(), account, project.ProjectID); err != nil || p.WebhookURL != "https://hooks.example.com/in" {
		t.Errorf("the webhook is %q, %v", p.WebhookURL, err)
	}
	secret, err := w.commands.WebhookSecret(t.Context(), project.ProjectID)
	w.must(err)
	shown := w.call(owner, "GET", page+"/webhook/secret", nil)
	if shown.status != 200 || !strings.Contains(strings.ReplaceAll(shown.body, "&#43;", "+"), secret) || shown.header.Get("Cache-Control") != "no-store" {
		t.Errorf("the secret is not read from the dashboard: %d", shown.status)
	}
	if dev := w.joined("Bob", person.Grant{Role: person.Developer, AccountID: account}); w.call(dev, "GET", page+"/webhook/secret", nil).status != 403 {
		t.Error("a developer reads the secret")
	}

	made := w.call(owner, "POST", "/dashboard/keys", url.Values{"scope": {"full"}})
	key := regexp.MustCompile(`qa_live_[A-Za-z0-9_-]{20,}`).FindString(made.body)
	if key == "" {
		t.Fatalf("no key is made: %d", made.status)
	}
	if k, found, err := w.reads.Access.Key(t.Context(), domain.HashToken(key)); err != nil || !found || k.AccountID != account {
		t.Errorf("the key is %+v, %t, %v", k, found, err)
	}
	if again := w.call(owner, "GET", "/dashboard/keys", nil); strings.Contains(again.body, key) {
		t.Error("the key is shown twice")
	}
}
