package dashboard_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"io"
	"mime/multipart"
	"strings"
	"testing"

	"humanqa/domain/command"
	"humanqa/domain/job"
	"humanqa/domain/person"
	"humanqa/internal/testing/browsertest"
	"humanqa/internal/testing/pagetest"
	"humanqa/projections/access"
)

// What these look at disturbs nobody else's account, so one service does for all.
func TestWhatPeopleDoWithTheirPages(t *testing.T) {
	t.Parallel()
	w := setup(t)
	for name, test := range map[string]func(*testing.T, *world){
		"the brief quotes what others wrote":        testTheBriefQuotesWhatOthersWrote,
		"a test is stepped through":                 testATestIsSteppedThrough,
		"every page reflows at 400 %":               testEveryPageReflowsAtFourHundredPercent,
		"a checker's picture is seen in the report": testACheckersPictureIsSeenInTheReport,
		"a report prints":                           testAReportPrints,
		"notices come by themselves":                testNoticesComeByThemselves,
		"times are in the reader's zone":            testTimesAreInTheReadersZone,
		"pages are compressed but for secrets":      testPagesAreCompressedButForSecrets,
		"a test is found again":                     testATestIsFoundAgain,
		"a view is kept for one person":             testAViewIsKeptForOnePerson,
		"the reference is accessible":               testTheReferenceIsAccessible,
		"why a test could not be tested":            testTheReasonsOfATestThatCouldNotBeTested,
		"a test is started from a terminal":         testATestIsStartedAgainFromATerminal,
		"other stars keep the words":                testAChangeOfTheStarsKeepsTheWords,
		"a checklist is edited before it costs":     testAPersonEditsTheChecklistBeforeItCosts,
		"a preview shows what failed before":        testAPreviewShowsWhatFailedBefore,
		"many tests are stopped or run again":       testManyTestsAreStoppedOrRunAgain,
		"tests are chosen by keys":                  testTestsAreChosenByKeys,
		"projects are archived and restored":        testProjectsAreArchivedAndRestored,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			here := *w
			here.Service = w.In(t)
			test(t, &here)
		})
	}
}

// At 400 % of a screen of 1280 pixels, 320 are left: every page still needs no
// scrolling sideways (WCAG 1.4.10).
func testEveryPageReflowsAtFourHundredPercent(t *testing.T, w *world) {
	account := w.account("An account with a rather long name of its own", 500)
	owner := w.Joined("Ann", person.Grant{Role: person.Owner, AccountID: account})
	hosted, err := w.Commands.TestHosted(t.Context(), pagetest.Client(account), command.HostedTest{
		Submission: job.Submission{URL: "https://a-rather-long-host-name.shop.example.com/with/a/path", Source: "hosted"}, Host: "a-rather-long-host-name.shop.example.com",
	})
	w.Shown(hosted.Position, err)
	id := w.test(account, "AVeryLongWordThatDoesNotBreakAnywhereBecauseSomebodyWroteItSo", func(in *command.SubmitJob) { in.ProjectID = hosted.ProjectID })
	c := w.claims(w.Checker("ann"), id)
	c.checks(0, job.ItemFail, "https://shop.example.com/"+strings.Repeat("segment", 30))
	c.checks(1, job.ItemPass, "")
	c.checks(2, job.ItemPass, "")
	c.completes("It breaks.")
	batch, _ := w.batch(account, "One", "Two")
	tab := w.Tab(owner)
	tab.Screen(320, 640, false)
	for _, path := range []string{
		"/dashboard", "/dashboard/jobs", "/dashboard/jobs?status=completed&verdict=fail", "/dashboard/find?q=Long", "/dashboard/jobs/new", "/dashboard/sessions/new", "/dashboard/batches/new", "/dashboard/jobs/" + id, "/dashboard/jobs/" + id + "/replay",
		"/dashboard/projects", "/dashboard/projects/" + hosted.ProjectID, "/dashboard/projects/" + hosted.ProjectID + "/hook",
		"/dashboard/sessions", "/dashboard/batches/" + batch, "/dashboard/credits", "/dashboard/credits/statement", "/dashboard/batches", "/dashboard/keys", "/dashboard/readers", "/dashboard/members", "/account", "/signin/confirm",
	} {
		tab.Open(w.Origin + path)
		if wide := browsertest.Eval[int](tab, "document.documentElement.scrollWidth"); wide > 320 {
			t.Errorf("%s is %d px wide: %s", path, wide, browsertest.Eval[string](tab,
				"[...document.querySelectorAll('main *')].filter(e => e.getBoundingClientRect().right > 321).slice(0, 3).map(e => e.outerHTML.slice(0, 120)).join(' | ')"))
		}
	}
}

