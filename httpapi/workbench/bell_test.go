package workbench_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"humanqa/domain/command"
	"humanqa/domain/job"
	"humanqa/internal/testing/browsertest"
	"humanqa/internal/testing/pagetest"
)

// What is urgent is in the title, and is shown and heard by whoever turned that on:
// once, and only what the list shows.
func TestSomethingUrgentIsNoticed(t *testing.T) {
	t.Parallel()
	w := own(t)
	account := w.Account("Acme", 1000, false)
	ann, _ := w.Checks("Ann")
	if got := w.Call(ann, "POST", "/workbench/profile", pagetest.Form("devices", "Phone, Android 15")); got.Status != 303 {
		t.Fatalf("a profile: %d", got.Status)
	}
	urgent := func(title, device string) {
		w.test(account, title, 1, func(in *command.SubmitJob) { in.Urgent, in.Target = true, job.Target{Device: device} })
	}
	tab := w.NotifiedTab(ann)
	// The page's own notices and tones, counted.
	listen := func() {
		browsertest.Eval[bool](tab, `(() => {
			window.notices = []
			window.tones = 0
			window.Notification = class extends Notification { constructor(title, options) { super(title, options); notices.push(title) } }
			const tone = AudioContext.prototype.createOscillator
			AudioContext.prototype.createOscillator = function () { tones++; return tone.call(this) }
			return true
		})()`)
	}
	rang := func(tones int, notices ...string) {
		t.Helper()
		tab.Wait(fmt.Sprintf("tones >= %d", tones))
		if got := browsertest.Eval[int](tab, "tones"); got != tones {
			t.Errorf("%d tones were heard, not %d", got, tones)
		}
		if got := browsertest.Eval[[]string](tab, "notices"); !slices.Equal(got, notices) {
			t.Errorf("the notices are %q", got)
		}
	}
	tab.Open(w.Origin + "/workbench?show=fits")
	tab.Wait(`document.getElementById('bell').hidden === false`)
	listen()
	urgent("While it is off", "Phone")
	tab.Wait(`document.title.startsWith('(1) Workbench')`)
	rang(0)
	tab.Click("[data-bell=notice]")
	tab.Click("[data-bell=sound]")
	tab.Wait(`document.querySelectorAll('#bell [aria-pressed=true]').length === 2`)
	rang(2) // how it sounds
	urgent("On a Mac", "MacBook")
	w.test(account, "No hurry", 1)
	tab.WaitText("No hurry")
	rang(2)
	urgent("On a phone", "Phone")
	tab.Wait(`document.title.startsWith('(2) Workbench')`)
	rang(4, "Urgent: On a phone")
	pagetest.OnEveryScreen(t, tab, "workbench-urgent")

	tab.Open(w.Origin + "/workbench") // as it was left, and nothing is said twice
	tab.Wait(`document.querySelectorAll('#bell [aria-pressed=true]').length === 2`)
	listen()
	urgent("On a laptop", "Laptop")
	tab.Wait(`document.title.startsWith('(4) Workbench')`)
	rang(2, "Urgent: On a laptop")
	tab.Click("[data-bell=sound]")
	tab.Wait(`document.querySelectorAll('#bell [aria-pressed=true]').length === 1`)
	if !strings.Contains(w.Call(ann, "GET", "/workbench", nil).Body, "<title>(4) Workbench") {
		t.Error("without a script the title says nothing")
	}
}
