package dashboard_test

import (
	"cmp"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"humanqa/domain"
	"humanqa/domain/command"
	"humanqa/domain/credits"
	"humanqa/domain/job"
	"humanqa/domain/person"
	"humanqa/httpapi/ui"
	"humanqa/internal/testing/pagetest"
)

// Every page of the table, asked for by everybody: the expected status, and never
// a word of another account.
func TestEveryPageKeepsPeopleApart(t *testing.T) {
	t.Parallel()
	w := own(t)
	ours, theirs := w.account("Acme", 500), w.account("Globex", 0)
	member := func(role person.Role, account string) guest {
		return w.Joined(string(role), person.Grant{Role: role, AccountID: account})
	}
	owner := member(person.Owner, ours)
	project, err := w.Commands.CreateProject(t.Context(), pagetest.Client(ours), command.CreateProject{Name: "Top secret project", WebhookURL: "https://hooks.example.com/x"})
	w.Shown(project.Position, err)
	jobID := w.completed(ours, "Top secret test", "Top secret note", job.ItemFail, job.ItemPass, job.ItemPass)
	tested, err := w.Commands.Job(t.Context(), jobID)
	w.Must(err)
	w.Contested(ours, tested.CheckerID, jobID, "Top secret objection")
	session, err := w.Commands.CreateSession(t.Context(), pagetest.Client(ours), command.NewSession{
		Test: command.HostedTest{Submission: job.Submission{URL: "https://chat.example.com", Source: "session"}, Host: "chat.example.com"}, Slots: []command.NewSlot{{}, {}},
	})
	w.Shown(session.Position, err)
	batchID, _ := w.batch(ours, "Top secret one", "Top secret two")
	loopID, _ := w.looped(ours, "secret.example.com", "top-secret-skill", 1)
	hook := w.tested(ours, project.ProjectID)
	ids := map[string]string{"deliveries": hook, "batches": batchID, "loops": loopID, "jobs": jobID, "projects": project.ProjectID, "sessions": session.SessionID}
	fill := func(pattern string) string {
		kind := strings.Split(pattern, "/")[min(2, strings.Count(pattern, "/"))]
		path := strings.NewReplacer("{id}", ids[kind], "{format}", "md", "{evidence}", "none", "{recording}", "none", "{person}", "nobody", "{question}", "none", "{token}", "guess", "{$}", "").Replace(pattern)
		return path
	}
	// What a page answers to whom it is for: 200 unless it is here. Each form is
	// sent empty, so what a page says of that counts as let in.
	letIn := map[string]int{
		"GET /dashboard/jobs/{id}/evidence/{evidence}": 404,

		"GET /dashboard/jobs/{id}/recordings/{recording}":       404,
		"GET /dashboard/jobs/{id}/recordings/{recording}/marks": 404,

		"GET /dashboard/projects/{id}/webhook/secret":    200,
		"GET /dashboard/sandbox":                         404, // the account is none
		"POST /dashboard/sandbox/clock":                  403,
		"POST /dashboard/jobs/{id}/play":                 403,
		"POST /dashboard/jobs/{id}/expire":               403,
		"POST /dashboard/sessions/{id}/ready":            403,
		"POST /dashboard/loops/{id}/end":                 303,
		"POST /dashboard/notices/seen":                   422,
		"POST /dashboard/refused/test":                   409, // nothing was refused
		"POST /dashboard/notifications":                  422,
		"POST /dashboard/notifications/link":             303,
		"POST /dashboard/views":                          422,
		"POST /dashboard/views/drop":                     404,
		"POST /dashboard/account":                        404,
		"POST /dashboard/jobs":                           422,
		"POST /dashboard/jobs/{id}/cancel":               409,
		"POST /dashboard/jobs/{id}/rating":               422,
		"POST /dashboard/jobs/{id}/questions/{question}": 422,
		"POST /dashboard/jobs/{id}/disputes":             422,
		"POST /dashboard/jobs/{id}/share":                422,
		"POST /dashboard/jobs/{id}/share/end":            404,
		"POST /dashboard/projects":                       422,
		"POST /dashboard/projects/{id}":                  422,
		"POST /dashboard/keys":                           422,
		"POST /dashboard/credits/low":                    422,
		"POST /dashboard/keys/revoke":                    404,
		"POST /dashboard/device":                         404,
		"POST /dashboard/readers/forget":                 404,
		"POST /dashboard/evidence":                       200,
		"POST /dashboard/evidence/save":                  303,
		"POST /dashboard/evidence/hold":                  422,
		"POST /dashboard/evidence/release":               422,
		"POST /dashboard/members":                        422,
		"POST /dashboard/members/{person}":               404,
		"POST /dashboard/members/{person}/link":          404,
		"POST /account/sessions/end":                     404,
		"POST /account/name":                             422,
		"POST /account/password":                         422,
		"POST /account/passkeys":                         422,
		"POST /account/passkeys/name":                    422,
		"POST /account/passkeys/remove":                  404,
		"POST /signin/confirm":                           401,
		"POST /signin/confirm/resend":                    409,
		"POST /signin/confirm/passkey":                   401,
		"POST /signin/confirm/passkey/ask":               200,
		"POST /account/sessions/end-others":              303,
		"POST /dashboard/jobs/{id}/retest":               303,
		"POST /dashboard/jobs/{id}/fixed":                303,
		"POST /dashboard/projects/{id}/webhook/enable":   303,
		"POST /dashboard/projects/{id}/webhook":          303,
		"POST /dashboard/projects/{id}/webhook/test":     303,
		"POST /dashboard/projects/{id}/webhook/replay":   303,
		"POST /dashboard/projects/{id}/webhook/drop":     303,
		"POST /dashboard/projects/{id}/webhook/finish":   303,

		"POST /dashboard/projects/{id}/webhook/headers":        422,
		"POST /dashboard/projects/{id}/webhook/headers/remove": 422,
		"POST /dashboard/projects/{id}/chat":                   422,
		"POST /dashboard/projects/{id}/chat/test":              409, // there is none
		"POST /dashboard/projects/{id}/hook/try":               422,
		"POST /dashboard/projects/{id}/hook/signature":         422,
		"POST /dashboard/deliveries/{id}/redeliver":            303,
		"POST /dashboard/jobs/preview":                         422,
		"POST /dashboard/jobs/draft":                           303,
		"POST /dashboard/sessions":                             422,
		"POST /dashboard/sessions/preview":                     422,
		"POST /dashboard/sessions/draft":                       303,
		"POST /dashboard/batches":                              422,
		"GET /dashboard/jobs/chosen":                           409, // none is
		"POST /dashboard/jobs/cancel":                          409,
		"POST /dashboard/jobs/retest":                          409,
		"POST /dashboard/projects/archive":                     409,
		"POST /dashboard/projects/{id}/archive":                303,
		"POST /dashboard/projects/{id}/restore":                303,
		"POST /dashboard/batches/{id}/cancel":                  303,
		"POST /dashboard/batches/{id}/retest":                  303,
		"POST /dashboard/batches/preview":                      422,
		"POST /dashboard/batches/draft":                        303,
	}
	rank := map[string]int{"viewer": 1, "developer": 2, "owner": 3}
	need := map[ui.Audience]int{ui.Viewers: 1, ui.Developers: 2, ui.Owners: 3}
	var table []ui.Page
	for _, page := range w.Site.Pages {
		if page.For != ui.Anybody {
			table = append(table, page)
		}
	}
	w.Apart(pagetest.Apart{
		Pages: table, Path: fill,
		Askers: []pagetest.Asker{
			{Name: "other", Guest: member(person.Owner, theirs)}, {Name: "viewer", Guest: member(person.Viewer, ours)},
			{Name: "developer", Guest: member(person.Developer, ours)}, {Name: "owner", Guest: owner},
			{Name: "checker", Guest: w.Joined("checker", person.Grant{Role: person.Checker, CheckerID: w.Checker("ann")})},
			{Name: "operator", Guest: w.Joined("operator", person.Grant{Role: person.Operator})},
		},
		Wants: func(page ui.Page, who string) []int {
			switch {
			case page.For == ui.SignedIn:
			case who == "checker" || who == "operator" || who == "other" && strings.Contains(page.Pattern, "{id}"):
				return []int{404}
			case who == "other": // their own page
			case rank[who] < need[page.For]:
				return []int{403}
			}
			return []int{cmp.Or(letIn[page.Method+" "+page.Pattern], 200)}
		},
		Hides: func(_ ui.Page, who string) []string {
			if rank[who] > 0 {
				return nil
			}
			return []string{"Top secret", "Acme", ours}
		},
	})
	for _, begins := range []string{"/dashboard/", "/account/"} {
		w.KeepsForms(owner, begins, fill, func(p ui.Page) int { return cmp.Or(letIn[p.Method+" "+p.Pattern], 200) })
	}
	for _, begins := range []string{"/dashboard/", "/shared/", "/join/"} {
		w.HostileIDs(owner, begins, fill, "")
	}
	for _, begins := range []string{"/dashboard/", "/account/", "/join/", "/signin/confirm"} {
		w.HostileForms(member(person.Owner, ours), begins, fill, "")
	}
	w.HostileForms(guest{}, "/signin", fill, "")
}

