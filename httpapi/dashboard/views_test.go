package dashboard_test

import (
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"humanqa/domain/person"
)

// A filter under a name is the person's alone, in the account where they kept
// it.
func testAViewIsKeptForOnePerson(t *testing.T, w *world) {
	account, other := w.account("Acme", 100), w.account("Globex", 0)
	ann := w.joined("Ann", person.Grant{Role: person.Viewer, AccountID: account})
	w.shown(w.commands.GrantRole(t.Context(), operator(), ann.ID, person.Grant{Role: person.Viewer, AccountID: other}))
	bob := w.joined("Bob", person.Grant{Role: person.Owner, AccountID: account})
	keep := func(name, query string) response {
		t.Helper()
		return w.call(ann, "POST", "/dashboard/views", url.Values{"name": {name}, "query": {query}})
	}
	if got := w.call(ann, "POST", "/dashboard/account", url.Values{"account": {account}}); got.status != 303 {
		t.Fatalf("looking at the account: %d", got.status)
	}
	const waiting = `<a href="/dashboard/jobs?status=pending" aria-current="true">What &lt;waits&gt;</a>`
	if got := keep(" What  <waits> ", "status=pending&page=7&evil=//x"); got.status != 303 || got.header.Get("Location") != "/dashboard/jobs?status=pending" {
		t.Errorf("keeping: %d %s", got.status, got.header.Get("Location"))
	}
	page := w.call(ann, "GET", "/dashboard/jobs?status=pending", nil)
	if !strings.Contains(page.body, waiting) {
		t.Error("the view is not shown")
	}
	id := regexp.MustCompile(`name="view" value="([^"]+)"`).FindStringSubmatch(page.body)
	if id == nil {
		t.Fatal("the view cannot be dropped")
	}
	if got := w.call(bob, "GET", "/dashboard/jobs?status=pending", nil); strings.Contains(got.body, "waits") {
		t.Error("somebody else sees it")
	}
	w.call(bob, "POST", "/dashboard/views/drop", url.Values{"view": {id[1]}})
	w.call(ann, "POST", "/dashboard/account", url.Values{"account": {other}})
	if got := w.call(ann, "GET", "/dashboard/jobs?status=pending", nil); strings.Contains(got.body, "waits") {
		t.Error("it is shown in another account")
	}
	w.call(ann, "POST", "/dashboard/account", url.Values{"account": {account}})

	// A name has one filter; there are thirty names.
	keep("What <waits>", "status=completed")
	if got := w.call(ann, "GET", "/dashboard/jobs", nil); !strings.Contains(got.body, `<a href="/dashboard/jobs?status=completed">What &lt;waits&gt;</a>`) || strings.Contains(got.body, waiting) {
		t.Error("the name did not get the new filter")
	}
	for i := range 29 {
		keep(fmt.Sprintf("View %d", i), "status=failed")
	}
	if got := keep("One more", "status=failed"); got.status != 409 {
		t.Errorf("the 31st: %d", got.status)
	}
	for _, name := range []string{"", "  ", strings.Repeat("x", 61), "a\x00b", "a\xffb"} {
		if got := keep(name, "status=failed"); got.status != 422 {
			t.Errorf("%q: %d", name, got.status)
		}
	}
	w.call(ann, "POST", "/dashboard/views/drop", url.Values{"view": {id[1]}})
	if got := w.call(ann, "GET", "/dashboard/jobs", nil); strings.Contains(got.body, "waits") {
		t.Error("a view that was dropped is shown")
	}
}
