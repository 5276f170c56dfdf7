package dashboard_test

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"humanqa/domain/job"
	"humanqa/domain/person"
	"humanqa/httpapi/ui"
	"humanqa/internal/testing/browsertest"
	"humanqa/internal/testing/pagetest"
	"humanqa/internal/testing/thirdmonth"
	"humanqa/projections/projects"
	"humanqa/webhooks"
)

// says reports the texts that a page lacks.
func says(t *testing.T, page string, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if !strings.Contains(page, text) {
			t.Errorf("the page does not say %q", text)
		}
	}
}

// What waits for a person comes first, then what got worse, then what a day brought; each
// number leads to a page that lists as many.
func TestTheOverviewOfManyProjectsBeginsWithWhatWaits(t *testing.T) {
	t.Parallel()
	w, owner := inThirdMonth(t)
	page := w.Call(owner, "GET", "/dashboard", nil).Body
	at := 0
	for _, text := range []string{
		"Waiting for you", "A code was sent by SMS", "Which one may I use?", "The webhook of Billing is disabled", "Got worse this week",
		fmt.Sprintf("%d failing projects", thirdmonth.Failing), fmt.Sprintf("6 of %d", thirdmonth.Worse), "Since yesterday",
		fmt.Sprintf(`>%d tests</a>`, thirdmonth.Batch), ">1 passed</a>", ">4 failed</a>", ">15 to go</a>", `id="credits"`, "7 credits left", "While you were away",
	} {
		found := strings.Index(page[at:], text)
		if found < 0 {
			t.Fatalf("%q does not follow", text)
		}
		at += found
	}
	for text, list := range map[string]string{
		"Checkers": "/dashboard/jobs?status=pending", "Usual time": "/dashboard/jobs?status=completed&amp;kind=general_qa",
	} {
		if !strings.Contains(page, "<dt>"+text+`</dt><dd><a class="num" href="`+list+`">`) {
			t.Errorf("%q leads nowhere", text)
		}
	}
	if n := strings.Count(page, `#failures"><span>`); n != 6 {
		t.Errorf("the figures of %d projects that got worse lead to their failures", n)
	}
	for _, number := range regexp.MustCompile(`href="(/dashboard/jobs\?[^"]*)">([0-9]+)(?: (?:passed|failed|tests?))?</a>`).FindAllStringSubmatch(page, -1) {
		list := w.Call(owner, "GET", strings.ReplaceAll(number[1], "&amp;", "&"), nil).Body
		if rows := fmt.Sprint(strings.Count(list, `<tr id="job-`)); rows != number[2] {
			t.Errorf("%s leads to a list of %s", number[0], rows)
		}
	}
}

// A question is answered where it is first seen.
func TestAQuestionIsAnsweredOnTheOverview(t *testing.T) {
	t.Parallel()
	w := setup(t)
	account := w.account("Acme", 100)
	dev := w.Joined("Dee", person.Grant{Role: person.Developer, AccountID: account})
	viewer := w.Joined("Vera", person.Grant{Role: person.Viewer, AccountID: account})
	id := w.test(account, "Sign-up", nil)
	question := w.claims(w.Checker("ann"), id).asks(0, "Which door?")
	if page := w.Call(viewer, "GET", "/dashboard", nil).Body; !strings.Contains(page, "Which door?") || strings.Contains(page, question+`" method="post"`) || strings.Contains(page, "Your answer") {
		t.Error("a viewer may answer, or does not see the question")
	}
	form := pagetest.Form("text", " ")
	if got := w.Call(dev, "POST", "/dashboard/jobs/"+id+"/questions/"+question, form, "Referer", w.Origin+"/dashboard"); got.Status != http.StatusUnprocessableEntity ||
		!strings.Contains(got.Body, "Waiting for you") || !strings.Contains(got.Body, "must not be blank") {
		t.Errorf("an empty answer: %d", got.Status)
	}
	tab := w.Tab(dev)
	tab.Open(w.Origin + "/dashboard")
	tab.Fill("#answer-"+question, "The left one.")
	tab.Click(".answer button")
	tab.WaitText("The left one.")
	tab.Open(w.Origin + "/dashboard")
	tab.WaitText("Since yesterday")
	if page := browsertest.Eval[string](tab, "document.title + document.body.innerText"); strings.Contains(page, "Which door?") || strings.Contains(page, "(1)") {
		t.Error("the answered question still waits")
	}
}

