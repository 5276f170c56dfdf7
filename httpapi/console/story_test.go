package console_test

import (
	"context"
	"regexp"
	"strings"
	"testing"

	"github.com/google/uuid"

	"humanqa/domain"
	"humanqa/domain/audit"
	"humanqa/domain/command"
	"humanqa/domain/person"
	"humanqa/internal/invariantcheck"
	"humanqa/internal/testing/eventually"
	"humanqa/internal/testing/pagetest"
	"humanqa/projections/jobs"
	"humanqa/projections/overall"
	"humanqa/projections/oversight"
	"humanqa/webhooks"
)

var (
	listAll   = oversight.Filter{Limit: 100}
	pageOfAll = overall.Page{Limit: 100}
)

// Credits, a suspension and a pool: each is done once, with its reason, and listed
// under the name of who did it.
func TestWhatAnOperatorDoesToAnAccount(t *testing.T) {
	t.Parallel()
	w := setup(t)
	olga, account := w.operates("Olga Example"), w.Account("Acme "+hostile, 10, false)
	owner := w.Joined("Ann", person.Grant{Role: person.Owner, AccountID: account})
	at := "/console/accounts/" + account

	grant := form("amount", "25", "days", "30", "reason", "For the outage "+hostile)
	for range 2 { // a double click
		if got := w.Call(olga, "POST", at+"/credits", grant); got.Status != 303 || got.Header.Get("Location") != at {
			t.Fatalf("granting: %d %s", got.Status, got.Body)
		}
	}
	body := w.has(olga, at, "<dd>35", "granted credits to", "25 credits for 30 days", "For the outage &lt;script&gt;", "Acme &lt;script&gt;")
	if strings.Contains(body, hostile) || strings.Count(body, "25 credits for 30 days") != 1 {
		t.Error("the grant is listed twice, or runs")
	}
	w.has(owner, "/dashboard/credits", "For the outage &lt;script&gt;", "2 entries add up to 35")
	key, err := w.Commands.IssueKey(t.Context(), pagetest.Operator(), account, command.IssueKey{Scope: "read"})
	w.Shown(key.Position, err)
	if got := w.Call(guest{}, "GET", "/v1/credits/ledger", nil, "Authorization", "Bearer "+key.Token); got.Status != 200 ||
		strings.Count(got.Body, `"by":"operator"`) != 2 || strings.Contains(got.Body, olga.ID) {
		t.Errorf("the ledger tells which operator it was: %d %s", got.Status, got.Body)
	}
	for name, bad := range map[string]string{"amount": "-5", "days": "x"} {
		sent := form("amount", "5", "reason", "Because")
		sent.Set(name, bad)
		if got := w.Call(olga, "POST", at+"/credits", sent); got.Status != 422 || !strings.Contains(got.Body, "must be a number") || !strings.Contains(got.Body, `value="Because"`) {
			t.Errorf("%s %q: %d", name, bad, got.Status)
		}
	}
	refused := w.Call(olga, "POST", at+"/credits", form("amount", "5", "reason", "  "), "Referer", w.Origin+at)
	if refused.Status != 422 || !strings.Contains(refused.Body, `value="5"`) || strings.Count(refused.Body, "autofocus") != 1 ||
		!strings.Contains(refused.Body, `id="reason-refused">Reason must not be blank.</p>`) {
		t.Errorf("without a reason: %d %s", refused.Status, refused.Body)
	}
	if got := w.Call(olga, "POST", at+"/credits", form("amount", "5", "reason", "  ")); got.Status != 422 || !strings.Contains(got.Body, "Reason must not be blank.") {
		t.Errorf("without a reason: %d", got.Status)
	}

	if got := w.Call(olga, "POST", at+"/suspend", form("reason", "Unpaid")); got.Status != 303 {
		t.Errorf("suspending: %d", got.Status)
	}
	w.has(owner, "/dashboard", "is suspended")
	w.has(olga, at, "suspended")
	if got := w.Call(olga, "POST", at+"/reinstate", form("reason", "Paid")); got.Status != 303 {
		t.Errorf("reinstating: %d", got.Status)
	}

	made := w.Call(olga, "POST", "/console/pools", form("name", "Banking", "account", account, "reason", "They asked for their own"))
	pool := made.Header.Get("Location")
	if made.Status != 303 || !strings.HasPrefix(pool, "/console/pools/") {
		t.Fatalf("a pool: %d %s", made.Status, made.Body)
	}
	ann, bob := w.Checker("Ann"), w.Checker("Bob")
	for _, id := range []string{ann, bob} {
		if got := w.Call(olga, "POST", pool+"/checkers", form("checker", id, "reason", "Vetted")); got.Status != 303 {
			t.Errorf("taking in: %d %s", got.Status, got.Body)
		}
	}
	if got := w.Call(olga, "POST", pool+"/checkers?action=remove", form("checker", bob, "reason", "Left")); got.Status != 303 {
		t.Errorf("taking out: %d", got.Status)
	}
	if got := w.Call(olga, "POST", pool+"/checkers", form("checker", account, "reason", "A slip")); got.Status != 422 || !strings.Contains(got.Body, "no checker has this name or id") {
		t.Errorf("one who is nobody: %d", got.Status)
	}
	body = w.has(olga, pool, "Banking", "Ann", "Belongs to")
	if strings.Contains(body, `id="checker-`+bob) {
		t.Error("Bob is still in it")
	}
	if got := w.Call(olga, "POST", at+"/pool", form("pool", strings.TrimPrefix(pool, "/console/pools/"), "reason", "As agreed")); got.Status != 303 {
		t.Errorf("choosing the pool: %d %s", got.Status, got.Body)
	}
	jobID := w.test(account, "For the trusted")
	if queue, err := w.Reads.Jobs.Queue(t.Context(), jobs.QueueFilter{CheckerID: bob, Limit: 10}); err != nil || len(queue) != 0 {
		t.Errorf("Bob sees %v, %v", queue, err)
	}
	if queue, err := w.Reads.Jobs.Queue(t.Context(), jobs.QueueFilter{CheckerID: ann, Limit: 10}); err != nil || len(queue) != 1 || queue[0].ID != jobID {
		t.Errorf("Ann sees %v, %v", queue, err)
	}

	acts := w.has(olga, "/console/acts", "Olga Example", "Unpaid", "Paid", "Vetted", "removed a checker from", "chose the checkers of", "granted credits to")
	if strings.Contains(acts, hostile) {
		t.Error("a reason runs")
	}
	if narrow := w.has(olga, "/console/acts?act=suspend_account&account="+account, "Unpaid"); strings.Contains(narrow, "Vetted") {
		t.Error("the list is not narrowed")
	}
	for _, e := range eventsOf(w, domain.AccountStream(account)) {
		if strings.HasPrefix(e.kind, "account.suspended") && e.actor != "operator:"+olga.ID {
			t.Errorf("%s was done by %s", e.kind, e.actor)
		}
	}
}