// A page is compressed for a browser that takes that, unless it shows a secret: beside
// what a stranger put into the page's URL its size would tell of it.
func testPagesAreCompressedButForSecrets(t *testing.T, w *world) {
	account := w.account("Acme", 100)
	owner := w.Joined("Ann", person.Grant{Role: person.Owner, AccountID: account})
	project, err := w.Commands.CreateProject(t.Context(), pagetest.Client(account), command.CreateProject{Name: "Shop", WebhookURL: "https://hooks.example.com/x"})
	w.Shown(project.Position, err)
	get := func(path, accept string) pagetest.Response {
		return w.Call(owner, "GET", path, nil, "Accept-Encoding", accept)
	}
	plain, packed := get("/dashboard/jobs", "identity"), get("/dashboard/jobs", "br, gzip")
	if packed.Header.Get("Content-Encoding") != "gzip" || plain.Header.Get("Content-Encoding") != "" || len(packed.Body)*3 > len(plain.Body) {
		t.Errorf("%d bytes of %d, as %q", len(packed.Body), len(plain.Body), packed.Header.Get("Content-Encoding"))
	}
	unpacked, err := gzip.NewReader(strings.NewReader(packed.Body))
	w.Must(err)
	page, err := io.ReadAll(unpacked)
	w.Must(err)
	if !strings.HasSuffix(string(page), "</html>\n") || packed.Header.Get("Vary") != "Accept-Encoding" || plain.Header.Get("Vary") != "Accept-Encoding" {
		t.Errorf("a page that is not whole, or that caches mistake: %v", packed.Header)
	}
	again := w.Call(owner, "GET", "/dashboard/jobs", nil, "If-None-Match", plain.Header.Get("Etag"))
	if again.Status != 304 || plain.Header.Get("Etag") != packed.Header.Get("Etag") {
		t.Errorf("what a browser has is sent again: %d, %s and %s", again.Status, plain.Header.Get("Etag"), packed.Header.Get("Etag"))
	}
	for _, path := range []string{"/dashboard/projects/" + project.ProjectID + "/webhook/secret", "/dashboard/projects/" + project.ProjectID + "/hook"} {
		if got := get(path, "gzip"); got.Status != 200 || got.Header.Get("Content-Encoding") != "" {
			t.Errorf("%s: %d, as %q", path, got.Status, got.Header.Get("Content-Encoding"))
		}
	}
	form := pagetest.Form("scope", "full", "name", "ci")
	if got := w.Call(owner, "POST", "/dashboard/keys", form, "Accept-Encoding", "gzip"); got.Header.Get("Content-Encoding") != "" {
		t.Errorf("a new key comes as %q", got.Header.Get("Content-Encoding"))
	}
}

