package dashboard_test

import (
	"html"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"humanqa/domain/command"
	"humanqa/domain/job"
	"humanqa/domain/person"
	"humanqa/internal/testing/pagetest"
)

// The checkers' reasons and notes stand on the page of a test that could not be tested,
// and between the claims of its timeline; the checkers themselves are never named.
func testTheReasonsOfATestThatCouldNotBeTested(t *testing.T, w *world) {
	account := w.account("Acme", 100)
	owner := w.Joined("Ann", person.Grant{Role: person.Owner, AccountID: account})
	id := w.test(account, "Checkout", nil)
	path := "/dashboard/jobs/" + id
	back := w.claims(w.Checker("carla-the-checker"), id)
	w.Shown(w.Commands.ReleaseJob(t.Context(), pagetest.ByChecker(back.CheckerID), back.Claim))
	tab := w.Tab(owner)
	tab.Open(w.Origin + path)
	tab.WaitText("the checker returned it")
	gaveUp := func(name, reason, note string) {
		t.Helper()
		c := w.claims(w.Checker(name), id)
		_, at, err := w.Commands.ReportUntestable(t.Context(), pagetest.ByChecker(c.CheckerID), c.Claim, reason, note)
		w.Shown(at, err)
	}
	gaveUp("bob-the-checker", "The site is down", "502 on <b>every</b> page.")
	tab.WaitText("One checker could not test it. The test waits for a second checker.")
	tab.WaitText("502 on <b>every</b> page.")
	gaveUp("dave-the-checker", "no_access", "The login is refused.")
	tab.WaitText("Could not be tested")
	tab.WaitText("Checkers could not test it. 5 credits refunded.")
	tab.WaitText("The login is refused.")
	equalsReload(t, tab)
	tab.Axe("a test that could not be tested")

	page := w.Call(owner, "GET", path, nil).Body
	var told []string
	for _, m := range regexp.MustCompile(`(?s)<ol class="timeline">(.*?)</ol>`).FindAllString(page, 1) {
		for _, line := range regexp.MustCompile(`<li><span>(.*?)</span>`).FindAllStringSubmatch(m, -1) {
			told = append(told, strings.TrimSpace(strings.Split(line[1], "<span")[0]))
		}
	}
	want := "Submitted, A checker started, Back in the queue, A checker started, A checker could not test it, " +
		"A checker started, A checker could not test it, Could not be tested"
	if got := strings.Join(told, ", "); got != want {
		t.Errorf("the timeline is %s", got)
	}
	if !strings.Contains(page, "no access") || strings.Contains(page, "-the-checker") {
		t.Error("a reason is a code, or a checker is named")
	}
	if got := w.Call(owner, "GET", path+"/replay?at=99", nil); !strings.Contains(got.Body, "The site is down") {
		t.Error("the replay has no reason")
	}
}

// What the owner has written about the checker's work is seen, and outlives other stars.
func testAChangeOfTheStarsKeepsTheWords(t *testing.T, w *world) {
	account := w.account("Acme", 100)
	owner := w.Joined("Ann", person.Grant{Role: person.Owner, AccountID: account})
	id := w.completed(account, "Checkout", "", job.ItemPass, job.ItemPass, job.ItemPass)
	path := "/dashboard/jobs/" + id
	if got := w.Call(owner, "POST", path+"/rating", url.Values{"rating": {"3"}, "note": {"Good, but\nno picture."}}); got.Status != 303 {
		t.Fatalf("the rating: %d", got.Status)
	}
	tab := w.Tab(owner)
	tab.Open(w.Origin + path)
	tab.Wait(`document.getElementById('note').value === "Good, but\nno picture."`)
	tab.Click(".stars label:nth-of-type(5)")
	tab.Click("#rating button")
	tab.Wait("location.hash === '#rating' && document.querySelector('.stars input:checked').value === '5'")
	if report, err := w.Reads.Jobs.Report(t.Context(), account, id); err != nil || *report.CheckerRating != 5 || strings.Fields(report.RatingNote)[3] != "picture." {
		t.Errorf("the rating is %v %q, %v", *report.CheckerRating, report.RatingNote, err)
	}
}

// A page shows how this very test is started from a terminal; its webhook's deliveries
// name it, and none of them is late before it was tried.
func testATestIsStartedAgainFromATerminal(t *testing.T, w *world) {
	account := w.account("Acme", 100)
	owner := w.Joined("Ann", person.Grant{Role: person.Owner, AccountID: account})
	project, err := w.Commands.CreateProject(t.Context(), pagetest.Client(account), command.CreateProject{Name: "Shop", WebhookURL: "https://hooks.example.com/x"})
	w.Shown(project.Position, err)
	id := w.test(account, "Ann's checkout", func(in *command.SubmitJob) { in.ProjectID, in.Target.Device = project.ProjectID, "iPhone" })
	curl := html.UnescapeString(w.Call(owner, "GET", "/dashboard/jobs/"+id, nil).Body)
	for _, want := range []string{
		"/v1/jobs' \\\n", `"title":"Ann'\''s checkout"`, `"jobType":"payment_flow"`, `"targetDevice":"iPhone"`, `"projectId":"` + project.ProjectID,
		`{"description":"The receipt arrives by e-mail","key":"` + job.KeyFor("The receipt arrives by e-mail") + `","severity":"minor"}`,
	} {
		if !strings.Contains(curl, want) {
			t.Errorf("the call is without %s", want)
		}
	}
	hook := html.UnescapeString(w.Call(owner, "GET", "/dashboard/projects/"+project.ProjectID+"/webhook", nil).Body)
	if !strings.Contains(hook, "Ann's checkout</a></span></th>") || strings.Contains(hook, "overdue") {
		t.Error("a delivery does not name its test, or is overdue")
	}
}
