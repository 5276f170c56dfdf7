package dashboard_test

import (
	"strings"
	"testing"

	"humanqa/domain/job"
	"humanqa/domain/person"
)

// The pass rate of a week, as a chart and as a table, and a list of batches.
func TestTheProjectsPageShowsThePassRateByWeek(t *testing.T) {
	t.Parallel()
	w := setup(t)
	account := w.account("Acme", 100)
	viewer := w.Joined("Ann", person.Grant{Role: person.Viewer, AccountID: account})
	if got := w.Call(viewer, "GET", "/dashboard/projects", nil); got.Status != 200 || strings.Contains(got.Body, `id="weeks"`) {
		t.Errorf("a chart of nothing: %d", got.Status)
	}
	if got := w.Call(viewer, "GET", "/dashboard/batches", nil); got.Status != 200 || !strings.Contains(got.Body, "No batches yet") {
		t.Errorf("no batches: %d", got.Status)
	}
	for range 3 {
		w.completed(account, "Works", "", job.ItemPass, job.ItemPass, job.ItemPass)
	}
	w.completed(account, "Fails", "", job.ItemPass, job.ItemFail, job.ItemPass)
	w.test(account, "Waits", nil)
	got := w.Call(viewer, "GET", "/dashboard/projects", nil)
	for text, n := range map[string]int{
		`<td class="num">4</td><td class="num">3</td><td class="num">1</td><td class="right num">75 %</td>`: 1,
		`<rect class="pass" x="366.7" y="25.0" width="26" height="75.0"/>`:                                  1,
		`<rect class="fail" x="366.7" y="0" width="26" height="25.0"/>`:                                     1,
		`<rect class="none"`: 11, `<td class="right num">–</td>`: 11,
	} {
		if strings.Count(got.Body, text) != n {
			t.Errorf("%d times %s, want %d", strings.Count(got.Body, text), text, n)
		}
	}
	batch, _ := w.batch(account, "The landing page", "Sign-up")
	got = w.Call(viewer, "GET", "/dashboard/batches", nil)
	for _, text := range []string{`href="/dashboard/batches/` + batch, "The landing page", "2 tests", "0 passed, 0 failed, 2 to go", "10 credits"} {
		if !strings.Contains(got.Body, text) {
			t.Errorf("the list of batches does not show %q", text)
		}
	}
	if other := w.Call(w.Joined("Bob", person.Grant{Role: person.Owner, AccountID: w.account("Globex", 0)}), "GET", "/dashboard/batches", nil); strings.Contains(other.Body, batch) {
		t.Error("another account sees the batch")
	}
}