// People: invited, given and taken roles, a new way in, the end.
func TestWhatAnOperatorDoesWithPeople(t *testing.T) {
	t.Parallel()
	w := setup(t)
	olga, account := w.operates("Olga Example"), w.Account("Acme", 0, false)
	link := func(body string) string { return regexp.MustCompile(`/join/[^<"]+`).FindString(body) }

	invitation := form("name", "Carol "+hostile, "role", "checker", "reason", "A new tester")
	made := w.Call(olga, "POST", "/console/people", invitation)
	if made.Status != 200 || link(made.Body) == "" || made.Header.Get("Cache-Control") != "no-store" || strings.Contains(made.Body, hostile) {
		t.Fatalf("inviting: %d", made.Status)
	}
	again := w.Call(olga, "POST", "/console/people", invitation) // a double click
	if again.Status != 200 || link(again.Body) == link(made.Body) {
		t.Errorf("the same form again: %d", again.Status)
	}
	people, total, err := w.Reads.Overall.People(t.Context(), "checker", pageOfAll)
	if err != nil || total != 1 {
		t.Fatalf("%d people were invited, %v", total, err)
	}
	carol := "/console/people/" + people[0].ID
	if got := w.Call(guest{}, "GET", link(made.Body), nil); got.Status == 200 {
		t.Error("the earlier link works")
	}
	if got := w.Call(guest{}, "GET", link(again.Body), nil); got.Status != 200 {
		t.Errorf("the link: %d", got.Status)
	}
	if got := w.Call(olga, "GET", "/console/people", nil); strings.Contains(got.Body, "/join/") {
		t.Error("a link is shown twice")
	}
	for _, bad := range [][]string{{"role", "king"}, {"role", "owner"}, {"role", "owner", "account", "x"}, {"role", "checker", "checker", "x"}} {
		if got := w.Call(olga, "POST", "/console/people", form(append(bad, "name", "X", "reason", "y")...)); got.Status != 422 {
			t.Errorf("%v: %d", bad, got.Status)
		}
	}
	if got := w.Call(olga, "POST", "/console/people", form("role", "owner", "account", uuid.NewString(), "name", "X", "reason", "y")); got.Status != 422 || link(got.Body) != "" {
		t.Errorf("into no account: %d", got.Status)
	}

	// An account and a checker are named by their names; a name that several have is refused.
	if got := w.Call(olga, "POST", carol+"/roles", form("role", "developer", "account", "acme", "reason", "By its name")); got.Status != 303 {
		t.Errorf("an account by its name: %d %s", got.Status, got.Body)
	}
	w.has(olga, carol, "developer", "Acme")
	twin := w.Account("ACME", 0, false)
	if got := w.Call(olga, "POST", carol+"/roles", form("role", "owner", "account", "Acme", "reason", "Which one?"), "Referer", w.Origin+carol); got.Status != 422 ||
		!strings.Contains(got.Body, "Account is the name of several accounts: enter the id of one (") || !strings.Contains(got.Body, twin) {
		t.Errorf("a name of two accounts: %d %s", got.Status, got.Body)
	}
	w.Checker("Key Only")
	if got := w.Call(olga, "POST", "/console/people", form("role", "checker", "checker", "key only", "name", "Kim", "reason", "Gets a sign-in")); got.Status != 200 {
		t.Errorf("a checker by the name: %d %s", got.Status, got.Body)
	}
	w.has(olga, "/console/people", `<option value="`+twin+`">ACME</option>`, `<option value="Key Only">`)

	if got := w.Call(olga, "POST", carol+"/roles", form("role", "viewer", "account", account, "reason", "Also helps there")); got.Status != 303 {
		t.Errorf("giving a role: %d %s", got.Status, got.Body)
	}
	w.has(olga, carol, "viewer", "checker", "Acme")
	if got := w.Call(olga, "POST", carol+"/roles/revoke", form("role", "viewer", "account", account, "reason", "No more")); got.Status != 303 {
		t.Errorf("taking it back: %d", got.Status)
	}
	way := w.Call(olga, "POST", carol+"/link", form("reason", "Lost the mail"))
	if way.Status != 200 || link(way.Body) == "" || way.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("a new way in: %d", way.Status)
	}
	if got := w.Call(olga, "POST", "/console/people/"+olga.ID+"/disable", form("reason", "Oops")); got.Status != 409 {
		t.Errorf("disabling oneself: %d", got.Status)
	}
	dave := w.operates("Dave")
	w.has(dave, "/console")
	if got := w.Call(olga, "POST", "/console/people/"+dave.ID+"/disable", form("reason", "Left us")); got.Status != 303 {
		t.Errorf("disabling: %d", got.Status)
	}
	if got := w.Call(dave, "GET", "/console", nil); got.Status != 303 {
		t.Errorf("who was disabled sees the console: %d", got.Status)
	}
	w.has(olga, "/console/people/"+dave.ID, "disabled")
	w.has(olga, "/console/people?show=operators", "Olga Example")
	w.has(olga, "/console/acts", "Lost the mail", "Left us", "created a sign-in link for")
}

