package jobs

import (
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
	"humanqa/internal/testing/modeltest"
	"humanqa/internal/testing/must"
)

func TestTheLifeOfAJobAsItsClientSeesIt(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.Run(w.Sup)
	stream := domain.JobStream("j1")
	target := job.Target{Device: "phone", OS: "android"}
	read := func() Job {
		t.Helper()
		w.Reach(w.Sup)
		j, err := w.reads.Job(w.Ctx(), "acc", "j1")
		must.NoError(t, err)
		return j
	}

	submitted := modeltest.Created("acc", func(e *job.Created) {
		e.ProjectID, e.ParentID, e.Feature, e.Target, e.Urgent = "p1", "j0", "shoes", target, true
		e.Credentials, e.AccessInstructions = "sealed-credentials", "sealed-instructions"
		e.CreatedAt = modeltest.Noon.Add(123456 * time.Nanosecond)
	})
	w.Log.Record(stream, submitted)
	want := Job{
		Outline: Outline{
			ID: "j1", Submission: submitted.Submission,
			Progress: Progress{Status: job.StatusPending, CreatedAt: modeltest.Noon, DueAt: *modeltest.At(60)},
		},
		Items: []job.ReportItem{
			{Item: submitted.Items[0], Status: job.ItemPending},
			{Item: submitted.Items[1], Status: job.ItemPending},
		},
		Recordings: []job.Recording{}, Questions: []job.Question{}, Disputes: []job.Dispute{}, Returns: []Return{},
	}
	modeltest.Same(t, read(), want)
	if got := read().CreditsUsed(); got != 5 {
		t.Errorf("it cost %d credits", got)
	}

	w.Log.Record(stream, modeltest.Claimed("ann"))
	want.Status, want.ClaimedAt, want.DueAt = job.StatusClaimed, modeltest.At(1), *modeltest.At(90)
	modeltest.Same(t, read(), want)

	w.Log.Record(stream,
		&job.ItemChecked{ItemID: "i1", Status: job.ItemSkip, Reason: "blocked", At: modeltest.Noon},
		&job.ItemChecked{ItemID: "i1", Status: job.ItemFail, Note: "declined", Severity: job.Major, ScreenshotURL: "/s.png", At: modeltest.Noon},
		&job.FindingAdded{Item: job.Item{ID: "f1", Description: "typo", Severity: job.Minor}, Status: job.ItemFail, Note: "a blank too many", At: modeltest.Noon})
	want.Items[0].Status, want.Items[0].Note, want.Items[0].Severity = job.ItemFail, "declined", job.Major
	want.Items[0].ScreenshotURL = "/s.png"
	want.Items = append(want.Items, job.ReportItem{
		Item: job.Item{ID: "f1", Description: "typo", Severity: job.Minor}, Status: job.ItemFail, Note: "a blank too many",
	})
	modeltest.Same(t, read(), want)

	w.Log.Record(stream, &job.Released{Token: 1, Reason: "checker", At: modeltest.Noon})
	want.Status, want.ClaimedAt, want.DueAt = job.StatusPending, nil, *modeltest.At(60)
	want.Returns = append(want.Returns, Return{Revision: 5, Why: "checker"})
	modeltest.Same(t, read(), want)
	if _, err := w.reads.Report(w.Ctx(), "acc", "j1"); !domain.IsKind(err, domain.KindNotFound) {
		t.Errorf("a job that is not completed has a report: %v", err)
	}

	done := modeltest.Completed("fail")
	w.Log.Record(stream, modeltest.Claimed("bob"), done)
	want.Status, want.ClaimedAt, want.DueAt, want.CompletedAt = job.StatusCompleted, modeltest.At(1), *modeltest.At(90), modeltest.At(30)
	want.ReportID, want.OverallStatus, want.Items = "r1", "fail", done.Items
	modeltest.Same(t, read(), want)
	if got := read().AIReport(); got != AIReportGenerating {
		t.Errorf("the analysis is %q", got)
	}
	if !want.IsFinal() {
		t.Error("a completed job is final")
	}

	report, err := w.reads.Report(w.Ctx(), "acc", "j1")
	must.NoError(t, err)
	modeltest.Same(t, report, Report{
		ID: "r1", JobID: "j1", OverallStatus: "fail", PassCount: 1, FailCount: 1, Summary: "mostly fine",
		RecordingURL: "https://rec.example/1", Recordings: []job.Recording{}, Questions: []job.Question{}, Disputes: []job.Dispute{}, Items: done.Items, CreatedAt: *modeltest.At(30),
	})
	if n := w.Count("SELECT COUNT(*) FROM readmodel.jobs j WHERE j::text LIKE '%sealed%'"); n > 0 {
		t.Error("credentials reached the read model")
	}
	w.Sound(w.Sup, "jobs")
}