// Projects stand in a table, the worst first; chips and words narrow it.
func TestManyProjectsAreATableThatBeginsWithTheWorst(t *testing.T) {
	t.Parallel()
	w, owner := inThirdMonth(t)
	tab := w.Tab(owner)
	tab.Screen(1280, 800, false)
	tab.Open(w.Origin + "/dashboard/projects")
	if got := browsertest.Eval[string](tab, `[...document.querySelectorAll('.tabs a')].map(a => a.innerText).join(', ')`); got != "All 40, Failing 23, Worse this week 8, Quiet 12, Webhook down 2, Archived 0" {
		t.Errorf("the chips are %s", got)
	}
	if got := browsertest.Eval[[]float64](tab, `[...document.querySelectorAll('.table-dense tbody tr')].map(r => r.getBoundingClientRect().height)`); len(got) != 20 {
		t.Errorf("%d rows", len(got))
	} else {
		for _, high := range got {
			if high < 39 || high > 42 {
				t.Errorf("a row is %.0f px high", high)
			}
		}
	}
	first := browsertest.Eval[string](tab, `document.querySelector('.table-dense tbody tr').innerText`)
	says(t, first, "Shop", "2 critical", "%")
	criticals := browsertest.Eval[[]int](tab, `[...document.querySelectorAll('.table-dense tbody tr')].map(r => parseInt(r.querySelector('.chip-fail')?.innerText ?? '0') || 0)`)
	for i := 1; i < len(criticals); i++ {
		if criticals[i] > criticals[i-1] && i < 10 {
			t.Errorf("row %d has more critical failures than the one before: %v", i, criticals)
		}
	}
	submitted := browsertest.Eval[[]string](tab, `[...document.querySelectorAll('.table-dense td[data-label="Submitted by"]')].map(c => c.innerText)`)
	slices.Sort(submitted)
	if got := slices.Compact(submitted); !slices.Equal(got, []string{"API key", "Deploy hook", "Olga Owner"}) {
		t.Errorf("the latest tests were submitted by %q", got)
	}
	tab.Click("a[rel=next]")
	tab.WaitText("21 to 40 of 40")
	tab.Click(`.tabs a[href$="show=quiet"]`)
	tab.WaitText("Playground")
	tab.Fill("#q", "WHOLESALE.example")
	tab.Press(browsertest.Enter)
	tab.Wait(`location.search.includes('show=quiet') && document.querySelectorAll('.table-dense tbody tr').length === 1 && document.body.innerText.includes('Quiet 1')`)
	tab.Open(w.Origin + "/dashboard/projects?q=nothing+like+it")
	tab.WaitText("No project is like this")
}

// A project is made from the head of the list.
func TestAProjectIsMadeFromTheHeadOfTheList(t *testing.T) {
	t.Parallel()
	w := setup(t)
	account := w.account("Acme", 0)
	tab := w.Tab(w.Joined("Dee", person.Grant{Role: person.Developer, AccountID: account}))
	tab.Open(w.Origin + "/dashboard/projects")
	tab.Click("#add summary")
	tab.Fill("#name", "A new one")
	tab.Press(browsertest.Enter)
	tab.WaitText("The project is created.")
	if _, all, err := w.Reads.Projects.List(t.Context(), account, projects.Filter{Limit: 1}); err != nil || all != 1 {
		t.Errorf("%d projects, %v", all, err)
	}
}