// Operators read names, not ids: of a webhook's project, of the checker that a person works as,
// and of the account and the operator to which the audit log is narrowed.
func TestTheConsoleCallsThingsByTheirNames(t *testing.T) {
	t.Parallel()
	w := setup(t)
	olga, account, tess := w.operates("Olga Example"), w.Account("Acme", 0, false), w.Checker("Tess Tester")
	carol := w.Joined("Carol Example", person.Grant{Role: person.Checker, CheckerID: tess})
	project, err := w.Commands.CreateProject(t.Context(), pagetest.Client(account), command.CreateProject{Name: "Shop " + hostile, WebhookURL: "https://hooks.example.com/x"})
	w.Shown(project.Position, err)
	w.Must(w.Consumers.CatchUp(t.Context(), webhooks.SubscriberName))
	if got := w.Call(olga, "POST", "/console/accounts/"+account+"/suspend", form("reason", "Unpaid")); got.Status != 303 {
		t.Fatalf("suspending: %d", got.Status)
	}
	if got := w.Call(olga, "POST", "/console/people/"+carol.ID+"/roles", form("role", "viewer", "account", account, "reason", "Helps")); got.Status != 303 {
		t.Fatalf("a role: %d", got.Status)
	}
	shown := func(path string) string {
		return regexp.MustCompile(`\s+`).ReplaceAllString(tags.ReplaceAllString(w.has(olga, path), " "), " ")
	}
	for path, text := range map[string]string{
		"/console/webhooks?show=all":         "Acme , project Shop &lt;script&gt;",
		"/console/people/" + carol.ID:        "checker Tess Tester",
		"/console/acts?account=" + account:   "Of Acme Show all",
		"/console/acts?by=" + olga.ID:        "By Olga Example Show all",
		"/console/acts?act=grant_role":       "to Carol Example viewer of account",
		"/console/acts?account=of-none&by=x": "Of an account By Person x Show all",
	} {
		if got := shown(path); !strings.Contains(got, text) {
			t.Errorf("%s does not say %q: %s", path, text, got)
		}
	}
}

