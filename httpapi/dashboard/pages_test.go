package dashboard_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"humanqa/domain"
	"humanqa/domain/command"
	"humanqa/domain/job"
	"humanqa/domain/person"
	"humanqa/httpapi/readers"
	"humanqa/internal/clientlogin"
	"humanqa/internal/mail"
	"humanqa/internal/testing/eventually"
	"humanqa/internal/testing/pagetest"
)

// screenOf is a page in one of its states.
type screenOf struct {
	name, path string
	as         guest
}

// Every page, in each of its states, on wide and narrow screens, light and dark:
// axe finds nothing, and nothing is wider than the screen.
func TestEveryPageIsAccessible(t *testing.T) {
	t.Parallel()
	w := setup(t)
	empty, full := w.account("Acme", 100), w.account("Globex", 500)
	fresh := w.Joined("Ann Example", person.Grant{Role: person.Owner, AccountID: empty})
	owner := w.Joined("Bob Example", person.Grant{Role: person.Owner, AccountID: full})
	w.Invited("Carol", person.Grant{Role: person.Developer, AccountID: full})
	checks := w.Joined("Erin Example", person.Grant{Role: person.Checker, CheckerID: w.Checker("ann")})
	runs := w.Joined("Frank Example", person.Grant{Role: person.Operator})
	_, link := w.Invited("Dave", person.Grant{Role: person.Viewer, AccountID: full})

	hosted, err := w.Commands.TestHosted(t.Context(), pagetest.Client(full), command.HostedTest{
		Submission: job.Submission{URL: "https://shop.example.com", Feature: "Sign up, then buy the cheapest plan", Source: "hosted"},
		Host:       "shop.example.com",
	})
	w.Shown(hosted.Position, err)
	inProject := func(in *command.SubmitJob) { in.ProjectID = hosted.ProjectID }
	for i := range 3 {
		id := w.test(full, fmt.Sprintf("Checkout, round %d", i+1), inProject)
		c := w.claims(w.Checker("ann"), id)
		c.checks(0, job.ItemPass, "")
		c.checks(1, []job.ItemStatus{job.ItemPass, job.ItemFail, job.ItemFail}[i], "After the card is declined the page stays white, on a phone and on a computer.")
		c.checks(2, []job.ItemStatus{job.ItemFail, job.ItemPass, job.ItemSkip}[i], "No mail came within ten minutes.")
		c.completes("The checkout works with a good card. With a declined one it ends on a white page and the order is lost.")
	}
	report := w.test(full, "Checkout with a declined card", inProject)
	c := w.claims(w.Checker("ann"), report)
	c.checks(0, job.ItemPass, "")
	c.checks(1, job.ItemFail, "After the card is declined the page stays white. Reloading it shows an empty basket.")
	c.checks(2, job.ItemSkip, "")
	c.completes("The price is right. A declined card ends on a white page, and the basket is gone.")
	live := w.test(full, "Sign-up on a phone", func(in *command.SubmitJob) { in.Urgent = true })
	tester := w.claims(w.Checker("ann"), live)
	tester.checks(0, job.ItemPass, "")
	tester.asks(1, "A code was sent by mail. What is it?")
	waiting := w.test(full, "First look at the landing page", nil)
	session, err := w.Commands.CreateSession(t.Context(), pagetest.Client(full), command.NewSession{
		Test:  command.HostedTest{Submission: job.Submission{URL: "https://chat.example.com", Feature: "Two people talk to each other", Source: "session"}, Host: "chat.example.com"},
		Slots: []command.NewSlot{{RoleLabel: "Caller"}, {RoleLabel: "Callee"}}, ScenarioBrief: "The caller rings, the callee answers after ten seconds.",
	})
	w.Shown(session.Position, err)
	hooked, err := w.Commands.CreateProject(t.Context(), pagetest.Client(full), command.CreateProject{Name: "Back office", WebhookURL: "https://hooks.example.com/x"})
	w.Shown(hooked.Position, err)
	batch, _ := w.batch(full, "The landing page", "Sign-up", "The newsletter")
	loop, _ := w.looped(full, "shop.example.com", "bug-fixer", 1)
	w.looped(full, "shop.example.com", "bug-fixer", 2)
	box := w.newAccount("Trial", 100, true)
	tries := w.Joined("Gina Example", person.Grant{Role: person.Developer, AccountID: box})
	played := w.test(box, "Checkout in the sandbox", nil)
	key, err := w.Commands.IssueKey(t.Context(), pagetest.Operator(), full, command.IssueKey{Scope: "full"})
	w.Shown(key.Position, err)

	for i, verdicts := range [][]job.ItemStatus{{job.ItemPass, job.ItemFail}, {job.ItemFail, job.ItemFail}, {job.ItemFail, job.ItemPass}} {
		commit := fmt.Sprintf("%d0c5ea7e9d3b", 4+i)
		out, err := w.Commands.Deploy(t.Context(), pagetest.Client(full), hosted.ProjectID, command.Deploy{
			Test: command.HostedTest{Submission: job.Submission{URL: "https://shop.example.com", Source: "deploy"}, Host: "shop.example.com"},
			Keys: []string{"commit:" + commit},
		})
		w.Shown(out.Position, err)
		eventually.True(t, "the checklist is written", func() bool {
			j, err := w.Reads.Jobs.Job(t.Context(), full, out.JobID)
			return err == nil && len(j.Items) > 0
		})
		c := w.claims(w.Checker("ann"), out.JobID)
		for n := range c.Checklist {
			c.checks(n, verdicts[min(n, 1)], "It is still white.")
		}
		c.completes("Tested after the deploy.")
	}
	w.Shown(w.Commands.DisableWebhook(t.Context(), pagetest.Operator(), hooked.ProjectID, "", "answered 500 four times in a row"))
	w.Must(w.preferences.KeepView(t.Context(), full, owner.ID, "What is done", "status=completed"))
	w.Must(w.preferences.KeepView(t.Context(), full, owner.ID, "What waits", "status=pending"))
	letters := mail.NewStore(w.DB, time.Now, w.links())
	w.Must(letters.Save(t.Context(), full, owner.ID, "bob@example.com", mail.Choices{Reports: mail.FailuresOnly, Credits: true}))
	asked, err := letters.Person(t.Context(), owner.ID)
	w.Must(err)
	share, err := w.Credentials.Share(t.Context(), full, report, owner.ID, time.Hour)
	w.Must(err)

	w.reads(readers.Note{ID: readers.ID{AccountID: full, Name: "warehouse"}, Refused: domain.CodeAnotherLog})
	w.reads(readers.Note{ID: readers.ID{AccountID: full, ProjectID: hosted.ProjectID, Name: "mirror"}})

	begun, err := clientlogin.NewStore(w.DB, time.Now).Begin(t.Context(), "hqa on ann-laptop", "192.0.2.7")
	w.Must(err)

	webhooked := w.webhookStates(full)
	pages := append([]screenOf{
		{"front", "/", guest{}}, {"signin", "/signin", guest{}}, {"join", link, guest{}}, {"nothing", "/dashboard/jobs/none", owner},
		{"welcome", "/dashboard", fresh}, {"jobs-empty", "/dashboard/jobs", fresh}, {"projects-empty", "/dashboard/projects", fresh},
		{"sessions-empty", "/dashboard/sessions", fresh}, {"keys-empty", "/dashboard/keys", fresh}, {"readers-empty", "/dashboard/readers", fresh},
		{"overview", "/dashboard", owner}, {"jobs", "/dashboard/jobs", owner}, {"jobs-kept", "/dashboard/jobs?status=completed", owner}, {"new-test", "/dashboard/jobs/new", owner}, {"new-session", "/dashboard/sessions/new", owner}, {"new-batch", "/dashboard/batches/new", owner},
		{"jobs-found", "/dashboard/jobs?q=white&verdict=fail", owner}, {"jobs-not-found", "/dashboard/jobs?q=nothing&from=soon", owner}, {"find", "/dashboard/find?q=checkout", owner},
		{"job-report", "/dashboard/jobs/" + report, owner}, {"job-live", "/dashboard/jobs/" + live, owner}, {"job-waiting", "/dashboard/jobs/" + waiting, owner},
		{"job-replay", "/dashboard/jobs/" + report + "/replay?at=4", owner}, {"job-shared", "/shared/" + share, guest{}},
		{"projects", "/dashboard/projects", owner}, {"project", "/dashboard/projects/" + hosted.ProjectID, owner},
		{"hook", "/dashboard/projects/" + hosted.ProjectID + "/hook", owner},
		{"webhook-secret", "/dashboard/projects/" + hooked.ProjectID + "/webhook/secret", owner},
		{"sessions", "/dashboard/sessions", owner},
		{"batch", "/dashboard/batches/" + batch, owner}, {"batches", "/dashboard/batches", owner}, {"loop", "/dashboard/loops/" + loop, owner},
		{"sandbox", "/dashboard/sandbox", tries}, {"job-sandbox", "/dashboard/jobs/" + played, tries},
		{"credits", "/dashboard/credits", owner}, {"statement", "/dashboard/credits/statement", owner}, {"keys", "/dashboard/keys", owner}, {"evidence", "/dashboard/evidence", owner}, {"readers", "/dashboard/readers", owner}, {"device", "/dashboard/device", owner}, {"device-code", "/dashboard/device?code=" + begun.UserCode, owner}, {"device-done", "/dashboard/device?done=confirmed", owner}, {"members", "/dashboard/members", owner}, {"looks-empty", "/dashboard/looks", owner},
		{"account", "/account", owner}, {"account-checker", "/account", checks}, {"account-operator", "/account", runs}, {"passkey", "/account/passkeys/new", owner}, {"confirm", "/signin/confirm", owner},
		{"confirm-form", "/signin/confirm?form=0195c6c0-0000-7000-8000-000000000000", owner},
		{"notifications-empty", "/dashboard/notifications", fresh}, {"notifications", "/dashboard/notifications", owner},
		{"mail-stop", strings.TrimPrefix(w.links().Stop(owner.ID), w.Origin), guest{}},
		{"mail-confirm", strings.TrimPrefix(w.links().Confirm(owner.ID, asked.Address, asked.AskedAt), w.Origin), guest{}},
	}, webhooked(owner)...)
	var opened []string
	for _, page := range pages {
		opened = append(opened, page.path)
		t.Run(page.name, func(t *testing.T) {
			here := *w
			here.Service = w.In(t)
			tab := here.Tab(page.as)
			if page.name == "nothing" {
				tab.Allow("404")
			}
			if page.name == "project" { // on a phone
				tab.Screen(390, 800, false)
			}
			tab.Open(w.Origin + page.path)
			switch page.name {
			case "project":
				tab.Wait(`(matrix => matrix.scrollWidth > matrix.parentElement.clientWidth && matrix.getBoundingClientRect().right <= matrix.parentElement.getBoundingClientRect().right + 1)(document.querySelector('.matrix'))`)
			case "overview": // what is broken before what will be
				tab.Wait(`(words => words.includes('Broken') && words.includes('Warning') && words.lastIndexOf('Broken') < words.indexOf('Warning'))([...document.querySelectorAll('.need .verdict')].map((v) => v.textContent))`)
			}
			pagetest.Accessible(t, tab, page.name)
		})
	}
	w.OpensAll("/", opened, []string{
		"/dashboard/jobs/{id}/report/{format}", "/dashboard/jobs/{id}/evidence/{evidence}", "/dashboard/jobs/{id}/recordings/{recording}",
		"/dashboard/jobs/{id}/recordings/{recording}/marks", "/shared/{token}/evidence/{evidence}", "/dashboard/notifications/news",
	})
}