// A report begins with what was seen; what passed and what happened is one click away, and
// each failure can be taken into a tracker of issues.
func TestAReportBeginsWithWhatWasSeen(t *testing.T) {
	t.Parallel()
	w, owner := inThirdMonth(t)
	tab := w.Tab(owner)
	tab.Screen(1280, 800, false)
	tab.Open(w.Origin + "/dashboard/jobs/" + month.Report)
	j, err := w.Reads.Jobs.Job(t.Context(), month.AccountID, month.Report)
	w.Must(err)
	says(t, browsertest.Eval[string](tab, `document.querySelector('.head .meta').innerText`), "tested in "+ui.Span(j.CompletedAt.Sub(*j.ClaimedAt)))
	says(t, browsertest.Eval[string](tab, `document.querySelector('.card nav.tabs').innerText`), "Failures 3", "Passed 3", "Activity")
	failure := browsertest.Eval[string](tab, `document.querySelector('.failures > li').innerText`)
	says(t, failure, "the total stays at 48.00 EUR", "Expected:", "Fails since", "Copy as issue", "Link to this item", "critical")
	if size := browsertest.Eval[string](tab, `(li => [...li.querySelectorAll('p, b, span')].every(e => parseFloat(getComputedStyle(e).fontSize) <= parseFloat(getComputedStyle(li.querySelector('.seen')).fontSize)))(document.querySelector('.failures > li')) + ''`); size != "true" {
		t.Error("what was seen is not the largest")
	}
	says(t, browsertest.Eval[string](tab, `document.querySelector('.failures pre').textContent`), "The voucher lowers the total (critical)", "The tester saw:", "/dashboard/jobs/"+month.Report+"#item-")
	tab.Wait(`!document.querySelector('#passed-items li').checkVisibility() && !document.querySelector('.timeline').checkVisibility()`)
	tab.Click(`nav.tabs a[href="#passed-items"]`)
	tab.Wait(`document.querySelector('#passed-items li').checkVisibility()`)
	tab.Click(`nav.tabs a[href="#what-happened"]`)
	tab.Wait(`document.querySelector('.timeline').checkVisibility()`)
	tab.Wait(`document.querySelector('#rating').getBoundingClientRect().top > document.querySelector('.failures').getBoundingClientRect().bottom`)
}

// A shared report names a newer test, has nothing beside the results, and prints to two pages.
func TestASharedReportPrintsToTwoPages(t *testing.T) {
	t.Parallel()
	w, owner := inThirdMonth(t)
	share, err := w.Credentials.Share(t.Context(), month.AccountID, month.Report, owner.ID, time.Hour)
	w.Must(err)
	const wide, high = 718, 1047 // A4 within a centimetre, in CSS pixels
	tab := browsertest.New(t)
	tab.Screen(wide, high, false)
	tab.Open(w.Origin + "/shared/" + share)
	tab.WaitText("A newer test of the project exists.")
	if browsertest.Eval[bool](tab, `document.querySelector('main aside') !== null`) {
		t.Error("something stands beside a shared report")
	}
	tab.Print()
	if got := browsertest.Eval[int](tab, `Math.ceil(document.querySelector('main').getBoundingClientRect().height)`); got > 2*high {
		t.Errorf("the report is %d px high, which is more than two pages", got)
	}
}

