package workbench_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"humanqa/domain/command"
	"humanqa/domain/job"
	"humanqa/domain/person"
	"humanqa/internal/testing/browsertest"
	"humanqa/internal/testing/eventually"
	"humanqa/internal/testing/pagetest"
)

// keyboard counts what is pressed.
type keyboard struct {
	tab     *browsertest.Tab
	presses int
}

func (k *keyboard) press(keys string) {
	for _, key := range keys {
		k.tab.Press(string(key))
		k.presses++
	}
}

// pastes has the tab paste a picture, as Ctrl+V does.
func pastes(tab *browsertest.Tab, shade int) {
	browsertest.Eval[bool](tab, fmt.Sprintf(`(async () => {
		const canvas = new OffscreenCanvas(320, 200), at = canvas.getContext('2d')
		at.fillStyle = 'hsl(%d 60%% 55%%)'; at.fillRect(0, 0, 320, 200); at.fillStyle = '#fff'; at.fillRect(40, 60, 240, 30)
		const data = new DataTransfer()
		data.items.add(new File([await canvas.convertToBlob({type: 'image/png'})], 'image.png', {type: 'image/png'}))
		document.activeElement.dispatchEvent(new ClipboardEvent('paste', {clipboardData: data, bubbles: true, cancelable: true}))
		return true
	})()`, shade))
}

// From an invitation to a report: ten verdicts by keys, two pictures, one drawn on, the service
// away for a while, the tab closed meanwhile. Nothing is lost.
func TestACheckersFirstTest(t *testing.T) {
	t.Parallel()
	w := own(t)
	account := w.Account("Acme", 100, false)
	checker := w.Checker("Ann")
	_, link := w.Invited("Ann", person.Grant{Role: person.Checker, CheckerID: checker})
	tab := browsertest.New(t)
	tab.Screen(1280, 900, false)
	for _, expected := range []string{"ERR_EMPTY_RESPONSE", "ERR_CONNECTION", "ERR_INCOMPLETE_CHUNKED_ENCODING", "404"} { // the service is away, the claim ends
		tab.Allow(expected)
	}
	tab.Passkeys()
	tab.Open(w.Origin + link)
	tab.WaitText("You are invited as a checker")
	tab.Click("form[data-passkey] button")
	tab.WaitText("No waiting tests")
	if at := browsertest.Eval[string](tab, "location.pathname"); at != "/workbench" {
		t.Errorf("a checker lands at %s", at)
	}
	jobID := w.test(account, "Checkout with a card", 10)
	tab.WaitText("Checkout with a card") // by itself
	tab.Click("#job-" + jobID + " button")
	tab.WaitText("10 items left")
	tab.WaitText("All saved")
	tab.Shot("story-1-begun")
	if strings.Contains(browsertest.Eval[string](tab, "document.documentElement.outerHTML"), secret) {
		t.Error("the page holds the login")
	}

	keys := &keyboard{tab: tab}
	keys.press("ppp")
	if keys.presses != 3 {
		t.Errorf("%d presses for three passes", keys.presses)
	}
	tab.WaitText("7 items left")
	keys.press("1White page.")
	tab.Press(browsertest.Enter)
	tab.WaitText("6 items left")
	keys.press("s2")
	tab.WaitText("5 items left")
	keys.press("kk") // back to what failed
	pastes(tab, 10)  // a box is drawn on the first one, by keys
	tab.WaitText("Your picture")
	tab.Press("2" + browsertest.Enter + browsertest.Left + browsertest.Left + browsertest.Up + browsertest.Up + browsertest.Enter)
	tab.WaitText("A box is drawn")
	tab.Shot("story-2-annotated")
	tab.PressCtrl(browsertest.Enter)
	pastes(tab, 200)
	tab.WaitText("Your picture")
	tab.Press(browsertest.Enter)
	tab.Wait(`document.querySelectorAll('.kept:not(.sending) img').length === 2`)
	tab.WaitText("All saved")
	tab.Shot("story-2-pictures")

	w.Away(true)
	keys.press("jj")
	passes := keys.presses
	keys.press("pp")
	tab.WaitText("3 items left")
	tab.WaitText("not saved yet")
	tab.Shot("story-3-away")
	tab.Open("about:blank") // the tab is lost
	w.Away(false)
	c := w.draft(checker)
	if n := left(c.Checklist); n != 5 {
		t.Fatalf("%d items are left for the service, which was away", n)
	}
	tab.Open(w.Origin + "/workbench/jobs/" + jobID)
	tab.WaitText("3 items left")
	tab.WaitText("All saved")
	if n := left(w.draft(checker).Checklist); n != 3 {
		t.Fatalf("%d items are left", n)
	}
	keys.press("ppp")
	if n := keys.presses - passes; n != 5 {
		t.Errorf("%d presses for five passes", n)
	}
	tab.WaitText("Nothing left")
	tab.WaitText("All saved")
	tab.PressCtrl(browsertest.Enter)
	tab.Wait(`document.activeElement.id === 'summary'`)
	keys.press("The card form breaks.")
	tab.Wait(`document.getElementById('summary').value === 'The card form breaks.'`)
	tab.Shot("story-4-summary")
	tab.Wait(`document.activeElement.id === 'summary'`)
	tab.PressCtrl(browsertest.Enter)
	tab.WaitText("Your report is with the client")
	tab.Shot("story-5-done")

	report, err := w.Reads.Jobs.Report(t.Context(), account, jobID)
	w.Must(err)
	if report.PassCount != 8 || report.FailCount != 1 || report.SkipCount != 1 || report.Summary != "The card form breaks." {
		t.Errorf("the report is %+v", report)
	}
	failed := report.Items[3]
	if failed.Status != job.ItemFail || failed.Note != "White page." || failed.Severity != job.Critical || len(failed.Screenshots()) != 2 {
		t.Errorf("what failed is %+v", failed)
	}
	if skipped := report.Items[4]; skipped.Reason != "not_applicable" {
		t.Errorf("what was skipped is %+v", skipped)
	}
	for _, stored := range failed.Screenshots() {
		path, _, err := w.Evidence.Path(t.Context(), account, stored)
		w.Must(err)
		if got := w.Call(guest{}, "GET", path, nil); got.Status != 200 || got.Header.Get("Content-Type") != "image/png" {
			t.Errorf("a picture: %d", got.Status)
		}
	}
}

