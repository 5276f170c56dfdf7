package dashboard_test

import (
	"context"
	"net"
	"net/url"
	"strings"
	"testing"
	"time"

	"humanqa/domain/job"
	"humanqa/domain/person"
	"humanqa/domain/session"
	"humanqa/internal/testing/browsertest"
	"humanqa/projections/jobs"
)

// refill types over what a field holds.
func refill(tab *browsertest.Tab, selector, text string) {
	browsertest.Eval[bool](tab, "(document.querySelector('"+selector+"').value = '') === ''")
	if text != "" {
		tab.Fill(selector, text)
	}
}

// A person sees what will be tested and what it costs, edits the list, and only then pays.
// What they wrote is kept until it is sent.
func testAPersonEditsTheChecklistBeforeItCosts(t *testing.T, w *world) {
	account := w.account("Acme", 100)
	owner := w.Joined("Ann", person.Grant{Role: person.Owner, AccountID: account})
	balance := func(want int) {
		t.Helper()
		if b, err := w.Reads.Credits.Balance(t.Context(), account, time.Now()); err != nil || int(b.Available) != want {
			t.Errorf("%d credits, want %d, %v", b.Available, want, err)
		}
	}
	tab := w.Tab(owner)
	tab.Open(w.Origin + "/dashboard/jobs/new")
	tab.Fill("#url", "shop.example.com/sign-up") // without a scheme
	tab.Fill("#feature", "Sign up")
	tab.Click("details.more summary")
	tab.Fill("#access", "a secret login")
	tab.Click("button[formaction*='preview']")
	tab.WaitText("What will be tested")
	tab.WaitText("95 credits")
	tab.Wait("document.getElementById('url').value === 'https://shop.example.com/sign-up'")
	tab.Axe("the preview of a test")
	balance(100)
	refill(tab, "#item-1", "The sign-up mail arrives")
	refill(tab, "#item-2", "")
	tab.Wait(`fetch('/dashboard/jobs/new').then((r) => r.text()).then((page) => page.includes('The sign-up mail arrives'))`)

	// The draft is there for the person, in this account only, and without the login.
	kept := w.Call(owner, "GET", "/dashboard/jobs/new", nil).Body
	if !strings.Contains(kept, "Your draft") || !strings.Contains(kept, "https://shop.example.com/sign-up") || strings.Contains(kept, "a secret login") {
		t.Error("the draft is not kept, or the login with it")
	}
	other := w.Joined("Eve", person.Grant{Role: person.Owner, AccountID: account})
	if got := w.Call(other, "GET", "/dashboard/jobs/new", nil); strings.Contains(got.Body, "shop.example.com") {
		t.Error("another person has the draft")
	}
	tab.Click("aside button")
	tab.WaitText("Waiting for a checker")
	tab.WaitText("The sign-up mail arrives")
	balance(95)
	path := browsertest.Eval[string](tab, "location.pathname")
	j, err := w.Reads.Jobs.Job(t.Context(), account, path[strings.LastIndex(path, "/")+1:])
	w.Must(err)
	if j.Items[0].Description != "The sign-up mail arrives" || j.GeneratedBy != "" || j.URL != "https://shop.example.com/sign-up" {
		t.Errorf("the test is %+v", j)
	}
	if got := w.Call(owner, "GET", "/dashboard/jobs/new", nil); strings.Contains(got.Body, "Your draft") {
		t.Error("the draft outlives the test")
	}

	// Another cost than the one that was shown is shown first; a wrong item is named.
	form := url.Values{"url": {"https://shop.example.com"}, "priority": {"urgent"}, "cost": {"5"}, "item": {"It opens"}, "expected": {""}, "severity": {"minor"}}
	if got := w.Call(owner, "POST", "/dashboard/jobs", form); got.Status != 200 || !strings.Contains(got.Body, "The cost has changed") || !strings.Contains(got.Body, `name="cost" value="10"`) {
		t.Errorf("another cost: %d", got.Status)
	}
	form.Set("item", strings.Repeat("x", 1001))
	if got := w.Call(owner, "POST", "/dashboard/jobs/preview", form); got.Status != 422 || !strings.Contains(got.Body, `id="item-1-refused">Item 1: check must have at most 1000 characters`) {
		t.Errorf("a long item: %d", got.Status)
	}
	balance(95)
	if got := w.Call(owner, "POST", "/dashboard/jobs/draft", url.Values{"discard": {"1"}}); got.Status != 303 {
		t.Errorf("discard: %d", got.Status)
	}
	if got := w.Call(owner, "GET", "/dashboard/jobs/new", nil); strings.Contains(got.Body, "Your draft") {
		t.Error("a draft that was discarded is shown")
	}
}

