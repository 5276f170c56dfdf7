package dashboard_test

import (
	"strings"
	"testing"
	"time"

	"humanqa/domain/command"
	"humanqa/domain/job"
	"humanqa/domain/person"
	"humanqa/internal/testing/browsertest"
	"humanqa/internal/testing/pagetest"
)

// From an invitation to a fix that waits to be verified, as somebody sees it who
// never used this before.
func TestAnOwnersFirstTest(t *testing.T) {
	t.Parallel()
	w := setup(t)
	account := w.account("Acme", 100)
	_, link := w.Invited("Ann", person.Grant{Role: person.Owner, AccountID: account})
	tab := browsertest.New(t)
	tab.Screen(1280, 800, false)

	// The link opens nothing by being looked at, and works once.
	if got := w.Call(guest{}, "GET", link, nil); got.Status != 200 || got.Header.Get("Cache-Control") != "no-store" {
		t.Fatalf("the link: %d", got.Status)
	}
	tab.Passkeys()
	tab.Open(w.Origin + link)
	tab.WaitText("You are invited as an owner of Acme")
	tab.Click("form[data-passkey] button")
	tab.WaitText("Start your first test")
	tab.Shot("story-1-welcome")
	if got := w.Call(guest{}, "GET", link, nil); got.Status != 404 {
		t.Errorf("a spent link: %d", got.Status)
	}

	// Out, and in again by the passkey alone.
	tab.Click(".sidebar-end form button")
	tab.WaitText("People test your web app for you")
	tab.Open(w.Origin + "/dashboard/jobs/new")
	tab.WaitText("Welcome back")
	tab.Click("form[data-passkey] button")
	tab.WaitText("What to test")

	tab.Fill("#url", "https://shop.example.com")
	tab.Fill("#feature", "Sign up, then buy the cheapest plan")
	if price := browsertest.Eval[string](tab, "document.querySelector('.big-number').innerText"); price != "5 credits" {
		t.Errorf("the price is %q", price)
	}
	tab.Click("[value=urgent]")
	if price := browsertest.Eval[string](tab, "document.querySelector('.big-number').innerText"); price != "10 credits" {
		t.Errorf("the urgent price is %q", price)
	}
	tab.Click("[value=normal]")
	tab.Shot("story-2-new-test")
	tab.Click("aside button")
	tab.WaitText("What will be tested")
	tab.Click("aside button")
	tab.WaitText("Waiting for a checker")
	path := browsertest.Eval[string](tab, "location.pathname")
	id := path[strings.LastIndex(path, "/")+1:]
	tab.Shot("story-3-waiting")

	// What a checker does appears by itself, and what is half typed stays.
	browsertest.Eval[bool](tab, "(window.same = true)")
	c := w.claims(w.Checker("ann"), id)
	tab.WaitText("A checker is testing")
	c.checks(0, job.ItemFail, "The button does nothing.")
	tab.WaitText("The button does nothing.")
	tab.Shot("story-4-live")
	for i := 1; i < len(c.Checklist); i++ {
		c.checks(i, job.ItemPass, "")
	}
	c.completes("The sign-up button does nothing.")
	tab.WaitText("1 problem found")
	tab.WaitText("Generated from the checker's report.")
	if !browsertest.Eval[bool](tab, "window.same === true") {
		t.Error("the page was loaded anew")
	}
	equalsReload(t, tab)
	tab.Shot("story-5-report")

	tab.Click(".stars label:nth-of-type(5)")
	tab.Fill("#note", "Thorough.")
	tab.Click("#rating button")
	tab.WaitText("Change the rating")

	tab.Click("input[type=checkbox][name=item]")
	tab.Click("#fixed button:not([formaction])")
	tab.WaitText("For the next test")
	tab.Shot("story-6-prepared")

	// One press retests what is ticked.
	tab.Open(w.Origin + path)
	tab.Click("input[type=checkbox][name=item]")
	tab.Click("#fixed [formaction]")
	tab.WaitText("Waiting for a checker")
	path = browsertest.Eval[string](tab, "location.pathname")
	again := w.claims(w.Checker("bob"), path[strings.LastIndex(path, "/")+1:])
	if first := again.Checklist[0]; first.Origin == "" || first.Description != c.Checklist[0].Description {
		t.Errorf("the retest begins with %+v", first)
	}

	// The first report says that its failure passes again.
	for i := range again.Checklist {
		again.checks(i, job.ItemPass, "")
	}
	again.completes("It works.")
	tab.Open(w.Origin + "/dashboard/jobs/" + id)
	tab.WaitText("Passed again")
	tab.WaitText("A newer test of the project exists")
	tab.Shot("story-7-passed-again")
}