// A form of another site changes nothing, whoever's browser sends it; a cookie
// means nothing to the API, a key nothing to the pages.
func TestNothingCrosses(t *testing.T) {
	t.Parallel()
	w := setup(t)
	account := w.account("Acme", 100)
	owner := w.Joined("Ann", person.Grant{Role: person.Owner, AccountID: account})
	for _, page := range w.Site.Pages {
		if page.Method != http.MethodPost {
			continue
		}
		path := strings.NewReplacer("{id}", "x", "{person}", "x", "{token}", "x").Replace(page.Pattern)
		for _, headers := range [][]string{{"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Site", "same-site"}, {"Sec-Fetch-Site", "", "Origin", "https://evil.example"}} {
			if got := w.Call(owner, "POST", path, url.Values{}, headers...); got.Status != 403 {
				t.Errorf("%s with %v: %d", path, headers, got.Status)
			}
		}
	}
	if got := w.Call(owner, "GET", "/v1/jobs", nil); got.Status != 401 {
		t.Errorf("a cookie opens the API: %d", got.Status)
	}
	key, err := w.Commands.IssueKey(t.Context(), pagetest.Operator(), account, command.IssueKey{Scope: "full"})
	w.Shown(key.Position, err)
	if got := w.Call(guest{}, "GET", "/dashboard", nil, "Authorization", "Bearer "+key.Token); got.Status != 303 {
		t.Errorf("a key opens the pages: %d", got.Status)
	}
}

