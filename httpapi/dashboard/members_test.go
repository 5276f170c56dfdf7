package dashboard_test

import (
	"net/url"
	"regexp"
	"strings"
	"testing"

	"humanqa/domain/person"
	"humanqa/internal/testing/browsertest"
	"humanqa/internal/testing/pagetest"
)

// Who lost a passkey gets a new way in from an owner, and the lost one opens
// nothing any more.
func TestALostPasskeyIsReplaced(t *testing.T) {
	t.Parallel()
	w := setup(t)
	account, elsewhere := w.account("Acme", 0), w.account("Globex", 0)
	owner := w.Joined("Ann", person.Grant{Role: person.Owner, AccountID: account})
	member := w.Joined("Bob", person.Grant{Role: person.Viewer, AccountID: account})
	path := "/dashboard/members/" + member.ID + "/link"

	made := w.Call(owner, "POST", path, url.Values{})
	link := regexp.MustCompile(`/join/[^<"]+`).FindString(made.Body)
	if made.Status != 200 || link == "" || made.Header.Get("Cache-Control") != "no-store" {
		t.Fatalf("a new way in: %d", made.Status)
	}
	if got := w.Call(member, "GET", "/dashboard", nil); got.Status != 200 {
		t.Errorf("a link that nobody used signed its person out: %d", got.Status)
	}
	tab := browsertest.New(t)
	tab.Passkeys()
	tab.Open(w.Origin + link)
	tab.WaitText("It replaces all your passkeys and your password here")
	tab.Click("form[data-passkey] button")
	tab.WaitText("Welcome to Acme")
	if got := w.Call(member, "GET", "/dashboard", nil); got.Status != 303 {
		t.Errorf("the session of before goes on: %d", got.Status)
	}

	// An owner's word ends at their account, and needs a proof.
	both := w.Joined("Carol", person.Grant{Role: person.Viewer, AccountID: account})
	w.Shown(w.Commands.GrantRole(t.Context(), pagetest.Operator(), both.ID, person.Grant{Role: person.Owner, AccountID: elsewhere}))
	if got := w.Call(owner, "POST", "/dashboard/members/"+both.ID+"/link", url.Values{}); got.Status != 409 || strings.Contains(got.Body, "/join/") {
		t.Errorf("a way in for somebody who belongs elsewhere, too: %d", got.Status)
	}
	w.Prove(owner, "1 hour")
	if got := w.Call(owner, "POST", path, url.Values{}); got.Status != 303 || !strings.HasPrefix(got.Header.Get("Location"), "/signin/confirm") {
		t.Errorf("without a fresh proof: %d %s", got.Status, got.Header.Get("Location"))
	}
}