// A look into what belongs to a client opens it for the one who gave a reason, for a
// while, and the client sees it.
func TestALookIsSeenByTheClient(t *testing.T) {
	t.Parallel()
	w := setup(t)
	olga, other, account := w.operates("Olga Example"), w.operates("Oscar"), w.Account("Acme", 100, false)
	owner := w.Joined("Ann", person.Grant{Role: person.Owner, AccountID: account})
	jobID := w.test(account, "Sign-up, top-secret")
	job, stream := "/console/jobs/"+jobID, "/console/streams/job-"+jobID
	for _, path := range []string{job, stream} {
		if body := w.has(olga, path, "Open them for one hour"); strings.Contains(body, "top-secret") {
			t.Errorf("%s shows what the client wrote", path)
		}
	}
	w.has(olga, stream, "job.created", "key:test")
	w.has(olga, "/console/streams?q="+jobID, "job-"+jobID)
	if got := w.Call(olga, "POST", stream+"/look", form("reason", "They asked us why it waits "+hostile, "next", job)); got.Status != 303 || got.Header.Get("Location") != job {
		t.Fatalf("looking: %d %s", got.Status, got.Body)
	}
	if got := w.Call(olga, "POST", stream+"/look", form("reason", "x", "next", "https://evil.example")); got.Header.Get("Location") != stream {
		t.Errorf("the form leads to %q", got.Header.Get("Location"))
	}
	body := w.has(olga, job, "Sign-up, top-secret", "top-secret words", "These texts belong to Acme", "&lt;script&gt;")
	data := w.has(olga, stream, "top-secret words", "[sealed]")
	if strings.Contains(body+data, "correct-horse") || strings.Contains(body+data, hostile) {
		t.Error("a secret is shown, or a text runs")
	}
	if body := w.has(other, job); strings.Contains(body, "top-secret") {
		t.Error("another operator sees it without a reason of their own")
	}
	for _, path := range []string{"/dashboard", "/dashboard/looks"} {
		if body := w.has(owner, path, "Olga Example", "They asked us why it waits &lt;script&gt;", "/dashboard/jobs/"+jobID); strings.Contains(body, hostile) {
			t.Errorf("%s runs a reason", path)
		}
	}
	seen := regexp.MustCompile(`name="upto" value="([0-9-]+)"`).FindStringSubmatch(w.has(owner, "/dashboard"))
	if seen == nil {
		t.Fatal("the look cannot be marked as seen")
	}
	if got := w.Call(owner, "POST", "/dashboard/notices/seen", form("upto", seen[1])); got.Status != 303 {
		t.Errorf("marking: %d", got.Status)
	}
	if body := w.has(owner, "/dashboard"); strings.Contains(body, "Olga Example") {
		t.Error("what was marked as seen is shown again")
	}
	w.has(owner, "/dashboard/looks", "Olga Example")
	viewer := w.Joined("Vic", person.Grant{Role: person.Viewer, AccountID: account})
	if got := w.Call(viewer, "GET", "/dashboard/looks", nil); got.Status != 403 {
		t.Errorf("a viewer is told who looked: %d", got.Status)
	}
	stranger := w.Joined("Sid", person.Grant{Role: person.Owner, AccountID: w.Account("Globex", 0, false)})
	if body := w.has(stranger, "/dashboard/looks"); strings.Contains(body, "Olga") {
		t.Error("another account sees the look")
	}
	// It is over an hour later.
	_, err := w.DB.ExecContext(t.Context(), `UPDATE readmodel.operator_acts SET at = at - interval '61 minutes'`)
	w.Must(err)
	if body := w.has(olga, job, "Open them for one hour"); strings.Contains(body, "top-secret") {
		t.Error("a look never ends")
	}
}