// A webhook that is down says so in a sentence, and has one button for what is next.
func TestAWebhookThatIsDownSaysWhatIsNext(t *testing.T) {
	t.Parallel()
	w, owner := inThirdMonth(t)
	path := "/dashboard/projects/" + month.DeadHooks[0] + "/webhook"
	page := w.Call(owner, "GET", path, nil).Body
	health, err := w.record().Health(t.Context(), month.AccountID, month.DeadHooks[0])
	w.Must(err)
	held := health[month.DeadHooks[0]].Held
	says(t, page, "The webhook is disabled.", fmt.Sprintf("Enable and replay %d", held), fmt.Sprintf(">Held %d</a>", held), "Seven days")
	if n := strings.Count(page, `<tr id="delivery-`); n != 25 {
		t.Errorf("%d rows", n)
	}
	if n := strings.Count(page, `class="plot-column"`); n != 7 {
		t.Errorf("%d days", n)
	}
	if strings.Contains(page, "Own headers") {
		t.Error("the settings stand among the deliveries")
	}
	settings := w.Call(owner, "GET", path+"?tab=settings", nil).Body
	says(t, settings, "Own headers", "Signing secret", `id="events"`)
	if strings.Contains(settings, `<tr id="delivery-`) {
		t.Error("the deliveries stand among the settings")
	}
	if got := w.Call(owner, "POST", path+"/headers", pagetest.Form("header", "X Y", "value", "v")); got.Status != http.StatusUnprocessableEntity || !strings.Contains(got.Body, `id="header-refused"`) {
		t.Errorf("a header with a space: %d", got.Status)
	}
}

// One press enables a webhook and replays what was held.
func TestAWebhookIsEnabledAndReplayedAtOnce(t *testing.T) {
	t.Parallel()
	w := own(t)
	account := w.account("Acme", 500)
	dev := w.Joined("Dee", person.Grant{Role: person.Developer, AccountID: account})
	e := w.delivering(http.StatusNoContent)
	hooked := w.hooked(account, "Shop", e.URL+"/in")
	w.Shown(w.Commands.DisableWebhook(t.Context(), pagetest.Operator(), hooked, "", "answered 502"))
	for range 3 {
		w.testIn(account, hooked)
	}
	w.within("three are held", func() bool { return len(w.deliveries(account, hooked, webhooks.StateHeld)) == 3 })
	tab := w.Tab(dev)
	tab.Open(w.Origin + "/dashboard/projects/" + hooked + "/webhook")
	tab.Click("button[name=which][value=all]")
	tab.WaitText("3 events will be sent.")
	w.within("they arrive", func() bool { return len(w.deliveries(account, hooked, webhooks.StateDelivered)) == 3 })
	tab.WaitText("Your server answers.")
}

// The checklist is read and edited by keys before it costs anything.
func TestTheChecklistIsEditedByKeysBeforeItIsPaid(t *testing.T) {
	t.Parallel()
	w := setup(t)
	account := w.account("Acme", 100)
	owner := w.Joined("Ann", person.Grant{Role: person.Owner, AccountID: account})
	tab := w.Tab(owner)
	tab.Open(w.Origin + "/dashboard/jobs/new")
	tab.Fill("#url", "https://shop.example.com")
	tab.Fill("#feature", "Sign up")
	tab.Click("aside button")
	tab.WaitText("What will be tested")
	rows := browsertest.Eval[int](tab, `document.querySelectorAll('.entry').length`)
	first := browsertest.Eval[string](tab, `document.querySelector('.entry [name=item]').value`)
	browsertest.Eval[bool](tab, `([...document.querySelectorAll('.entry [name=item]')].at(-1).focus(), true)`)
	tab.Press("Before last" + browsertest.Enter + "The last")
	tab.Wait(fmt.Sprintf(`document.querySelectorAll('.entry').length === %d`, rows+1))
	browsertest.Eval[bool](tab, `(document.activeElement.dispatchEvent(new KeyboardEvent('keydown', {key: 'ArrowUp', altKey: true, bubbles: true})), true)`)
	browsertest.Eval[bool](tab, `(document.querySelector('.entry .entry-drop').click(), true)`)
	tab.Axe("the checklist while it is edited")
	tab.Screen(390, 844, false)
	tab.Wait(`(pay => getComputedStyle(pay).position === 'fixed' && pay.getBoundingClientRect().bottom <= innerHeight + 1)(document.querySelector('.pay'))`)
	tab.Screen(1280, 800, false)
	if b, err := w.Reads.Credits.Balance(t.Context(), account, time.Now()); err != nil || b.Available != 100 {
		t.Errorf("%d credits before the start, %v", b.Available, err)
	}
	tab.Click("aside button")
	tab.WaitText("Waiting for a checker")
	path := browsertest.Eval[string](tab, "location.pathname")
	j, err := w.Reads.Jobs.Job(t.Context(), account, path[strings.LastIndex(path, "/")+1:])
	w.Must(err)
	n := len(j.Items)
	if j.Items[0].Description == first || j.Items[n-2].Description != "The last" || j.Items[n-1].Description != "Before last" {
		t.Errorf("the checklist is %+v", j.Items)
	}
}

