package dashboard_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"humanqa/domain"
	"humanqa/domain/command"
	"humanqa/domain/job"
	"humanqa/domain/person"
	"humanqa/domain/project"
	"humanqa/httpapi/readers"
	"humanqa/internal/clientlogin"
	"humanqa/internal/mail"
	"humanqa/internal/testing/browsertest"
	"humanqa/internal/testing/chattest"
	"humanqa/internal/testing/eventually"
	"humanqa/internal/testing/pagetest"
)

// Every page, in each of its states, on wide and narrow screens, light and dark:
// axe finds nothing, and nothing is wider than the screen.
func TestEveryPageIsAccessible(t *testing.T) {
	t.Parallel()
	w := own(t)
	empty, full := w.account("Acme", 100), w.account("Globex", 500)
	fresh := w.Joined("Ann Example", person.Grant{Role: person.Owner, AccountID: empty})
	owner := w.Joined("Bob Example", person.Grant{Role: person.Owner, AccountID: full})
	w.Invited("Carol", person.Grant{Role: person.Developer, AccountID: full})
	develops := w.Joined("Dan Example", person.Grant{Role: person.Developer, AccountID: full})
	views := w.Joined("Vera Example", person.Grant{Role: person.Viewer, AccountID: full})
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
	contested := w.test(full, "Checkout with objections", func(in *command.SubmitJob) {
		inProject(in)
		for _, more := range []string{"The basket is kept for a day", "A voucher lowers the total"} {
			in.Items = append(in.Items, command.NewItem{Description: more, ExpectedOutcome: "It is there", Severity: job.Minor})
		}
	})
	c = w.claims(w.Checker("ann"), contested)
	for n := range c.Checklist {
		c.checks(n, job.ItemFail, "The page stays white.")
	}
	c.completes("Nothing works.")
	w.Contested(full, c.CheckerID, contested, "It was down for a minute, see "+strings.Repeat("averylongword", 12)+".")
	live := w.test(full, "Sign-up on a phone", func(in *command.SubmitJob) { withLogin(in); in.Urgent = true })
	tester := w.claims(w.Checker("ann"), live)
	tester.reveals()
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
	put, err := w.Commands.CreateProject(t.Context(), pagetest.Client(full), command.CreateProject{Name: "The shop of last year"})
	w.Must(err)
	_, archived, err := w.Commands.ArchiveProject(t.Context(), pagetest.Client(full), put.ProjectID, true, command.CancelledAtOnce)
	w.Shown(archived.Position, err)
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
	w.Shown(w.Commands.SetChat(t.Context(), pagetest.Client(full), hosted.ProjectID, chattest.Slack, project.Chat{Address: "hooks.slack.com …a1b2"}))
	w.Shown(w.Commands.SetChat(t.Context(), pagetest.Client(full), hooked.ProjectID, "", project.Chat{Address: "prod-01.westeurope.logic.azure.com …e5f6", Ended: "the chat answered 410"}))
	w.Must(w.preferences.KeepView(t.Context(), full, owner.ID, "What is done", "status=completed"))
	w.Must(w.preferences.KeepView(t.Context(), full, owner.ID, "What waits", "status=pending"))
	letters := mail.NewStore(w.DB, time.Now, w.links())
	w.Must(letters.Save(t.Context(), full, owner.ID, "bob@example.com", mail.Choices{Reports: mail.FailuresOnly, Credits: true}))
	asked, err := letters.Person(t.Context(), owner.ID)
	w.Must(err)
	share, err := w.Credentials.Share(t.Context(), full, report, owner.ID, time.Hour)
	w.Must(err)
	objections, err := w.Credentials.Share(t.Context(), full, contested, owner.ID, time.Hour)
	w.Must(err)

	w.reads(readers.Note{ID: readers.ID{AccountID: full, Name: "warehouse"}, Refused: domain.CodeAnotherLog})
	w.reads(readers.Note{ID: readers.ID{AccountID: full, ProjectID: hosted.ProjectID, Name: "mirror"}})

	begun, err := clientlogin.NewStore(w.DB, time.Now).Begin(t.Context(), "hqa on ann-laptop", "192.0.2.7")
	w.Must(err)

	webhooked := w.webhookStates(full)
	seen := slices.Concat(
		(guest{}).Sees(
			"front", "/", "signin", "/signin", "join", link, "job-shared", "/shared/"+share,
			"mail-stop", strings.TrimPrefix(w.links().Stop(owner.ID), w.Origin),
			"mail-confirm", strings.TrimPrefix(w.links().Confirm(owner.ID, asked.Address, asked.AskedAt), w.Origin),
		),
		owner.Sees(
			"jobs", "/dashboard/jobs", "jobs-kept", "/dashboard/jobs?status=completed", "new-test", "/dashboard/jobs/new",
			"new-session", "/dashboard/sessions/new", "new-batch", "/dashboard/batches/new", "jobs-found", "/dashboard/jobs?q=white&verdict=fail",
			"jobs-not-found", "/dashboard/jobs?q=nothing&from=soon", "find", "/dashboard/find?q=checkout", "job-report", "/dashboard/jobs/"+report,
			"job-live", "/dashboard/jobs/"+live, "job-waiting", "/dashboard/jobs/"+waiting, "job-replay", "/dashboard/jobs/"+report+"/replay?at=4",
			"projects", "/dashboard/projects", "projects-weeks", "/dashboard/projects?weeks=all", "hook", "/dashboard/projects/"+hosted.ProjectID+"/hook",
			"chat", "/dashboard/projects/"+hosted.ProjectID+"/chat", "chat-none", "/dashboard/projects/"+put.ProjectID+"/chat",
			"chat-ended", "/dashboard/projects/"+hooked.ProjectID+"/chat",
			"webhook-secret", "/dashboard/projects/"+hooked.ProjectID+"/webhook/secret", "sessions", "/dashboard/sessions",
			"chosen", "/dashboard/jobs/chosen?job="+waiting+"&job="+report,
			"projects-archived", "/dashboard/projects?show=archived", "project-archived", "/dashboard/projects/"+put.ProjectID,
			"batch", "/dashboard/batches/"+batch, "batches", "/dashboard/batches", "loop", "/dashboard/loops/"+loop, "credits", "/dashboard/credits",
			"statement", "/dashboard/credits/statement", "keys", "/dashboard/keys", "evidence", "/dashboard/evidence", "readers", "/dashboard/readers",
			"device", "/dashboard/device", "device-code", "/dashboard/device?code="+begun.UserCode, "device-done", "/dashboard/device?done=confirmed",
			"members", "/dashboard/members", "looks-empty", "/dashboard/looks", "activity", "/dashboard/activity", "secrets", "/dashboard/secrets", "account", "/account", "passkey", "/account/passkeys/new",
			"confirm", "/signin/confirm", "confirm-form", "/signin/confirm?form=0195c6c0-0000-7000-8000-000000000000",
			"notifications", "/dashboard/notifications",
		),
		fresh.Sees(
			"welcome", "/dashboard", "jobs-empty", "/dashboard/jobs", "projects-empty", "/dashboard/projects", "sessions-empty", "/dashboard/sessions",
			"keys-empty", "/dashboard/keys", "readers-empty", "/dashboard/readers", "notifications-empty", "/dashboard/notifications",
			"secrets-empty", "/dashboard/secrets",
		),
		w.JoinedByPassword("penny", person.Grant{Role: person.Viewer, AccountID: empty}).Sees("confirm-password", "/signin/confirm", "account-password", "/account"),
		tries.Sees(
			"sandbox", "/dashboard/sandbox", "job-sandbox", "/dashboard/jobs/"+played,
		),
		checks.Sees(
			"account-checker", "/account",
		),
		runs.Sees(
			"account-operator", "/account",
		),
		webhooked(owner),
		[]pagetest.Seen{
			{Name: "nothing", Path: "/dashboard/jobs/none", As: owner, Allow: "404"},
			{Name: "chosen-none", Path: "/dashboard/jobs/chosen", As: owner, Allow: "409"},
			{Name: "overview", Path: "/dashboard", As: owner, Look: brokenComesFirst},
			{Name: "project", Path: "/dashboard/projects/" + hosted.ProjectID, As: owner, Look: lastDayIsInSight},
			{Name: "job-disputed", Path: "/dashboard/jobs/" + contested, As: owner, Look: unfolded(1)},
			{Name: "job-disputed-developer", Path: "/dashboard/jobs/" + contested, As: develops, Look: unfolded(1)},
			{Name: "job-disputed-viewer", Path: "/dashboard/jobs/" + contested, As: views, Look: unfolded(0)},
			{Name: "job-disputed-shared", Path: "/shared/" + objections, Look: unfolded(0)},
		},
	)
	w.OpensAll("/", w.Accessible(seen...), []string{
		"/dashboard/jobs/{id}/report/{format}", "/dashboard/jobs/{id}/evidence/{evidence}", "/dashboard/jobs/{id}/recordings/{recording}",
		"/dashboard/jobs/{id}/recordings/{recording}/marks", "/shared/{token}/evidence/{evidence}", "/dashboard/notifications/news",
	})
}

