package console_test

import (
	"strings"
	"testing"

	"humanqa/domain"
	"humanqa/domain/audit"
	"humanqa/domain/command"
	"humanqa/domain/job"
	"humanqa/domain/person"
	"humanqa/internal/testing/browsertest"
	"humanqa/internal/testing/eventually"
	"humanqa/internal/testing/pagetest"
)

// Every page, in each of its states, on wide and narrow screens, light and dark:
// axe finds nothing, and nothing is wider than the screen, at 400 % neither. One of
// them keeps itself current, and what is typed meanwhile stays.
func TestEveryPageIsAccessible(t *testing.T) {
	t.Parallel()
	w := setup(t)
	olga := w.operates("Olga Example")
	operator := func() command.Cause {
		return command.Cause{CommandID: domain.NewCommandID(), Actor: "person:" + olga.ID}
	}
	account, other := w.Account("Acme", 500, false), w.Account("A rather long name of an account, which takes two lines on a phone at least", 20, true)
	w.Joined("Ann Example", person.Grant{Role: person.Owner, AccountID: account})
	w.Invited("Bob", person.Grant{Role: person.Developer, AccountID: account})
	ids := make([]string, 3)
	for i, name := range []string{"Carol Example", "Dave Example", "Erin"} {
		ids[i] = w.Checker(name)
	}
	carol := w.Joined("Carol Example", person.Grant{Role: person.Checker, CheckerID: ids[0]})
	at, err := w.Commands.ProfileChecker(t.Context(), operator(), ids[0], []string{"English", "Deutsch", "日本語"}, []string{"iPhone 15, iOS 18", "ThinkPad, Windows 11"})
	w.Shown(at, err)
	key, err := w.Commands.IssueKey(t.Context(), operator(), account, command.IssueKey{Scope: "full"})
	w.Shown(key.Position, err)
	project, err := w.Commands.CreateProject(t.Context(), pagetest.Client(account),
		command.CreateProject{Name: "Shop", WebhookURL: "https://hooks.example.com/x"})
	w.Shown(project.Position, err)
	w.Shown(w.Commands.DisableWebhook(t.Context(), operator(), project.ProjectID, "", "answered 500 four times in a row"))

	jobs := []string{w.test(account, "Checkout"), w.test(account, "Sign-up"), w.test(account, "Newsletter")}
	c, err := w.Commands.ClaimJob(t.Context(), pagetest.ByChecker(ids[0]), ids[0], jobs[0])
	w.Shown(c.Position, err)
	claim := command.Claim{CheckerID: ids[0], JobID: jobs[0], Token: c.Token}
	_, at, err = w.Commands.CheckItem(t.Context(), operator(), claim, command.CheckItem{ItemID: c.Checklist[0].ID, Status: job.ItemFail, Note: "After the card is declined the page stays white."})
	w.Shown(at, err)
	_, at, err = w.Commands.CompleteJob(t.Context(), operator(), claim, command.CompleteJob{Summary: "It breaks with a declined card."})
	w.Shown(at, err)
	if c, err = w.Commands.ClaimJob(t.Context(), pagetest.ByChecker(ids[0]), ids[0], jobs[1]); err != nil {
		t.Fatal(err)
	}
	w.Shown(c.Position, nil)

	objections := command.SubmitJob{Submission: job.Submission{URL: "https://shop.example.com", Title: "Checkout with objections", Type: job.GeneralQA, Source: "api"}}
	for _, point := range []string{"The price is right", "A declined card leads back", "A mail arrives", "The basket is kept"} {
		objections.Items = append(objections.Items, command.NewItem{Description: point, Severity: job.Major})
	}
	contested, err := w.Commands.SubmitJob(t.Context(), pagetest.Client(account), objections)
	w.Shown(contested.Position, err)
	c, err = w.Commands.ClaimJob(t.Context(), pagetest.ByChecker(ids[1]), ids[1], contested.JobID)
	w.Shown(c.Position, err)
	claim = command.Claim{CheckerID: ids[1], JobID: contested.JobID, Token: c.Token}
	for _, item := range c.Checklist {
		_, at, err = w.Commands.CheckItem(t.Context(), pagetest.ByChecker(ids[1]), claim, command.CheckItem{ItemID: item.ID, Status: job.ItemFail, Note: "The page stays white."})
		w.Shown(at, err)
	}
	_, at, err = w.Commands.CompleteJob(t.Context(), pagetest.ByChecker(ids[1]), claim, command.CompleteJob{Summary: "Nothing works."})
	w.Shown(at, err)
	w.Contested(account, ids[1], contested.JobID, "The page was down for a minute, as our own log says.")

	do := func(path string, pairs ...string) string {
		got := w.Call(olga, "POST", path, form(append(pairs, "reason", "As agreed with them on the phone")...))
		if got.Status != 303 {
			t.Fatalf("%s: %d %s", path, got.Status, got.Body)
		}
		return got.Header.Get("Location")
	}
	pool := do("/console/pools", "name", "Banking, vetted")
	do(pool+"/checkers", "checker", ids[0])
	do("/console/pools", "name", "Acme's own", "account", account)
	do("/console/accounts/"+account+"/credits", "amount", "25")
	do("/console/accounts/"+account+"/pool", "pool", strings.TrimPrefix(pool, "/console/pools/"))
	do("/console/accounts/" + other + "/suspend")
	do("/console/streams/job-" + jobs[0] + "/look")
	do("/console/streams/job-" + contested.JobID + "/look")
	do("/console/evidence/hold", "kind", "job", "id", jobs[0])
	w.check <- finds(audit.Finding{Invariant: 3, Stream: domain.CreditsStream(account), Problem: "job x is charged twice"})
	do("/console/checks")
	eventually.True(t, "the check is through", func() bool {
		return strings.Contains(w.Call(olga, "GET", "/console/checks", nil).Body, "charged twice")
	})
	_, err = w.DB.ExecContext(t.Context(), `
INSERT INTO projection_checkpoints (name, generation, version, schema_name, status, serving, failure_category, failure_commit, failure_prepare, failure_detail, failure_attempts)
VALUES ('audit', 1, 1, 'audit_v1_g1', 'stopped', TRUE, 'poison', 3, 3, 'column "x" does not exist', 2)`) // nobody runs it here
	w.Must(err)

	w.OpensAll("/console", w.Accessible(olga.Sees(
		"console", "/console", "console-jobs", "/console/jobs", "console-job", "/console/jobs/"+jobs[1],
		"console-jobs-disputed", "/console/jobs?status=disputed", "console-job-disputed", "/console/jobs/"+contested.JobID,
		"console-job-open", "/console/jobs/"+jobs[0], "console-accounts", "/console/accounts",
		"console-account", "/console/accounts/"+account, "console-people", "/console/people", "console-person", "/console/people/"+carol.ID,
		"console-checkers", "/console/checkers", "console-pools", "/console/pools", "console-pool", pool,
		"console-projections", "/console/projections", "console-webhooks", "/console/webhooks",
		"console-streams", "/console/streams?q="+account, "console-stream", "/console/streams/credits-"+account,
		"console-stream-private", "/console/streams/job-"+jobs[1], "console-checks", "/console/checks",
		"console-evidence", "/console/evidence", "console-acts", "/console/acts", "console-system", "/console/system",
	)...), nil)
	t.Run("keyboard", func(t *testing.T) {
		t.Parallel()
		w := w.in(t)
		tab := w.Tab(olga)
		tab.Open(w.Origin + "/console/accounts/" + account)
		// The whole page by Tab: each stop is another one, can be seen, and the last
		// leads out of it.
		const places = `[...document.querySelectorAll('a[href], button, input:not([type=hidden]), select, summary')].filter(e => e.checkVisibility()).length`
		n := browsertest.Eval[int](tab, places)
		seen := map[string]bool{}
		for range n {
			tab.Press(browsertest.TabKey)
			at := browsertest.Eval[string](tab, `(() => { const e = document.activeElement; if (e === document.body) return 'body'
				const all = [...document.querySelectorAll('*')]; return all.indexOf(e) + (e.matches(':focus-visible') ? '' : ' unseen') })()`)
			if seen[at] || strings.Contains(at, "unseen") || at == "body" {
				t.Fatalf("after %d of %d places the focus is at %s", len(seen), n, at)
			}
			seen[at] = true
		}
	})
	t.Run("without a script", func(t *testing.T) {
		t.Parallel()
		w := w.in(t)
		tab := w.Tab(olga)
		tab.NoScript()
		tab.Open(w.Origin + "/console/accounts/" + other)
		tab.Click("#act-reinstate > summary")
		tab.Fill("#reason-reinstate", "Paid by now")
		tab.Click("#act-reinstate button")
		tab.WaitText("reinstated account")
	})
	t.Run("current", func(t *testing.T) {
		t.Parallel()
		w := w.in(t)
		tab := w.Tab(olga)
		tab.Open(w.Origin + "/console/projections")
		tab.Click("#act-retry-audit_v1_g1 > summary")
		tab.Fill("#reason-retry-audit_v1_g1", "half a rea")
		_, err := w.DB.ExecContext(t.Context(), `UPDATE projection_checkpoints SET failure_detail = 'another thing is broken' WHERE name = 'audit'`)
		w.Must(err)
		tab.WaitText("another thing is broken")
		if typed := browsertest.Eval[string](tab, `document.querySelector('#reason-retry-audit_v1_g1').value`); typed != "half a rea" {
			t.Errorf("what was typed became %q", typed)
		}
	})
	t.Run("a rebuild is watched", func(t *testing.T) {
		t.Parallel()
		w := w.in(t)
		head, err := w.Log.Head(t.Context())
		w.Must(err)
		built := func(percent uint64) {
			t.Helper()
			_, err := w.DB.ExecContext(t.Context(), `
INSERT INTO projection_checkpoints (name, generation, version, schema_name, status, serving, commit_position, prepare_position)
VALUES ('audit', 2, 1, 'audit_v1_g2', 'building', FALSE, $1, $1)
ON CONFLICT (name, generation) DO UPDATE SET commit_position = $1, prepare_position = $1`, head.Commit*percent/100)
			w.Must(err)
		}
		built(25)
		tab := w.Tab(olga)
		tab.Open(w.Origin + "/console/projections")
		const bar = "document.querySelector('#projection-audit_v1_g2 progress')"
		first := browsertest.Eval[float64](tab, bar+".value")
		if first <= 0 || first > 25 {
			t.Errorf("a quarter of the log is built, and the bar shows %v percent", first)
		}
		built(75)
		tab.Wait(bar + ".value > 50")
	})
}