func TestACancelledJobCostsNothing(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.Run(w.Sup)
	w.Log.Record(domain.JobStream("j1"), modeltest.Created("acc"), &job.Cancelled{Reason: "client", Refund: 5, At: modeltest.Noon})
	w.Log.Record(domain.CreditsStream("acc"), &credits.Granted{LotID: "l", Amount: 5, BalanceAfter: 5},
		&credits.Debited{JobID: "j1", Amount: 5, Parts: []credits.Part{{LotID: "l", Amount: 5}}},
		&credits.Refunded{JobID: "j1", Amount: 5, Parts: []credits.Part{{LotID: "l", Amount: 5}}, BalanceAfter: 5},
		&credits.Refunded{JobID: "never-came", Parts: []credits.Part{}, BalanceAfter: 5})
	w.Reach(w.Sup)
	j, err := w.reads.Job(w.Ctx(), "acc", "j1")
	must.NoError(t, err)
	if j.Status != job.StatusCancelled || j.CreditsUsed() != 0 || j.CancelReason != "client" || !j.CancelledAt.Equal(modeltest.Noon) || !j.IsFinal() {
		t.Errorf("got %+v", j)
	}
}

func TestAnotherAccountsJobDoesNotExist(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.Run(w.Sup)
	w.Log.Record(domain.JobStream("j1"), modeltest.Created("acc"), modeltest.Claimed("ann"), modeltest.Completed("pass"))
	w.Reach(w.Sup)
	if _, err := w.reads.Job(w.Ctx(), "other", "j1"); !domain.IsKind(err, domain.KindNotFound) {
		t.Errorf("read: %v", err)
	}
	if _, err := w.reads.Report(w.Ctx(), "other", "j1"); !domain.IsKind(err, domain.KindNotFound) {
		t.Errorf("report: %v", err)
	}
	jobs, total, err := w.reads.List(w.Ctx(), "other", Filter{Limit: 10})
	if err != nil || len(jobs) != 0 || total != 0 {
		t.Errorf("list: %d jobs of %d, %v", len(jobs), total, err)
	}
}

func TestTheTestsOfADayAreSummedByBatchAndProject(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.Run(w.Sup)
	created := func(id string, change func(*job.Created)) {
		w.Log.Record(domain.JobStream(id), modeltest.Created("acc", change))
	}
	for i := range 3 {
		created(fmt.Sprint("b", i), func(e *job.Created) {
			e.BatchID, e.BatchIndex, e.ProjectID, e.Title = "batch", i, fmt.Sprint("p", i), fmt.Sprint("The ", i)
		})
	}
	for i := range 2 {
		created(fmt.Sprint("p", i), func(e *job.Created) { e.ProjectID = "p1" })
	}
	created("alone", func(*job.Created) {})
	created("older", func(e *job.Created) { e.CreatedAt = modeltest.Noon.Add(-time.Hour) })
	w.Log.Record(domain.JobStream("theirs"), modeltest.Created("other"))
	w.Log.Record(domain.JobStream("b1"), modeltest.Claimed("ann"), modeltest.Completed("pass"))
	w.Log.Record(domain.JobStream("p0"), modeltest.Claimed("ann"), modeltest.Completed("fail"))
	w.Reach(w.Sup)
	want := []BatchSummary{
		{ProjectID: "p1", FirstTitle: "checkout", Jobs: 2, Fail: 1, Open: 1, Used: 10, CreatedAt: modeltest.Noon},
		{FirstTitle: "checkout", Jobs: 1, Open: 1, Used: 5, CreatedAt: modeltest.Noon},
		{ID: "batch", FirstTitle: "The 0", Jobs: 3, Pass: 1, Open: 2, Used: 15, CreatedAt: modeltest.Noon},
	}
	for limit := range 4 {
		day, total, err := w.reads.Since(w.Ctx(), "acc", modeltest.Noon.Add(-time.Minute), limit)
		must.NoError(t, err)
		for i := range day {
			day[i].CreatedAt = day[i].CreatedAt.UTC()
		}
		if total != 3 || len(day) != limit {
			t.Fatalf("%d of %d groups", len(day), total)
		}
		for i := range day {
			modeltest.Same(t, day[i], want[i])
		}
	}
}

