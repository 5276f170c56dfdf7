package workbench_test

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"time"

	"humanqa/domain/job"
	"humanqa/domain/person"
	"humanqa/httpapi/dashboard"
	"humanqa/httpapi/ui"
	"humanqa/httpapi/workbench"
	"humanqa/internal/preferences"
	"humanqa/internal/testing/browsertest"
	"humanqa/internal/testing/eventually"
	"humanqa/internal/testing/pagetest"
	"humanqa/webhooks"
)

// everywhere is the running service with the pages of either side.
func everywhere(t *testing.T) world {
	t.Helper()
	return world{pagetest.Start(t, func(s *pagetest.Service) ([]fs.FS, []ui.Page) {
		pages := append(workbench.Pages(workbench.Deps{Commands: s.Commands, Reads: s.Reads, Evidence: s.Evidence, Now: time.Now}),
			dashboard.Pages(dashboard.Deps{
				Commands: s.Commands, Reads: s.Reads, Limits: s.API.Limits, Fresh: s.API.Fresh, PastReads: s.API.PastReads, Evidence: s.Evidence, Credentials: s.Credentials,
				Deliveries: webhooks.NewLog(s.DB), Preferences: preferences.New(s.DB, time.Now), Now: time.Now, BaseURL: s.BaseURL,
			})...)
		return append(dashboard.Templates, workbench.Templates), pages
	})}
}

// filmSeconds is how long the tab has been recording.
const filmSeconds = `((text) => 60 * Number(text.split(':')[0]) + Number(text.split(':')[1]))(document.getElementById('film-clock').textContent)`

// films has the tab show itself to whoever asks for the screen.
func films(tab *browsertest.Tab) {
	browsertest.Eval[bool](tab, `(() => {
		const ask = navigator.mediaDevices.getDisplayMedia.bind(navigator.mediaDevices)
		navigator.mediaDevices.getDisplayMedia = (options) => ask({...options, preferCurrentTab: true})
		return true
	})()`)
}

