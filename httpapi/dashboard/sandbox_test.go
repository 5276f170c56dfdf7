package dashboard_test

import (
	"net/url"
	"strings"
	"testing"

	"humanqa/domain/command"
	"humanqa/domain/job"
	"humanqa/domain/person"
	"humanqa/internal/testing/eventually"
)

// A sandbox's stories are told from its page, without a script: a test passes,
// one fails, one is never taken, and all of a session's checkers come.
func TestASandboxTellsItsStoriesFromThePage(t *testing.T) {
	t.Parallel()
	w := setup(t)
	account := w.newAccount("Trial", 200, true)
	dev := w.Joined("Ann", person.Grant{Role: person.Developer, AccountID: account})
	tab := w.Tab(dev)
	tab.Screen(1280, 900, false)
	tab.NoScript()
	good, bad, late := w.test(account, "Goes well", nil), w.test(account, "Goes wrong", nil), w.test(account, "Goes nowhere", nil)
	tab.Open(w.Origin + "/dashboard/sandbox")
	tab.Click("#play-" + good + " form:nth-of-type(1) button")
	tab.WaitText("All tested items passed")
	tab.Open(w.Origin + "/dashboard/sandbox")
	tab.Click("#play-" + bad + " form:nth-of-type(2) button")
	tab.WaitText("1 problem found")
	tab.WaitText("The robot was told to fail this item.")
	tab.Open(w.Origin + "/dashboard/jobs/" + late)
	tab.WaitText("Waiting for a checker")
	for misses, want := range []string{"Back in the queue", "Back in the queue", "Could not be tested"} {
		tab.Open(w.Origin + "/dashboard/sandbox")
		tab.Click("#play-" + late + " form:last-of-type button")
		tab.WaitText("About this test")
		eventually.True(t, "the time limit passes", func() bool {
			j, err := w.Reads.Jobs.Job(t.Context(), account, late)
			return err == nil && (j.RequeueCount > misses || j.Status == job.StatusFailed) && // not an earlier limit's effect
				strings.Contains(w.Call(dev, "GET", "/dashboard/jobs/"+late, nil).Body, want)
		})
	}
	tab.Open(w.Origin + "/dashboard/sandbox")
	tab.WaitText("ahead of real time")

	session, err := w.Commands.CreateSession(t.Context(), w.cause(account), command.NewSession{
		Test:  command.HostedTest{Submission: job.Submission{URL: "https://chat.example.com", Source: "session"}, Host: "chat.example.com"},
		Slots: []command.NewSlot{{}, {}},
	})
	w.Shown(session.Position, err)
	eventually.True(t, "the checklists are written", func() bool {
		j, err := w.Reads.Jobs.Job(t.Context(), account, session.Slots[1].JobID)
		return err == nil && len(j.Items) > 0
	})
	tab.Open(w.Origin + "/dashboard/sandbox")
	tab.Click("#lobby-" + session.SessionID + " button")
	tab.WaitText("All checkers who were ready test at the same time")

	for _, minutes := range []string{"", "0", "-5", "1e3", "525601"} {
		if got := w.Call(dev, "POST", "/dashboard/sandbox/clock", url.Values{"minutes": {minutes}}); got.Status != 422 {
			t.Errorf("%q minutes: %d", minutes, got.Status)
		}
	}
	if got := w.Call(dev, "POST", "/dashboard/jobs/"+good+"/play", url.Values{}); got.Status != 303 {
		t.Errorf("playing a test again: %d", got.Status)
	}
}