// Projections: a rebuild is ordered with a reason and happens; what does not stop
// cannot be retried, and what was refused says so.
func TestAProjectionIsRebuilt(t *testing.T) {
	t.Parallel()
	w := setup(t)
	olga := w.operates("Olga Example")
	body := w.has(olga, "/console/projections", "jobs", "webhooks", "live", "Rebuild: loops")
	if !regexp.MustCompile(`<strong>jobs</strong><small>version \d+, generation 1, [\d.]+ kB</small>`).MatchString(body) {
		t.Error("nothing says what the jobs take on disk")
	}
	if strings.Contains(body, "Rebuild: webhooks") {
		t.Error("what sends webhooks can be rebuilt")
	}
	if got := w.Call(olga, "POST", "/console/projections/loops/rebuild", form("reason", "A look at it")); got.Status != 303 {
		t.Fatalf("a rebuild: %d %s", got.Status, got.Body)
	}
	eventually.True(t, "the next generation serves", func() bool {
		var serves int // the page shows one that is built, too
		w.Must(w.DB.GetContext(t.Context(), &serves, `SELECT generation FROM projection_checkpoints WHERE name = 'loops' AND serving`))
		return serves == 2
	})
	w.has(olga, "/console/projections", "generation 2")
	for _, path := range []string{"/console/projections/loops/retry", "/console/projections/loops/skip"} {
		if got := w.Call(olga, "POST", path, form("reason", "y", "position", "1/1")); got.Status != 409 || !strings.Contains(got.Body, "Loops is not stopped") {
			t.Errorf("%s: %d", path, got.Status)
		}
	}
	if got := w.Call(olga, "POST", "/console/projections/webhooks/rebuild", form("reason", "y")); got.Status != 404 {
		t.Errorf("rebuilding the webhooks: %d", got.Status)
	}
	w.has(olga, "/console/acts", "requested a rebuild of", "A look at it", "loops is not stopped")

	_, err := w.DB.ExecContext(t.Context(), `
UPDATE projection_checkpoints
SET status = 'stopped', owner = NULL, failure_category = 'poison', failure_commit = 3, failure_prepare = 3, failure_detail = 'it <b>broke</b>', failure_attempts = 2
WHERE name = 'loops' AND serving`)
	w.Must(err)
	w.has(olga, "/console/projections", "it &lt;b&gt;broke&lt;/b&gt;", "Try again: loops", `value="3/3"`)
	w.has(olga, "/console", "Projection loops stopped at 3/3")
	if got := w.Call(olga, "POST", "/console/projections/loops/skip", form("reason", "y", "position", "4/4")); got.Status != 409 {
		t.Errorf("skipping another event: %d", got.Status)
	}
	if got := w.Call(olga, "POST", "/console/projections/loops/skip", form("reason", "Known to be broken", "position", "3/3")); got.Status != 303 {
		t.Errorf("skipping: %d %s", got.Status, got.Body)
	}
	_, err = w.DB.ExecContext(t.Context(), `
INSERT INTO projection_set_aside (name, generation, stream, revision, commit_position, prepare_position, type, category, detail, due_at)
SELECT 'loops', generation, 'loop-<i>x</i>', 1, 7, 7, 'loop.started', 'data', 'a <b>NUL</b>', now() + interval '1 hour'
FROM projection_checkpoints
WHERE name = 'loops' AND serving`)
	w.Must(err)
	w.has(olga, "/console/projections", "Set aside: ", "loop-&lt;i&gt;x&lt;/i&gt;", "a &lt;b&gt;NUL&lt;/b&gt;", `value="7/7"`, "projection loops goes on without 1 stream, since the event at 7/7 (data)")
	if got := w.Call(olga, "POST", "/console/projections/loops/skip", form("reason", "It never was", "position", "7/7")); got.Status != 303 {
		t.Errorf("skipping what was set aside: %d %s", got.Status, got.Body)
	}
	project, err := w.Commands.CreateProject(t.Context(), pagetest.Operator(), command.CreateProject{Name: "Shop", WebhookURL: "https://u:p@hooks.example.com/secret-path?x=1"})
	w.Shown(project.Position, err)
	w.Shown(w.Commands.DisableWebhook(t.Context(), pagetest.Operator(), project.ProjectID, "", "answered 500"))
	eventually.True(t, "the webhook is listed as disabled", func() bool {
		return strings.Contains(w.Call(olga, "GET", "/console/webhooks", nil).Body, "answered 500")
	})
	if body := w.has(olga, "/console/webhooks?show=all", "hooks.example.com"); strings.Contains(body, "secret-path") || strings.Contains(body, "u:p") {
		t.Error("a webhook's address is shown whole")
	}
	w.has(olga, "/console/projections", "Known to be broken", "operator:"+olga.ID)
}