// A time is shown in the zone of its reader, with its name, and its title is UTC; without
// scripts it is UTC altogether. What comes while the page is open is no different.
func testTimesAreInTheReadersZone(t *testing.T, w *world) {
	account := w.account("Acme", 100)
	owner := w.Joined("Ann", person.Grant{Role: person.Owner, AccountID: account})
	at := "/dashboard/jobs/" + w.completed(account, "Checkout", "The page stays white.", job.ItemFail, job.ItemPass, job.ItemPass)
	const times = `[...document.querySelectorAll('.timeline time')]`
	tab := w.Tab(owner)
	tab.Zone("Asia/Kolkata")
	tab.Open(w.Origin + at)
	tab.Wait(times + `.length > 3 && ` + times + `.every((t) => / GMT\+5:30$/.test(t.textContent) && / UTC$/.test(t.title))`)
	browsertest.Eval[bool](tab, `(document.addEventListener('humanqa:refreshed', () => { window.again = true }), true)`)
	w.Shown(w.Commands.RateJob(t.Context(), pagetest.Client(account), strings.TrimPrefix(at, "/dashboard/jobs/"), 3, ""))
	tab.Wait(`window.again === true && ` + times + `.every((t) => / GMT\+5:30$/.test(t.textContent))`)
	plain := w.Tab(owner)
	plain.NoScript()
	plain.Open(w.Origin + at)
	if !browsertest.Eval[bool](plain, times+`.every((t) => / UTC$/.test(t.textContent))`) {
		t.Error("without scripts the times are not UTC")
	}
}

// The reference is readable for all, on every screen, in either scheme, and reflows.
func testTheReferenceIsAccessible(t *testing.T, w *world) {
	tab := browsertest.New(t)
	for _, page := range []string{"", "/jobs", "/webhooks", "/schemas"} {
		tab.Open(w.Origin + "/docs" + page)
		pagetest.OnEveryScreen(t, tab, "docs"+strings.ReplaceAll(page, "/", "-"))
	}
	tab.Screen(390, 844, false)
	tab.Open(w.Origin + "/docs")
	if small := browsertest.Eval[float64](tab, `Math.min(...[...document.querySelectorAll('code, pre')].map(e => parseFloat(getComputedStyle(e).fontSize)))`); small < 13 {
		t.Errorf("code is %.1f px on a phone", small)
	}
	// A probe of the page's own shows that shifts are told.
	if moved := browsertest.Eval[[]float64](tab, `new Promise(async (told) => {
		const shifts = []
		new PerformanceObserver((list) => list.getEntries().forEach((e) => {
			if (shifts.push(e.value) && document.getElementById('probe') !== null) told(shifts)
		})).observe({ type: 'layout-shift', buffered: true })
		await document.fonts.ready
		const frame = () => new Promise((next) => requestAnimationFrame(next))
		await frame(); await frame()
		document.querySelector('main').prepend(Object.assign(document.createElement('p'), { id: 'probe', textContent: 'A probe' }))
	})`); len(moved) > 1 {
		t.Errorf("the page moved by %v while it loaded", moved[:len(moved)-1])
	}
	tab.Screen(1280, 800, false)
	tab.Click(`main a[href="docs/jobs"]`)
	tab.Wait(`location.pathname === '/docs/jobs' && document.getElementById('submitJob') !== null`)
	tab.Click(`nav a[href="webhooks"]`)
	tab.WaitText("job.completed")
}

