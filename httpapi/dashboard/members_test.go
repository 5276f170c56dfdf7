package dashboard_test

import (
	"net/url"
	"regexp"
	"strings"
	"testing"

	"humanqa/domain/person"
	"humanqa/internal/browsertest"
)

// Who lost a passkey gets a new way in from an owner, and the lost one opens
// nothing any more.
func TestALostPasskeyIsReplaced(t *testing.T) {
	t.Parallel()
	w := setup(t)
	account, elsewhere := w.account("Acme", 0), w.account("Globex", 0)
	owner := w.joined("Ann", person.Grant{Role: person.Owner, AccountID: account})
	member := w.joined("Bob", person.Grant{Role: person.Viewer, AccountID: account})
	path := "/dashboard/members/" + member.ID + "/link"

	made := w.call(owner, "POST", path, url.Values{})
	link := regexp.MustCompile(`/join/[^<"]+`).FindString(made.body)
	if made.status != 200 || link == "" || made.header.Get("Cache-Control") != "no-store" {
		t.Fatalf("a new way in: %d", made.status)
	}
	if got := w.call(member, "GET", "/dashboard", nil); got.status != 200 {
		t.Errorf("a link that nobody used signed its person out: %d", got.status)
	}
	tab := browsertest.New(t)
	tab.Passkeys()
	tab.Open(w.origin + link)
	tab.WaitText("It replaces every passkey and password you had here")
	tab.Click("form[data-passkey] button")
	tab.WaitText("Welcome to Acme")
	if got := w.call(member, "GET", "/dashboard", nil); got.status != 303 {
		t.Errorf("the session of before goes on: %d", got.status)
	}

	// An owner's word ends at their account, and needs a proof.
	both := w.joined("Carol", person.Grant{Role: person.Viewer, AccountID: account})
	w.shown(w.commands.GrantRole(t.Context(), operator(), both.ID, person.Grant{Role: person.Owner, AccountID: elsewhere}))
	if got := w.call(owner, "POST", "/dashboard/members/"+both.ID+"/link", url.Values{}); got.status != 409 || strings.Contains(got.body, "/join/") {
		t.Errorf("a way in for somebody who belongs elsewhere, too: %d", got.status)
	}
	_, err := w.db.ExecContext(t.Context(), `UPDATE signin.sessions SET proved_at = proved_at - interval '1 hour' WHERE person_id = $1`, owner.ID)
	w.must(err)
	if got := w.call(owner, "POST", path, url.Values{}); got.status != 303 || !strings.HasPrefix(got.header.Get("Location"), "/signin/confirm") {
		t.Errorf("without a fresh proof: %d %s", got.status, got.header.Get("Location"))
	}
}