// Over plain HTTP a browser tells no more than its origin.
func TestAProxyMayPassAnotherHostOnWithAForm(t *testing.T) {
	t.Parallel()
	w := setup(t)
	for origin, status := range map[string]int{w.Origin: http.StatusUnauthorized, "http://evil.example": http.StatusForbidden} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://upstream:8080/signin", strings.NewReader("login=ann&password=not+hers"))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Origin", origin)
		got := httptest.NewRecorder()
		if w.Site.ServeHTTP(got, r); got.Code != status {
			t.Errorf("a form of %s: %d, want %d", origin, got.Code, status)
		}
	}
}

func TestAFormSentTwiceIsOneTest(t *testing.T) {
	t.Parallel()
	w := setup(t)
	account := w.account("Acme", 100)
	dev := w.Joined("Ann", person.Grant{Role: person.Developer, AccountID: account})
	page := w.Call(dev, "GET", "/dashboard/jobs/new", nil)
	found := regexp.MustCompile(`name="command" value="([0-9a-f-]{36})"`).FindStringSubmatch(page.Body)
	if found == nil {
		t.Fatal("the form is no command")
	}
	form := url.Values{"command": {found[1]}, "url": {"https://shop.example.com"}, "feature": {"Buy"}, "priority": {"normal"}}
	first, second := w.Call(dev, "POST", "/dashboard/jobs", form), w.Call(dev, "POST", "/dashboard/jobs", form)
	if first.Status != 303 || first.Header.Get("Location") != second.Header.Get("Location") {
		t.Errorf("%d %s, then %d %s", first.Status, first.Header.Get("Location"), second.Status, second.Header.Get("Location"))
	}
	form.Set("command", uuid.NewString())
	if third := w.Call(dev, "POST", "/dashboard/jobs", form); third.Header.Get("Location") == first.Header.Get("Location") {
		t.Error("another form is the same test")
	}
	balance := w.Call(dev, "GET", "/dashboard/credits", nil)
	if !strings.Contains(balance.Body, "3 entries add up to 90") {
		t.Error("two tests did not cost ten credits")
	}
	month := time.Now().UTC()
	for at, want := range map[string][]string{
		"":                                  {`<td data-label="Balance" class="right num nowrap">0</td>`, `<td data-label="By" class="nowrap">Ann</td>`, "It adds up", "Closing balance</td>", ">90</td>", "+90"},
		"?month=" + month.Format("2006-01"): {">90</td>"},
		"?month=" + month.AddDate(0, 0, -month.Day()).Format("2006-01"): {">0</td>", "It adds up", "Next month"},
	} {
		got := w.Call(dev, "GET", "/dashboard/credits/statement"+at, nil)
		for _, text := range want {
			if got.Status != 200 || !strings.Contains(got.Body, text) {
				t.Errorf("statement%s: %d without %q:\n%s", at, got.Status, text, got.Body)
			}
		}
	}
	for _, at := range []string{"november", "2026-13", "9999-01", "0001-01", "2026-11-01"} {
		if got := w.Call(dev, "GET", "/dashboard/credits/statement?month="+at, nil); got.Status != 404 {
			t.Errorf("the statement of %s: %d", at, got.Status)
		}
	}
}