func left(items []job.ReportItem) (n int) {
	for _, i := range items {
		if i.Status == job.ItemPending {
			n++
		}
	}
	return n
}

// begun is a checker's tab on a test of three that they have claimed.
func begun(w world) (tab *browsertest.Tab, g guest, checker string, c command.ClaimedJob) {
	w.T.Helper()
	g, checker = w.Checks("Ann")
	c = w.claimed(checker, w.test(w.Account("Acme", 100, false), "Checkout", 3))
	tab = w.Tab(g)
	tab.Screen(1280, 900, false)
	tab.Open(w.Origin + "/workbench/jobs/" + c.JobID)
	tab.WaitText("All saved")
	return tab, g, checker, c
}

// answers counts the times that the page asked for itself and was answered.
const answers = `performance.getEntriesByType('resource').filter((one) => one.name === location.href).length`

// refreshing lets the page ask for itself, as for a change; the condition says that an
// answer has come since.
func refreshing(tab *browsertest.Tab) (answered string) {
	before := browsertest.Eval[int](tab, answers)
	browsertest.Eval[bool](tab, `(document.getElementById('main').dataset.tag = '', document.dispatchEvent(new Event('humanqa:refresh')))`)
	return fmt.Sprint(answers, " > ", before)
}

// A page that was asked for before a note was saved, and comes behind it, shows the item as it
// was. The verdict that is given then keeps the note all the same.
func TestAVerdictKeepsTheNoteBehindALatePage(t *testing.T) {
	t.Parallel()
	w := setup(t)
	tab, _, checker, _ := begun(w)
	first := func() job.ReportItem { return w.draft(checker).Checklist[0] }
	browsertest.Eval[bool](tab, `(() => {
		const ask = window.fetch
		const late = new Promise((come) => { window.comes = come })
		let asked = 0
		window.fetch = async (...what) => {
			if (what[0] !== location.href) return ask(...what)
			if (asked++ > 0) return new Promise(() => {}) // no later page
			const page = await ask(...what)
			window.asked = true
			await late
			return page
		}
		document.getElementById('main').dataset.tag = ''
		document.dispatchEvent(new Event('humanqa:refresh'))
		document.addEventListener('humanqa:refreshed', () => { window.came = true })
		return true
	})()`)
	tab.Wait("window.asked")
	keys := &keyboard{tab: tab}
	keys.press("nslow?")
	tab.Press(browsertest.Enter)
	eventually.True(t, "the note is there", func() bool { return first().Note == "slow?" })
	tab.WaitText("All saved")
	browsertest.Eval[bool](tab, `(window.comes(), true)`)
	tab.Wait("window.came")
	keys.press("p")
	eventually.True(t, "it passes", func() bool { return first().Status == job.ItemPass })
	if note := first().Note; note != "slow?" {
		t.Errorf("the note is %q", note)
	}
}