// What a checker uploads is seen in the report, and by whoever it is shared with;
// another account's people are led nowhere.
func testACheckersPictureIsSeenInTheReport(t *testing.T, w *world) {
	account := w.account("Acme", 100)
	owner := w.Joined("Ann", person.Grant{Role: person.Owner, AccountID: account})
	other := w.Joined("Bob", person.Grant{Role: person.Owner, AccountID: w.account("Globex", 0)})
	checker, err := w.Commands.CreateChecker(t.Context(), pagetest.Operator(), "ann", nil)
	w.Shown(checker.Position, err)
	id := w.test(account, "Checkout", nil)
	c := w.claims(checker.CheckerID, id)

	upload := func(wide, high int) string {
		t.Helper()
		var picture bytes.Buffer
		drawn := image.NewRGBA(image.Rect(0, 0, wide, high))
		drawn.Set(3, 3, color.White)
		form := multipart.NewWriter(&picture)
		part, err := form.CreateFormFile("file", "white.png")
		w.Must(err)
		w.Must(png.Encode(part, drawn))
		w.Must(form.Close())
		up := w.Send(guest{}, "POST", "/v1/checker/jobs/"+id+"/evidence", &picture,
			"Authorization", "Bearer "+checker.Token, "X-Claim-Token", fmt.Sprint(c.Claim.Token), "Content-Type", form.FormDataContentType())
		if up.Status != 201 {
			t.Fatalf("the upload: %d %s", up.Status, up.Body)
		}
		_, link, _ := strings.Cut(up.Body, `/v1/evidence/`)
		return link[:36]
	}
	evidence, film := upload(37, 21), upload(38, 21)
	_, at, err := w.Commands.CheckItem(t.Context(), pagetest.ByChecker(c.CheckerID), c.Claim, command.CheckItem{
		ItemID: c.Checklist[0].ID, Status: job.ItemFail, Note: "See the picture.", Screenshots: []string{"/v1/evidence/" + evidence},
	})
	w.Shown(at, err)
	c.checks(1, job.ItemPass, "")
	c.checks(2, job.ItemPass, "")
	_, at, err = w.Commands.CompleteJob(t.Context(), pagetest.ByChecker(c.CheckerID), c.Claim, command.CompleteJob{
		Summary: "It breaks.", RecordingURL: "/v1/evidence/" + film,
	})
	w.Shown(at, err)

	const seen = `(() => { const i = document.querySelector('.shot img'); return i !== null && i.complete && i.naturalWidth === 37 && i.naturalHeight === 21 })()`
	tab := w.Tab(owner)
	tab.Open(w.Origin + "/dashboard/jobs/" + id)
	tab.Wait(seen)
	tab.Open(w.Origin + "/dashboard/jobs/" + id + "/replay?at=99")
	tab.Wait(seen)
	token, err := w.Credentials.Share(t.Context(), account, id, owner.ID, 60e9)
	w.Must(err)
	visitor := w.Tab(guest{})
	visitor.Open(w.Origin + "/shared/" + token)
	visitor.Wait(seen)

	// The link opens the pictures, as long as it works, and no film.
	shared := "/shared/" + token
	got := w.Call(guest{}, "GET", shared+"/evidence/"+evidence, nil)
	if got.Status != 200 || got.Header.Get("Content-Type") != "image/png" || got.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("the picture by the share link: %d, %v", got.Status, got.Header)
	}
	if got := w.Call(guest{}, "GET", shared+"/evidence/"+film, nil); got.Status != 404 || got.Header.Get("Location") != "" {
		t.Errorf("the film by the share link: %d", got.Status)
	}
	const open = "Open the recording"
	if page := w.Call(guest{}, "GET", shared, nil); strings.Contains(page.Body, open) || strings.Contains(page.Body, film) {
		t.Error("the shared report shows the film")
	}
	page := w.Call(owner, "GET", "/dashboard/jobs/"+id, nil)
	if !strings.Contains(page.Body, open) || !strings.Contains(page.Body, "their pictures without a sign-in") {
		t.Error("the report's own page shows no film, or does not say what a share link opens")
	}
	links, err := w.Credentials.Shares(t.Context(), account, id)
	w.Must(err)
	w.Must(w.Credentials.EndShare(t.Context(), account, id, links[0].ID))
	if got := w.Call(guest{}, "GET", shared+"/evidence/"+evidence, nil); got.Status != 404 {
		t.Errorf("the picture after the link's end: %d", got.Status)
	}
	for who, g := range map[string]guest{"nobody": {}, "another account": other} {
		got = w.Call(g, "GET", "/dashboard/jobs/"+id+"/evidence/"+evidence, nil)
		if to := got.Header.Get("Location"); strings.Contains(to, "/v1/evidence/") {
			t.Errorf("%s is led to the picture: %d %s", who, got.Status, to)
		}
	}
}

