package console_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"humanqa/domain/command"
	"humanqa/domain/job"
	"humanqa/domain/person"
	"humanqa/internal/testing/pagetest"
)

// A number means the same on each page that shows it: the client's overview, lists and
// projects, and the operator's console. No test is overdue before its time limit.
func TestCountsAgreeOnEveryPage(t *testing.T) {
	t.Parallel()
	w := setup(t)
	account := w.Account("Acme", 100, false)
	owner, operator := w.Joined("Ann", person.Grant{Role: person.Owner, AccountID: account}), w.operates("Olga")
	project, err := w.Commands.CreateProject(t.Context(), pagetest.Client(account), command.CreateProject{Name: "Shop", WebhookURL: "https://hooks.example.com/x"})
	w.Shown(project.Position, err)
	submits := func(urgent bool, more ...string) string {
		t.Helper()
		out, err := w.Commands.SubmitJob(t.Context(), pagetest.Client(account), command.SubmitJob{
			Submission: job.Submission{
				URL: "https://shop.example.com", Title: strings.Join(append(more, "Checkout"), " "), Type: job.GeneralQA, Source: "api",
				ProjectID: project.ProjectID, Urgent: urgent,
			},
			Items: []command.NewItem{{Description: "It opens", Severity: job.Major}},
		})
		w.Shown(out.Position, err)
		return out.JobID
	}
	for i := range 9 { // more than the overview shows
		submits(i < 2)
	}
	claims := func() (command.Claim, string) {
		t.Helper()
		checker, id := w.Checker(fmt.Sprint(time.Now().UnixNano())), submits(false)
		out, err := w.Commands.ClaimJob(t.Context(), pagetest.ByChecker(checker), checker, id)
		w.Shown(out.Position, err)
		return command.Claim{CheckerID: checker, JobID: id, Token: out.Token}, out.Checklist[0].ID
	}
	claims()
	for i, verdict := range []job.ItemStatus{job.ItemPass, job.ItemFail, job.ItemPass} {
		c, item := claims()
		by := pagetest.ByChecker(c.CheckerID)
		_, at, err := w.Commands.CheckItem(t.Context(), by, c, command.CheckItem{ItemID: item, Status: verdict, Note: "Seen."})
		w.Shown(at, err)
		_, at, err = w.Commands.CompleteJob(t.Context(), by, c, command.CompleteJob{Summary: fmt.Sprint("Done ", i)})
		w.Shown(at, err)
	}
	gone := submits(false, "Cancelled")
	cancelled, err := w.Commands.CancelJob(t.Context(), pagetest.Client(account), gone, "")
	w.Shown(cancelled.Position, err)

	rows := func(g guest, path, id string) int {
		t.Helper()
		return strings.Count(w.has(g, path), `<tr id="`+id)
	}
	stat := func(page, name, want string) {
		t.Helper()
		got := regexp.MustCompile(`<dt>` + name + `</dt><dd>(?:<a[^>]*>)?([^<]*)`).FindStringSubmatch(page)
		if got == nil || got[1] != want {
			t.Errorf("%s is %q, want %s", name, got, want)
		}
	}
	waiting, claimed, done := rows(owner, "/dashboard/jobs?status=pending", "job-"), rows(owner, "/dashboard/jobs?status=claimed", "job-"), rows(owner, "/dashboard/jobs?status=completed", "job-")
	failed, all := rows(owner, "/dashboard/jobs?verdict=fail", "job-"), rows(owner, "/dashboard/jobs?project="+project.ProjectID, "job-")
	if got := fmt.Sprint(waiting, claimed, done, failed, all); got != "9 1 3 1 14" {
		t.Fatalf("the lists have %s rows", got)
	}
	overview := w.has(owner, "/dashboard")
	stat(overview, "Waiting", fmt.Sprint(waiting))
	stat(overview, "Testing", fmt.Sprint(claimed))
	stat(overview, "Completed", fmt.Sprint(done))
	day := regexp.MustCompile(`<li id="day-` + project.ProjectID + `">.*`).FindString(overview)
	if !strings.Contains(day, fmt.Sprintf(">%d tests</a>", all)) || !strings.Contains(day, fmt.Sprintf(">%d failed</a>", failed)) {
		t.Errorf("the day of the project is %s, want %d tests of which %d failed", day, all, failed)
	}
	w.has(owner, "/dashboard/projects", `<tr id="project-`+project.ProjectID)
	console := w.has(operator, "/console")
	stat(console, "Waiting", fmt.Sprint(waiting))
	stat(console, "Testing", fmt.Sprint(claimed))
	stat(console, "Completed", fmt.Sprint(done))
	list := w.has(operator, "/console/jobs")
	for word, n := range map[string]int{"Waiting": waiting, "Testing": claimed, "Completed": done} {
		if got := strings.Count(list, `">`+word+`</span>`); got != n {
			t.Errorf("the console calls %d tests %s, want %d", got, word, n)
		}
	}
	if n := rows(operator, "/console/jobs?status=pending", "job-"); n != waiting {
		t.Errorf("the console lists %d waiting tests, want %d", n, waiting)
	}

	hook := w.has(owner, "/dashboard/projects/"+project.ProjectID+"/webhook")
	if n := strings.Count(hook, `<tr class="group">`); n == 0 || n != strings.Count(hook, `Checkout</a></span></th>`) {
		t.Errorf("%d tests have deliveries on the page, and not all have their name", n)
	}
	for _, page := range []string{overview, console, hook} {
		if strings.Contains(page, " overdue") {
			t.Error("a page calls overdue what is not")
		}
	}
}

// The console's problems know the queue: a test that is due soon is one before it is overdue.
func TestATestThatIsDueSoonIsAProblemOfTheConsole(t *testing.T) {
	t.Parallel()
	w := setup(t)
	account, operator := w.Account("Acme", 100, false), w.operates("Olga")
	for _, minutes := range []int{60, 9} {
		out, err := w.Commands.SubmitJob(t.Context(), pagetest.Client(account), command.SubmitJob{
			Submission: job.Submission{URL: "https://shop.example.com", Title: "Checkout", Type: job.GeneralQA, Source: "api", SLAMinutes: minutes},
			Items:      []command.NewItem{{Description: "It opens", Severity: job.Major}},
		})
		w.Shown(out.Position, err)
		if page := w.Call(operator, "GET", "/console", nil).Body; strings.Contains(page, "1 test in the queue must be done within ten minutes.") != (minutes == 9) {
			t.Errorf("the console is wrong about a test of %d minutes", minutes)
		}
	}
}
