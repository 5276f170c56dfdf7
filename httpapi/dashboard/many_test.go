package dashboard_test

import (
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"humanqa/domain/command"
	"humanqa/domain/job"
	"humanqa/domain/person"
	"humanqa/internal/testing/browsertest"
	"humanqa/internal/testing/pagetest"
)

// Everything that waits for one host is stopped in three clicks behind a search, and the same
// batch runs again in two. Nothing else is stopped, and nobody else pays.
func testManyTestsAreStoppedOrRunAgain(t *testing.T, w *world) {
	account := w.account("Acme", 100)
	dev := w.Joined("Ann", person.Grant{Role: person.Developer, AccountID: account})
	viewer := w.Joined("Bob", person.Grant{Role: person.Viewer, AccountID: account})
	down := func(in *command.SubmitJob) { in.URL = "https://down.example.com/pay" }
	var stopped []string
	for _, title := range []string{"Pay by card", "Pay by bill", "Pay later"} {
		stopped = append(stopped, w.test(account, title, down))
	}
	taken := w.test(account, "Pay in cash", down)
	w.claims(w.Checker("cay"), taken)
	kept := w.test(account, "Sign up", nil)
	status := func(id string) job.Status {
		t.Helper()
		j, err := w.Reads.Jobs.Job(t.Context(), account, id)
		w.Must(err)
		return j.Status
	}

	tab := w.Tab(dev)
	tab.Open(w.Origin + "/dashboard/jobs?q=down.example.com")
	tab.Click(`nav.tabs a[href*='status=pending']`)
	tab.Wait(`location.search.includes('status=pending')`)
	tab.Click(`#take-all`)
	tab.WaitText("3 tests leave the queue, and 15 credits come back. This cannot be undone.")
	tab.Axe("chosen tests")
	tab.Click(`form[action="/dashboard/jobs/cancel"] button`)
	tab.WaitText("What waited is cancelled.")
	for _, id := range stopped {
		if got := status(id); got != job.StatusCancelled {
			t.Errorf("a test of the host is %s", got)
		}
	}
	if got := []job.Status{status(taken), status(kept)}; !slices.Equal(got, []job.Status{job.StatusClaimed, job.StatusPending}) {
		t.Errorf("the taken test and that of another host are %v", got)
	}

	batch, first := w.batch(account, "One", "Two")
	tab.Open(w.Origin + "/dashboard/batches/" + batch)
	tab.Click(`#retest-menu summary`)
	tab.Click(`#retest-menu button`)
	tab.WaitText("The batch is submitted.")
	again := strings.TrimPrefix(browsertest.Eval[string](tab, "location.pathname"), "/dashboard/batches/")
	list, err := w.Reads.Jobs.Batch(t.Context(), account, again)
	w.Must(err)
	for i, j := range list {
		before, err := w.Reads.Jobs.Job(t.Context(), account, first[i])
		w.Must(err)
		now, err := w.Reads.Jobs.Job(t.Context(), account, j.ID)
		w.Must(err)
		if again == batch || now.Title != before.Title || len(now.Items) != len(before.Items) || now.Items[0].Description != before.Items[0].Description {
			t.Errorf("test %d of the batch is %q with %d items, want %q with %d", i+1, now.Title, len(now.Items), before.Title, len(before.Items))
		}
	}
	tab.Click(`#cancel-menu summary`)
	tab.Click(`#cancel-menu button`)
	tab.WaitText("What waited is cancelled.")
	if got := []job.Status{status(list[0].ID), status(list[1].ID), status(first[0])}; !slices.Equal(got, []job.Status{job.StatusCancelled, job.StatusCancelled, job.StatusPending}) {
		t.Errorf("the new batch and the old one are %v", got)
	}
	balance, err := w.Reads.Credits.Balance(t.Context(), account, time.Now())
	w.Must(err)
	if want := 100 - 2*job.PaymentFlow.Price(false) - 2*job.GeneralQA.Price(false); balance.Available != want { // taken, kept, and the first batch
		t.Errorf("%d credits are left, want %d", balance.Available, want)
	}
	for _, path := range []string{"/dashboard/jobs?status=pending", "/dashboard/batches/" + batch} {
		if got := w.Call(viewer, "GET", path, nil); got.Status != 200 || strings.Contains(got.Body, "cancel-menu") || strings.Contains(got.Body, "retest-menu") {
			t.Errorf("%s offers a viewer what only developers may (%d)", path, got.Status)
		}
	}
}

