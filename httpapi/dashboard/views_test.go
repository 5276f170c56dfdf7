package dashboard_test

import (
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"humanqa/domain/person"
	"humanqa/internal/testing/pagetest"
)

// A filter under a name is the person's alone, in the account where they kept
// it.
func testAViewIsKeptForOnePerson(t *testing.T, w *world) {
	account, other := w.account("Acme", 100), w.account("Globex", 0)
	ann := w.Joined("Ann", person.Grant{Role: person.Viewer, AccountID: account})
	w.Shown(w.Commands.GrantRole(t.Context(), pagetest.Operator(), ann.ID, person.Grant{Role: person.Viewer, AccountID: other}))
	bob := w.Joined("Bob", person.Grant{Role: person.Owner, AccountID: account})
	keep := func(name, query string) pagetest.Response {
		t.Helper()
		return w.Call(ann, "POST", "/dashboard/views", url.Values{"name": {name}, "query": {query}})
	}
	if got := w.Call(ann, "POST", "/dashboard/account", url.Values{"account": {account}}); got.Status != 303 {
		t.Fatalf("looking at the account: %d", got.Status)
	}
	const waiting = `<a href="/dashboard/jobs?status=pending" aria-current="true">What &lt;waits&gt;</a>`
	if got := keep(" What  <waits> ", "status=pending&page=7&evil=//x"); got.Status != 303 || got.Header.Get("Location") != "/dashboard/jobs?status=pending" {
		t.Errorf("keeping: %d %s", got.Status, got.Header.Get("Location"))
	}
	page := w.Call(ann, "GET", "/dashboard/jobs?status=pending", nil)
	if !strings.Contains(page.Body, waiting) {
		t.Error("the view is not shown")
	}
	id := regexp.MustCompile(`name="view" value="([^"]+)"`).FindStringSubmatch(page.Body)
	if id == nil {
		t.Fatal("the view cannot be dropped")
	}
	if got := w.Call(bob, "GET", "/dashboard/jobs?status=pending", nil); strings.Contains(got.Body, "waits") {
		t.Error("somebody else sees it")
	}
	w.Call(bob, "POST", "/dashboard/views/drop", url.Values{"view": {id[1]}})
	w.Call(ann, "POST", "/dashboard/account", url.Values{"account": {other}})
	if got := w.Call(ann, "GET", "/dashboard/jobs?status=pending", nil); strings.Contains(got.Body, "waits") {
		t.Error("it is shown in another account")
	}
	w.Call(ann, "POST", "/dashboard/account", url.Values{"account": {account}})

	// A name has one filter; there are thirty names.
	keep("What <waits>", "status=completed")
	if got := w.Call(ann, "GET", "/dashboard/jobs", nil); !strings.Contains(got.Body, `<a href="/dashboard/jobs?status=completed">What &lt;waits&gt;</a>`) || strings.Contains(got.Body, waiting) {
		t.Error("the name did not get the new filter")
	}
	for i := range 29 {
		keep(fmt.Sprintf("View %d", i), "status=failed")
	}
	if got := keep("One more", "status=failed"); got.Status != 409 {
		t.Errorf("the 31st: %d", got.Status)
	}
	for _, name := range []string{"", "  ", strings.Repeat("x", 61), "a\x00b", "a\xffb"} {
		if got := keep(name, "status=failed"); got.Status != 422 {
			t.Errorf("%q: %d", name, got.Status)
		}
	}
	w.Call(ann, "POST", "/dashboard/views/drop", url.Values{"view": {id[1]}})
	if got := w.Call(ann, "GET", "/dashboard/jobs", nil); strings.Contains(got.Body, "waits") {
		t.Error("a view that was dropped is shown")
	}
}