// A month with many entries has pages, each of which adds up.
func TestALongStatementHasPages(t *testing.T) {
	t.Parallel()
	w := setup(t)
	account := w.account("Acme", 1)
	owner := w.Joined("Ann", person.Grant{Role: person.Owner, AccountID: account})
	w.grants(account, 300, 0)
	first := w.Call(owner, "GET", "/dashboard/credits/statement", nil)
	next := regexp.MustCompile(`href="(/dashboard/credits/statement\?month=[0-9-]+)&amp;from=([0-9]+)"`).FindStringSubmatch(first.Body)
	if next == nil || next[2] != "200" || !strings.Contains(first.Body, "It adds up") || strings.Contains(first.Body, "Closing balance</td>") || strings.Contains(first.Body, "grant 200.") {
		t.Fatalf("the first page: %v", next)
	}
	second := w.Call(owner, "GET", next[1]+"&from="+next[2], nil)
	for _, want := range []string{"It adds up", ">301</td>", "grant 200.", "grant 300.", "Balance before", ">200</td>", "From the beginning", "Earlier entries", "The month and its times are UTC.", "from=0\"", "<dd>+301</dd>"} {
		if !strings.Contains(second.Body, want) {
			t.Errorf("the second page is without %q", want)
		}
	}
	// The whole month comes as it is read, and adds up at its end.
	whole := w.Call(owner, "GET", next[1]+"&whole=1", nil)
	for want, times := range map[string]int{"It adds up": 1, "Opening balance</td>": 1, "<td>Closing balance": 1, "<tr>": 303 + 1, "grant 1.<": 1, "grant 200.<": 1, "grant 300.<": 1, "</html>": 1} {
		if got := strings.Count(whole.Body, want); whole.Status != 200 || got != times {
			t.Errorf("the whole month has %q %d times, not %d", want, got, times)
		}
	}
	for _, from := range []string{"301", "-1", "x"} {
		if got := w.Call(owner, "GET", next[1]+"&from="+from, nil); got.Status != 404 {
			t.Errorf("from %s: %d", from, got.Status)
		}
	}
	ledger := w.Call(owner, "GET", "/dashboard/credits?page=2", nil)
	if !strings.Contains(ledger.Body, "50 entries add up from 201 to 251") {
		t.Error("the second page of the ledger does not add up")
	}
}