// What failed before stands above the list, with the day on which it began.
func TestAPreviewSaysSinceWhenAnItemFails(t *testing.T) {
	t.Parallel()
	w, _ := inThirdMonth(t)
	owner := w.Joined("Dan", person.Grant{Role: person.Developer, AccountID: month.AccountID})
	failures, err := w.Reads.History.OpenFailures(t.Context(), month.AccountID, month.ProjectIDs[0], 10)
	w.Must(err)
	got := w.Call(owner, "POST", "/dashboard/jobs/preview", url.Values{"url": {"https://shop.example.com"}, "project": {month.ProjectIDs[0]}, "item": {"It opens"}, "severity": {"minor"}})
	again := regexp.MustCompile(`(?s)class="card-body again">(.*?)</div>`).FindString(got.Body)
	for _, f := range failures {
		says(t, again, f.Description, "fails since", f.FirstFailedAt.UTC().Format(`datetime="2006-01-02T`))
	}
	if strings.Index(got.Body, again) > strings.Index(got.Body, `class="entry"`) || len(failures) != 3 || failures[0].Severity == job.Minor {
		t.Errorf("%d failures stand below the list", len(failures))
	}
}

// The list of another test of the project takes the place of the page's own, with a script
// and without. All else stays as it was typed.
func TestAChecklistIsTakenFromAnotherTest(t *testing.T) {
	t.Parallel()
	w, _ := inThirdMonth(t)
	project := month.ProjectIDs[10]
	lists, err := w.Reads.Jobs.Checklists(t.Context(), month.AccountID, project, 5)
	w.Must(err)
	if len(lists) != 2 || lists[0].Items != thirdmonth.Short {
		t.Fatalf("the lists of the project are %+v", lists)
	}
	const shown = `[...document.querySelectorAll('.again li, .entry')].map(e => e.matches('li') ? e.firstChild.textContent.trim() :
		[...e.querySelectorAll('[name=item], [name=expected], [name=severity]')].map(f => f.value).join('|')).filter(text => !text.startsWith('|'))`
	for name, scripted := range map[string]bool{"with a script": true, "without one": false} {
		t.Run(name, func(t *testing.T) {
			w := on(w.In(t))
			dev := w.Joined("Dan", person.Grant{Role: person.Developer, AccountID: month.AccountID})
			tab := w.Tab(dev)
			if !scripted {
				tab.NoScript()
			}
			tab.Screen(1280, 800, false)
			tab.Open(w.Origin + "/dashboard/jobs/new?project=" + project)
			tab.Fill("#feature", "On a phone")
			tab.Fill("#access", "ring twice")
			for n, list := range lists {
				tab.Click(fmt.Sprintf("li:nth-child(%d) > [name=checklist]", n+1))
				j, err := w.Reads.Jobs.Job(t.Context(), month.AccountID, list.JobID)
				w.Must(err)
				want := []string{j.Items[0].Description} // it fails, so it is retested in any case
				for _, item := range j.Items[1:] {
					want = append(want, fmt.Sprintf("%s|%s|%s", item.Description, item.ExpectedOutcome, item.Severity))
				}
				tab.Wait(fmt.Sprintf(`%s.join('\n') === %q`, shown, strings.Join(want, "\n")))
				if scripted && n == 0 {
					tab.Axe("a new test with the lists of others")
				}
				typed := browsertest.Eval[string](tab, `['feature', 'access', 'project'].map(id => document.getElementById(id).value).join(' ')`)
				if want := "On a phone ring twice " + project; typed != want {
					t.Errorf("what was typed is %q, want %q", typed, want)
				}
			}
			tab.Shot("new-test-others-1280")
			tab.Screen(390, 844, false)
			tab.Shot("new-test-others-390")
			// By an address, too: a draft stays, and a report leads to a form of its own.
			tab.Open(w.Origin + "/dashboard/jobs/new?checklist=" + lists[0].JobID)
			tab.Wait(`document.getElementById('feature').value === 'On a phone' && document.querySelectorAll('.entry').length === ` + fmt.Sprint(thirdmonth.Short))
			tab.Screen(1280, 800, false)
			tab.Open(w.Origin + "/dashboard/jobs/" + lists[1].JobID)
			tab.Click(`a[href^="/dashboard/jobs/new?checklist="]`)
			tab.WaitText("What will be tested")
			tab.Wait(`document.getElementById('feature').value === '' && document.getElementById('url').value.startsWith('https://landing-pages.') && document.querySelectorAll('.entry').length === ` + fmt.Sprint(lists[1].Items))
		})
	}
	other := w.Joined("Otto", person.Grant{Role: person.Owner, AccountID: w.account("Initech", 10)})
	for _, id := range []string{lists[0].JobID, "none"} {
		for _, form := range []url.Values{nil, {"url": {"https://shop.example.com"}, "checklist": {id}}} {
			method, path := "GET", "/dashboard/jobs/new?checklist="+id
			if form != nil {
				method, path = "POST", "/dashboard/jobs/preview"
			}
			if got := w.Call(other, method, path, form); got.Status != http.StatusNotFound || strings.Contains(got.Body, `name="item"`) {
				t.Errorf("%s of the list of %s in another account: %d", method, id, got.Status)
			}
		}
	}
}

