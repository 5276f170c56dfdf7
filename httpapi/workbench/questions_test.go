package workbench_test

import (
	"strings"
	"testing"

	"humanqa/domain"
	"humanqa/domain/command"
	"humanqa/domain/job"
	"humanqa/internal/testing/browsertest"
	"humanqa/internal/testing/pagetest"
)

// The clock stands from the question to the answer, which comes by itself; its secret is
// shown for a moment, and no page holds it.
func TestACheckerAsksTheClient(t *testing.T) {
	t.Parallel()
	w := setup(t)
	account := w.Account("Acme", 100, false)
	ann, annID := w.Checks("Ann")
	id := w.test(account, "Sign-up", 2)
	c := w.claimed(annID, id)
	tab := w.Tab(ann)
	tab.Screen(1280, 900, false)
	tab.Open(w.Origin + "/workbench/jobs/" + id)
	tab.WaitText("All saved")
	item := "#ask-" + c.Checklist[0].ID
	tab.Click(item + " summary")
	tab.Fill("#ask-text-"+c.Checklist[0].ID, "A code was sent by mail. What is it?")
	tab.Click(item + " button")
	tab.WaitText("Questions to the client")
	tab.WaitText("Paused until the answer")
	tab.Shot("question-asked")
	open := w.draft(annID).Brief.Questions
	if len(open) != 1 || open[0].ItemID != c.Checklist[0].ID || open[0].Kind != "code" {
		t.Fatalf("the questions are %+v", open)
	}

	// Without a script the same form; a second question waits for its turn.
	at := "/workbench/jobs/" + id + "/questions"
	form := pagetest.Form("token", "1", "text", "Another?", "kind", "other", "item", "")
	if got := w.Call(ann, "POST", at, form); got.Status != 409 || !strings.Contains(got.Body, "A question is open already") {
		t.Errorf("a second question: %d", got.Status)
	}

	_, shown, err := w.Commands.AnswerQuestion(t.Context(), pagetest.Client(account), id, command.AnswerQuestion{
		QuestionID: open[0].ID, Text: "It is the secret.", Secret: "483112",
	})
	w.Shown(shown, err)
	tab.WaitText("It is the secret.")
	tab.WaitText(" left")
	tab.Wait(`!document.getElementById('clock').textContent.includes('Paused')`)
	if strings.Contains(browsertest.Eval[string](tab, "document.documentElement.outerHTML"), "483112") {
		t.Error("the page holds the secret")
	}
	tab.Click("#secrets-form button")
	tab.WaitText("483112")
	if got := w.Call(ann, "POST", at, form); got.Status != 303 {
		t.Errorf("the next question: %d", got.Status)
	}
	// The account's exports hold these events: a person's id would be the same in all accounts.
	var kinds []string
	w.Must(w.Log.Load(t.Context(), domain.JobStream(id), 0, func(e domain.Recorded) error {
		if strings.HasPrefix(e.Meta.Actor, "person:") {
			t.Errorf("%s names the person that tests: %s", e.Type, e.Meta.Actor)
		}
		if shown, is := e.Event.(*job.SecretShown); is {
			kinds = append(kinds, shown.Kind)
		}
		return nil
	}))
	if strings.Join(kinds, ", ") != "credentials, answer" {
		t.Errorf("the log says that %q were shown", kinds)
	}
}