// What failed before is in the preview of the project's next test.
func testAPreviewShowsWhatFailedBefore(t *testing.T, w *world) {
	account := w.account("Acme", 100)
	owner := w.Joined("Ann", person.Grant{Role: person.Owner, AccountID: account})
	got := w.Call(owner, "POST", "/dashboard/jobs", url.Values{"url": {"https://shop.example.com"}, "item": {"A declined card leads back"}, "severity": {"critical"}})
	id := got.Header.Get("Location")[len("/dashboard/jobs/"):]
	c := w.claims(w.Checker("ann"), id)
	c.checks(0, job.ItemFail, "White page.")
	c.completes("It fails.")
	got = w.Call(owner, "POST", "/dashboard/jobs/preview", url.Values{"url": {"shop.example.com"}, "item": {"The mail arrives"}, "severity": {"minor"}})
	for _, want := range []string{"Retested, because these items failed before", "A declined card leads back", `>The mail arrives</textarea>`, "2 items", "in shop.example.com"} {
		if !strings.Contains(got.Body, want) {
			t.Errorf("the preview is without %q", want)
		}
	}
	if list, total, err := w.Reads.Jobs.List(t.Context(), account, jobs.Filter{Limit: 5}); err != nil || total != 1 {
		t.Errorf("a preview made a test: %d, %v", len(list), err)
	}
}