// grants writes as many grants of one credit, with balances that leap by so much at revision 200.
func (w *world) grants(accountID string, count int, leap domain.Credits) {
	w.T.Helper()
	grants := make([]domain.NewEvent, count)
	for i := range grants {
		e := &credits.Granted{LotID: fmt.Sprint("l", i), Amount: 1, BalanceAfter: domain.Credits(i + 2), Reason: fmt.Sprintf("grant %d.", i+1)}
		if i+1 >= 200 {
			e.BalanceAfter += leap
		}
		grants[i] = domain.NewEvent{ID: uuid.New(), Meta: domain.Metadata{Time: time.Now(), Actor: "operator"}, Event: e}
	}
	written, err := w.Log.Append(w.T.Context(), domain.CreditsStream(accountID), 0, grants)
	w.Shown(written.Position, err)
}

// A balance that does not follow from that of the page before is seen.
func TestABreakBetweenTwoPagesIsSeen(t *testing.T) {
	t.Parallel()
	w := setup(t)
	account := w.account("Acme", 1)
	owner := w.Joined("Ann", person.Grant{Role: person.Owner, AccountID: account})
	w.grants(account, 249, 7)
	for path, want := range map[string]string{
		"/dashboard/credits":                    "These entries do not add up",
		"/dashboard/credits?page=2":             "50 entries add up from 150 to 200",
		"/dashboard/credits/statement":          "It adds up",
		"/dashboard/credits/statement?from=200": "It does not add up",
		"/dashboard/credits/statement?whole=1":  "It does not add up",
	} {
		if got := w.Call(owner, "GET", path, nil); got.Status != 200 || !strings.Contains(got.Body, want) {
			t.Errorf("%s: %d without %q", path, got.Status, want)
		}
	}
}

// The limit below which credits are low is the owner's; the overview keeps to it.
func TestTheOwnerSaysWhenCreditsAreLow(t *testing.T) {
	t.Parallel()
	w := setup(t)
	account := w.account("Acme", 90)
	owner := w.Joined("Ann", person.Grant{Role: person.Owner, AccountID: account})
	dev := w.Joined("Dee", person.Grant{Role: person.Developer, AccountID: account})
	if got := w.Call(dev, "POST", "/dashboard/jobs", url.Values{"url": {"https://shop.example.com"}, "feature": {"Buy"}}); got.Status != 303 {
		t.Fatalf("a test: %d", got.Status) // without any the overview only welcomes
	}
	set := func(who guest, below string) int {
		return w.Call(who, "POST", "/dashboard/credits/low", url.Values{"below": {below}}).Status
	}
	if status := set(dev, "95"); status != 403 {
		t.Errorf("a developer sets it: %d", status)
	}
	for _, none := range []string{"", "-1", "1000001", "many"} {
		if got := w.Call(owner, "POST", "/dashboard/credits/low", url.Values{"below": {none}}); got.Status != 422 || !strings.Contains(got.Body, "must be a number from 0 to 1000000") {
			t.Errorf("a limit of %q: %d", none, got.Status)
		}
	}
	for _, c := range []struct {
		below string
		says  bool
	}{{"85", false}, {"86", true}, {"0", false}} {
		if status := set(owner, c.below); status != 303 {
			t.Fatalf("a limit of %s: %d", c.below, status)
		}
		if got := w.Call(dev, "GET", "/dashboard", nil); strings.Contains(got.Body, "85 credits left") != c.says {
			t.Errorf("with a limit of %s the overview says that credits are low: %t\n%s", c.below, !c.says, got.Body)
		}
	}
	if got := w.Call(dev, "GET", "/dashboard/credits", nil); !strings.Contains(got.Body, "The warning is off") || strings.Contains(got.Body, "/credits/low") {
		t.Errorf("what a developer is shown: %s", got.Body)
	}
}