func TestListsAreFilteredOrderedAndCounted(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.Run(w.Sup)
	for i := range 9 {
		w.Log.Record(domain.JobStream(fmt.Sprint("j", i)), modeltest.Created("acc", func(e *job.Created) {
			e.ProjectID = []string{"", "p1", "p2"}[i%3]
			e.CreatedAt = modeltest.Noon.Add(time.Duration(i/2) * time.Minute) // two by two at the same instant
		}))
	}
	w.Log.Record(domain.JobStream("j4"), modeltest.Claimed("ann"))
	w.Log.Record(domain.JobStream("j7"), modeltest.Claimed("ann"), modeltest.Completed("pass"))
	w.Log.Record(domain.JobStream("x"), modeltest.Created("other"))
	w.Reach(w.Sup)
	tests := []struct {
		name   string
		filter Filter
		want   string
		total  int
	}{
		{"all, the newest first, ties by id", Filter{Limit: 20}, "j8 j7 j6 j5 j4 j3 j2 j1 j0", 9},
		{"a page", Filter{Limit: 3, Offset: 2}, "j6 j5 j4", 9},
		{"past the end", Filter{Limit: 3, Offset: 20}, "", 9},
		{"by status", Filter{Status: job.StatusClaimed, Limit: 20}, "j4", 1},
		{"by project", Filter{ProjectID: "p1", Limit: 20}, "j7 j4 j1", 3},
		{"by both", Filter{ProjectID: "p1", Status: job.StatusPending, Limit: 20}, "j1", 1},
		{"by an unknown project", Filter{ProjectID: "nope", Limit: 20}, "", 0},
		{"strictly since", Filter{Since: modeltest.At(3), Limit: 20}, "j8", 1},
		{"since, paged", Filter{Since: modeltest.At(0), Limit: 2, Offset: 1}, "j7 j6", 7},
		{"since, by project and status", Filter{Since: modeltest.At(0), ProjectID: "p2", Status: job.StatusPending, Limit: 9}, "j8 j5 j2", 3},
	}
	for _, test := range tests {
		jobs, total, err := w.reads.List(w.Ctx(), "acc", test.filter)
		must.NoError(t, err)
		var ids []string
		for _, j := range jobs {
			ids = append(ids, j.ID)
		}
		if got := strings.Join(ids, " "); got != test.want || total != test.total {
			t.Errorf("%s: got %q of %d, want %q of %d", test.name, got, total, test.want, test.total)
		}
	}
}