// Erased texts make no list.
func TestTheChecklistOfAnErasedTestIsNotTaken(t *testing.T) {
	t.Parallel()
	w := setup(t)
	account := w.account("Acme", 100)
	dev := w.Joined("Dee", person.Grant{Role: person.Developer, AccountID: account})
	id := w.completed(account, "Checkout", "White.", job.ItemFail, job.ItemPass, job.ItemPass)
	at, err := w.Commands.EraseJob(t.Context(), pagetest.Operator(), id, "Ann", "asked for")
	w.Shown(at, err)
	if got := w.Call(dev, "GET", "/dashboard/jobs/new?checklist="+id, nil); got.Status != http.StatusConflict {
		t.Errorf("the list of an erased test: %d", got.Status)
	}
	if strings.Contains(w.Call(dev, "GET", "/dashboard/jobs/"+id, nil).Body, "New test with this checklist") {
		t.Error("the list of an erased test is offered")
	}
}

// All that match are chosen with one press: the newest 200 of them, with what they cost.
func TestAllThatMatchAreChosenUpToALimit(t *testing.T) {
	t.Parallel()
	w, owner := inThirdMonth(t)
	page := w.Call(owner, "GET", "/dashboard/jobs/chosen?all=1&query=status%3Dcompleted", nil).Body
	says(t, page, "200 chosen tests", "More tests match. These are the newest 200.", "None of them waits.", "Submits the same 200 tests again")
	if rows := strings.Count(page, `<tr id="job-`); rows != 200 {
		t.Errorf("%d tests are shown", rows)
	}
	few := w.Call(owner, "GET", "/dashboard/jobs/chosen?all=1&query=status%3Dclaimed", nil).Body
	if strings.Contains(few, "More tests match") {
		t.Error("few tests are said to be more")
	}
	wrong := w.Call(owner, "GET", "/dashboard/jobs/chosen?all=1&query=from%3Dsoon", nil)
	if wrong.Status/100 != 4 {
		t.Errorf("a filter that cannot be read is %d", wrong.Status)
	}
}
