package workbench_test

import (
	"slices"
	"testing"

	"humanqa/domain/command"
	"humanqa/domain/job"
	"humanqa/internal/testing/browsertest"
	"humanqa/internal/testing/pagetest"
)

// Every page, in each of its states, on wide and narrow screens, light and dark:
// axe finds nothing, and nothing is wider than the screen.
func TestEveryPageIsAccessible(t *testing.T) {
	t.Parallel()
	w := own(t)
	account := w.Account("Acme", 1000, false)
	fresh, _ := w.Checks("Ann Example")
	busy, busyID := w.Checks("Bob Example")
	free, freeID := w.Checks("Carol Example")
	waits, waitsID := w.Checks("Dave Example")

	for n, note := range []string{"Thorough, and quick.", "The second half was guessed.", ""} {
		id := w.test(account, "Sign-up, round "+string(rune('1'+n)), 3)
		w.completes(freeID, w.claimed(freeID, id), []job.ItemStatus{job.ItemPass, job.ItemFail, job.ItemPass}[n], "The page stays white.")
		if note != "" {
			rating(w, account, id, 5-2*n, note)
		}
	}
	done := w.test(account, "Checkout with a declined card", 3)
	w.completes(freeID, w.claimed(freeID, done), job.ItemFail, "After the card is declined the page stays white, on a phone and on a computer.")
	rating(w, account, done, 4, "Good pictures. Next time say which card.")
	w.Contested(account, freeID, done, "The page was down for a minute, as our own log says.")

	bench := w.test(account, "Checkout with three cards", 6)
	c := w.claimed(busyID, bench)
	claim := command.Claim{CheckerID: busyID, JobID: bench, Token: c.Token}
	say := func(item int, in command.CheckItem) {
		in.ItemID = c.Checklist[item].ID
		_, at, err := w.Commands.CheckItem(t.Context(), pagetest.ByChecker(busyID), claim, in)
		w.Shown(at, err)
	}
	say(0, command.CheckItem{Status: job.ItemPass})
	say(1, command.CheckItem{Status: job.ItemFail, Note: "After the card is declined the page stays white. Reloading it shows an empty basket.", Severity: job.Critical})
	say(2, command.CheckItem{Status: job.ItemSkip, Reason: "no_access"})
	say(3, command.CheckItem{Status: job.ItemPending, Note: "Slow?"})
	for shade := range 2 {
		if got := w.uploads(busy, "/workbench/jobs/"+bench+"/items/"+c.Checklist[1].ID+"/pictures", c.Token, picture(uint8(shade*200))); got.Status != 303 {
			t.Fatalf("a picture: %d %s", got.Status, got.Body)
		}
	}
	_, at, err := w.Commands.AddFinding(t.Context(), pagetest.ByChecker(busyID), claim, job.Finding{Item: job.Item{Description: "The footer overlaps the button", Severity: job.Minor}, Status: job.ItemFail, Note: "On a narrow screen."})
	w.Shown(at, err)

	_, at, err = w.Commands.AskQuestion(t.Context(), pagetest.ByChecker(busyID), claim, command.AskQuestion{ItemID: c.Checklist[4].ID, Kind: "code", Text: "A code was sent by mail. What is it?"})
	w.Shown(at, err)

	session, err := w.Commands.CreateSession(t.Context(), pagetest.Client(account), command.NewSession{
		Test:  command.HostedTest{Submission: job.Submission{URL: "https://chat.example.com", Feature: "Two people talk to each other", Source: "session"}, Host: "chat.example.com"},
		Slots: []command.NewSlot{{RoleLabel: "Caller"}, {RoleLabel: "Callee"}}, ScenarioBrief: "The caller rings, the callee answers after ten seconds.",
	})
	w.Shown(session.Position, err)
	w.claimed(waitsID, session.Slots[0].JobID)
	w.test(account, "A look at the landing page, which has a rather long title that needs two lines on most screens", 2, func(in *command.SubmitJob) {
		in.Urgent, in.Target = true, job.Target{Device: "Phone", OS: "Android 15", Browser: "Firefox"}
	})
	w.test(account, "Newsletter", 2)

	opened := w.Accessible(slices.Concat(
		free.Sees("workbench", "/workbench", "done", "/workbench/jobs/"+done, "profile", "/workbench/profile"),
		fresh.Sees("workbench-new", "/workbench"), busy.Sees("workbench-busy", "/workbench"),
		waits.Sees("bench-lobby", "/workbench/jobs/"+session.Slots[0].JobID),
		[]pagetest.Seen{
			{Name: "bench", Path: "/workbench/jobs/" + bench, As: busy, Look: func(tab *browsertest.Tab) {
				tab.WaitText("All saved") // by then it has scrolled to where to go on
				if high := browsertest.Eval[float64](tab, `document.querySelector('.bar-row').offsetHeight`); high > 48 {
					t.Errorf("the bar that stays has more than a row: %.0f px", high)
				}
			}},
			{Name: "lost", Path: "/workbench/jobs/" + bench, As: free, Allow: "404"},
		},
	)...)
	w.OpensAll("/workbench", opened, []string{
		"/workbench/jobs/{id}/evidence/{evidence}", "/workbench/jobs/{id}/recordings/{recording}", "/workbench/jobs/{id}/open-failures",
	})
	t.Run("secrets", func(t *testing.T) {
		tab := w.In(t).Tab(busy)
		tab.NoScript()
		tab.Open(w.Origin + "/workbench/jobs/" + bench)
		tab.Click("#secrets-form button")
		tab.WaitText(secret)
		tab.Screen(1280, 800, false)
		tab.Shot("secrets-light-1280")
		if to := browsertest.Eval[string](tab, "location.pathname"); to != "/workbench/jobs/"+bench+"/secrets" {
			t.Errorf("the login is on %s", to)
		}
	})
}
