package dashboard_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"humanqa/domain/command"
	"humanqa/domain/job"
	"humanqa/domain/person"
	"humanqa/internal/testing/eventually"
	"humanqa/internal/testing/pagetest"
)

// The pass rate of a week, as a chart and as a table, and a list of batches.
func TestTheProjectsPageShowsThePassRateByWeek(t *testing.T) {
	t.Parallel()
	w := setup(t)
	account := w.account("Acme", 100)
	viewer := w.Joined("Ann", person.Grant{Role: person.Viewer, AccountID: account})
	if got := w.Call(viewer, "GET", "/dashboard/projects?weeks=all", nil); got.Status != 200 || strings.Contains(got.Body, `id="weeks"`) {
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
	got := w.Call(viewer, "GET", "/dashboard/projects?weeks=all", nil)
	for text, n := range map[string]int{
		`<td data-label="Tests" class="num">4</td><td data-label="Passed" class="num">3</td><td data-label="Failed" class="num">1</td><td data-label="Pass rate" class="right num">75 %</td>`: 1,
		`<rect class="fail" x="0" y="0.0" width="10" height="25.0"/>`:  1,
		`<rect class="pass" x="0" y="25.0" width="10" height="75.0"/>`: 1,
		`for each week (UTC)`: 1, `: 3 of 4 tests passed"`: 1, `: no test"`: 11, `<b>75</b>`: 1, `<b>–</b>`: 11, `<td data-label="Pass rate" class="right num">–</td>`: 11, `<span>100 %</span>`: 1,
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

// The trend, the matrix and the list of projects say which commit broke what; the credits'
// page draws the balance of each day.
func TestThePlotsNameCommitsAndDays(t *testing.T) {
	t.Parallel()
	w := setup(t)
	account := w.account("Acme", 100)
	viewer := w.Joined("Ann", person.Grant{Role: person.Viewer, AccountID: account})
	other := w.Joined("Bob", person.Grant{Role: person.Viewer, AccountID: w.account("Globex", 0)})
	project, err := w.Commands.CreateProject(t.Context(), pagetest.Client(account), command.CreateProject{Name: "Shop"})
	w.Shown(project.Position, err)
	for i, verdicts := range [][2]job.ItemStatus{{job.ItemFail, job.ItemPass}, {job.ItemPass, job.ItemFail}} {
		out, err := w.Commands.Deploy(t.Context(), pagetest.Client(account), project.ProjectID, command.Deploy{
			Test: command.HostedTest{Submission: job.Submission{URL: "https://shop.example.com", Source: "deploy"}, Host: "shop.example.com"},
			Keys: []string{fmt.Sprintf("commit:%d0c5ea7e9d3b", 4+i)},
		})
		w.Shown(out.Position, err)
		eventually.True(t, "The checklist is written", func() bool {
			j, err := w.Reads.Jobs.Job(t.Context(), account, out.JobID)
			return err == nil && len(j.Items) > 1
		})
		c := w.claims(w.Checker("ann"), out.JobID)
		for n := range c.Checklist {
			verdict := job.ItemPass
			if n < 2 {
				verdict = verdicts[n]
			}
			c.checks(n, verdict, "It is white.")
		}
		c.completes("Tested.")
	}
	page := w.Call(viewer, "GET", "/dashboard/projects/"+project.ProjectID, nil).Body
	for text, n := range map[string]int{
		`class="plot-column" title="`: 2, `, commit 50c5ea7e9d3b"><svg`: 1, `<span>100 %</span>`: 1, `<td data-label="Commit"><code>50c5ea7e9d</code></td>`: 1,
		`scope="colgroup" colspan="2"`: 1, `<tr><th scope="row">`: 1, "?items=all#matrix": 1, "Also show items that pass again (1)": 1,
	} {
		if got := strings.Count(page, text); got != n {
			t.Errorf("the project's page has %d times %s, want %d", got, text, n)
		}
	}
	_, matrix, _ := strings.Cut(page, `id="matrix"`)
	matrix, rest, _ := strings.Cut(matrix, "</section>")
	if !strings.Contains(matrix+rest, "Days and times are UTC.") || strings.Contains(matrix, "data-zone") {
		t.Error("the matrix has the days of one zone and the times of another")
	}
	all := w.Call(viewer, "GET", "/dashboard/projects/"+project.ProjectID+"?items=all", nil).Body
	if n := strings.Count(all, `<tr><th scope="row">`); n != 2 {
		t.Errorf("with all that failed once the matrix has %d rows", n)
	}
	list := w.Call(viewer, "GET", "/dashboard/projects", nil).Body
	if !strings.Contains(list, `id="project-`+project.ProjectID) || !strings.Contains(list, `<td data-label="Tests passed" class="num nowrap">0 %`) {
		t.Error("the list of projects has no pass rate")
	}
	if body := w.Call(other, "GET", "/dashboard/projects", nil).Body; strings.Contains(body, project.ProjectID) {
		t.Error("another account sees the project")
	}
	credits := w.Call(viewer, "GET", "/dashboard/credits", nil).Body
	if n := strings.Count(credits, `class="plot-column"`); n != 30 || !strings.Contains(credits, ": 90 credits\"><svg") || !strings.Contains(credits, ": 0 credits\"><svg") {
		t.Errorf("the balance has %d days, or not those of the ledger", n)
	}
}

func TestTheProjectsPageFindsANameInAnySpelling(t *testing.T) {
	t.Parallel()
	w := setup(t)
	account := w.account("Acme", 0)
	viewer := w.Joined("Ann", person.Grant{Role: person.Viewer, AccountID: account})
	project, err := w.Commands.CreateProject(t.Context(), pagetest.Client(account), command.CreateProject{Name: "B\u00fccher"})
	w.Shown(project.Position, err)
	for typed, found := range map[string]bool{"b\u00fccher": true, "bu\u0308cher": true, "BU\u0308CH": true, "bucher": false} {
		got := w.Call(viewer, "GET", "/dashboard/projects?q="+url.QueryEscape(typed), nil)
		if got.Status != 200 || strings.Contains(got.Body, project.ProjectID) != found {
			t.Errorf("%+q: %d, and it is found: %t", typed, got.Status, !found)
		}
	}
}
