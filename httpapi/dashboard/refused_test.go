package dashboard_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"humanqa/domain/command"
	"humanqa/domain/person"
	"humanqa/internal/testing/browsertest"
	"humanqa/internal/testing/pagetest"
	"humanqa/projections/projects"
)

// A refused form comes back on its page with what was typed, the error at its field, and the
// focus there. A form that was saved says so, once.
func TestARefusedFormComesBackFilled(t *testing.T) {
	t.Parallel()
	w := setup(t)
	account := w.account("Acme", 0)
	owner := w.Joined("Ann", person.Grant{Role: person.Owner, AccountID: account})
	const page = "/dashboard/keys"
	long := `"><script>alert(1)</script>` + strings.Repeat("x", 80)
	form := url.Values{"name": {long}, "scope": {"read"}, "days": {"90"}}
	got := w.Call(owner, "POST", page, form, "Referer", w.Origin+page+"?x=1", "If-None-Match", "*", "Accept-Encoding", "gzip")
	for _, want := range []string{
		`value="&#34;&gt;&lt;script&gt;alert(1)&lt;/script&gt;xxx`, `value="read" checked`, `<option value="90" selected`,
		`<p class="wrong" id="name-refused">Name must have at most 80 characters, has 107.</p>`, `aria-invalid="true" aria-describedby="name-hint name-refused" autofocus`,
		"<title>API keys",
	} {
		if !strings.Contains(got.Body, want) {
			t.Errorf("the page lacks %s", want)
		}
	}
	if got.Status != 422 || strings.Contains(got.Body, `value="full" checked`) || strings.Contains(got.Body, "<script>alert") || strings.Contains(got.Body, "data-live") {
		t.Errorf("the refused form: %d %s", got.Status, got.Body)
	}
	// Without a field of that name the error stands above the form.
	got = w.Call(owner, "POST", page, url.Values{"name": {"x"}, "scope": {"all"}}, "Referer", w.Origin+page)
	if got.Status != 422 || !strings.Contains(got.Body, `role="alert" id="refused" tabindex="-1" autofocus><ul><li>Scope must be full or read.</li>`) {
		t.Errorf("an error of no field: %d", got.Status)
	}
	// A page of another site, or one that does not have the form, is not opened.
	for _, from := range []string{"https://evil.example" + page, w.Origin + "/dashboard/members", w.Origin + "/v1/jobs", w.Origin + "/dashboard/jobs/none", ":"} {
		if got := w.Call(owner, "POST", page, form, "Referer", from); got.Status != 422 || strings.Contains(got.Body, "<form class=\"form\"") {
			t.Errorf("from %s: %d", from, got.Status)
		}
	}

	saved := w.Call(owner, "POST", "/account/name", url.Values{"name": {"Ann Other"}})
	note := strings.Split(saved.Header.Get("Set-Cookie"), ";")[0]
	cookie := "__Host-humanqa=" + owner.Token + "; "
	for _, c := range []struct {
		cookie, dest string
		shown        bool
	}{{note, "document", true}, {note, "empty", false}, {"__Host-humanqa-note=Send+us+your+password", "document", false}} {
		got := w.Call(guest{}, "GET", "/account", nil, "Cookie", cookie+c.cookie, "Sec-Fetch-Dest", c.dest)
		if got.Status != 200 || strings.Contains(got.Body, `id="note"`) != c.shown || strings.Contains(got.Body, "your password") ||
			(got.Header.Get("Set-Cookie") == "") != (c.dest == "empty") {
			t.Errorf("%s as %s: %d, %s", c.cookie, c.dest, got.Status, got.Header.Get("Set-Cookie"))
		}
	}
}

// A form that was opened in one account does nothing in another one that its person chose
// since, in another tab: it comes back filled, and says so.
func TestAFormActsInTheAccountInWhichItWasOpened(t *testing.T) {
	t.Parallel()
	w := own(t)
	acme, beta := w.account("Acme", 100), w.account("Beta", 100)
	ann := w.Joined("Ann", person.Grant{Role: person.Owner, AccountID: acme})
	w.Shown(w.Commands.GrantRole(t.Context(), pagetest.Client(""), ann.ID, person.Grant{Role: person.Owner, AccountID: beta}))
	chooses := func(accountID string) {
		t.Helper()
		if got := w.Call(ann, "POST", "/dashboard/account", url.Values{"account": {accountID}}); got.Status != 303 {
			t.Fatalf("another account: %d", got.Status)
		}
	}
	names := func(accountID string) (names []string) {
		t.Helper()
		list, _, err := w.Reads.Projects.List(t.Context(), accountID, projects.Filter{Limit: 10})
		w.Must(err)
		for _, p := range list {
			names = append(names, p.Name)
		}
		return names
	}
	chooses(acme)
	tab := w.Tab(ann)
	tab.Allow("422")
	tab.Screen(1280, 900, false)
	tab.Open(w.Origin + "/dashboard/projects")
	chooses(beta) // in another tab
	w.FormsOfAnotherAccount(ann, acme, "Acme", "Beta")
	if got := w.Call(ann, "POST", "/dashboard/projects", url.Values{"in-account": {"<b>none</b>"}}); got.Status != 422 || strings.Contains(got.Body, "<b>none") {
		t.Errorf("an account that is none: %d", got.Status)
	}

	// An open page does not turn into that of the other account by itself.
	browsertest.Eval[bool](tab, `document.dispatchEvent(new Event('humanqa:refresh'))`)
	tab.WaitText("You chose another account in another tab.")
	form := `main form[action="/dashboard/projects"]`
	browsertest.Eval[bool](tab, `(document.querySelector('`+form+`').closest('details')?.setAttribute('open', ''), true)`)
	tab.Fill(form+" [name=name]", "The shop")
	tab.Press(browsertest.Enter)
	tab.WaitText("This form was opened in Acme, but you look at Beta now. Nothing was done.")
	tab.Wait(`document.querySelector('` + form + ` [name=name]').value === 'The shop' && document.activeElement.id === 'refused'`)
	tab.Axe("a form of another account")
	tab.Shot("form-of-another-account-light-1280")
	if got := append(names(acme), names(beta)...); len(got) > 0 {
		t.Fatalf("there are the projects %v", got)
	}
	tab.Click(form + " button") // read, and meant
	tab.WaitText("The project is created.")
	if got := names(beta); len(got) != 1 || len(names(acme)) > 0 {
		t.Errorf("Beta has the projects %v", got)
	}
	// A path that names a thing acts where the thing is, as its page has shown.
	project, err := w.Commands.CreateProject(t.Context(), pagetest.Client(acme), command.CreateProject{Name: "Old"})
	w.Shown(project.Position, err)
	if got := w.Call(ann, "POST", "/dashboard/projects/"+project.ProjectID, url.Values{"in-account": {acme}, "name": {"New"}}); got.Status != 303 {
		t.Errorf("a project of the other account: %d", got.Status)
	}
}

