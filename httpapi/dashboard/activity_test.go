package dashboard_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"humanqa/domain"
	"humanqa/domain/command"
	"humanqa/domain/job"
	"humanqa/domain/person"
	"humanqa/internal/testing/browsertest"
	"humanqa/internal/testing/must"
	"humanqa/internal/testing/pagetest"
	"humanqa/projections/activity"
)

func withLogin(in *command.SubmitJob) {
	in.Credentials, in.AccessInstructions = &command.Credentials{Username: "u", Password: "a password"}, "ring twice"
}

// reveals shows the claim's secrets to its checker.
func (c claim) reveals() {
	c.w.T.Helper()
	brief, at, err := c.w.Commands.Reveal(c.w.T.Context(), pagetest.ByChecker(c.CheckerID), c.Claim)
	c.w.Shown(at, err)
	if brief.Credentials == nil {
		c.w.T.Error("the checker sees no login")
	}
}

// An owner sees which checker saw which secret, and what to do then; another account sees
// nothing of it.
func TestAnOwnerFindsWhoSawSecrets(t *testing.T) {
	t.Parallel()
	w := setup(t)
	account, other := w.account("Acme", 100), w.account("Globex", 100)
	owner := w.Joined("Ann Example", person.Grant{Role: person.Owner, AccountID: account})
	project, err := w.Commands.CreateProject(t.Context(), pagetest.Client(account), command.CreateProject{Name: "Shop"})
	w.Shown(project.Position, err)
	id := w.test(account, "Behind the login", func(in *command.SubmitJob) { withLogin(in); in.ProjectID = project.ProjectID })
	w.claims(w.Checker("ann"), w.test(other, "Of others", withLogin)).reveals()
	tests := w.claims(w.Checker("bob"), id)
	tests.reveals()

	tab := &clicks{Tab: w.Tab(owner)}
	tab.Screen(1280, 800, false)
	tab.Open(w.Origin + "/dashboard")
	tab.click(`nav a[href="/dashboard/members"]`, "Invite a person")
	tab.click(`a[href="/dashboard/secrets"]`, "Change a login once its test has ended.")
	tab.WaitText("saw the credentials")
	tab.WaitText("saw the access instructions")
	if page := browsertest.Eval[string](tab.Tab, `document.body.innerText`); strings.Contains(page, "Of others") || strings.Contains(page, "a password") {
		t.Errorf("the page says too much: %s", page)
	}
	tab.Axe("who saw secrets")
	tab.Shot("who-saw-secrets")
	checker := browsertest.Eval[string](tab.Tab, `document.querySelector('tbody a.title').innerText`)
	tab.click(`tbody a[href^="/dashboard/jobs/"]`, checker+" saw the credentials")
	tab.Screen(320, 800, false)
	tab.Open(w.Origin + "/dashboard/secrets?project=" + project.ProjectID)
	tab.WaitText(checker)
	tab.Open(w.Origin + "/dashboard/secrets?project=none")
	tab.WaitText("No checker saw a secret")
}

// The activity names people, keys, hooks and staff, and what is left of those that are gone.
func TestAnOwnerFindsWhoDidWhat(t *testing.T) {
	t.Parallel()
	w := setup(t)
	account := w.account("Acme", 100)
	owner := w.Joined("Ann Example", person.Grant{Role: person.Owner, AccountID: account})
	grant := person.Grant{Role: person.Developer, AccountID: account}
	left, erased := w.Joined("Lea Left", grant), w.Joined("Eve Erased", grant)
	by := func(actor string) command.Cause {
		return command.Cause{CommandID: domain.NewCommandID(), Actor: actor, AccountID: account}
	}
	key, err := w.Commands.IssueKey(t.Context(), by("person:"+owner.ID), account, command.IssueKey{Name: "Pipeline", Scope: "full"})
	w.Shown(key.Position, err)
	project, err := w.Commands.CreateProject(t.Context(), by("key:"+key.KeyID), command.CreateProject{Name: "Shop"})
	w.Shown(project.Position, err)
	for actor, title := range map[string]string{
		"key:" + key.KeyID: "By a key", "person:" + left.ID: "By Lea", "person:" + erased.ID: "By Eve", "hook:" + project.ProjectID: "By a hook",
	} {
		out, err := w.Commands.SubmitJob(t.Context(), by(actor), command.SubmitJob{
			Submission: job.Submission{URL: "https://shop.example.com", Title: title, Type: job.GeneralQA, Source: "api", ProjectID: project.ProjectID},
			Items:      []command.NewItem{{Description: "It opens", Severity: job.Major}},
		})
		w.Shown(out.Position, err)
	}
	w.Shown(w.Commands.RevokeKey(t.Context(), by("operator:olga"), account, key.KeyID))
	w.Shown(w.Commands.RevokeRole(t.Context(), by("person:"+owner.ID), left.ID, grant))
	w.Shown(w.Commands.RevokeRole(t.Context(), by("person:"+owner.ID), erased.ID, grant))
	w.Must(w.Credentials.Erase(t.Context(), erased.ID))

	tab := &clicks{Tab: w.Tab(owner)}
	tab.Screen(1280, 800, false)
	tab.Open(w.Origin + "/dashboard")
	tab.click(`nav a[href="/dashboard/members"]`, "Invite a person")
	tab.click(`a[href="/dashboard/activity"]`, "What people, keys and hooks did")
	rows := browsertest.Eval[string](tab.Tab, `[...document.querySelectorAll('tbody tr')].map(r => [...r.cells].slice(0, 3).map(c => c.innerText.trim()).join(' | ')).join('\n')`)
	says(t, rows,
		"Ann Example | created a key | API key Pipeline (revoked)", "API key Pipeline (revoked) | created the project | Shop",
		"API key Pipeline (revoked) | submitted the test | By a key", "Lea Left | submitted the test | By Lea",
		"A person who was erased | submitted the test | By Eve", "Deploy hook | submitted the test | By a hook",
		"Operator | revoked a key | API key Pipeline (revoked)", "Ann Example | removed a member (developer) | Lea Left",
	)
	if strings.Contains(rows, "Eve") && !strings.Contains(rows, "By Eve") || strings.Contains(rows, "olga") {
		t.Errorf("an erased person or an operator is named:\n%s", rows)
	}
	tab.Axe("the activity")
	tab.Shot("who-did-what")
	tab.click(`tbody a[href*="`+left.ID+`"]`, "By Lea")
	if n := browsertest.Eval[int](tab.Tab, `document.querySelectorAll('tbody tr').length`); n != 1 {
		t.Errorf("%d facts of Lea", n)
	}
	statement := w.Call(owner, "GET", "/dashboard/credits/statement", nil).Body
	says(t, statement, "API key Pipeline (revoked)", "Lea Left", "A person who was erased", "Operator")
	of := w.Call(owner, "GET", "/dashboard/activity?project="+project.ProjectID, nil).Body
	says(t, of, "created the project", "By a hook")
	if strings.Contains(of, "created a key") {
		t.Error("the project's activity has the account's")
	}
}

