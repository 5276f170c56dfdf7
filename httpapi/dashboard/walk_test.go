package dashboard_test

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"humanqa/domain/command"
	"humanqa/domain/job"
	"humanqa/domain/person"
	"humanqa/httpapi/ui"
)

// Every page of the table, asked for by everybody: the expected status, and never
// a word of another account.
func TestEveryPageKeepsPeopleApart(t *testing.T) {
	t.Parallel()
	w := setup(t)
	ours, theirs := w.account("Acme", 500), w.account("Globex", 0)
	member := func(role person.Role, account string) guest {
		return w.joined(string(role), person.Grant{Role: role, AccountID: account})
	}
	guests := map[string]guest{
		"nobody": {}, "other": member(person.Owner, theirs),
		"viewer": member(person.Viewer, ours), "developer": member(person.Developer, ours), "owner": member(person.Owner, ours),
		"checker":  w.joined("checker", person.Grant{Role: person.Checker, CheckerID: w.checker()}),
		"operator": w.joined("operator", person.Grant{Role: person.Operator}),
	}
	project, err := w.commands.CreateProject(t.Context(), cause(ours), command.CreateProject{Name: "Top secret project", WebhookURL: "https://hooks.example.com/x"})
	w.shown(project.Position, err)
	jobID := w.completed(ours, "Top secret test", "Top secret note", job.ItemFail, job.ItemPass, job.ItemPass)
	session, err := w.commands.CreateSession(t.Context(), cause(ours), command.NewSession{
		Test: command.HostedTest{Submission: job.Submission{URL: "https://chat.example.com", Source: "session"}, Host: "chat.example.com"}, Slots: []command.NewSlot{{}, {}},
	})
	w.shown(session.Position, err)
	batchID, _ := w.batch(ours, "Top secret one", "Top secret two")
	loopID, _ := w.looped(ours, "secret.example.com", "top-secret-skill", 1)
	hook := w.tested(ours, project.ProjectID)
	ids := map[string]string{"deliveries": hook, "batches": batchID, "loops": loopID, "jobs": jobID, "projects": project.ProjectID, "sessions": session.SessionID}
	fill := func(pattern string) string {
		kind := strings.Split(pattern, "/")[min(2, strings.Count(pattern, "/"))]
		path := strings.NewReplacer("{id}", ids[kind], "{format}", "md", "{evidence}", "none", "{recording}", "none", "{person}", "nobody", "{token}", "guess", "{$}", "").Replace(pattern)
		return path
	}
	// What a page answers to whom it is for: 200 unless it is here. Each form is
	// sent empty, so what a page says of that counts as let in.
	letIn := map[string][]int{
		"GET /dashboard/jobs/{id}/evidence/{evidence}": {404},

		"GET /dashboard/jobs/{id}/recordings/{recording}":       {404},
		"GET /dashboard/jobs/{id}/recordings/{recording}/marks": {404},

		"GET /dashboard/projects/{id}/webhook/secret":  {200},
		"GET /dashboard/sandbox":                       {404}, // the account is none
		"POST /dashboard/sandbox/clock":                {403},
		"POST /dashboard/jobs/{id}/play":               {403},
		"POST /dashboard/jobs/{id}/expire":             {403},
		"POST /dashboard/sessions/{id}/ready":          {403},
		"POST /dashboard/loops/{id}/end":               {303},
		"POST /dashboard/notices/seen":                 {422},
		"POST /dashboard/views":                        {422},
		"POST /dashboard/views/drop":                   {404},
		"POST /dashboard/account":                      {404},
		"POST /dashboard/jobs":                         {422},
		"POST /dashboard/jobs/{id}/cancel":             {409},
		"POST /dashboard/jobs/{id}/rating":             {422},
		"POST /dashboard/jobs/{id}/share":              {422},
		"POST /dashboard/jobs/{id}/share/end":          {404},
		"POST /dashboard/projects":                     {422},
		"POST /dashboard/projects/{id}":                {422},
		"POST /dashboard/keys":                         {422},
		"POST /dashboard/credits/low":                  {422},
		"POST /dashboard/keys/revoke":                  {404},
		"POST /dashboard/members":                      {422},
		"POST /dashboard/members/{person}":             {404},
		"POST /dashboard/members/{person}/link":        {404},
		"POST /account/sessions/end":                   {404},
		"POST /signin/confirm":                         {401},
		"POST /signin/confirm/passkey":                 {401},
		"POST /signin/confirm/passkey/ask":             {200},
		"POST /account/sessions/end-others":            {303},
		"POST /dashboard/jobs/{id}/retest":             {303},
		"POST /dashboard/jobs/{id}/fixed":              {303},
		"POST /dashboard/projects/{id}/webhook/enable": {303},
		"POST /dashboard/projects/{id}/webhook":        {303},
		"POST /dashboard/projects/{id}/webhook/test":   {303},
		"POST /dashboard/projects/{id}/webhook/replay": {303},
		"POST /dashboard/projects/{id}/webhook/drop":   {303},
		"POST /dashboard/projects/{id}/webhook/finish": {303},
		"POST /dashboard/deliveries/{id}/redeliver":    {303},
	}
	rank := map[string]int{"viewer": 1, "developer": 2, "owner": 3}
	need := map[ui.Audience]int{ui.Viewers: 1, ui.Developers: 2, ui.Owners: 3}
	for _, page := range w.site.Table() {
		if page.For == ui.Anybody {
			continue
		}
		name := page.Method + " " + page.Pattern
		for who, g := range guests {
			var form url.Values
			if page.Method == http.MethodPost {
				form = url.Values{}
			}
			got := w.call(g, page.Method, fill(page.Pattern), form)
			want := letIn[name]
			if want == nil {
				want = []int{200}
			}
			switch {
			case who == "nobody":
				want = []int{303}
				if to := got.header.Get("Location"); !strings.HasPrefix(to, "/signin?next=") {
					t.Errorf("%s: nobody is led to %q", name, to)
				}
			case page.For == ui.SignedIn:
			case who == "checker" || who == "operator":
				want = []int{404}
			case who == "other" && strings.Contains(page.Pattern, "{id}"):
				want = []int{404}
			case who == "other": // their own page
			case rank[who] < need[page.For]:
				want = []int{403}
			}
			if got.status != want[0] {
				t.Errorf("%s as %s: %d, want %d", name, who, got.status, want[0])
			}
			if who != "viewer" && who != "developer" && who != "owner" &&
				(strings.Contains(got.body, "Top secret") || strings.Contains(got.body, "Acme") || strings.Contains(got.body, ours)) {
				t.Errorf("%s as %s tells of the account", name, who)
			}
			policy := got.header.Get("Content-Security-Policy")
			if !strings.Contains(policy, "require-trusted-types-for 'script'") || !strings.Contains(policy, "default-src 'none'") {
				t.Errorf("%s: the policy is %q", name, policy)
			}
			if got.header.Get("Cache-Control") == "" || got.header.Get("X-Content-Type-Options") != "nosniff" {
				t.Errorf("%s: headers %v", name, got.header)
			}
		}
	}
}