// A verdict is not saved before the browser has written it down.
func TestNothingLooksSavedThatIsNot(t *testing.T) {
	t.Parallel()
	w := setup(t)
	tab, _, checker, c := begun(w)
	said := browsertest.Eval[string](tab, fmt.Sprintf(`(() => {
		document.querySelector('#item-%s').dispatchEvent(new KeyboardEvent('keydown', {key: 'p', bubbles: true}))
		return document.getElementById('saved').textContent
	})()`, c.Checklist[0].ID))
	if said != "Saving" {
		t.Errorf("it says %q", said)
	}
	tab.WaitText("All saved")
	if is := w.draft(checker).Checklist[0].Status; is != job.ItemPass {
		t.Errorf("it is %s", is)
	}
}

func TestKeysUndoNotesAndFindings(t *testing.T) {
	t.Parallel()
	w := setup(t)
	tab, _, checker, c := begun(w)
	item := func(n int) func(status job.ItemStatus, note string) {
		return func(status job.ItemStatus, note string) {
			t.Helper()
			eventually.True(t, fmt.Sprintf("item %d is %s %q", n, status, note), func() bool {
				i := w.draft(checker).Checklist[n]
				return i.Status == status && i.Note == note
			})
		}
	}
	keys := &keyboard{tab: tab}
	keys.press("nslow?")
	tab.Press(browsertest.Enter)
	item(0)(job.ItemPending, "slow?")
	keys.press("p") // keeps the note
	item(0)(job.ItemPass, "slow?")
	keys.press("f2 of 3 are missing") // what a note begins with stays in it
	tab.Press(browsertest.Enter)
	item(1)(job.ItemFail, "2 of 3 are missing")
	keys.press("uu")
	item(1)(job.ItemPending, "")
	item(0)(job.ItemPending, "slow?")

	// By mouse: Skip asks for its reason, Fail for its notes, and a picture is one choice.
	at := func(n int) string { return "#item-" + c.Checklist[n].ID }
	// The page may show something newer while the button is down, and when the reasons
	// are there: the click and the focus stay.
	// An answer that came to a change of before waits for the release as well, and the page
	// asks no more until then. So they are counted before the hold; those that are counted
	// are shown by then.
	before := browsertest.Eval[int](tab, `(async () => { const n = `+answers+`; for (let i = 0; i < 3; i++) await new Promise((go) => setTimeout(go)); return n })()`)
	release := tab.Hold(at(1) + " [value=skip]")
	refreshing(tab)
	tab.Wait(fmt.Sprint(answers, " > ", before))
	release()
	tab.Wait(`document.activeElement.matches("` + at(1) + ` .ask button")`)
	tab.Axe("the reasons for skipping")
	tab.Wait(refreshing(tab))
	tab.WaitText("All saved")
	keys.press("2")
	item(1)(job.ItemSkip, "")
	if reason := w.draft(checker).Checklist[1].Reason; reason != "not_applicable" {
		t.Errorf("it is skipped by %q", reason)
	}
	tab.Click(at(2) + " [value=fail]")
	tab.Wait(`document.activeElement === document.querySelector("` + at(2) + ` textarea")`)
	tab.Shot("bench-fail-light-1280")
	keys.press("White page.")
	tab.Click(at(2) + " [data-save]")
	item(2)(job.ItemFail, "White page.")
	browsertest.Eval[bool](tab, `(async () => {
		const canvas = new OffscreenCanvas(80, 50); canvas.getContext('2d').fillRect(0, 0, 80, 50)
		const data = new DataTransfer(), at = document.querySelector("`+at(2)+` [type=file]")
		data.items.add(new File([await canvas.convertToBlob({type: 'image/png'})], 'a.png', {type: 'image/png'}))
		at.files = data.files
		at.dispatchEvent(new Event('change', {bubbles: true}))
		return true
	})()`)
	tab.WaitText("Your picture")
	tab.Press(browsertest.Enter)
	eventually.True(t, "the picture is there", func() bool { return len(w.draft(checker).Checklist[2].Screenshots()) == 1 })
	tab.WaitText("All saved")
	browsertest.Eval[bool](tab, `(document.querySelector("`+at(2)+`").focus(), true)`)
	keys.press("uu")
	item(1)(job.ItemPending, "")
	item(2)(job.ItemPending, "")
	keys.press("aThe footer overlaps")
	tab.Press(browsertest.Enter)
	eventually.True(t, "the finding is there", func() bool {
		f := w.draft(checker).Findings
		return len(f) == 1 && f[0].Description == "The footer overlaps" && f[0].Severity == job.Major
	})
	tab.WaitText("All saved")
	tab.WaitText("The footer overlaps") // the page shows what the service has
	tab.Click(".found summary")
	found := w.draft(checker).Findings[0].ID
	tab.Fill("#note-"+found, "On a phone.")
	tab.Click("#edit-" + found + " .btn")
	eventually.True(t, "the finding is edited", func() bool { return w.draft(checker).Findings[0].Note == "On a phone." })
	tab.Wait(`document.querySelector('.found .said').textContent === 'On a phone.'`)
	tab.WaitText("All saved")
	tab.Click(".found .line .link")
	eventually.True(t, "the finding is withdrawn", func() bool { return len(w.draft(checker).Findings) == 0 })
	tab.Wait(`document.querySelector('.found') === null`)
	keys.press("?")
	tab.Wait(`document.getElementById('help').open`)
	tab.Shot("bench-help-light-1280")
	tab.Axe("help")
	tab.Press(browsertest.Escape)

	// Off, and outside the list, keys are nothing.
	browsertest.Eval[bool](tab, `(document.getElementById('summary').focus(), true)`)
	keys.press("pfs")
	if got := browsertest.Eval[string](tab, `document.getElementById('summary').value`); got != "pfs" {
		t.Errorf("the summary is %q", got)
	}
	browsertest.Eval[bool](tab, `(document.getElementById('finish').closest('section').querySelector('summary').focus(), true)`)
	keys.press("p")
	tab.Click("#keys")
	browsertest.Eval[bool](tab, `(document.querySelector('li.current').focus(), true)`)
	keys.press("p")
	tab.WaitText("3 items left")
	tab.Click("#keys")
	browsertest.Eval[bool](tab, `(document.querySelector('li.current').focus(), true)`)
	keys.press("p")
	tab.WaitText("2 items left")
	pagetest.OnEveryScreen(t, tab, "bench-keys")

	// What is half typed outlives a reload, and a refresh by somebody else's doing.
	tab.WaitText("All saved")
	tab.Open(w.Origin + "/workbench")
	tab.Open(w.Origin + "/workbench/jobs/" + w.draft(checker).JobID)
	tab.Wait(`document.getElementById('summary').value === 'pfs'`)
}