// equalsReload holds the page as it is now against what a reload shows.
func equalsReload(t *testing.T, tab *browsertest.Tab) {
	t.Helper()
	const shown = `(() => {
		const main = document.getElementById('main').cloneNode(true)
		main.querySelectorAll('[name=command]').forEach(i => i.removeAttribute('value'))
		main.querySelectorAll('time[data-ago]').forEach(i => i.textContent = '')
		return main.innerHTML.replace(/\s+/g, ' ')
	})()`
	live := browsertest.Eval[string](tab, shown)
	tab.Open(browsertest.Eval[string](tab, "location.href"))
	if reloaded := browsertest.Eval[string](tab, shown); live != reloaded {
		at := 0
		for at < min(len(live), len(reloaded)) && live[at] == reloaded[at] {
			at++
		}
		t.Errorf("live: …%.200s\nreload: …%.200s", live[at:], reloaded[at:])
	}
}

// The same without a script: every step is a page and a form.
func TestEverythingWorksWithoutAScript(t *testing.T) {
	t.Parallel()
	w := setup(t)
	account := w.account("Acme", 100)
	id, link := w.Invited("Ann", person.Grant{Role: person.Owner, AccountID: account})
	login := "ann." + id + "@example.com"
	tab := browsertest.New(t)
	tab.Screen(1280, 900, false)
	tab.NoScript()
	at := func(text string) {
		t.Helper()
		tab.WaitText(text)
	}
	tab.Open(w.Origin + link)
	at("Welcome, Ann")
	tab.Click("details summary")
	if browsertest.Eval[bool](tab, `document.body.innerText.includes('Your name')`) {
		t.Error("an invited person is asked for the name that the invitation has")
	}
	tab.Fill("#login", login)
	tab.Fill("#password", "too short")
	tab.Click("form[action^='/join'] button.btn-quiet")
	at("must have at least 12 characters")
	tab.Fill("#password", password)
	tab.Allow("422")
	tab.Click("form[action^='/join'] button.btn-quiet")
	at("Start your first test")
	tab.Fill("#first-url", "https://shop.example.com")
	tab.Click("form[action='/dashboard/jobs/new'] button")
	at("New test")
	tab.Click("aside button")
	tab.WaitText("What will be tested")
	tab.Click("aside button")
	at("Waiting for a checker")
	tab.Click("#cancel-menu summary")
	tab.Click("form[action$='/cancel'] button")
	at("5 credits refunded")
	tab.Open(w.Origin + "/dashboard/keys")
	tab.Fill("#name", "Pipeline")
	tab.Click("form[action='/dashboard/keys'] button")
	at("Your new key")
	if n := browsertest.Eval[int](tab, `[...document.querySelectorAll('[data-copy]')].filter(b => b.checkVisibility()).length`); n > 0 {
		t.Errorf("%d buttons copy without a script", n)
	}
	tab.Open(w.Origin + "/dashboard/members")
	tab.Fill("#name", "Bob")
	tab.Click("[value=viewer]")
	tab.Click("form[action='/dashboard/members'] button")
	at("The link for Bob")
	tab.Click(".sidebar-end form button")
	at("People test your web app")
	tab.Open(w.Origin + "/dashboard/credits")
	tab.Fill("#login", login)
	tab.Fill("#password", password)
	tab.Click("form[action='/signin'] button")
	at("3 entries add up to 100")
}