// A form of another site changes nothing, whoever's browser sends it; a cookie
// means nothing to the API, a key nothing to the pages.
func TestNothingCrosses(t *testing.T) {
	t.Parallel()
	w := setup(t)
	account := w.account("Acme", 100)
	owner := w.joined("Ann", person.Grant{Role: person.Owner, AccountID: account})
	for _, page := range w.site.Table() {
		if page.Method != http.MethodPost {
			continue
		}
		path := strings.NewReplacer("{id}", "x", "{person}", "x", "{token}", "x").Replace(page.Pattern)
		for _, headers := range [][]string{{"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Site", "same-site"}, {"Sec-Fetch-Site", "", "Origin", "https://evil.example"}} {
			if got := w.call(owner, "POST", path, url.Values{}, headers...); got.status != 403 {
				t.Errorf("%s with %v: %d", path, headers, got.status)
			}
		}
	}
	if got := w.call(owner, "GET", "/v1/jobs", nil); got.status != 401 {
		t.Errorf("a cookie opens the API: %d", got.status)
	}
	key, err := w.commands.IssueKey(t.Context(), operator(), account, command.IssueKey{Scope: "full"})
	w.shown(key.Position, err)
	if got := w.call(guest{}, "GET", "/dashboard", nil, "Authorization", "Bearer "+key.Token); got.status != 303 {
		t.Errorf("a key opens the pages: %d", got.status)
	}
}

