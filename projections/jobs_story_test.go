package projections

import (
	"fmt"
	"strings"
	"testing"

	"humanqa/domain"
	"humanqa/domain/account"
	"humanqa/domain/job"
)

// stories appends jobs that meet whatever can happen to a job, interleaved.
func stories(m *memoryLog, prefix string, n int) {
	id := func(i int) string { return fmt.Sprint(prefix, "story", i) }
	stream := func(i int) string { return domain.JobStream(id(i)) }
	for i := range n {
		m.append(stream(i), created(fmt.Sprint("acc", i%3), func(e *job.Created) {
			e.ProjectID = []string{"", "p1", "p2", "p1"}[i%4]
			e.BatchID, e.BatchIndex, e.LoopID, e.HostedApp, e.Sandbox = "b"+prefix, n-i, "l", true, i%9 == 8
			if i%2 == 0 {
				e.Items = nil
			}
		}))
	}
	written := &job.ChecklistWritten{Items: created("").Items, GeneratedBy: "rules", At: noon}
	missed := func(n int) *job.SLAMissed {
		return &job.SLAMissed{RequeueCount: n, Requeued: n < 3, DueAt: noon.AddDate(0, 0, n), At: *at(n)}
	}
	for i := range n {
		if i%2 == 0 {
			m.append(stream(i), written)
		}
		switch i % 7 {
		case 0:
			m.append(stream(i), missed(1), claimed("ann"), missed(2), missed(3), &job.FailedBy{Reason: "sla", Refund: 5, At: noon})
		case 1:
			m.append(stream(i), claimed("ann"), &job.UntestableReported{CheckerID: "ann", Token: 1, Reason: "down", At: noon})
		case 2:
			m.append(stream(i), claimed("ann"), &job.UntestableReported{CheckerID: "ann", Token: 1, Reason: "down", At: noon},
				claimed("bob"), &job.UntestableReported{CheckerID: "bob", Token: 2, Reason: "down", At: noon},
				&job.FailedBy{Reason: "untestable", Refund: 5, At: noon})
		case 3:
			m.append(stream(i), claimed("ann"), completed("pass"), &job.Rated{Rating: 2, At: noon}, analysed(80), &job.Rated{Rating: 4, At: noon})
		case 4:
			m.append(stream(i), claimed("ann"), completed("fail"))
			m.append(stream(i/2), &job.SlotStarted{DueAt: *at(i), At: noon})
		case 5:
			m.append(stream(i), claimed("ann"), &job.Heartbeat{Token: 1, At: noon}, &job.Released{Token: 1, Reason: "silent", At: noon})
		case 6:
			m.append(stream(i), &job.CancelledBy{Reason: "client", Refund: 5, At: noon})
		}
	}
	for i := 4; i < n; i += 7 {
		m.append(stream(i), analysed(i), &job.Rated{Rating: 1 + i%5, At: noon}, &job.Rated{Rating: 5, At: noon})
	}
}

func analysed(score int) *job.AIReportReady {
	return &job.AIReportReady{AIReport: job.AIReport{
		ID: "a1", ExecutiveSummary: "shaky", HealthScore: score, PassCount: 1, FailCount: 1, GeneratedBy: "rules", At: noon,
		Bugs: []job.Bug{{
			ItemID: "i2", Title: "no mail", Severity: job.Minor, Description: "none came",
			ReproductionSteps: []string{"pay", "wait"}, SuggestedFix: "send one",
		}},
		Strengths: []string{"fast"}, Recommendations: []string{"send mails"},
	}}
}

// walk appends events one after the other and compares the job behind each.
func (w *world) walk(stream string, want Job, steps []step) {
	w.t.Helper()
	for _, s := range steps {
		w.log.append(stream, s.event)
		w.reach(w.sup)
		s.change(&want)
		got, err := w.reads.Jobs.Job(w.ctx(), want.AccountID, want.ID)
		if err != nil {
			w.t.Fatal(err)
		}
		w.t.Run("behind "+s.event.EventType(), func(t *testing.T) { same(t, got, want) })
	}
	w.sound(w.sup, "jobs")
}

type step struct {
	event  domain.Event
	change func(*Job)
}

