package workbench_test

import (
	"strings"
	"testing"

	"humanqa/domain/command"
	"humanqa/domain/job"
	"humanqa/internal/testing/pagetest"
)

// Decisions, "Profiles": what a checker says of themselves finds the tests they have
// the device for, and closes none.
func TestTheQueueKnowsWhatACheckerHas(t *testing.T) {
	t.Parallel()
	w := own(t)
	account := w.Account("Acme", 100, false)
	ann, id := w.Checks("Ann")
	on := func(target job.Target) func(*command.SubmitJob) {
		return func(in *command.SubmitJob) { in.Target = target }
	}
	w.test(account, "On a phone", 1, on(job.Target{Device: "Phone", OS: "android"}))
	w.test(account, "On a Mac", 1, on(job.Target{OS: "macOS"}))
	w.test(account, "On anything", 1)
	if got := w.Call(ann, "POST", "/workbench/profile", pagetest.Form("languages", "English\r\n\r\nDeutsch", "devices", "Phone, Pixel 9, Android 15\n<b>x</b>")); got.Status != 303 {
		t.Fatalf("saving: %d %s", got.Status, got.Body)
	}
	if p, err := w.Reads.Pools.Profile(t.Context(), id); err != nil || strings.Join(p.Languages, "|") != "English|Deutsch" || len(p.Devices) != 2 {
		t.Errorf("the profile is %+v, %v", p, err)
	}
	if got := w.Call(ann, "GET", "/workbench/profile", nil); !strings.Contains(got.Body, "English\nDeutsch") || strings.Contains(got.Body, "<b>x") {
		t.Error("the profile is not shown as it was saved")
	}
	for path, shows := range map[string]map[string]bool{
		"/workbench":           {"On a phone": true, "On a Mac": true, "On anything": true},
		"/workbench?show=fits": {"On a phone": true, "On a Mac": false, "On anything": true},
	} {
		got := w.Call(ann, "GET", path, nil)
		for title, want := range shows {
			if strings.Contains(got.Body, title) != want {
				t.Errorf("%s shows %q: %v", path, title, !want)
			}
		}
		if strings.Count(got.Body, "you have it") != 1 || !strings.Contains(got.Body, "Matches my devices (2)") {
			t.Errorf("%s does not say what fits", path)
		}
	}
	if got := w.Call(ann, "POST", "/workbench/profile", pagetest.Form("languages", strings.Repeat("x", 81)), "Referer", w.Origin+"/workbench/profile"); got.Status != 422 ||
		!strings.Contains(got.Body, "Languages you speak must have entries") {
		t.Errorf("too long: %d", got.Status)
	}
}