func TestAFormSentTwiceIsOneTest(t *testing.T) {
	t.Parallel()
	w := setup(t)
	account := w.account("Acme", 100)
	dev := w.joined("Ann", person.Grant{Role: person.Developer, AccountID: account})
	page := w.call(dev, "GET", "/dashboard/jobs/new", nil)
	found := regexp.MustCompile(`name="command" value="([0-9a-f-]{36})"`).FindStringSubmatch(page.body)
	if found == nil {
		t.Fatal("the form is no command")
	}
	form := url.Values{"command": {found[1]}, "url": {"https://shop.example.com"}, "feature": {"Buy"}, "priority": {"normal"}}
	first, second := w.call(dev, "POST", "/dashboard/jobs", form), w.call(dev, "POST", "/dashboard/jobs", form)
	if first.status != 303 || first.header.Get("Location") != second.header.Get("Location") {
		t.Errorf("%d %s, then %d %s", first.status, first.header.Get("Location"), second.status, second.header.Get("Location"))
	}
	form.Set("command", "00000000-0000-4000-8000-000000000000")
	if third := w.call(dev, "POST", "/dashboard/jobs", form); third.header.Get("Location") == first.header.Get("Location") {
		t.Error("another form is the same test")
	}
	credits := w.call(dev, "GET", "/dashboard/credits", nil)
	if !strings.Contains(credits.body, "3 entries add up to 90") {
		t.Error("two tests did not cost ten credits")
	}
	month := time.Now().UTC()
	for at, want := range map[string][]string{
		"":                                  {"<td class=\"right num nowrap\">0</td>", "<td class=\"nowrap\">Ann</td>", "It adds up", "<strong>90</strong>", "+90"},
		"?month=" + month.Format("2006-01"): {"<strong>90</strong>"},
		"?month=" + month.AddDate(0, 0, -month.Day()).Format("2006-01"): {"<strong>0</strong>", "It adds up", "Month after"},
	} {
		got := w.call(dev, "GET", "/dashboard/credits/statement"+at, nil)
		for _, text := range want {
			if got.status != 200 || !strings.Contains(got.body, text) {
				t.Errorf("statement%s: %d without %q:\n%s", at, got.status, text, got.body)
			}
		}
	}
	for _, at := range []string{"november", "2026-13", "9999-01", "0001-01", "2026-11-01"} {
		if got := w.call(dev, "GET", "/dashboard/credits/statement?month="+at, nil); got.status != 404 {
			t.Errorf("the statement of %s: %d", at, got.status)
		}
	}
}