// A test is recorded while it is worked through. The service is away for a while
// and the tab is lost; what was recorded is there, and the report plays it where a
// verdict was given.
func TestARecordingOutlivesTheServiceAndItsTab(t *testing.T) {
	t.Parallel()
	w := everywhere(t)
	account := w.Account("Acme", 100, false)
	g, checker := w.Checks("Ann")
	c := w.claimed(checker, w.test(account, "Checkout", 3))
	tab := w.Tab(g)
	tab.Screen(1280, 900, false)
	for _, expected := range []string{"ERR_", "404", "409", "camera is not allowed"} { // the service is away, the claim ends; the made-up screen asks for a camera, too
		tab.Allow(expected)
	}
	bench := w.Origin + "/workbench/jobs/" + c.JobID
	tab.Open(bench)
	tab.WaitText("All saved")
	films(tab)
	keys := &keyboard{tab: tab}
	keys.press("r")
	tab.Wait(filmSeconds + " >= 2")
	tab.Shot("recording-light-1280")
	tab.Axe("recording")
	keys.press("p")
	keys.press("c") // black while it is shown
	tab.WaitText("black while the login is shown")
	dark := browsertest.Eval[float64](tab, filmSeconds) + 2 // surely
	offset := func() (all int64) {
		w.Must(w.DB.GetContext(t.Context(), &all, `SELECT COALESCE(SUM(size), 0) FROM http_recordings WHERE job_id = $1`, c.JobID))
		return all
	}
	eventually.True(t, "parts arrive while it is recorded", func() bool { return offset() > 0 })

	w.Away(true)
	keys.press("m")
	tab.WaitText("are kept in this browser")
	before := offset()
	tab.Wait(fmt.Sprintf("%s >= %f", filmSeconds, dark+2.5))
	tab.Open("about:blank") // the tab is lost
	w.Away(false)
	tab.Open(bench)
	tab.WaitText("The recording is saved")
	if after := offset(); after <= before {
		t.Errorf("%d bytes are there, %d were before the tab was lost", after, before)
	}
	tab.Shot("recording-saved-light-1280")

	// Another one goes on while the test is completed. Its first slice is a byte, as on
	// a machine that is late.
	films(tab)
	browsertest.Eval[bool](tab, `(() => {
		window.MediaRecorder = class extends MediaRecorder {
			set ondataavailable(take) {
				let rest = null
				super.ondataavailable = ({data}) => {
					if (rest === null) { rest = data.slice(1); take({data: data.slice(0, 1)}); return }
					take({data: new Blob([rest, data])})
					rest = new Blob()
				}
			}
		}
		return true
	})()`)
	keys.press("r")
	tab.Wait(filmSeconds + " >= 2")
	keys.press("1White page.")
	tab.Press(browsertest.Enter)
	keys.press("p")
	tab.WaitText("Nothing left")
	eventually.True(t, "the verdicts are there", func() bool { // however late that is, it is seen in the film
		return !slices.ContainsFunc(w.draft(checker).Checklist, func(i job.ReportItem) bool { return i.Status == job.ItemPending })
	})
	tab.Wait(fmt.Sprintf("%s >= %f", filmSeconds, browsertest.Eval[float64](tab, filmSeconds)+2))
	tab.PressCtrl(browsertest.Enter)
	tab.Wait(`document.activeElement.id === 'summary'`)
	tab.PressCtrl(browsertest.Enter)
	tab.WaitText("Your report is with the client")

	var report []job.Recording
	eventually.True(t, "the report has both", func() bool {
		r, err := w.Reads.Jobs.Report(t.Context(), account, c.JobID)
		w.Must(err)
		report = r.Recordings
		return len(report) == 2 && r.RecordingURL == report[0].URL
	})
	if report[0].DurationMs < int64(1000*dark) || report[1].DurationMs < 1000 || !strings.HasPrefix(report[0].ContentType, "video/webm") {
		t.Errorf("the recordings are %+v", report)
	}

	stranger := w.Joined("Eve", person.Grant{Role: person.Owner, AccountID: w.Account("Globex", 1, false)})
	film := "/dashboard/jobs/" + c.JobID + "/recordings/" + report[0].ID
	for _, path := range []string{film, film + "/marks"} {
		if got := w.Call(stranger, "GET", path, nil); got.Status != 404 {
			t.Errorf("a stranger opens %s: %d", path, got.Status)
		}
	}
	tab = w.Tab(w.Joined("Bob", person.Grant{Role: person.Viewer, AccountID: account}))
	tab.Screen(1280, 900, false)
	tab.Open(w.Origin + "/dashboard/jobs/" + c.JobID)
	player := `document.querySelectorAll('video')[%d]`
	first, second := fmt.Sprintf(player, 0), fmt.Sprintf(player, 1)
	tab.Wait(first + `?.readyState >= 1 && ` + second + `?.readyState >= 1`)
	if lasts := browsertest.Eval[float64](tab, first+".duration"); lasts*1000 < float64(report[0].DurationMs)-100 || lasts*1000 > float64(report[0].DurationMs)+100 {
		t.Errorf("the player says %f s, the report %d ms", lasts, report[0].DurationMs)
	}
	tab.Wait(first + `.textTracks[0].cues?.length >= 1 && ` + second + `.textTracks[0].cues?.length === 2`)
	if text := browsertest.Eval[string](tab, second+`.textTracks[0].cues[0].text`); !strings.HasPrefix(text, "Failed: Step 2") {
		t.Errorf("the first chapter of the second is %q", text)
	}
	tab.Shot("report-recording-light-1280")
	tab.Axe("report with recordings")
	wanted := browsertest.Eval[float64](tab, `Number(document.querySelectorAll('.marks')[1].querySelector('[data-seek]').dataset.seek)`)
	tab.Click(`.marks .fail [data-seek]`)
	tab.Wait(fmt.Sprintf(`%s.played.length === 1 && Math.abs(%[1]s.played.start(0) - %f) < 1`, second, wanted))
	// The strip has a mark for each verdict, those that failed on top; it leads there, and
	// anywhere else.
	strip := func(nth int, act string) float64 {
		return browsertest.Eval[float64](tab, fmt.Sprintf(`(strip => %s)(document.querySelectorAll('.strip')[%d])`, act, nth))
	}
	if marks := strip(1, `strip.querySelectorAll('a').length`); marks != 2 {
		t.Errorf("the strip has %f marks", marks)
	}
	if last := strip(1, `Number(strip.querySelector('a:last-of-type .fail') !== null)`); last != 1 {
		t.Error("what failed is not on top of the strip")
	}
	strip(0, `(strip.dispatchEvent(new MouseEvent('click', {bubbles: true, clientX: strip.getBoundingClientRect().left + strip.getBoundingClientRect().width / 2})), 0)`)
	tab.Wait(first + `.currentTime >= ` + first + `.duration / 2 - 0.1 && Number(document.querySelector('.strip .now').getAttribute('x')) >= 49`)
	browsertest.Eval[bool](tab, `(document.querySelectorAll('video').forEach(video => video.pause()), true)`)
	tab.Screen(390, 844, true)
	tab.Shot("report-recording-dark-390")
	tab.Screen(320, 640, false)
	// Of an hour, too, a time stays in one line.
	broken := browsertest.Eval[int](tab, `[...document.querySelectorAll('.marks .num, .marks .small')].filter((time) => {
		if (time.matches('.num')) time.textContent = '01:02:03 h'
		const words = document.createRange()
		words.selectNodeContents(time)
		return new Set([...words.getClientRects()].map((line) => line.top)).size !== 1
	}).length`)
	if broken != 0 {
		t.Errorf("%d times of the recording break", broken)
	}
	tab.Shot("report-recording-light-320")
	tab.Screen(1280, 900, false)
	// Black is what was seen while the login was shown.
	lit := browsertest.Eval[[]float64](tab, fmt.Sprintf(`(async () => {
		const video = %s, out = []
		for (const at of [1, %f]) {
			await new Promise((done) => { video.onseeked = done; video.currentTime = at })
			const canvas = new OffscreenCanvas(64, 64), to = canvas.getContext('2d')
			let bright = NaN
			for (let look = 0; look < 600; look++) { // a busy machine shows the frame some time after it is there
				to.drawImage(video, 0, 0, 64, 64)
				bright = Math.max(...to.getImageData(0, 0, 64, 64).data.filter((_, n) => n %% 4 !== 3))
				if (at === 1 ? bright >= 100 : bright <= 60) break
				await new Promise((later) => setTimeout(later, 100))
			}
			out.push(bright)
		}
		return out
	})()`, first, dark))
	if lit[0] < 100 || lit[1] > 60 {
		t.Errorf("before the login and during it the screen is as bright as %v", lit)
	}
}