// The test itself says who submitted, cancelled, answered and rated it. Whoever opens a
// shared link learns none of it, and no page names a person that tests.
func TestATestNamesItsAuthors(t *testing.T) {
	t.Parallel()
	w := setup(t)
	account := w.account("Acme", 100)
	dev := w.Joined("Dee Developer", person.Grant{Role: person.Developer, AccountID: account})
	viewer := w.Joined("Vera Viewer", person.Grant{Role: person.Viewer, AccountID: account})
	cause := func() command.Cause {
		return command.Cause{CommandID: domain.NewCommandID(), Actor: "person:" + dev.ID, AccountID: account}
	}
	id := w.test(account, "Behind the login", withLogin)
	tests := w.claims(w.Checker("bob"), id)
	tests.reveals()
	question := tests.asks(0, "Which door?")
	_, at, err := w.Commands.AnswerQuestion(t.Context(), cause(), id, command.AnswerQuestion{QuestionID: question, Text: "The left one."})
	w.Shown(at, err)
	for n := range 3 {
		tests.checks(n, job.ItemPass, "")
	}
	tests.completes("Done.")
	w.Shown(w.Commands.RateJob(t.Context(), cause(), id, 4, ""))
	head, history, _ := strings.Cut(w.Call(viewer, "GET", "/dashboard/jobs/"+id, nil).Body, `id="what-happened"`)
	checker := regexp.MustCompile(`Checker [0-9A-F]{4}`).FindString(head)
	says(t, head, " by API key</span>")
	says(t, history, checker+" saw the credentials")
	says(t, history, "Submitted", "API key", "Answered", "Dee Developer", "Dee Developer rated the report 4 of 5", "saw the credentials")
	says(t, w.Call(viewer, "GET", "/dashboard/jobs/"+id+"/replay?at=3", nil).Body, "saw secrets")
	share, err := w.Credentials.Share(t.Context(), account, id, dev.ID, 1e12)
	w.Must(err)
	if shared := w.Call(guest{}, "GET", "/shared/"+share, nil).Body; checker == "" || strings.Contains(shared, "Dee") || strings.Contains(shared, checker) || strings.Contains(shared, "saw the credentials") {
		t.Error("a shared link names its account's people, or its checkers")
	}
	for _, path := range []string{"/dashboard/activity", "/dashboard/secrets"} {
		if got := w.Call(dev, "GET", path, nil); got.Status != 403 {
			t.Errorf("%s for a developer: %d", path, got.Status)
		}
	}
}

// A kind without words would be shown as the type of its event.
func TestEveryKindOfFactHasWords(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../ui/templates/_fact.html")
	must.NoError(t, err)
	for _, kind := range activity.Kinds() {
		if !strings.Contains(string(text), `eq .Kind "`+kind+`"`) {
			t.Errorf("%s has no words", kind)
		}
	}
	if words, kinds := strings.Count(string(text), "eq .Kind "), len(activity.Kinds()); words != kinds {
		t.Errorf("%d words for %d kinds", words, kinds)
	}
}