// The limit below which credits are low is the owner's; the overview keeps to it.
func TestTheOwnerSaysWhenCreditsAreLow(t *testing.T) {
	t.Parallel()
	w := setup(t)
	account := w.account("Acme", 90)
	owner := w.joined("Ann", person.Grant{Role: person.Owner, AccountID: account})
	dev := w.joined("Dee", person.Grant{Role: person.Developer, AccountID: account})
	if got := w.call(dev, "POST", "/dashboard/jobs", url.Values{"url": {"https://shop.example.com"}, "feature": {"Buy"}}); got.status != 303 {
		t.Fatalf("a test: %d", got.status) // without any the overview only welcomes
	}
	set := func(who guest, below string) int {
		return w.call(who, "POST", "/dashboard/credits/low", url.Values{"below": {below}}).status
	}
	if status := set(dev, "95"); status != 403 {
		t.Errorf("a developer sets it: %d", status)
	}
	for _, none := range []string{"", "-1", "1000001", "many"} {
		if got := w.call(owner, "POST", "/dashboard/credits/low", url.Values{"below": {none}}); got.status != 422 || !strings.Contains(got.body, "must be a number from 0 to 1000000") {
			t.Errorf("a limit of %q: %d", none, got.status)
		}
	}
	for _, c := range []struct {
		below string
		says  bool
	}{{"85", false}, {"86", true}, {"0", false}} {
		if status := set(owner, c.below); status != 303 {
			t.Fatalf("a limit of %s: %d", c.below, status)
		}
		if got := w.call(dev, "GET", "/dashboard", nil); strings.Contains(got.body, "85 credits left") != c.says {
			t.Errorf("with a limit of %s the overview says that credits are low: %t\n%s", c.below, !c.says, got.body)
		}
	}
	if got := w.call(dev, "GET", "/dashboard/credits", nil); !strings.Contains(got.body, "Nobody is told") || strings.Contains(got.body, "/credits/low") {
		t.Errorf("what a developer is shown: %s", got.body)
	}
}

func TestRefusedFormsSayWhatToMend(t *testing.T) {
	t.Parallel()
	w := setup(t)
	poor := w.joined("Ann", person.Grant{Role: person.Owner, AccountID: w.account("Acme", 4)})
	got := w.call(poor, "POST", "/dashboard/jobs", url.Values{"url": {"http://10.0.0.1/x"}, "feature": {"<b>typed</b>"}})
	if got.status != 422 || !strings.Contains(got.body, "The address") || !strings.Contains(got.body, "&lt;b&gt;typed&lt;/b&gt;") || !strings.Contains(got.body, "http://10.0.0.1/x") {
		t.Errorf("a private address: %d", got.status)
	}
	got = w.call(poor, "POST", "/dashboard/jobs", url.Values{"url": {"https://shop.example.com"}})
	if got.status != 402 || !strings.Contains(got.body, "Nothing was charged") {
		t.Errorf("too few credits: %d", got.status)
	}
	got = w.call(poor, "GET", "/dashboard/jobs?page=0&status=nonsense&project=x%00", nil)
	if got.status != 200 {
		t.Errorf("nonsense in a query: %d", got.status)
	}
	if got = w.call(poor, "GET", "/dashboard/jobs/%00", nil); got.status != 404 {
		t.Errorf("nonsense in a path: %d", got.status)
	}
}

func TestASuspendedAccountIsReadOnly(t *testing.T) {
	t.Parallel()
	w := setup(t)
	account := w.account("Acme", 100)
	owner := w.joined("Ann", person.Grant{Role: person.Owner, AccountID: account})
	id := w.test(account, "Waits", nil)
	w.shown(w.commands.SuspendAccount(t.Context(), operator(), account))
	if got := w.call(owner, "GET", "/dashboard/jobs/"+id, nil); got.status != 200 || !strings.Contains(got.body, "Acme is suspended") || strings.Contains(got.body, "/cancel") {
		t.Errorf("a test of a suspended account: %d", got.status)
	}
	for _, path := range []string{"/dashboard/jobs", "/dashboard/jobs/" + id + "/cancel", "/dashboard/jobs/" + id + "/retest", "/dashboard/projects", "/dashboard/members"} {
		form := url.Values{"url": {"https://shop.example.com"}, "name": {"x"}, "role": {"owner"}}
		if got := w.call(owner, "POST", path, form); got.status != 403 {
			t.Errorf("%s: %d", path, got.status)
		}
	}
}
