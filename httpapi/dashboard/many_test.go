package dashboard_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"humanqa/domain/command"
	"humanqa/domain/job"
	"humanqa/domain/person"
	"humanqa/internal/testing/browsertest"
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
	tab.Wait(`location.search.includes('status=pending') && document.querySelectorAll('#cancel-menu').length === 1`)
	tab.Click(`#cancel-menu summary`)
	tab.Click(`#cancel-menu button`)
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