func TestRefusedFormsSayWhatToMend(t *testing.T) {
	t.Parallel()
	w := setup(t)
	poor := w.Joined("Ann", person.Grant{Role: person.Owner, AccountID: w.account("Acme", 4)})
	got := w.Call(poor, "POST", "/dashboard/jobs", url.Values{"url": {"http://10.0.0.1/x"}, "feature": {"<b>typed</b>"}})
	if got.Status != 422 || !strings.Contains(got.Body, `id="url-refused">This host is private or reserved. Enter a public address. A private host can be tested in a sandbox account, `) || !strings.Contains(got.Body, "&lt;b&gt;typed&lt;/b&gt;") || !strings.Contains(got.Body, "http://10.0.0.1/x") {
		t.Errorf("a private address: %d", got.Status)
	}
	got = w.Call(poor, "POST", "/dashboard/jobs", url.Values{"url": {"https://shop.example.com"}})
	if got.Status != 402 || !strings.Contains(got.Body, "Nothing was charged") {
		t.Errorf("too few credits: %d", got.Status)
	}
	got = w.Call(poor, "GET", "/dashboard/jobs?page=0&status=nonsense&project=x%00", nil)
	if got.Status != 200 {
		t.Errorf("nonsense in a query: %d", got.Status)
	}
	if got = w.Call(poor, "GET", "/dashboard/jobs/%00", nil); got.Status != 404 {
		t.Errorf("nonsense in a path: %d", got.Status)
	}
}

func TestASuspendedAccountIsReadOnly(t *testing.T) {
	t.Parallel()
	w := setup(t)
	account := w.account("Acme", 100)
	owner := w.Joined("Ann", person.Grant{Role: person.Owner, AccountID: account})
	id := w.test(account, "Waits", nil)
	w.Shown(w.Commands.SuspendAccount(t.Context(), pagetest.Operator(), account))
	if got := w.Call(owner, "GET", "/dashboard/jobs/"+id, nil); got.Status != 200 || !strings.Contains(got.Body, "Acme is suspended") || strings.Contains(got.Body, "/cancel") {
		t.Errorf("a test of a suspended account: %d", got.Status)
	}
	for _, path := range []string{"/dashboard/jobs", "/dashboard/jobs/" + id + "/cancel", "/dashboard/jobs/" + id + "/retest", "/dashboard/projects", "/dashboard/members"} {
		form := url.Values{"url": {"https://shop.example.com"}, "name": {"x"}, "role": {"owner"}}
		if got := w.Call(owner, "POST", path, form); got.Status != 403 {
			t.Errorf("%s: %d", path, got.Status)
		}
	}
}

// Each public page says what it is, and the API's reference leads back to the front page.
func TestEachPublicPageDescribesItself(t *testing.T) {
	t.Parallel()
	w := setup(t)
	for path, back := range map[string]string{"/": `<section class="card" id="sample"`, "/signin": "", "/docs": `href="./">Back`, "/docs/jobs": `href="../">Back`} {
		got := w.Call(guest{}, "GET", path, nil, "Accept", "text/html")
		if got.Status != 200 || strings.Count(got.Body, `<meta name="description" content="`) != 1 || !strings.Contains(got.Body, back) {
			t.Errorf("%s: %d without a description, or without a way back", path, got.Status)
		}
	}
}
