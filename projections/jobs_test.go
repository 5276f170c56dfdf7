package projections

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"humanqa/domain"
	"humanqa/domain/account"
	"humanqa/domain/checker"
	"humanqa/domain/credits"
	"humanqa/domain/job"
)

// same compares as JSON, which shows pointers by what they point to.
func same(t *testing.T, got, want any) {
	t.Helper()
	if reflect.DeepEqual(got, want) {
		return
	}
	g, err := json.MarshalIndent(got, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	w, err := json.MarshalIndent(want, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	t.Errorf("got %s\nwant %s", g, w)
}

func at(minutes int) *time.Time {
	t := noon.Add(time.Duration(minutes) * time.Minute)
	return &t
}

func TestTheLifeOfAJobAsItsClientSeesIt(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.run(w.sup)
	stream := domain.JobStream("j1")
	target := job.Target{Device: "phone", OS: "android"}
	read := func() Job {
		t.Helper()
		w.reach(w.sup)
		j, err := w.reads.Jobs.Job(w.ctx(), "acc", "j1")
		if err != nil {
			t.Fatal(err)
		}
		return j
	}

	submitted := created("acc", func(e *job.Created) {
		e.ProjectID, e.ParentID, e.Feature, e.Target, e.Urgent = "p1", "j0", "shoes", target, true
		e.Credentials, e.AccessInstructions = "sealed-credentials", "sealed-instructions"
		e.CreatedAt = noon.Add(123456 * time.Nanosecond)
	})
	w.log.append(stream, submitted)
	want := Job{
		ID: "j1", AccountID: "acc", ProjectID: "p1", Status: job.Pending, Title: "checkout",
		URL: "https://app.example", Description: "buy a pair of shoes", Feature: "shoes",
		Type: job.PaymentFlow, TypeEcho: "Payment Flow", Urgent: true, SLAMinutes: 60, Price: 5, CreditsUsed: 5,
		Source: "api", ParentID: "j0", Target: target, CreatedAt: noon, DueAt: *at(60),
		Items: []job.ReportItem{
			{Item: submitted.Items[0], Status: job.ItemPending},
			{Item: submitted.Items[1], Status: job.ItemPending},
		},
	}
	same(t, read(), want)

	w.log.append(stream, claimed("ann"))
	want.Status, want.ClaimedAt, want.DueAt = job.Claimed, at(1), *at(90)
	same(t, read(), want)

	w.log.append(stream,
		&job.ItemChecked{ItemID: "i1", Status: job.ItemSkip, Reason: "blocked", At: noon},
		&job.ItemChecked{ItemID: "i1", Status: job.ItemFail, Note: "declined", Severity: job.Major, ScreenshotURL: "/s.png", At: noon},
		&job.FindingAdded{Item: job.Item{ID: "f1", Description: "typo", Severity: job.Minor}, Status: job.ItemFail, Note: "a blank too many", At: noon})
	want.Items[0].Status, want.Items[0].Note, want.Items[0].Severity = job.ItemFail, "declined", job.Major
	want.Items[0].ScreenshotURL = "/s.png"
	want.Items = append(want.Items, job.ReportItem{
		Item: job.Item{ID: "f1", Description: "typo", Severity: job.Minor}, Status: job.ItemFail, Note: "a blank too many",
	})
	same(t, read(), want)

	w.log.append(stream, &job.Released{Token: 1, Reason: "checker", At: noon})
	want.Status, want.ClaimedAt, want.DueAt = job.Pending, nil, *at(60)
	same(t, read(), want)
	if _, err := w.reads.Jobs.Report(w.ctx(), "acc", "j1"); !domain.IsKind(err, domain.KindNotFound) {
		t.Errorf("a job that is not completed has a report: %v", err)
	}

	done := completed("fail")
	w.log.append(stream, claimed("bob"), done)
	want.Status, want.ClaimedAt, want.DueAt, want.CompletedAt = job.Completed, at(1), *at(90), at(30)
	want.ReportID, want.OverallStatus, want.Items, want.AIReport = "r1", "fail", done.Items, AIReportGenerating
	same(t, read(), want)
	if !want.IsFinal() {
		t.Error("a completed job is final")
	}

	report, err := w.reads.Jobs.Report(w.ctx(), "acc", "j1")
	if err != nil {
		t.Fatal(err)
	}
	same(t, report, Report{
		ID: "r1", JobID: "j1", OverallStatus: "fail", PassCount: 1, FailCount: 1, Summary: "mostly fine",
		RecordingURL: "https://rec.example/1", Items: done.Items, CreatedAt: *at(30),
	})
	if n := w.count("SELECT COUNT(*) FROM readmodel.jobs j WHERE j::text LIKE '%sealed%'"); n > 0 {
		t.Error("credentials reached the read model")
	}
	w.sound(w.sup, "jobs")
}

func TestACancelledJobCostsNothing(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.run(w.sup)
	w.log.append(domain.JobStream("j1"), created("acc"), &job.CancelledBy{Reason: "client", Refund: 5, At: noon})
	w.log.append(domain.CreditsStream("acc"), &credits.Granted{LotID: "l", Amount: 5, BalanceAfter: 5},
		&credits.Debited{JobID: "j1", Amount: 5, Parts: []credits.Part{{LotID: "l", Amount: 5}}},
		&credits.Refunded{JobID: "j1", Amount: 5, Parts: []credits.Part{{LotID: "l", Amount: 5}}, BalanceAfter: 5},
		&credits.Refunded{JobID: "never-came", Parts: []credits.Part{}, BalanceAfter: 5})
	w.reach(w.sup)
	j, err := w.reads.Jobs.Job(w.ctx(), "acc", "j1")
	if err != nil {
		t.Fatal(err)
	}
	if j.Status != job.Cancelled || j.CreditsUsed != 0 || j.CancelReason != "client" || !j.CancelledAt.Equal(noon) || !j.IsFinal() {
		t.Errorf("got %+v", j)
	}
}

func TestAnotherAccountsJobDoesNotExist(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.run(w.sup)
	w.log.append(domain.JobStream("j1"), created("acc"), claimed("ann"), completed("pass"))
	w.reach(w.sup)
	if _, err := w.reads.Jobs.Job(w.ctx(), "other", "j1"); !domain.IsKind(err, domain.KindNotFound) {
		t.Errorf("read: %v", err)
	}
	if _, err := w.reads.Jobs.Report(w.ctx(), "other", "j1"); !domain.IsKind(err, domain.KindNotFound) {
		t.Errorf("report: %v", err)
	}
	jobs, total, err := w.reads.Jobs.List(w.ctx(), "other", JobFilter{Limit: 10})
	if err != nil || len(jobs) != 0 || total != 0 {
		t.Errorf("list: %d jobs of %d, %v", len(jobs), total, err)
	}
}

func TestListsAreFilteredOrderedAndCounted(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.run(w.sup)
	for i := range 9 {
		w.log.append(domain.JobStream(fmt.Sprint("j", i)), created("acc", func(e *job.Created) {
			e.ProjectID = []string{"", "p1", "p2"}[i%3]
			e.CreatedAt = noon.Add(time.Duration(i/2) * time.Minute) // two by two at the same instant
		}))
	}
	w.log.append(domain.JobStream("j4"), claimed("ann"))
	w.log.append(domain.JobStream("j7"), claimed("ann"), completed("pass"))
	w.log.append(domain.JobStream("x"), created("other"))
	w.reach(w.sup)
	tests := []struct {
		name   string
		filter JobFilter
		want   string
		total  int
	}{
		{"all, the newest first, ties by id", JobFilter{Limit: 20}, "j8 j7 j6 j5 j4 j3 j2 j1 j0", 9},
		{"a page", JobFilter{Limit: 3, Offset: 2}, "j6 j5 j4", 9},
		{"past the end", JobFilter{Limit: 3, Offset: 20}, "", 9},
		{"by status", JobFilter{Status: job.Claimed, Limit: 20}, "j4", 1},
		{"by project", JobFilter{ProjectID: "p1", Limit: 20}, "j7 j4 j1", 3},
		{"by both", JobFilter{ProjectID: "p1", Status: job.Pending, Limit: 20}, "j1", 1},
		{"by an unknown project", JobFilter{ProjectID: "nope", Limit: 20}, "", 0},
		{"strictly since", JobFilter{Since: at(3), Limit: 20}, "j8", 1},
		{"since, paged", JobFilter{Since: at(0), Limit: 2, Offset: 1}, "j7 j6", 7},
		{"since, by project and status", JobFilter{Since: at(0), ProjectID: "p2", Status: job.Pending, Limit: 9}, "j8 j5 j2", 3},
	}
	for _, test := range tests {
		jobs, total, err := w.reads.Jobs.List(w.ctx(), "acc", test.filter)
		if err != nil {
			t.Fatal(err)
		}
		var ids []string
		for _, j := range jobs {
			ids = append(ids, j.ID)
		}
		if got := strings.Join(ids, " "); got != test.want || total != test.total {
			t.Errorf("%s: got %q of %d, want %q of %d", test.name, got, total, test.want, test.total)
		}
	}
}

func TestTheQueueShowsUrgentJobsFirstThenTheOldest(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.run(w.sup)
	w.log.append(domain.AccountStream("sandbox"), &account.Created{Name: "trial", Sandbox: true})
	w.log.append(domain.AccountStream("acc"), &account.Created{Name: "shop"})
	w.log.append(domain.CheckerStream("ann"), &checker.Created{Name: "ann", Hash: "h1", Accounts: []string{"anns"}})
	w.log.append(domain.CheckerStream("bob"), &checker.Created{Name: "bob", Hash: "h2"})
	submit := func(id, accountID string, minute int, change func(*job.Created)) {
		w.log.append(domain.JobStream(id), created(accountID, func(e *job.Created) {
			e.CreatedAt = *at(minute)
			change(e)
		}))
	}
	plain := func(*job.Created) {}
	urgent := func(e *job.Created) { e.Urgent = true }
	submit("newer", "acc", 2, plain)
	submit("older", "acc", 1, plain)
	submit("urgent", "acc", 3, urgent)
	submit("anns", "anns", 0, plain)
	submit("review", "acc", 0, func(e *job.Created) { e.Type = job.AIReview })
	submit("play", "sandbox", 0, urgent)
	submit("taken", "acc", 0, urgent)
	w.log.append(domain.JobStream("taken"), claimed("bob"))
	w.reach(w.sup)

	queue := func(checkerID string, limit int) string {
		jobs, err := w.reads.Jobs.Queue(w.ctx(), checkerID, limit)
		if err != nil {
			t.Fatal(err)
		}
		var ids []string
		for _, j := range jobs {
			ids = append(ids, j.ID)
		}
		return strings.Join(ids, " ")
	}
	if got := queue("ann", 10); got != "urgent older newer" {
		t.Errorf("ann's queue: %s", got)
	}
	if got := queue("bob", 10); got != "urgent anns older newer" {
		t.Errorf("bob's queue: %s", got)
	}
	if got := queue("bob", 1); got != "urgent" {
		t.Errorf("one of bob's queue: %s", got)
	}
	jobs, err := w.reads.Jobs.Queue(w.ctx(), "bob", 1)
	if err != nil {
		t.Fatal(err)
	}
	same(t, jobs[0], QueuedJob{
		ID: "urgent", Title: "checkout", URL: "https://app.example", Type: job.PaymentFlow, TypeEcho: "Payment Flow",
		Urgent: true, SLAMinutes: 60, CreatedAt: *at(3), DueAt: *at(63),
	})

	next := func(checkerID string, skip ...string) string {
		id, ok, err := w.reads.Jobs.NextForChecker(w.ctx(), checkerID, skip)
		if err != nil || ok != (id != "") {
			t.Fatalf("next: %q, %v, %v", id, ok, err)
		}
		return id
	}
	if got := next("ann"); got != "urgent" {
		t.Errorf("next for ann: %s", got)
	}
	if got := next("ann", "urgent", "older"); got != "newer" {
		t.Errorf("next for ann but two: %s", got)
	}
	if got := next("ann", "urgent", "older", "newer"); got != "" {
		t.Errorf("next for ann but all: %s", got)
	}
}