// unfolded opens all that is folded on a report with four disputes, and checks that so many
// items can be disputed still.
func unfolded(forms int) func(*browsertest.Tab) {
	return func(tab *browsertest.Tab) {
		tab.Wait(fmt.Sprintf(`(page => {
			page.querySelectorAll('details:not(.menu)').forEach(d => { d.open = true })
			const words = [...page.querySelectorAll('.dispute')].map(d => d.innerText)
			return words.length === 4 && words.filter(w => w.includes('has not decided yet')).length === 2 && words.filter(w => w.includes('The checker answered')).length === 3 &&
				page.querySelectorAll('form[action$="/disputes"]').length === %d
		})(document.querySelector('main'))`, forms))
	}
}

// brokenComesFirst checks that the overview tells what is broken before what will be.
func brokenComesFirst(tab *browsertest.Tab) {
	tab.Wait(`(words => words.includes('Broken') && words.includes('Warning') && words.lastIndexOf('Broken') < words.indexOf('Warning'))([...document.querySelectorAll('.need .verdict')].map((v) => v.textContent))`)
}

// lastDayIsInSight checks that a phone begins at the end of the matrix.
func lastDayIsInSight(tab *browsertest.Tab) {
	tab.Screen(390, 800, false)
	tab.Open(browsertest.Eval[string](tab, "location.href"))
	tab.Wait(`(matrix => matrix.scrollWidth > matrix.parentElement.clientWidth && matrix.getBoundingClientRect().right <= matrix.parentElement.getBoundingClientRect().right + 1)(document.querySelector('.matrix'))`)
}