// A picture is dropped on an item and taken away again; who is signed out loses
// nothing that they go on saying.
func TestDroppedPicturesAndASignOut(t *testing.T) {
	t.Parallel()
	w := setup(t)
	tab, g, checker, _ := begun(w)
	browsertest.Eval[bool](tab, `(async () => {
		const canvas = new OffscreenCanvas(80, 50); canvas.getContext('2d').fillRect(0, 0, 80, 50)
		const data = new DataTransfer()
		data.items.add(new File([await canvas.convertToBlob({type: 'image/png'})], 'a.png', {type: 'image/png'}))
		data.items.add(new File(['no picture'], 'a.txt', {type: 'text/plain'}))
		const to = document.querySelectorAll('li[data-item]')[1]
		for (const kind of ['dragover', 'drop']) to.dispatchEvent(new DragEvent(kind, {dataTransfer: data, bubbles: true, cancelable: true}))
		return true
	})()`)
	tab.WaitText("Your picture")
	tab.Press(browsertest.Enter)
	tab.Wait(`document.querySelectorAll('.kept:not(.sending) img').length === 1`)
	shots := w.draft(checker).Checklist[1].Screenshots()
	if len(shots) != 1 {
		t.Fatalf("the pictures are %v", shots)
	}
	// The button below it must not move when the picture comes: a press would miss it.
	if !browsertest.Eval[bool](tab, `(() => {
		const img = document.querySelector('.kept img'), awaited = img.cloneNode()
		awaited.removeAttribute('src')
		const same = (img.after(awaited), img.offsetHeight === awaited.offsetHeight && img.offsetHeight > 0)
		awaited.remove()
		return same
	})()`) {
		t.Error("the picture takes another room once it has come")
	}
	tab.WaitText("All saved")
	tab.Click(".kept .link")
	eventually.True(t, "the picture is taken away", func() bool { return len(w.draft(checker).Checklist[1].Screenshots()) == 0 })
	tab.Wait(`document.querySelector('.kept') === null`)

	_, err := w.DB.ExecContext(t.Context(), `DELETE FROM signin.sessions WHERE person_id = $1`, g.ID)
	w.Must(err)
	tab.Allow("401") // the stream of changes
	tab.Allow("404") // a picture may be asked for while it goes
	browsertest.Eval[bool](tab, `(document.querySelector('li[data-item]').focus(), true)`)
	(&keyboard{tab: tab}).press("p")
	tab.WaitText("You are signed out")
	token, err := w.Credentials.Begin(t.Context(), g.ID, "127.0.0.1", "Chrome", "")
	w.Must(err)
	tab.Cookie(w.Origin, pagetest.CookieName, token)
	tab.Open(w.Origin + "/workbench/jobs/" + w.draft(checker).JobID) // where signing in leads back to
	eventually.True(t, "the verdict arrives", func() bool { return w.draft(checker).Checklist[0].Status == job.ItemPass })
}