func TestAJobThatWaitsForItsChecklistIsNotInTheQueue(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.run(w.sup)
	stream := domain.JobStream("j1")
	queue := func() string {
		t.Helper()
		w.reach(w.sup)
		jobs, err := w.reads.Jobs.Queue(w.ctx(), "ann", 5)
		if err != nil {
			t.Fatal(err)
		}
		var ids []string
		for _, j := range jobs {
			ids = append(ids, j.ID)
		}
		return strings.Join(ids, " ")
	}
	w.log.append(stream, created("acc", func(e *job.Created) { e.Items = nil }))
	if got := queue(); got != "" {
		t.Errorf("without a list the queue is %q", got)
	}
	list := created("").Items
	w.log.append(stream, &job.ChecklistWritten{Items: list, GeneratedBy: "rules", At: noon})
	if got := queue(); got != "j1" {
		t.Errorf("with a list the queue is %q", got)
	}
	j, err := w.reads.Jobs.Job(w.ctx(), "acc", "j1")
	if err != nil {
		t.Fatal(err)
	}
	same(t, j.Items, []job.ReportItem{{Item: list[0], Status: job.ItemPending}, {Item: list[1], Status: job.ItemPending}})
	if j.GeneratedBy != "rules" {
		t.Errorf("the list is by %q", j.GeneratedBy)
	}
	for id, change := range map[string]func(*job.Created){
		"review":  func(e *job.Created) { e.Type = job.AIReview },
		"sandbox": func(e *job.Created) { e.Sandbox = true },
	} {
		w.log.append(domain.JobStream(id), created("acc", func(e *job.Created) { e.Items = nil }, change),
			&job.ChecklistWritten{Items: list, GeneratedBy: "rules", At: noon})
	}
	if got := queue(); got != "j1" {
		t.Errorf("a list brought into the queue what is not for humans: %q", got)
	}
	w.sound(w.sup, "jobs")
}

func TestACheckerNeverMeetsAJobAgainThatTheyCalledUntestable(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.run(w.sup)
	w.log.append(domain.JobStream("j1"), created("acc"), claimed("ann"),
		&job.UntestableReported{CheckerID: "ann", Token: 1, Reason: "down", At: noon})
	w.reach(w.sup)
	for checkerID, want := range map[string]int{"ann": 0, "bob": 1} {
		jobs, err := w.reads.Jobs.Queue(w.ctx(), checkerID, 5)
		if err != nil || len(jobs) != want {
			t.Errorf("%s's queue: %d jobs, %v", checkerID, len(jobs), err)
		}
		if _, ok, err := w.reads.Jobs.NextForChecker(w.ctx(), checkerID, nil); err != nil || ok != (want == 1) {
			t.Errorf("next for %s: %v, %v", checkerID, ok, err)
		}
	}
}

func TestTheSLAOfAJobIsMissedThreeTimes(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.run(w.sup)
	e := created("acc", func(e *job.Created) { e.ProjectID, e.LoopID, e.HostedApp, e.Items = "p1", "l1", true, nil })
	want := Job{
		ID: "j1", AccountID: "acc", ProjectID: "p1", Status: job.Pending, Title: e.Title, URL: e.URL,
		Description: e.Description, Type: e.Type, TypeEcho: e.TypeEcho, SLAMinutes: 60, Price: 5, CreditsUsed: 5,
		Source: "api", LoopID: "l1", HostedApp: true, CreatedAt: noon, DueAt: *at(60), Items: []job.ReportItem{},
	}
	w.walk(domain.JobStream("j1"), want, []step{
		{e, func(*Job) {}},
		{claimed("ann"), func(j *Job) { j.Status, j.ClaimedAt, j.DueAt = job.Claimed, at(1), *at(90) }},
		{&job.SLAMissed{RequeueCount: 1, Requeued: true, DueAt: *at(120), At: *at(60)}, func(j *Job) {
			j.Status, j.ClaimedAt, j.DueAt, j.RequeueCount, j.LastFailedSLAAt = job.Pending, nil, *at(120), 1, at(60)
		}},
		{claimed("bob"), func(j *Job) { j.Status, j.ClaimedAt, j.DueAt = job.Claimed, at(1), *at(90) }},
		{&job.Released{Token: 2, Reason: "silent", At: *at(70)}, func(j *Job) {
			j.Status, j.ClaimedAt, j.DueAt = job.Pending, nil, *at(120) // not the first clock's end
		}},
		{&job.SLAMissed{RequeueCount: 2, Requeued: true, DueAt: *at(180), At: *at(120)}, func(j *Job) {
			j.DueAt, j.RequeueCount, j.LastFailedSLAAt = *at(180), 2, at(120)
		}},
		{&job.SLAMissed{RequeueCount: 2, Refund: 5, At: *at(180)}, func(j *Job) { j.LastFailedSLAAt = at(180) }},
		{&job.FailedBy{Reason: "sla", Refund: 5, At: *at(180)}, func(j *Job) {
			j.Status, j.FailReason, j.FailedAt, j.CreditsUsed = job.Failed, "sla", at(180), 0
		}},
	})
	for status, n := range map[string]int{"failed": 1, "pending": 0, "claimed": 0} {
		if got := w.count("SELECT jobs FROM readmodel.job_counts WHERE status = $1", status); got != n {
			t.Errorf("%d jobs are counted as %s, want %d", got, status, n)
		}
	}
}

