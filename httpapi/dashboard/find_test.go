package dashboard_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"humanqa/domain/command"
	"humanqa/domain/job"
	"humanqa/domain/person"
	"humanqa/internal/testing/browsertest"
	"humanqa/internal/testing/pagetest"
)

// A test is found by its words and by filters, which the URL keeps; a row says what came
// of it.
func testATestIsFoundAgain(t *testing.T, w *world) {
	account, other := w.account("Acme", 100), w.account("Globex", 100)
	ann := w.Joined("Ann", person.Grant{Role: person.Viewer, AccountID: account})
	bob := w.Joined("Bob", person.Grant{Role: person.Viewer, AccountID: other})
	failed := w.completed(account, "Checkout with a voucher", "A purple spinner stays.", job.ItemFail, job.ItemPass, job.ItemPass)
	w.test(account, "Newsletter", func(in *command.SubmitJob) { in.Type = job.GeneralQA })
	list := func(g guest, query url.Values) string {
		t.Helper()
		got := w.Call(g, "GET", "/dashboard/jobs?"+query.Encode(), nil)
		if got.Status != 200 {
			t.Fatalf("%v: %d", query, got.Status)
		}
		return got.Body
	}
	const voucher, newsletter = ">Checkout with a voucher</a>", ">Newsletter</a>"
	for query, want := range map[string][2]bool{
		"q=purple": {true, false}, "q=news": {false, true}, "q=" + failed: {true, false}, "q=purple+news": {false, false},
		"verdict=fail": {true, false}, "kind=general_qa": {false, true}, "status=pending": {false, true}, "q=voucher&status=pending": {false, false},
		"from=2026-01-01": {true, true}, "until=2026-01-01": {false, false}, "from=soon": {true, true}, "kind=odd&verdict=odd&status=odd": {true, true},
		"q=%00%27%5C%22%3A*": {false, false}, "q=": {true, true},
	} {
		values, err := url.ParseQuery(query)
		w.Must(err)
		body := list(ann, values)
		if got := [2]bool{strings.Contains(body, voucher), strings.Contains(body, newsletter)}; got != want {
			t.Errorf("%s: the voucher and the newsletter are listed: %v, want %v", query, got, want)
		}
		if strings.Contains(query, "soon") != strings.Contains(body, "From must be a day such as 2026-03-29") {
			t.Errorf("%s: an error, or none", query)
		}
	}
	if body := list(ann, url.Values{"q": {"purple"}}); !strings.Contains(body, "1 of 3 failed</small>") || !strings.Contains(body, "Buy the cheapest plan with a test card.") {
		t.Error("a row does not say what was asked and what failed")
	}
	if body := list(bob, url.Values{"q": {"purple"}}); strings.Contains(body, voucher) {
		t.Error("another account finds the test")
	}
	if got := w.Call(ann, "GET", "/dashboard/jobs?q=voucher&page=7", nil); got.Header.Get("Location") != "/dashboard/jobs?q=voucher" {
		t.Errorf("a page beyond the end leads to %q", got.Header.Get("Location"))
	}
	kept := w.Call(ann, "POST", "/dashboard/views", url.Values{"name": {"Purple"}, "query": {"verdict=fail&q=purple&evil=1"}})
	if to := kept.Header.Get("Location"); to != "/dashboard/jobs?q=purple&verdict=fail" {
		t.Errorf("a view that is kept leads to %q", to)
	}

	// The palette leads there by the keyboard alone; it is a page, too.
	hits := func(g guest, words string) (hits []struct{ Kind, Text, Detail, Href string }) {
		t.Helper()
		got := w.Call(g, "GET", "/dashboard/find?q="+url.QueryEscape(words), nil, "Accept", "application/json")
		w.Must(json.Unmarshal([]byte(got.Body), &hits))
		return hits
	}
	if got := hits(ann, "voucher"); len(got) != 1 || got[0].Href != "/dashboard/jobs/"+failed || got[0].Detail != "Failed, 1 of 3 failed, shop.example.com" {
		t.Errorf("the palette finds %+v", got)
	}
	if got := hits(bob, "voucher"); len(got) != 0 {
		t.Errorf("another account's palette finds %+v", got)
	}
	if got := hits(ann, "key"); len(got) != 0 {
		t.Errorf("a viewer is led to %+v", got)
	}
	for words, want := range map[string]string{
		"invoice": "Statement", "bill": "Statement", "buy": "Credits", "price": "Credits", "stop": "Waiting tests", "cancel": "Waiting tests",
		"settings": "Projects", "screenshots": "", "help": "API documentation", "logout": "", "email": "Notifications",
	} {
		if got := hits(ann, words); want == "" && len(got) > 0 || want != "" && (len(got) == 0 || got[0].Text != want) {
			t.Errorf("%s leads a viewer to %+v, want %q", words, got, want)
		}
	}
	if got := w.Call(ann, "GET", "/dashboard/find?q=voucher", nil); !strings.Contains(got.Body, voucher) {
		t.Error("without scripts the palette finds nothing")
	}
	tab := w.Tab(ann)
	tab.Open(w.Origin + "/dashboard/credits")
	tab.PressCtrl("k")
	tab.Wait(`document.activeElement?.getAttribute('role') === 'combobox' && document.querySelectorAll('.hits [role=option]').length > 3`)
	tab.Press(browsertest.Down)
	tab.Wait(`document.getElementById(document.activeElement.getAttribute('aria-activedescendant'))?.getAttribute('aria-selected') === 'true'`)
	pagetest.OnEveryScreen(t, tab, "palette")
	tab.Fill(".palette input", "vouch")
	tab.Wait(`document.querySelector('.hits [aria-selected=true]')?.textContent.includes('voucher')`)
	tab.Press(browsertest.Enter)
	tab.Wait(`location.pathname === '/dashboard/jobs/` + failed + `' && document.querySelector('.palette') !== null`)
	tab.PressCtrl("k")
	tab.Wait(`document.querySelector('.palette').open`)
	tab.Press(browsertest.Escape)
	tab.Wait(`!document.querySelector('.palette').open`)
	if !browsertest.Eval[bool](tab, `document.querySelector('.palette input').value === ''`) {
		t.Error("the palette keeps what was typed")
	}
}

