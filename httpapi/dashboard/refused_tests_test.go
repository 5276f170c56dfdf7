package dashboard_test

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"humanqa/domain/command"
	"humanqa/domain/person"
	"humanqa/internal/testing/eventually"
	"humanqa/internal/testing/pagetest"
)

// refused has deploys of a project refused for want of credits, and waits until the
// overview says so.
func (w *world) refused(account string, reader guest, bodies ...string) (projectID string) {
	w.T.Helper()
	project, err := w.Commands.CreateProject(w.T.Context(), pagetest.Client(account), command.CreateProject{Name: "Shop", DefaultURL: new("https://shop.example.com/")})
	w.Shown(project.Position, err)
	for _, body := range bodies {
		got := w.Send(guest{}, "POST", "/v1/hooks/deploy/"+project.HookToken, strings.NewReader(body), "Content-Type", "application/json")
		if got.Status != http.StatusPaymentRequired {
			w.T.Fatalf("a deploy without credits: %d %s", got.Status, got.Body)
		}
	}
	w.API.Refusals.Record(w.T.Context())
	eventually.True(w.T, "the overview tells of the refusals", func() bool {
		return strings.Contains(w.Call(reader, "GET", "/dashboard", nil).Body, `id="refused"`)
	})
	return project.ProjectID
}

// Credits ran out in the night: the morning shows the deploys, and one press tests them.
func TestRefusedDeploysAreTestedByOnePress(t *testing.T) {
	t.Parallel()
	w := setup(t)
	account := w.account("Acme", 7)
	w.test(account, "Yesterday", nil) // leaves 2
	ann := w.Joined("Ann", person.Grant{Role: person.Developer, AccountID: account})
	bob := w.Joined("Bob", person.Grant{Role: person.Owner, AccountID: account})
	vera := w.Joined("Vera", person.Grant{Role: person.Viewer, AccountID: account})
	other := w.Joined("Carol", person.Grant{Role: person.Owner, AccountID: w.account("Globex", 100)})
	projectID := w.refused(account, ann, `{"commitSha":"abcdef0","branch":"main"}`, `{"commitSha":"1234567","branch":"main"}`,
		`{"url":"https://preview.example.com/","commitSha":"89abcde"}`, `{"url":"https://blog.example.com/","feature":"<b>Comments</b>"}`)
	page := w.Call(ann, "GET", "/dashboard", nil).Body
	says(t, page, "4 tests were refused since", "There were not enough credits.", "<code>1234567</code>", `href="/dashboard/jobs/new?url=https%3a%2f%2fblog.example.com%2f"`,
		"Testing the 2 deploys now costs 10 credits.", `href="https://pay.example.com/credits"`)
	if strings.Contains(page, `action="/dashboard/refused/test"`) {
		t.Error("tests are offered that nobody can pay")
	}
	_, at, err := w.Commands.GrantCredits(t.Context(), pagetest.Operator(), account, 100, nil, "bought")
	w.Shown(at, err)
	if page := w.Call(vera, "GET", "/dashboard", nil).Body; !strings.Contains(page, "4 tests were refused") || strings.Contains(page, `action="/dashboard/refused/test"`) {
		t.Error("a viewer may test, or does not see what was refused")
	}
	if strings.Contains(w.Call(other, "GET", "/dashboard", nil).Body, "refused since") {
		t.Error("another account sees it")
	}
	if got := w.Call(ann, "POST", "/dashboard/refused/test", url.Values{"cost": {"5"}}); got.Status != http.StatusConflict {
		t.Errorf("another cost than the page showed: %d", got.Status)
	}
	tab := w.Tab(ann)
	tab.Open(w.Origin + "/dashboard")
	tab.WaitText("Test the 2 deploys now for 10 credits")
	tab.Axe("the overview with refused tests")
	for _, wide := range []int64{320, 1280} {
		tab.Screen(wide, 800, false)
		tab.Wait(`document.documentElement.scrollWidth <= innerWidth`)
		tab.Shot(fmt.Sprint("refused-", wide))
	}
	tab.Click("#refused button.btn:not(.btn-quiet)")
	tab.WaitText("The tests are submitted.")
	list := w.Call(ann, "GET", "/dashboard/jobs?status=pending&project="+projectID, nil).Body
	if n := strings.Count(list, `<tr id="job-`); n != 2 {
		t.Errorf("%d tests", n)
	}
	balance, err := w.Reads.Credits.Balance(t.Context(), account, time.Now())
	if err != nil || balance.Available != 92 {
		t.Errorf("%d credits are left, %v", balance.Available, err)
	}
	// Another person sees what was refused, and buys nothing twice.
	if page := w.Call(bob, "GET", "/dashboard", nil).Body; !strings.Contains(page, "4 tests were refused") || strings.Contains(page, `action="/dashboard/refused/test"`) {
		t.Error("the tests are offered again")
	}
	if got := w.Call(bob, "POST", "/dashboard/refused/test", url.Values{"cost": {"10"}}); got.Status != http.StatusConflict {
		t.Errorf("a second press: %d", got.Status)
	}
	mark := regexp.MustCompile(`(?s)id="refused".*?name="upto" value="([^"]+)"`).FindStringSubmatch(w.Call(bob, "GET", "/dashboard", nil).Body)
	if mark == nil {
		t.Fatal("it cannot be marked as seen")
	}
	if got := w.Call(bob, "POST", "/dashboard/notices/seen", url.Values{"upto": {mark[1]}}); got.Status != http.StatusSeeOther {
		t.Errorf("marking it: %d", got.Status)
	}
	if page := w.Call(bob, "GET", "/dashboard", nil).Body; strings.Contains(page, fmt.Sprint(4, " tests were refused")) {
		t.Error("it is still shown")
	}
}