// Somebody with a passkey gives the proof that a delicate page wants, and comes
// back to it.
func TestAPasskeyGivesTheProofThatADelicatePageWants(t *testing.T) {
	t.Parallel()
	w := setup(t)
	account := w.account("Acme", 0)
	id, link := w.Invited("Ann", person.Grant{Role: person.Owner, AccountID: account})
	ann := guest{ID: id}
	project, err := w.Commands.CreateProject(t.Context(), pagetest.Client(account), command.CreateProject{Name: "Shop"})
	w.Shown(project.Position, err)
	tab := browsertest.New(t)
	tab.Passkeys()
	tab.Open(w.Origin + link)
	tab.Click("form[data-passkey] button")
	tab.WaitText("Welcome to Acme")
	w.Prove(ann, "1 hour")
	tab.Open(w.Origin + "/dashboard/projects/" + project.ProjectID + "/hook")
	tab.WaitText("Confirm your identity")
	tab.Click("form[data-passkey] button")
	tab.WaitText("Deploy hook")
	if path := browsertest.Eval[string](tab, "location.pathname"); path != "/dashboard/projects/"+project.ProjectID+"/hook" {
		t.Errorf("the proof leads to %s", path)
	}

	// A form that wanted the proof is carried out as it was sent.
	w.Prove(ann, "1 hour")
	tab.Open(w.Origin + "/dashboard/keys")
	tab.Fill("#name", "Reports")
	tab.Click("input[name=scope][value=read]")
	tab.Click("form[action='/dashboard/keys'] button")
	tab.WaitText("Confirm your identity")
	tab.Click("form[data-passkey] button")
	tab.WaitText("Your new key")
	keys, _, err := w.Reads.Access.Keys(t.Context(), account, access.Page{Limit: 10})
	w.Must(err)
	if len(keys) != 1 || keys[0].Scope != "read" || keys[0].Name != "Reports" {
		t.Errorf("the form made %+v", keys)
	}
}

// What is printed is the report: light, nothing folded, no navigation, no forms.
func testAReportPrints(t *testing.T, w *world) {
	account := w.account("Acme", 100)
	owner := w.Joined("Ann", person.Grant{Role: person.Owner, AccountID: account})
	id := w.completed(account, "Checkout", "The page stays white.", job.ItemFail, job.ItemPass, job.ItemPass)
	tab := w.Tab(owner)
	tab.Open(w.Origin + "/dashboard/jobs/" + id)
	tab.WaitText("Generated from the checker's report.")
	tab.Wait(`document.querySelectorAll('.items:not(.folded *) > li').length === 1 && !document.querySelector('.folded li').checkVisibility()`)
	tab.Print()
	got := browsertest.Eval[string](tab, `(() => {
		const shown = s => [...document.querySelectorAll(s)].filter(e => e.checkVisibility()).length
		return [shown('.sidebar'), shown('form'), shown('aside'), shown('.items > li'), shown('details.more ol'), getComputedStyle(document.body).color].join(' ')
	})()`)
	if got != "0 0 0 3 1 rgb(27, 30, 34)" {
		t.Errorf("printed: navigation, forms, aside, items, what is folded on the screen, ink: %s", got)
	}
	tab.Shot("job-print")
}

// What happens elsewhere comes to the open overview, which then shows what a
// reload would.
func testNoticesComeByThemselves(t *testing.T, w *world) {
	account := w.account("Acme", 100)
	owner := w.Joined("Ann", person.Grant{Role: person.Owner, AccountID: account})
	w.test(account, "Checkout", nil)
	project, err := w.Commands.CreateProject(t.Context(), pagetest.Client(account), command.CreateProject{Name: "Shop", WebhookURL: "https://hooks.example.com/x"})
	w.Shown(project.Position, err)
	tab := w.Tab(owner)
	tab.Open(w.Origin + "/dashboard")
	tab.WaitText("Since yesterday")
	w.Shown(w.Commands.DisableWebhook(t.Context(), pagetest.Operator(), project.ProjectID, "", "answered 500"))
	tab.WaitText("The webhook of Shop is disabled")
	tab.WaitText("While you were away")
	equalsReload(t, tab)
}
