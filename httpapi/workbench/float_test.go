package workbench_test

import (
	"fmt"
	"strings"
	"testing"

	"humanqa/domain/command"
	"humanqa/domain/job"
	"humanqa/internal/testing/browsertest"
	"humanqa/internal/testing/eventually"
	"humanqa/internal/testing/pagetest"
)

// The list floats over the tested app, and its keys work there: in a window of
// picture-in-picture, or in a popup where there is none.
func TestTheListFloatsOverTheApp(t *testing.T) {
	t.Parallel()
	w := setup(t)
	tab, _, checker, c := begun(w)
	tab.Allow("409") // the claim ends
	tab.Allow("404")
	tab.Press(".")
	float := tab.Opened()
	float.WaitText("1. Step 1 of the checkout works")
	if over := browsertest.Eval[bool](tab, `documentPictureInPicture.window !== null`); !over {
		t.Error("it is no picture-in-picture")
	}
	keys := &keyboard{tab: float}
	said := func(n int, status job.ItemStatus, note string, severity job.Severity) {
		t.Helper()
		eventually.True(t, fmt.Sprintf("item %d is %s", n+1, status), func() bool {
			i := w.draft(checker).Checklist[n]
			return i.Status == status && i.Note == note && i.Severity == severity
		})
	}
	keys.press("p")
	said(0, job.ItemPass, "", job.Critical)
	float.Wait(`document.querySelector('[data-f=title]').textContent.startsWith('2.')`)
	keys.press("1")
	float.Wait(`document.activeElement.id === 'floating-note'`)
	float.Screen(400, 560, false)
	float.Axe("floating")
	float.Shot("float-light")
	float.Screen(400, 560, true)
	float.AxeScreen("floating, dark")
	float.Shot("float-dark")
	keys.press("White page.")
	float.Press(browsertest.Enter)
	said(1, job.ItemFail, "White page.", job.Critical)
	keys.press("s")
	float.WaitText("Does not apply")
	float.Click("[data-f=ask] [data-key='2']")
	said(2, job.ItemSkip, "", job.Minor)
	float.WaitText("Nothing left")
	tab.WaitText("Nothing left") // the page shows the same
	keys.press("u")
	said(2, job.ItemPending, "", job.Minor)
	float.Click(`[data-f=list] li:first-child button`)
	float.Wait(`document.querySelector('[data-f=title]').textContent.startsWith('1.')`)
	float.Click(`[data-key=f]`)
	float.Press(browsertest.Escape) // nothing is said
	float.WaitText("Undo")
	browsertest.Eval[bool](tab, `documentPictureInPicture.window.document.body.dispatchEvent(new KeyboardEvent('keydown', {key: '.', bubbles: true, cancelable: true})) || true`)
	tab.Wait(`documentPictureInPicture.window === null`)

	browsertest.Eval[bool](tab, `(() => { Object.defineProperty(window, 'documentPictureInPicture', {value: undefined}); document.querySelector('li.current').focus(); return true })()`)
	tab.Press(".")
	float = tab.Opened()
	float.WaitText("1. Step 1 of the checkout works")
	keys.tab = float
	keys.press("n")
	float.Wait(`document.activeElement.id === 'floating-note'`)
	keys.press("slow")
	float.Press(browsertest.Enter)
	said(0, job.ItemPass, "slow", job.Critical)
	tab.WaitText("All saved")
	w.Shown(w.Commands.ReleaseJob(t.Context(), pagetest.ByChecker(checker), command.Claim{CheckerID: checker, JobID: c.JobID, Token: c.Token}))
	keys.press("p")
	float.WaitText("You no longer hold this test")
	if text := browsertest.Eval[string](float, `document.body.innerText`); strings.Contains(text, "Undo") {
		t.Errorf("something can be said: %s", text)
	}
}