// A session and a batch are started on their pages, for the cost that was shown; the
// client cancels a session in its room.
func TestSessionsAndBatchesAreStartedOnTheirPages(t *testing.T) {
	t.Parallel()
	w := setup(t)
	account := w.account("Acme", 100)
	owner := w.Joined("Ann", person.Grant{Role: person.Owner, AccountID: account})
	viewer := w.Joined("Vic", person.Grant{Role: person.Viewer, AccountID: account})
	tab := w.Tab(owner)
	tab.Open(w.Origin + "/dashboard/sessions")
	tab.Click(".empty .btn")
	tab.WaitText("New session")
	tab.Fill("#url", "chat.example.com")
	tab.Fill("#role-1", "Caller")
	tab.Wait("!document.getElementById('role-3').checkVisibility()")
	browsertest.Eval[bool](tab, "(document.getElementById('checkers').value = '3') === '3'")
	tab.Wait("document.getElementById('role-3').checkVisibility()")
	tab.Click("aside button")
	tab.WaitText("15 credits, for 3 checkers")
	tab.Axe("the preview of a session")
	tab.Shot("session-preview")
	tab.Click("aside button")
	tab.WaitText("Caller")
	tab.WaitText("0 of 3")
	id := strings.TrimPrefix(browsertest.Eval[string](tab, "location.pathname"), "/dashboard/sessions/")
	if got := w.Call(viewer, "POST", "/dashboard/sessions/"+id+"/cancel", url.Values{}); got.Status != 403 {
		t.Errorf("a viewer cancels: %d", got.Status)
	}
	tab.Click("#cancel-menu summary")
	tab.Click("#cancel-menu button")
	tab.WaitText("The session was cancelled before its end.")
	if s, err := w.Reads.Sessions.Session(t.Context(), account, id); err != nil || s.Status != session.StatusCancelled || s.CreditsRefunded != 15 {
		t.Errorf("the session is %s, %d came back, %v", s.Status, s.CreditsRefunded, err)
	}

	tab.Open(w.Origin + "/dashboard/batches/new")
	tab.Fill("#tests", "shop.example.com/cart Buy the cheapest plan\n\n  https://shop.example.com/mail  \nnonsense")
	tab.Allow("422")
	tab.Click("aside button")
	tab.WaitText("Test 3: the address")
	refill(tab, "#tests", "shop.example.com/cart Buy the cheapest plan\nhttps://shop.example.com/mail")
	tab.Click("aside button")
	tab.WaitText("Submit for 10 credits")
	tab.Axe("the preview of a batch")
	tab.Shot("batch-preview")
	refill(tab, "#item-2-1", "The mail has a link")
	tab.Wait(`fetch('/dashboard/batches/new').then((r) => r.text()).then((page) => page.includes('The mail has a link'))`) // the draft
	tab.Click("aside button")
	tab.WaitText("Batch of 2 tests")
	tab.WaitText("Buy the cheapest plan")
	tab.WaitText("Test of shop.example.com")
	batch, err := w.Reads.Jobs.Batch(t.Context(), account, strings.TrimPrefix(browsertest.Eval[string](tab, "location.pathname"), "/dashboard/batches/"))
	w.Must(err)
	for _, j := range batch {
		whole, err := w.Reads.Jobs.Job(t.Context(), account, j.ID)
		w.Must(err)
		if edited := whole.Items[0].Description == "The mail has a link"; edited != (j.Title == "Test of shop.example.com") || len(whole.Items) < 3 {
			t.Errorf("the list of %s is %+v", j.Title, whole.Items)
		}
	}
	unseen := w.Call(owner, "POST", "/dashboard/batches", url.Values{"tests": {"a.example.com\nb.example.com"}, "type": {"custom"}, "cost": {"5"}})
	if unseen.Status != 200 || !strings.Contains(unseen.Body, "Nothing was charged yet") {
		t.Errorf("another cost: %d", unseen.Status)
	}
	if b, err := w.Reads.Credits.Balance(t.Context(), account, time.Now()); err != nil || b.Available != 90 {
		t.Errorf("%d credits are left, %v", b.Available, err)
	}
}

// A host without an address warns before credits go; the person may go on.
func TestAHostThatDoesNotResolveWarnsBeforeItCosts(t *testing.T) {
	t.Parallel()
	w := ownResolving(t, func(_ context.Context, host string) error {
		if host == "typo.example.com" {
			return &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
		}
		return nil
	})
	account := w.account("Acme", 100)
	owner := w.Joined("Ann", person.Grant{Role: person.Owner, AccountID: account})
	form := url.Values{"url": {"typo.example.com"}, "type": {"general_qa"}}
	got := w.Call(owner, "POST", "/dashboard/jobs", form)
	if got.Status != 200 || !strings.Contains(got.Body, "does not resolve here") || !strings.Contains(got.Body, `name="unresolved" value="https://typo.example.com"`) {
		t.Fatalf("a host without an address: %d", got.Status)
	}
	if _, total, err := w.Reads.Jobs.List(t.Context(), account, jobs.Filter{Limit: 1}); err != nil || total != 0 {
		t.Errorf("%d tests, %v", total, err)
	}
	form.Set("unresolved", "https://typo.example.com")
	if got := w.Call(owner, "POST", "/dashboard/jobs", form); got.Status != 303 {
		t.Errorf("the person goes on: %d", got.Status)
	}
	if got := w.Call(owner, "POST", "/dashboard/jobs", url.Values{"url": {"shop.example.com"}}); got.Status != 303 {
		t.Errorf("a host with an address: %d", got.Status)
	}
	if got := w.Call(owner, "POST", "/dashboard/batches/preview", url.Values{"tests": {"a.example.com\ntypo.example.com"}, "type": {"custom"}}); strings.Count(got.Body, "does not resolve") != 1 {
		t.Errorf("a batch: %d", got.Status)
	}
}