func TestASlotsClockStartsWithItsSession(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.run(w.sup)
	w.log.append(domain.JobStream("j1"), created("acc", func(e *job.Created) { e.SessionID = "s1" }), claimed("ann"),
		&job.SlotStarted{DueAt: *at(75), At: *at(15)})
	w.reach(w.sup)
	j, err := w.reads.Jobs.Job(w.ctx(), "acc", "j1")
	if err != nil || !j.DueAt.Equal(*at(75)) || j.Status != job.Claimed {
		t.Errorf("got %+v, %v", j, err)
	}
	w.log.append(domain.JobStream("j1"), &job.Released{Token: 1, Reason: "left", At: *at(20)})
	w.reach(w.sup)
	if j, err := w.reads.Jobs.Job(w.ctx(), "acc", "j1"); err != nil || !j.DueAt.Equal(*at(75)) {
		t.Errorf("released it is due at %s, %v", j.DueAt, err)
	}
}

func TestAReportIsRatedAndAnalysed(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.run(w.sup)
	read := func() (Job, Report) {
		t.Helper()
		w.reach(w.sup)
		j, err := w.reads.Jobs.Job(w.ctx(), "acc", "j1")
		if err != nil {
			t.Fatal(err)
		}
		r, err := w.reads.Jobs.Report(w.ctx(), "acc", "j1")
		if err != nil {
			t.Fatal(err)
		}
		return j, r
	}
	w.log.append(domain.JobStream("j1"), created("acc"), claimed("ann"), completed("fail"))
	if j, r := read(); j.AIReport != AIReportGenerating || r.CheckerRating != nil {
		t.Errorf("just completed: %s, rated %v", j.AIReport, r.CheckerRating)
	}
	if _, err := w.reads.Jobs.AIReport(w.ctx(), "acc", "j1"); !domain.IsKind(err, domain.KindNotFound) {
		t.Errorf("there is an analysis already: %v", err)
	}
	w.log.append(domain.JobStream("j1"), &job.Rated{Rating: 2, At: noon}, &job.Rated{Rating: 4, At: noon}, analysed(62))
	j, r := read()
	if j.AIReport != AIReportReady || r.CheckerRating == nil || *r.CheckerRating != 4 {
		t.Errorf("analysed and rated: %s, rated %v", j.AIReport, r.CheckerRating)
	}
	report, err := w.reads.Jobs.AIReport(w.ctx(), "acc", "j1")
	if err != nil {
		t.Fatal(err)
	}
	same(t, report, analysed(62).AIReport)
	if _, err := w.reads.Jobs.AIReport(w.ctx(), "other", "j1"); !domain.IsKind(err, domain.KindNotFound) {
		t.Errorf("another account reads the analysis: %v", err)
	}
	w.sound(w.sup, "jobs")
}

func TestABatchIsReadInSubmittedOrder(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.run(w.sup)
	for i, id := range []string{"c", "a", "b"} {
		w.log.append(domain.JobStream(id), created("acc", func(e *job.Created) { e.BatchID, e.BatchIndex = "b1", i }))
	}
	w.log.append(domain.JobStream("x"), created("acc"))
	w.reach(w.sup)
	jobs, err := w.reads.Jobs.Batch(w.ctx(), "acc", "b1")
	if err != nil || len(jobs) != 3 || jobs[0].ID != "c" || jobs[1].ID != "a" || jobs[2].ID != "b" {
		t.Errorf("got %+v, %v", jobs, err)
	}
	for _, other := range [][2]string{{"other", "b1"}, {"acc", "b2"}, {"acc", ""}} {
		if _, err := w.reads.Jobs.Batch(w.ctx(), other[0], other[1]); !domain.IsKind(err, domain.KindNotFound) {
			t.Errorf("%s reads batch %q: %v", other[0], other[1], err)
		}
	}
}

// Submissions that were written before they said so themselves.
func TestAnOldSubmissionOfASandboxIsASandboxJob(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.run(w.sup)
	w.log.append(domain.AccountStream("acc"), &account.Created{Name: "trial", Sandbox: true})
	w.log.append(domain.JobStream("j1"), created("acc"))
	w.reach(w.sup)
	if j, err := w.reads.Jobs.Job(w.ctx(), "acc", "j1"); err != nil || !j.Sandbox {
		t.Errorf("got %+v, %v", j, err)
	}
}
