package dashboard_test

import (
	"fmt"
	"strings"
	"testing"

	"humanqa/domain/job"
	"humanqa/domain/person"
	"humanqa/internal/testing/browsertest"
	"humanqa/internal/testing/pagetest"
)

// The question appears by itself, is answered with a secret, and stays in the report.
func TestAQuestionIsAnsweredOnThePageOfItsTest(t *testing.T) {
	t.Parallel()
	w := setup(t)
	ours := w.account("Acme", 100)
	owner := w.Joined("Olive", person.Grant{Role: person.Owner, AccountID: ours})
	viewer := w.Joined("Vera", person.Grant{Role: person.Viewer, AccountID: ours})
	other := w.Joined("Otto", person.Grant{Role: person.Owner, AccountID: w.account("Globex", 0)})
	id := w.test(ours, "Sign-up", nil)
	c := w.claims(w.Checker("ann"), id)
	tab := w.Tab(owner)
	tab.Open(w.Origin + "/dashboard/jobs/" + id)
	tab.WaitText("A checker is testing")
	question := c.asks(0, "A code was sent by <b>mail</b>. What is it?")
	tab.WaitText("The checker has a question")
	tab.WaitText("A code was sent by <b>mail</b>. What is it?")
	if got := w.Call(owner, "GET", "/dashboard", nil); !strings.Contains(got.Body, "is paused") || !strings.Contains(got.Body, "data-until>in ") {
		t.Error("the overview does not tell of the question")
	}
	at := "/dashboard/jobs/" + id + "/questions/" + question
	if got := w.Call(viewer, "GET", "/dashboard/jobs/"+id, nil); strings.Contains(got.Body, at) || !strings.Contains(got.Body, "by &lt;b&gt;mail") {
		t.Errorf("a viewer gets the form, or no question: %s", got.Body)
	}
	for who, want := range map[string]int{"viewer": 403, "other": 404} {
		g := map[string]guest{"viewer": viewer, "other": other}[who]
		if got := w.Call(g, "POST", at, pagetest.Form("text", "mine")); got.Status != want {
			t.Errorf("%s answers: %d, want %d", who, got.Status, want)
		}
	}
	if got := w.Call(owner, "POST", at, pagetest.Form("text", " ")); got.Status != 422 || !strings.Contains(got.Body, "Your answer must not be blank without a secret.") {
		t.Errorf("an empty answer: %d", got.Status)
	}
	tab.Shot("question-open")
	tab.Fill("#answer-text", "It is the secret.")
	tab.Fill("#answer-secret", "483112")
	tab.Click("#answer button")
	tab.WaitText("Answered")
	tab.WaitText("Only the checker can see it")
	if strings.Contains(browsertest.Eval[string](tab, "document.documentElement.outerHTML"), "483112") {
		t.Error("the page shows the secret")
	}
	if got := w.Call(owner, "POST", at, pagetest.Form("text", "Again")); got.Status != 422 || !strings.Contains(got.Body, "answered already") {
		t.Errorf("a second answer: %d", got.Status)
	}
	for i := range 3 {
		c.checks(i, job.ItemPass, "")
	}
	tab.WaitText("A checker asked")
	c.completes("It works.")
	tab.WaitText("All tested items passed")
	tab.WaitText("It is the secret.")
	if got := w.Call(owner, "POST", at, pagetest.Form("text", "Late")); got.Status != 422 || !strings.Contains(got.Body, "the job is completed") && !strings.Contains(got.Body, "The job is completed") {
		t.Errorf("an answer after the end: %d", got.Status)
	}
}

// A question is told of before everything else, however many tests are newer, in lists as
// the state of its test, and beside the name of every page.
func TestAQuestionIsNeverCutFromTheOverview(t *testing.T) {
	t.Parallel()
	w := setup(t)
	ours := w.account("Acme", 1000)
	owner := w.Joined("Olive", person.Grant{Role: person.Owner, AccountID: ours})
	old := w.test(ours, "The old one", nil)
	c := w.claims(w.Checker("ann"), old)
	for i := range 7 { // more than the list of what is in progress shows
		w.claims(w.Checker(fmt.Sprint("checker ", i)), w.test(ours, "A newer one", nil))
	}
	question := c.asks(0, "Which door?")
	overview := w.Call(owner, "GET", "/dashboard", nil).Body
	for _, shown := range []string{"Which door?", "The old one</a> is paused", "<title>(1) Overview", "question waits"} {
		if !strings.Contains(overview, shown) {
			t.Errorf("the overview does not show %q", shown)
		}
	}
	if list := w.Call(owner, "GET", "/dashboard/jobs", nil).Body; strings.Count(list, "Question</") != 1 || !strings.Contains(list, "<title>(1) ") {
		t.Error("the list of tests does not tell of the question")
	}
	if got := w.Call(owner, "POST", "/dashboard/jobs/"+old+"/questions/"+question, pagetest.Form("text", "The left one.")); got.Status != 303 {
		t.Fatalf("an answer: %d", got.Status)
	}
	if overview := w.Call(owner, "GET", "/dashboard", nil).Body; strings.Contains(overview, "Which door?") || strings.Contains(overview, "(1)") {
		t.Error("the overview tells of an answered question")
	}
}