// The login comes by a key, and goes by itself.
func TestTheLoginIsShownForAMoment(t *testing.T) {
	t.Parallel()
	w := setup(t)
	tab, _, _, _ := begun(w)
	browsertest.Eval[bool](tab, `(() => { const later = window.setTimeout; window.setTimeout = (f, ms) => later(f, ms === 20000 ? 1500 : ms); return true })()`)
	(&keyboard{tab: tab}).press("c")
	tab.WaitText(secret)
	tab.Shot("bench-login-light-1280")
	tab.Wait(`!document.documentElement.outerHTML.includes("` + secret + `")`)
}

// When the claim ends elsewhere the page says why and saves no more; what it could
// not save is offered to the next claim.
func TestAClaimThatEndsFreezesThePage(t *testing.T) {
	t.Parallel()
	w := own(t)
	tab, _, checker, c := begun(w)
	for _, expected := range []string{"404", "409", "ERR_"} {
		tab.Allow(expected)
	}
	w.Away(true)
	keys := &keyboard{tab: tab}
	keys.press("1The page stays white")
	tab.Press(browsertest.Enter)
	tab.WaitText("not saved yet")
	w.Shown(w.Commands.ReleaseJob(t.Context(), pagetest.ByChecker(checker), command.Claim{CheckerID: checker, JobID: c.JobID, Token: c.Token}))
	w.Away(false)
	tab.WaitText("You no longer hold this test")
	tab.WaitText("The claim has ended.")
	tab.WaitText("1 unsaved entry is kept below.")
	tab.WaitText("The page stays white")
	tab.Shot("bench-frozen-light-1280")
	tab.Axe("frozen")
	tab.Open(w.Origin + "/workbench")
	tab.WaitText("The page stays white") // still kept

	w.claimed(checker, c.JobID)
	tab.Open(w.Origin + "/workbench/jobs/" + c.JobID)
	tab.WaitText("Save it now")
	tab.Click("[data-send]")
	eventually.True(t, "it is saved under the new claim", func() bool {
		i := w.draft(checker).Checklist[0]
		return i.Status == job.ItemFail && i.Note == "The page stays white" && i.Severity == job.Critical
	})
	tab.Wait(`document.getElementById('leftovers').hidden`)
	tab.WaitText("In contact, ")
	tab.WaitText("All saved")

	// The page notices it by itself, long before its next heartbeat.
	ended := time.Now()
	w.Shown(w.Commands.ReleaseJob(t.Context(), pagetest.ByChecker(checker), command.Claim{CheckerID: checker, JobID: c.JobID, Token: w.draft(checker).Token}))
	tab.WaitText("All your entries are saved.")
	if late := time.Since(ended); late > 30*time.Second {
		t.Errorf("the end of the claim is noticed after %s", late)
	}
	if !browsertest.Eval[bool](tab, `document.querySelector('.bar-top #frozen').checkVisibility()`) {
		t.Error("the bar does not say it")
	}
}