func TestTheQueueShowsUrgentJobsAndLobbiesFirstThenWhatIsDueFirst(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.Run(w.Sup)
	w.Log.Record(domain.AccountStream("sandbox"), &account.Created{Name: "trial", Sandbox: true})
	w.Log.Record(domain.AccountStream("acc"), &account.Created{Name: "shop"})
	w.Log.Record(domain.CheckerStream("ann"), &checker.Created{Name: "ann", Hash: "h1", Accounts: []string{"anns"}})
	w.Log.Record(domain.CheckerStream("bob"), &checker.Created{Name: "bob", Hash: "h2"})
	submit := func(id, accountID string, minute int, change func(*job.Created)) {
		w.Log.Record(domain.JobStream(id), modeltest.Created(accountID, func(e *job.Created) {
			e.CreatedAt = *modeltest.At(minute)
			change(e)
		}))
	}
	plain := func(*job.Created) {}
	urgent := func(e *job.Created) { e.Urgent = true }
	slot := func(id string) func(*job.Created) {
		return func(e *job.Created) { e.SessionID = id }
	}
	submit("newer", "acc", 2, plain)
	submit("older", "acc", 1, plain)
	submit("brisk", "acc", 4, func(e *job.Created) { e.SLAMinutes = 30 })
	submit("urgent", "acc", 3, urgent)
	submit("slot-1", "acc", 20, slot("s-1"))
	submit("slot-2", "acc", 20, slot("s-2")) // between the other's two
	submit("slot-3", "acc", 20, slot("s-1"))
	submit("begun", "acc", 0, slot("s-0"))
	w.Log.Record(domain.JobStream("begun"), &job.SlotStarted{DueAt: *modeltest.At(70), At: *modeltest.At(10)})
	submit("closed", "acc", 5, slot("s-9"))
	submit("anns", "anns", 0, plain)
	submit("review", "acc", 0, func(e *job.Created) { e.Type = job.AIReview })
	submit("play", "sandbox", 0, urgent)
	submit("taken", "acc", 0, urgent)
	w.Log.Record(domain.JobStream("taken"), modeltest.Claimed("bob"))
	w.Reach(w.Sup)

	now := *modeltest.At(20)
	queue := func(checkerID string, limit int, change ...func(*QueueFilter)) string {
		f := QueueFilter{CheckerID: checkerID, Now: now, Limit: limit}
		for _, c := range change {
			c(&f)
		}
		jobs, err := w.reads.Queue(w.Ctx(), f)
		must.NoError(t, err)
		var ids []string
		for _, j := range jobs {
			ids = append(ids, j.ID)
		}
		return strings.Join(ids, " ")
	}
	if got := queue("ann", 10); got != "slot-1 slot-3 slot-2 urgent brisk older newer begun" {
		t.Errorf("ann's queue: %s", got)
	}
	if got := queue("bob", 10); got != "slot-1 slot-3 slot-2 urgent brisk anns older newer begun" {
		t.Errorf("bob's queue: %s", got)
	}
	if got := queue("bob", 1, func(f *QueueFilter) { f.Offset = 3 }); got != "urgent" {
		t.Errorf("one of bob's queue: %s", got)
	}
	jobs, err := w.reads.Queue(w.Ctx(), QueueFilter{CheckerID: "bob", Now: now, Limit: 1, Offset: 3})
	must.NoError(t, err)
	lobbies, err := w.reads.Queue(w.Ctx(), QueueFilter{Part: Lobbies, CheckerID: "ann", Now: now, Limit: 10})
	if err != nil || len(lobbies) != 3 || !lobbies[0].LobbyUntil.Equal(*modeltest.At(35)) {
		t.Errorf("the open lobbies: %+v, %v", lobbies, err)
	}
	others, err := w.reads.Queue(w.Ctx(), QueueFilter{Part: Others, CheckerID: "ann", Now: now, Limit: 10})
	if err != nil || len(others) != 5 || others[0].ID != "urgent" {
		t.Errorf("all else: %+v, %v", others, err)
	}
	counts, err := w.reads.CountQueue(w.Ctx(), QueueFilter{CheckerID: "ann", Now: now})
	must.NoError(t, err)
	modeltest.Same(t, counts, QueueCounts{Waiting: 8, Fit: 8, Urgent: 1, Lobby: 3, Other: 5})
	modeltest.Same(t, jobs[0], QueuedJob{
		ID: "urgent", Title: "checkout", URL: "https://app.example", Type: job.PaymentFlow, TypeEcho: "Payment Flow",
		Urgent: true, SLAMinutes: 60, CreatedAt: *modeltest.At(3), DueAt: *modeltest.At(63), Fits: true,
	})

	next := func(checkerID string, skip ...string) string {
		id, ok, err := w.reads.NextForChecker(w.Ctx(), checkerID, now, skip)
		if err != nil || ok != (id != "") {
			t.Fatalf("next: %q, %v, %v", id, ok, err)
		}
		return id
	}
	if got := next("ann"); got != "slot-1" {
		t.Errorf("next for ann: %s", got)
	}
	if got := next("ann", "slot-1", "slot-2"); got != "slot-3" {
		t.Errorf("next for ann but two: %s", got)
	}
	if got := next("ann", "slot-1", "slot-2", "slot-3", "urgent", "brisk", "older", "newer", "begun"); got != "" {
		t.Errorf("next for ann but all: %s", got)
	}
}

// The columns that an erasure writes are a list of their own (eraseJobsSQL): a text that a
// submission gains has to be in it.
func TestAnErasureLeavesNoTextOfTheSubmission(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.Run(w.Sup)
	const canary = "canary"
	submitted := modeltest.Created("acc", func(e *job.Created) { setTexts(reflect.ValueOf(&e.Submission).Elem(), canary) })
	w.Log.Record(domain.JobStream("j1"), submitted)
	w.Reach(w.Sup)
	const rows = `SELECT (SELECT count(*) FROM readmodel.jobs j WHERE j::text LIKE $1) +
		(SELECT count(*) FROM readmodel.job_words w WHERE w::text LIKE $1)`
	if n := w.Count(rows, "%"+canary+"%"); n == 0 {
		t.Fatal("no row has the texts of the submission")
	}
	w.Log.Record(domain.JobStream("j1"), &job.Erased{By: "owner", Reason: "asked", At: modeltest.Noon})
	w.Reach(w.Sup)
	if n := w.Count(rows, "%"+canary+"%"); n != 0 {
		t.Errorf("%d rows still have a text of the erased submission", n)
	}
}

// setTexts sets each text that is sealed, and so erased.
func setTexts(v reflect.Value, text string) {
	for field, value := range v.Fields() {
		switch {
		case field.Tag.Get("sealed") == "text":
			value.SetString(text)
		case value.Kind() == reflect.Struct && field.IsExported():
			setTexts(value, text)
		}
	}
}
