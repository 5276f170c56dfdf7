package workbench_test

import (
	"strings"
	"testing"

	"humanqa/domain/command"
	"humanqa/domain/job"
	"humanqa/internal/testing/browsertest"
	"humanqa/internal/testing/eventually"
	"humanqa/internal/testing/pagetest"
)

// While somebody writes what they found they learn which open failures of the
// project it sounds like; whoever does not hold the claim learns none.
func TestAFindingTakesTheLineageOfAnOpenFailure(t *testing.T) {
	t.Parallel()
	w := setup(t)
	account, other := w.Account("Acme", 100, false), w.Account("Globex", 100, false)
	project := func(accountID string) string {
		p, err := w.Commands.CreateProject(t.Context(), pagetest.Client(accountID), command.CreateProject{Name: "Shop"})
		w.Shown(p.Position, err)
		return p.ProjectID
	}
	shop, otherShop := project(account), project(other)
	in := func(projectID string, keyed ...string) func(*command.SubmitJob) {
		return func(in *command.SubmitJob) {
			in.ProjectID = projectID
			for n := 0; n < len(keyed); n += 2 {
				in.Items[n/2].Key, in.Items[n/2].Description = keyed[n], keyed[n+1]
			}
		}
	}
	bob, bobID := w.Checks("Bob")
	for _, failing := range []struct{ account, project, key, description string }{
		{account, shop, "footer", "The footer overlaps the button"},
		{account, shop, "receipt", "The receipt arrives by mail"},
		{account, project(account), "footer-2", "The footer of another project overlaps"},
		{other, otherShop, "footer-3", "The footer of Globex overlaps"},
	} {
		id := w.test(failing.account, "Round one", 1, in(failing.project, failing.key, failing.description))
		w.completes(bobID, w.claimed(bobID, id), job.ItemFail, "It does.")
	}
	ann, annID := w.Checks("Ann")
	c := w.claimed(annID, w.test(account, "Round two", 2, in(shop, "receipt", "The receipt arrives by mail")))
	at := "/workbench/jobs/" + c.JobID
	asks := func(g guest, text string) string {
		got := w.Call(g, "GET", at+"/open-failures?text="+text, nil, "Accept", "application/json")
		if got.Status != 200 {
			if got.Status != 404 || strings.Contains(got.Body, "footer") {
				t.Errorf("a stranger is told %d %s", got.Status, got.Body)
			}
			return "nothing"
		}
		if got.Header.Get("Cache-Control") != "no-store" {
			t.Errorf("what is known may be kept: %v", got.Header)
		}
		return got.Body
	}
	told := asks(ann, "the+footer+overlaps")
	if strings.Count(told, `"key"`) != 1 || !strings.Contains(told, `"key":"footer","description":"The footer overlaps the button","severity":"critical","failedTests":1,"firstFailedAt":"`) {
		t.Errorf("the claimant is told %s", told)
	}
	if told := asks(ann, "the+receipt+by+mail"); strings.TrimSpace(told) != "[]" { // it is on the list
		t.Errorf("of what is on the list: %s", told)
	}
	asks(bob, "footer")

	tab := w.Tab(ann)
	tab.Screen(1280, 900, false)
	tab.Open(w.Origin + at)
	tab.WaitText("All saved")
	keys := &keyboard{tab: tab}
	// In an item's note it can be named; the item goes on with its own lineage.
	keys.press("jnThe footer covers it")
	tab.Wait(`document.querySelector('#checklist .similar:not([hidden])')?.innerText.includes('The footer overlaps the button')`)
	tab.Shot("bench-similar-note-light-1280")
	if n := browsertest.Eval[int](tab, `document.querySelectorAll('#checklist .similar:not([hidden]) button').length`); n != 1 {
		t.Errorf("%d buttons at an item's note", n)
	}
	tab.Click(`#checklist .similar:not([hidden]) button`)
	tab.Press(browsertest.Enter)
	tab.Wait(`document.querySelector('#checklist .similar:not([hidden])') === null`)
	eventually.True(t, "the note names it", func() bool {
		return strings.HasPrefix(w.draft(annID).Checklist[1].Note, "The footer covers it\nKnown: \"The footer overlaps the button\", failing since ")
	})
	keys.press("a")
	keys.press("The footer covers the pay button")
	tab.WaitText("One open failure is similar")
	pagetest.OnEveryScreen(t, tab, "bench-similar")
	tab.Screen(1280, 900, false)
	tab.Click(`#finding [aria-label^="Mention it in the note"]`)
	tab.Wait(`document.getElementById('finding-note').value.startsWith('Known: "The footer overlaps the button", failing since ')`)
	browsertest.Eval[bool](tab, `(() => { const note = document.getElementById('finding-note'); note.value = ''; note.dispatchEvent(new Event('input', {bubbles: true})); document.getElementById('finding-what').focus(); return true })()`)
	keys.press("!")
	tab.Click(`#finding [aria-label^="This is the same"]`)
	tab.WaitText("The same as The footer overlaps the button")
	tab.Shot("bench-same-light-1280")
	tab.Axe("the same failure")
	// The page comes anew while the finding is not sent: what was chosen stays.
	first := c.Checklist[0].ID
	_, seen, err := w.Commands.CheckItem(t.Context(), pagetest.ByChecker(annID), command.Claim{CheckerID: annID, JobID: c.JobID, Token: c.Token},
		command.CheckItem{ItemID: first, Status: job.ItemPass})
	w.Shown(seen, err)
	tab.Wait(`document.querySelector('li[data-item="` + first + `"]').dataset.status === 'pass'`)
	tab.Click(`#finding [value=fail]`)
	eventually.True(t, "the finding is there", func() bool {
		f := w.draft(annID).Findings
		return len(f) == 1 && f[0].Key == "footer" && f[0].Note == "The footer covers the pay button!" && f[0].Severity == job.Critical
	})
	tab.Wait(`document.getElementById('same').hidden && document.getElementById('finding-what').value === '' && document.getElementById('finding-severity').value === 'major'`)
	tab.WaitText("All saved")
	tab.Open("about:blank") // it would look at the test while it ends
	w.completes(annID, w.draft(annID), job.ItemPass, "")
	open, err := w.Reads.History.OpenFailures(t.Context(), account, shop, 10)
	w.Must(err)
	if len(open) != 1 || open[0].Key != "footer" || open[0].FailedTests != 2 {
		t.Errorf("open is %+v", open)
	}
	if told := asks(ann, "footer"); told != "nothing" {
		t.Errorf("after the claim ended: %s", told)
	}

	// What failed is tested again: the question is whether it is fixed.
	again, err := w.Commands.TestHosted(t.Context(), pagetest.Client(account), command.HostedTest{
		Submission: job.Submission{ProjectID: shop, URL: "https://shop.example.com", Feature: "Checkout", Source: "hosted"}, Host: "shop.example.com",
	})
	w.Shown(again.Position, err)
	w.claimed(annID, again.JobID)
	body := w.Call(ann, "GET", "/workbench/jobs/"+again.JobID, nil).Body
	if n := strings.Count(body, "Is it fixed?"); n != 1 || !strings.Contains(body, "Pass: fixed") || !strings.Contains(body, "Fail: still fails") {
		t.Errorf("the page asks %d times whether it is fixed", n)
	}
}