// Whatever clients, checkers and models write is text, on every page that shows
// it.
func TestWhatOthersWriteIsText(t *testing.T) {
	t.Parallel()
	w := setup(t)
	account := w.account(`<script>window.hit=1</script>`, 500)
	owner := w.Joined(`<img src=x onerror=window.hit=1>`, person.Grant{Role: person.Owner, AccountID: account})
	const evil = `"><script>window.hit=1</script><img src=x onerror=window.hit=1>{{.}}</textarea></title>javascript:window.hit=1`
	project, err := w.Commands.CreateProject(t.Context(), pagetest.Client(account), command.CreateProject{Name: evil, Description: new(evil), WebhookURL: "https://hooks.example.com/x"})
	w.Shown(project.Position, err)
	id := w.test(account, evil, func(in *command.SubmitJob) {
		in.ProjectID, in.Description, in.Feature = project.ProjectID, evil, evil
		in.Items = []command.NewItem{{Description: evil, ExpectedOutcome: evil, Severity: job.Major}, {Description: "other " + evil, Severity: job.Minor}}
	})
	c := w.claims(w.Checker("ann"), id)
	_, at, err := w.Commands.CheckItem(t.Context(), pagetest.ByChecker(c.CheckerID), c.Claim, command.CheckItem{
		ItemID: c.Checklist[0].ID, Status: job.ItemFail, Note: evil, Screenshots: []string{"https://evil.example/?" + evil},
	})
	w.Shown(at, err)
	c.checks(1, job.ItemFail, evil)
	_, at, err = w.Commands.CompleteJob(t.Context(), pagetest.ByChecker(c.CheckerID), c.Claim, command.CompleteJob{Summary: evil, RecordingURL: "javascript:window.hit=1"})
	w.Shown(at, err)
	w.Contested(account, c.CheckerID, id, evil)
	batch, _ := w.batch(account, evil, evil)
	loop, _ := w.looped(account, "evil.example.com", evil, 1)
	w.Must(w.preferences.KeepView(t.Context(), account, owner.ID, evil[:50], "status=pending"))
	share, err := w.Credentials.Share(t.Context(), account, id, owner.ID, time.Hour)
	w.Must(err)
	w.Shown(w.Commands.DisableWebhook(t.Context(), pagetest.Operator(), project.ProjectID, "", evil))
	tab := w.Tab(owner)
	for _, path := range []string{
		"/dashboard/jobs/" + id + "/replay?at=3", "/shared/" + share, "/dashboard/batches/" + batch, "/dashboard/loops/" + loop,
		"/dashboard/jobs?status=pending", "/dashboard/projects/" + project.ProjectID + "/hook",
		"/dashboard", "/dashboard/jobs", "/dashboard/jobs/" + id, "/dashboard/projects", "/dashboard/projects/" + project.ProjectID,
		"/dashboard/credits", "/dashboard/members", "/account", "/dashboard/jobs/new?feature=" + "%3C/textarea%3E%3Cscript%3Ewindow.hit=1%3C/script%3E",
	} {
		tab.Open(w.Origin + path)
		if browsertest.Eval[bool](tab, `window.hit === 1 || [...document.querySelectorAll('a')].some(a => a.protocol === 'javascript:')`) {
			t.Errorf("%s runs what others wrote", path)
		}
		if wide := browsertest.Eval[int](tab, "document.documentElement.scrollWidth - innerWidth"); wide > 0 {
			t.Errorf("%s is %d px too wide", path, wide)
		}
	}
}

// A person with a keyboard reaches everything in order, and sees where they are.
func TestAKeyboardReachesEverything(t *testing.T) {
	t.Parallel()
	w := setup(t)
	account := w.account("Acme", 100)
	owner := w.Joined("Ann", person.Grant{Role: person.Owner, AccountID: account})
	id := w.completed(account, "Checkout", "It breaks.", job.ItemFail, job.ItemPass, job.ItemSkip)
	tab := w.Tab(owner)
	tab.Screen(1280, 900, false)
	for _, path := range []string{
		"/dashboard", "/dashboard/jobs/new", "/dashboard/jobs/" + id, "/dashboard/jobs/" + id + "/replay", "/dashboard/keys",
	} {
		tab.Open(w.Origin + path)
		first := ""
		reachable := browsertest.Eval[int](tab, `[...document.querySelectorAll('a[href], button, input:not([type=hidden]):not([type=radio]), select, textarea, summary, [tabindex="0"]')].filter(e => e.checkVisibility() && e.tabIndex >= 0).length`)
		for i := range reachable {
			tab.Press(browsertest.TabKey)
			where := browsertest.Eval[string](tab, `(() => {
				const e = document.activeElement, s = getComputedStyle(e), l = e.closest('label') ? getComputedStyle(e.closest('label')) : s
				if (e === document.body) return 'nowhere'
				if (s.outlineStyle === 'none' && l.outlineStyle === 'none') return 'unseen: ' + e.outerHTML.slice(0, 120)
				return (e.innerText || e.name || e.id).trim()
			})()`)
			if strings.HasPrefix(where, "unseen") || where == "nowhere" {
				t.Errorf("%s, step %d: %s", path, i, where)
			}
			if i == 0 {
				first = where
			}
		}
		if first != "Skip to the content" {
			t.Errorf("%s begins at %q", path, first)
		}
	}
}