// Tests are chosen by keys, and tested again as one batch. Without a script they are chosen by
// their boxes. Others' tests are not chosen by their ids.
func testTestsAreChosenByKeys(t *testing.T, w *world) {
	account := w.account("Acme", 100)
	dev := w.Joined("Ann", person.Grant{Role: person.Developer, AccountID: account})
	viewer := w.Joined("Bob", person.Grant{Role: person.Viewer, AccountID: account})
	stranger := w.test(w.account("Globex", 100), "Top secret", nil)
	var ids []string
	for _, title := range []string{"One", "Two", "Three"} {
		ids = append(ids, w.test(account, title, nil))
	}
	tab := w.Tab(dev)
	tab.Open(w.Origin + "/dashboard/jobs")
	chosen := func() string {
		return browsertest.Eval[string](tab, `[...document.querySelectorAll('tbody input:checked')].map((box) => box.closest('tr').querySelector('a').textContent).join()`)
	}
	for _, step := range []struct{ keys, want string }{
		{"j", ""}, {"x", "Three"}, {"jjx", "Three,One"}, {"kx", "Three,Two,One"}, {"x", "Three,One"}, {"jjjx", "Three"}, {"X", "Three,One"},
	} {
		tab.Press(step.keys)
		if got := chosen(); got != step.want {
			t.Errorf("after %s %q is chosen, want %q", step.keys, got, step.want)
		}
	}
	tab.Click(`#q`)
	// There it is a letter. The button ends the keys, and brings them back.
	tab.Press("x")
	for _, want := range []string{"Three,One", "One"} {
		tab.Click(`#pick-keys`)
		browsertest.Eval[bool](tab, `document.querySelector('tbody input').focus() === undefined`)
		if tab.Press("x"); chosen() != want {
			t.Errorf("%q is chosen, want %q", chosen(), want)
		}
	}
	tab.Press("x")
	tab.Axe("tests with boxes")
	tab.Click(`#take-chosen`)
	tab.WaitText("2 chosen tests")
	tab.Click(`form[action="/dashboard/jobs/retest"] button`)
	tab.WaitText("The batch is submitted.")
	again := strings.TrimPrefix(browsertest.Eval[string](tab, "location.pathname"), "/dashboard/batches/")
	list, err := w.Reads.Jobs.Batch(t.Context(), account, again)
	w.Must(err)
	if len(list) != 2 || list[0].ParentID != ids[2] || list[1].ParentID != ids[0] {
		t.Errorf("the batch is %+v", list)
	}

	page := w.Call(dev, "GET", "/dashboard/jobs/chosen?job="+ids[1]+"&job="+stranger, nil).Body
	says(t, page, "1 chosen test<", "1 test leaves the queue, and 5 credits come back.")
	if strings.Contains(page, "Top secret") || strings.Contains(page, stranger) {
		t.Error("another account's test is chosen")
	}
	if got := w.Call(dev, "POST", "/dashboard/jobs/cancel", url.Values{"job": {ids[1], stranger}}); got.Status != 303 {
		t.Errorf("the cancellation answers %d", got.Status)
	}
	for id, want := range map[string]job.Status{ids[1]: job.StatusCancelled, stranger: job.StatusPending} {
		st, err := w.Commands.Job(t.Context(), id)
		w.Must(err)
		if st.Status != want {
			t.Errorf("test %s is %s, want %s", st.Title, st.Status, want)
		}
	}
	if got := w.Call(viewer, "GET", "/dashboard/jobs", nil).Body; strings.Contains(got, `type="checkbox"`) {
		t.Error("a viewer is offered boxes")
	}
}

// Projects are archived together, and restored from the list of the archived ones.
func testProjectsAreArchivedAndRestored(t *testing.T, w *world) {
	account := w.account("Acme", 100)
	dev := w.Joined("Ann", person.Grant{Role: person.Developer, AccountID: account})
	ids := map[string]string{}
	for _, name := range []string{"Shop", "Blog", "Docs"} {
		p, err := w.Commands.CreateProject(t.Context(), pagetest.Client(account), command.CreateProject{Name: name})
		w.Shown(p.Position, err)
		ids[name] = p.ProjectID
	}
	waiting := w.test(account, "Checkout", func(in *command.SubmitJob) { in.ProjectID = ids["Shop"] })
	tab := w.Tab(dev)
	tab.Open(w.Origin + "/dashboard/projects")
	for _, name := range []string{"Shop", "Blog"} {
		tab.Click(`#project-` + ids[name] + ` input`)
	}
	tab.Click(`#archive-menu summary`)
	tab.Axe("projects with boxes")
	tab.Click(`#archive-menu button`)
	tab.WaitText("What was chosen is archived.")
	if shown := browsertest.Eval[int](tab, `document.querySelectorAll('tbody tr').length`); shown != 2 {
		t.Errorf("%d archived projects are shown, want 2", shown)
	}
	tab.Axe("archived projects")
	j, err := w.Reads.Jobs.Job(t.Context(), account, waiting)
	w.Must(err)
	if j.Status != job.StatusCancelled || j.Refunded != j.Price {
		t.Errorf("the waiting test is %s, %d of %d refunded", j.Status, j.Refunded, j.Price)
	}
	if list := w.Call(dev, "GET", "/dashboard/projects", nil).Body; strings.Contains(list, ids["Shop"]) || !strings.Contains(list, ids["Docs"]) {
		t.Error("the list is not of the projects in use")
	}
	if form := w.Call(dev, "GET", "/dashboard/jobs/new", nil).Body; strings.Contains(form, ids["Shop"]) || !strings.Contains(form, ids["Docs"]) {
		t.Error("the form offers an archived project")
	}
	tab.Open(w.Origin + "/dashboard/projects/" + ids["Blog"])
	tab.WaitText("This project is archived since")
	tab.Axe("an archived project")
	tab.Open(w.Origin + "/dashboard/projects?show=archived")
	tab.Click(`#project-` + ids["Shop"] + ` button`)
	tab.WaitText("The project is restored.")
	tab.Click(`#archive-menu summary`)
	tab.Click(`#archive-menu button`)
	tab.WaitText("The project is archived.")
	tab.Click(`#archived button`)
	tab.WaitText("The project is restored.")
}
