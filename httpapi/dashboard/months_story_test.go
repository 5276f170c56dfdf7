package dashboard_test

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"humanqa/domain/person"
	"humanqa/internal/testing/browsertest"
	"humanqa/internal/testing/pagetest"
	"humanqa/internal/testing/thirdmonth"
)

// says reports the texts that a page lacks.
func says(t *testing.T, page string, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if !strings.Contains(page, text) {
			t.Errorf("the page does not say %q", text)
		}
	}
}

// What waits for a person comes first, then what got worse, then what a day brought; each
// number leads to a page that lists as many.
func TestTheOverviewOfManyProjectsBeginsWithWhatWaits(t *testing.T) {
	t.Parallel()
	w, owner := inThirdMonth(t)
	page := w.Call(owner, "GET", "/dashboard", nil).Body
	at := 0
	for _, text := range []string{
		"Waiting for you", "A code was sent by SMS", "Which one may I use?", "The webhook of Billing is disabled", "Got worse this week",
		fmt.Sprintf("%d failing projects", thirdmonth.Failing), fmt.Sprintf("6 of %d", thirdmonth.Worse), "Since yesterday",
		fmt.Sprintf(`>%d tests</a>`, thirdmonth.Batch), ">1 passed</a>", ">4 failed</a>", ">15 to go</a>", `id="credits"`, "7 credits left", "While you were away",
	} {
		found := strings.Index(page[at:], text)
		if found < 0 {
			t.Fatalf("%q does not follow", text)
		}
		at += found
	}
	for _, number := range regexp.MustCompile(`href="(/dashboard/jobs\?[^"]*)">([0-9]+)(?: (?:passed|failed|tests?))?</a>`).FindAllStringSubmatch(page, -1) {
		list := w.Call(owner, "GET", strings.ReplaceAll(number[1], "&amp;", "&"), nil).Body
		if rows := fmt.Sprint(strings.Count(list, `<tr id="job-`)); rows != number[2] {
			t.Errorf("%s leads to a list of %s", number[0], rows)
		}
	}
}

// A question is answered where it is first seen.
func TestAQuestionIsAnsweredOnTheOverview(t *testing.T) {
	t.Parallel()
	w := setup(t)
	account := w.account("Acme", 100)
	dev := w.Joined("Dee", person.Grant{Role: person.Developer, AccountID: account})
	viewer := w.Joined("Vera", person.Grant{Role: person.Viewer, AccountID: account})
	id := w.test(account, "Sign-up", nil)
	question := w.claims(w.Checker("ann"), id).asks(0, "Which door?")
	if page := w.Call(viewer, "GET", "/dashboard", nil).Body; !strings.Contains(page, "Which door?") || strings.Contains(page, question+`" method="post"`) || strings.Contains(page, "Your answer") {
		t.Error("a viewer may answer, or does not see the question")
	}
	form := pagetest.Form("text", " ")
	if got := w.Call(dev, "POST", "/dashboard/jobs/"+id+"/questions/"+question, form, "Referer", w.Origin+"/dashboard"); got.Status != http.StatusUnprocessableEntity ||
		!strings.Contains(got.Body, "Waiting for you") || !strings.Contains(got.Body, "must not be blank") {
		t.Errorf("an empty answer: %d", got.Status)
	}
	tab := w.Tab(dev)
	tab.Open(w.Origin + "/dashboard")
	tab.Fill("#answer-"+question, "The left one.")
	tab.Click(".answer button")
	tab.WaitText("The left one.")
	tab.Open(w.Origin + "/dashboard")
	tab.WaitText("Since yesterday")
	if page := browsertest.Eval[string](tab, "document.title + document.body.innerText"); strings.Contains(page, "Which door?") || strings.Contains(page, "(1)") {
		t.Error("the answered question still waits")
	}
}
