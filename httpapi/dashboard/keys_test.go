package dashboard_test

import (
	"net/url"
	"regexp"
	"strings"
	"testing"

	"humanqa/domain/command"
	"humanqa/domain/person"
	"humanqa/internal/testing/pagetest"
)

// A key says its name, its maker and its last use. That of the demo warns before it is revoked.
func TestAKeyTellsWhoseItIsAndWhenItWasUsed(t *testing.T) {
	t.Parallel()
	w := setup(t)
	account := w.account("Acme", 0)
	owner := w.Joined("Ann", person.Grant{Role: person.Owner, AccountID: account})
	const page = "/dashboard/keys"
	made := w.Call(owner, "POST", page, url.Values{"scope": {"read"}, "name": {"Nightly <b>run</b>"}})
	token := regexp.MustCompile(`qa_live_[A-Za-z0-9_-]{20,}`).FindString(made.Body)
	if token == "" || !strings.Contains(made.Body, "Nightly &lt;b&gt;run&lt;/b&gt;") || !regexp.MustCompile(`created <time [^>]*>\d+ \w+ \d+</time> by Ann<`).MatchString(made.Body) ||
		!strings.Contains(made.Body, `<span class="muted">never</span></td><td data-label="Expires"><span class="muted">never</span>`) {
		t.Fatalf("the new key: %d %s", made.Status, made.Body)
	}
	if got := w.Call(guest{}, "GET", "/v1/jobs", nil, "Authorization", "Bearer "+token); got.Status != 200 {
		t.Fatalf("with the key: %d", got.Status)
	}
	if got := w.Call(owner, "GET", page, nil); !strings.Contains(got.Body, `data-ago>just now`) && !strings.Contains(got.Body, `data-ago>1 minute ago`) {
		t.Error("the page does not say when the key was used")
	}
	if got := w.Call(owner, "POST", page, url.Values{"scope": {"read"}, "name": {strings.Repeat("x", 81)}}); got.Status != 422 {
		t.Errorf("a name that is too long: %d", got.Status)
	}

	by := pagetest.Operator()
	key, err := w.Commands.IssueKey(t.Context(), by, account, command.IssueKey{Scope: "full", Name: "Demo"})
	w.Shown(key.Position, err)
	const warning = "The demo of this service uses this key."
	if got := w.Call(owner, "GET", page, nil); strings.Contains(got.Body, warning) || !strings.Contains(got.Body, "by the service’s operator") {
		t.Error("without a demo")
	}
	demoKeys.Store(w.BaseURL, key.Token)
	if got := w.Call(owner, "GET", page, nil); strings.Count(got.Body, warning) != 1 || strings.Count(got.Body, "used by the demo") != 1 {
		t.Error("the demo's key does not warn")
	}
	w.Shown(w.Commands.RevokeKey(t.Context(), pagetest.Operator(), account, key.KeyID))
	if got := w.Call(owner, "GET", page, nil); strings.Contains(got.Body, warning) {
		t.Error("a revoked key warns")
	}
	// An erased account's keys have no names, in the rows and in a rebuild.
	w.Shown(w.Commands.EraseAccount(t.Context(), pagetest.Operator(), account, "Olga", "a test"))
	var names []string
	w.Must(w.DB.SelectContext(t.Context(), &names, `SELECT name FROM readmodel.api_keys WHERE account_id = $1 ORDER BY name`, account))
	if strings.Join(names, ",") != "(erased),(erased)" {
		t.Errorf("after the erasure the names are %q", names)
	}
}