// An owner finds a member by name, and what the member did. Nobody else may see that.
func TestAnOwnerFindsAMemberByName(t *testing.T) {
	t.Parallel()
	w := setup(t)
	account := w.account("Acme", 100)
	in := func(role person.Role, accountID string) person.Grant {
		return person.Grant{Role: role, AccountID: accountID}
	}
	owner, dee := w.Joined("Olga Owner", in(person.Owner, account)), w.Joined("Dée Developer", in(person.Developer, account))
	w.Joined("Dora Elsewhere", in(person.Developer, w.account("Globex", 0)))
	left := w.Joined("Dan Developer", in(person.Developer, account))
	w.Shown(w.Commands.RevokeRole(t.Context(), pagetest.Operator(), left.ID, in(person.Developer, account)))
	people := func(g guest, words string) (found []string) {
		t.Helper()
		var hits []struct{ Kind, Text, Detail, Href string }
		got := w.Call(g, "GET", "/dashboard/find?q="+url.QueryEscape(words), nil, "Accept", "application/json")
		w.Must(json.Unmarshal([]byte(got.Body), &hits))
		for _, h := range hits {
			if h.Kind == "Person" {
				found = append(found, h.Text+", "+h.Detail+" "+h.Href)
			}
		}
		return found
	}
	place := "/dashboard/activity?by=person:" + dee.ID
	for _, words := range []string{"dée dev", "DEVELOPER", "De\u0301e"} {
		if got := people(owner, words); !slices.Equal(got, []string{"Dée Developer, developer " + place}) {
			t.Errorf("%q finds %q", words, got)
		}
	}
	for _, words := range []string{"dora", "dan", " ", "!", "developer olga"} {
		if got := people(owner, words); len(got) != 0 {
			t.Errorf("%q finds %q", words, got)
		}
	}
	if got := people(dee, "dée"); len(got) != 0 {
		t.Errorf("a developer finds %q", got)
	}
	says(t, w.Call(owner, "GET", "/dashboard/find?q=developer", nil).Body, `<a href="`+place+`">Dée Developer</a>`)
	if got := w.Call(owner, "GET", place, nil); got.Status != 200 || !strings.Contains(got.Body, "Dée Developer") {
		t.Errorf("the activity of the member: %d", got.Status)
	}
}

// A page that the palette does not know can be found by its links alone.
func TestThePaletteFindsEveryPageByItsAddress(t *testing.T) {
	t.Parallel()
	w := setup(t)
	owner := w.Joined("Ann", person.Grant{Role: person.Owner, AccountID: w.newAccount("Acme", 100, true)})
	for _, page := range w.Site.Pages {
		switch path := page.Pattern; {
		case page.Method != http.MethodGet || !strings.HasPrefix(path, "/dashboard/") || strings.Contains(path, "{"):
		case path == "/dashboard/find" || path == "/dashboard/notifications/news": // parts of every page
		case path == "/dashboard/jobs/chosen": // of a list's boxes
		default:
			word := path[strings.LastIndex(path, "/")+1:]
			if got := w.Call(owner, "GET", "/dashboard/find?q="+word, nil, "Accept", "application/json"); !strings.Contains(got.Body, `"href":"`+path+`"`) {
				t.Errorf("%q finds %s, not %s", word, got.Body, path)
			}
		}
	}
}