// A clock that is wrong here is no matter: the time left is the server's.
func TestTheClockIsTheServers(t *testing.T) {
	t.Parallel()
	w := setup(t)
	tab, _, _, _ := begun(w)
	browsertest.Eval[bool](tab, `(() => { const real = Date.now; Date.now = () => real() + 3600_000; return true })()`)
	tab.Wait(`document.getElementById('clock').innerText.includes(':')`)
	text := browsertest.Eval[string](tab, `document.getElementById('clock').innerText`)
	var minutes, seconds int
	if _, err := fmt.Sscanf(strings.TrimSpace(text), "%d:%d left", &minutes, &seconds); err != nil {
		t.Fatalf("the clock says %q", text)
	}
	if left := time.Duration(minutes)*time.Minute + time.Duration(seconds)*time.Second; left > time.Hour || left < 50*time.Minute {
		t.Errorf("the clock says %s", left)
	}
	// Beside it stands how long the service will wait for a sign of life; without one, that
	// there is no contact.
	tab.Wait(`/^In contact, [56]:[0-9][0-9]$/.test(document.getElementById('silence').textContent)`)
	browsertest.Eval[bool](tab, `(() => { const real = performance.now.bind(performance); performance.now = () => real() + 120_000; return true })()`)
	tab.Wait(`/^No contact, [34]:[0-9][0-9] to reconnect$/.test(document.getElementById('silence').textContent)`)
	if !browsertest.Eval[bool](tab, `document.getElementById('silence').checkVisibility()`) {
		t.Error("the clock of the silence is not seen")
	}
}