// Checks: one at a time, cancellable; what was found leads to its stream.
func TestTheInvariantsAreChecked(t *testing.T) {
	t.Parallel()
	w := setup(t)
	olga, account := w.operates("Olga Example"), w.Account("Acme", 10, false)
	w.has(olga, "/console/checks", "Not checked yet", "Credits are never negative", "not checked", "checked by tests only")
	w.has(olga, "/console", "The invariants have not been checked yet")

	started := make(chan struct{})
	w.check <- func(ctx context.Context, tell invariantcheck.Progress) (invariantcheck.Result, error) {
		tell("reading the log", 7)
		close(started)
		<-ctx.Done()
		return invariantcheck.Result{}, ctx.Err()
	}
	first := form("reason", "Before the release")
	for range 2 { // a double click starts one
		if got := w.Call(olga, "POST", "/console/checks", first); got.Status != 303 {
			t.Fatalf("starting: %d %s", got.Status, got.Body)
		}
	}
	<-started
	if got := w.Call(olga, "POST", "/console/checks", form("reason", "Another")); got.Status != 409 || !strings.Contains(got.Body, "A check is under way") {
		t.Errorf("a second one: %d", got.Status)
	}
	var id string
	eventually.True(t, "its progress is shown", func() bool {
		body := w.Call(olga, "GET", "/console/checks", nil).Body
		if m := regexp.MustCompile(`/console/checks/([0-9a-f-]{36})/cancel`).FindStringSubmatch(body); m != nil {
			id = m[1]
		}
		return strings.Contains(body, "7 events read")
	})
	if got := w.Call(olga, "POST", "/console/checks/"+id+"/cancel", form("reason", "Too slow")); got.Status != 303 {
		t.Errorf("cancelling: %d", got.Status)
	}
	eventually.True(t, "it ends", func() bool {
		return strings.Contains(w.Call(olga, "GET", "/console/checks", nil).Body, "cancelled</span>")
	})
	if got := w.Call(olga, "POST", "/console/checks/"+id+"/cancel", form("reason", "Again")); got.Status != 404 {
		t.Errorf("cancelling what has ended: %d", got.Status)
	}

	w.check <- finds(audit.Finding{Invariant: 1, Stream: domain.CreditsStream(account), Problem: "balance -1 " + hostile}, audit.Finding{Invariant: 9, Stream: "jobs", Problem: "a row"})
	if got := w.Call(olga, "POST", "/console/checks", form("reason", "Once more")); got.Status != 303 {
		t.Fatalf("starting: %d %s", got.Status, got.Body)
	}
	eventually.True(t, "the findings are there", func() bool {
		return strings.Contains(w.Call(olga, "GET", "/console/checks", nil).Body, "Findings of the last check")
	})
	body := w.has(olga, "/console/checks", `href="/console/streams/credits-`+account+`"`, "balance -1 &lt;script&gt;", "1 finding", "holds", "12 events, 3 tests")
	if strings.Contains(body, hostile) {
		t.Error("a finding runs")
	}
	w.has(olga, "/console", "has 2 findings: humanqa fsck")
	w.has(olga, "/console/streams/credits-"+account, "credits.granted", "Adds a lot")
	w.has(olga, "/console/acts", "started a check of", "Too slow")
}

type seenEvent struct{ kind, actor string }

func eventsOf(w world, stream string) (out []seenEvent) {
	w.Must(w.Log.Load(w.T.Context(), stream, 0, func(r domain.Recorded) error {
		out = append(out, seenEvent{r.Type, r.Meta.Actor})
		return nil
	}))
	return out
}