// A page beyond the end of a list leads to its last page, and an address that is none is
// answered to a browser in words for people.
func TestAnAddressThatIsNoneLeadsOn(t *testing.T) {
	t.Parallel()
	w := setup(t)
	account := w.account("Acme", 0)
	owner := w.Joined("Ann", person.Grant{Role: person.Owner, AccountID: account})
	for i := range 51 {
		project, err := w.Commands.CreateProject(t.Context(), pagetest.Client(account), command.CreateProject{Name: fmt.Sprint("Shop ", i)})
		w.Shown(project.Position, err)
	}
	for path, want := range map[string]string{
		"/dashboard/projects?page=9": "/dashboard/projects?page=3", "/dashboard/projects?page=2": "",
		"/dashboard/jobs?page=3&status=pending": "/dashboard/jobs?status=pending", "/dashboard/jobs": "",
	} {
		if got := w.Call(owner, "GET", path, nil); got.Header.Get("Location") != want || got.Status != 200 && want == "" {
			t.Errorf("%s leads to %q: %d", path, got.Header.Get("Location"), got.Status)
		}
	}
	const browser = "text/html,application/xhtml+xml,*/*;q=0.8"
	for accept, want := range map[string]string{browser: "text/html; charset=utf-8", "*/*": "application/json", "": "application/json"} {
		got := w.Call(owner, "GET", "/nowhere", nil, "Accept", accept)
		if got.Status != 404 || got.Header.Get("Content-Type") != want || strings.Contains(got.Body, "Nothing here") != (accept == browser) {
			t.Errorf("for %s: %d %s", accept, got.Status, got.Header.Get("Content-Type"))
		}
	}
	if got := w.Call(owner, "GET", "/docs", nil, "Accept", browser); got.Status != 200 || !strings.Contains(got.Body, "<html") {
		t.Errorf("/docs: %d", got.Status)
	}
}

// The forms that cost credits show each error at its field, with the focus at the first one,
// and lose nothing: a test, a session with its roles, and the lists of a batch.
func TestARefusedSubmissionShowsEachErrorAtItsField(t *testing.T) {
	t.Parallel()
	w := setup(t)
	owner := w.Joined("Ann", person.Grant{Role: person.Owner, AccountID: w.account("Acme", 100)})
	long := func(n int) string { return strings.Repeat("x", n) }
	for path, c := range map[string]struct {
		form url.Values
		want []string
	}{
		"/dashboard/jobs": {
			url.Values{"url": {"nonsense"}, "device": {long(101)}, "item": {"It opens", long(1001)}, "severity": {"minor", "major"}},
			[]string{
				`id="url-refused">Address must`, `id="device-refused">Device must have at most 100 characters`,
				`id="item-2-refused">Item 2: check must have at most 1000 characters`, `>It opens</textarea>`, `<details class="more" open>`,
			},
		},
		"/dashboard/sessions": {
			url.Values{
				"url": {"chat.example.com"}, "brief": {long(2001)}, "checkers": {"3"}, "role": {"Caller", "Callee", long(101)},
				"browser": {"Firefox", long(101), ""},
			},
			[]string{
				`id="brief-refused">Scenario must have at most 2000 characters`, `id="role-3-refused">Role of checker 3 must have`,
				`id="browser-2-refused">Browser of checker 2 must have`, `value="Caller"`, `value="Firefox"`,
			},
		},
		"/dashboard/batches": {
			url.Values{
				"tests": {"shop.example.com/a Alpha\nshop.example.com/b Beta\nnonsense\nhttp://10.0.0.1/"}, "type": {"custom"}, "of": {"1-", "2-", "2-"},
				"item": {"It opens", "It closes", "It rings"}, "expected": {"", "", long(1001)}, "severity": {"minor", "minor", "minor"},
			},
			[]string{
				`<li>Test 3: the address must`, `<li>Test 4: this host is private or reserved. Enter a public address. `, `id="expected-2-2-refused">Test 2, item 2: expected result must have at most 1000 characters`,
				`>It opens</textarea>`, `>It closes</textarea>`,
			},
		},
	} {
		for _, to := range []string{path, path + "/preview"} {
			got := w.Call(owner, "POST", to, c.form)
			for _, want := range c.want {
				if got.Status != 422 || !strings.Contains(got.Body, want) {
					t.Errorf("%s: %d without %s", to, got.Status, want)
				}
			}
			if strings.Count(got.Body, `autofocus`) != 1 {
				t.Errorf("%s: %d fields have the focus", to, strings.Count(got.Body, `autofocus`))
			}
		}
	}
}
