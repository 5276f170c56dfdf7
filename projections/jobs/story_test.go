package jobs

import (
	"strings"
	"testing"

	"humanqa/domain"
	"humanqa/domain/account"
	"humanqa/domain/job"
	"humanqa/domain/person"
	"humanqa/internal/testing/modeltest"
	"humanqa/internal/testing/must"
)

// walk appends events one after the other and compares the job behind each.
func (w *world) walk(stream string, want Job, steps []step) {
	w.T.Helper()
	for _, s := range steps {
		w.Log.Record(stream, s.event)
		w.Reach(w.Sup)
		s.change(&want)
		got, err := w.reads.Job(w.Ctx(), want.AccountID, want.ID)
		must.NoError(w.T, err)
		w.T.Run("behind "+s.event.EventType(), func(t *testing.T) { modeltest.Same(t, got, want) })
	}
	w.Sound(w.Sup, "jobs")
}

type step struct {
	event  domain.Event
	change func(*Job)
}

func TestAJobThatWaitsForItsChecklistIsNotInTheQueue(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.Run(w.Sup)
	stream := domain.JobStream("j1")
	queue := func() string {
		t.Helper()
		w.Reach(w.Sup)
		jobs, err := w.reads.Queue(w.Ctx(), QueueFilter{CheckerID: "ann", Limit: 5})
		must.NoError(t, err)
		var ids []string
		for _, j := range jobs {
			ids = append(ids, j.ID)
		}
		return strings.Join(ids, " ")
	}
	w.Log.Record(stream, modeltest.Created("acc", func(e *job.Created) { e.Items = nil }))
	if got := queue(); got != "" {
		t.Errorf("without a list the queue is %q", got)
	}
	list := modeltest.Created("").Items
	w.Log.Record(stream, &job.ChecklistWritten{Items: list, GeneratedBy: "rules", At: modeltest.Noon})
	if got := queue(); got != "j1" {
		t.Errorf("with a list the queue is %q", got)
	}
	j, err := w.reads.Job(w.Ctx(), "acc", "j1")
	must.NoError(t, err)
	modeltest.Same(t, j.Items, []job.ReportItem{{Item: list[0], Status: job.ItemPending}, {Item: list[1], Status: job.ItemPending}})
	if j.GeneratedBy != "rules" {
		t.Errorf("the list is by %q", j.GeneratedBy)
	}
	for id, change := range map[string]func(*job.Created){
		"review":  func(e *job.Created) { e.Type = job.AIReview },
		"sandbox": func(e *job.Created) { e.Sandbox = true },
	} {
		w.Log.Record(domain.JobStream(id), modeltest.Created("acc", func(e *job.Created) { e.Items = nil }, change),
			&job.ChecklistWritten{Items: list, GeneratedBy: "rules", At: modeltest.Noon})
	}
	if got := queue(); got != "j1" {
		t.Errorf("a list brought into the queue what is not for humans: %q", got)
	}
	w.Sound(w.Sup, "jobs")
}

func TestACheckerNeverMeetsAJobAgainThatTheyCalledUntestable(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.Run(w.Sup)
	w.Log.Record(domain.JobStream("j1"), modeltest.Created("acc"), modeltest.Claimed("ann"),
		&job.UntestableReported{CheckerID: "ann", Token: 1, Reason: "down", At: modeltest.Noon})
	w.Reach(w.Sup)
	for checkerID, want := range map[string]int{"ann": 0, "bob": 1} {
		jobs, err := w.reads.Queue(w.Ctx(), QueueFilter{CheckerID: checkerID, Limit: 5})
		if err != nil || len(jobs) != want {
			t.Errorf("%s's queue: %d jobs, %v", checkerID, len(jobs), err)
		}
		if _, ok, err := w.reads.NextForChecker(w.Ctx(), checkerID, modeltest.Noon, nil); err != nil || ok != (want == 1) {
			t.Errorf("next for %s: %v, %v", checkerID, ok, err)
		}
	}
}

func TestTheSLAOfAJobIsMissedThreeTimes(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.Run(w.Sup)
	e := modeltest.Created("acc", func(e *job.Created) { e.ProjectID, e.LoopID, e.HostedApp, e.Items = "p1", "l1", true, nil })
	want := Job{
		Outline: Outline{
			ID: "j1", Submission: e.Submission,
			Progress: Progress{Status: job.StatusPending, CreatedAt: modeltest.Noon, DueAt: *modeltest.At(60)},
		},
		Items: []job.ReportItem{}, Recordings: []job.Recording{}, Questions: []job.Question{}, Disputes: []job.Dispute{}, Returns: []Return{},
	}
	w.walk(domain.JobStream("j1"), want, []step{
		{e, func(*Job) {}},
		{modeltest.Claimed("ann"), func(j *Job) { j.Status, j.ClaimedAt, j.DueAt = job.StatusClaimed, modeltest.At(1), *modeltest.At(90) }},
		{&job.SLAMissed{RequeueCount: 1, Requeued: true, DueAt: *modeltest.At(120), At: *modeltest.At(60)}, func(j *Job) {
			j.Status, j.ClaimedAt, j.DueAt, j.RequeueCount, j.LastFailedSLAAt = job.StatusPending, nil, *modeltest.At(120), 1, modeltest.At(60)
		}},
		{modeltest.Claimed("bob"), func(j *Job) { j.Status, j.ClaimedAt, j.DueAt = job.StatusClaimed, modeltest.At(1), *modeltest.At(90) }},
		{&job.Released{Token: 2, Reason: "silent", At: *modeltest.At(70)}, func(j *Job) {
			j.Status, j.ClaimedAt, j.DueAt = job.StatusPending, nil, *modeltest.At(120) // not the first clock's end
			j.Returns = []Return{{Revision: 4, Why: "silent"}}
		}},
		{&job.SLAMissed{RequeueCount: 2, Requeued: true, DueAt: *modeltest.At(180), At: *modeltest.At(120)}, func(j *Job) {
			j.DueAt, j.RequeueCount, j.LastFailedSLAAt = *modeltest.At(180), 2, modeltest.At(120)
		}},
		{&job.SLAMissed{RequeueCount: 2, Refund: 5, At: *modeltest.At(180)}, func(j *Job) { j.LastFailedSLAAt = modeltest.At(180) }},
		{&job.Failed{Reason: "sla", Refund: 5, At: *modeltest.At(180)}, func(j *Job) {
			j.Status, j.FailReason, j.FailedAt, j.Refunded = job.StatusFailed, "sla", modeltest.At(180), 5
		}},
	})
	for status, n := range map[string]int{"failed": 1, "pending": 0, "claimed": 0} {
		if got := w.Count("SELECT jobs FROM readmodel.job_counts WHERE status = $1", status); got != n {
			t.Errorf("%d jobs are counted as %s, want %d", got, status, n)
		}
	}
}

// An older failure does not hold the words of the checkers that could not test the job;
// its stream does. Of many releases the latest are kept, and every such report.
func TestTheReasonsOfAFailureAreKept(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.Run(w.Sup)
	stream := domain.JobStream("j1")
	w.Log.Record(stream, modeltest.Created("acc"), modeltest.Claimed("ann"),
		&job.UntestableReported{CheckerID: "ann", Token: 1, Reason: "down", Note: "502", At: modeltest.Noon})
	for range 2 * maxReturns {
		w.Log.Record(stream, modeltest.Claimed("bob"), &job.Released{Token: 2, Reason: "silent", At: modeltest.Noon})
	}
	w.Log.Record(stream, &job.UntestableReported{CheckerID: "carl", Token: 2, Reason: "no_access", At: modeltest.Noon},
		&job.Failed{Reason: "untestable", Refund: 5, At: modeltest.Noon})
	w.Reach(w.Sup)
	j, err := w.reads.Job(w.Ctx(), "acc", "j1")
	must.NoError(t, err)
	if j.FailNote != "down: 502\nno_access" || len(j.Returns) != maxReturns ||
		j.Returns[0].Note != "502" || j.Returns[maxReturns-1].Reason != "no_access" {
		t.Errorf("the note is %q, of %d returns", j.FailNote, len(j.Returns))
	}
	w.Sound(w.Sup, "jobs")
}

func TestASlotsClockStartsWithItsSession(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.Run(w.Sup)
	w.Log.Record(domain.JobStream("j1"), modeltest.Created("acc", func(e *job.Created) { e.SessionID = "s1" }), modeltest.Claimed("ann"),
		&job.SlotStarted{DueAt: *modeltest.At(75), At: *modeltest.At(15)})
	w.Reach(w.Sup)
	j, err := w.reads.Job(w.Ctx(), "acc", "j1")
	if err != nil || !j.DueAt.Equal(*modeltest.At(75)) || j.Status != job.StatusClaimed {
		t.Errorf("got %+v, %v", j, err)
	}
	w.Log.Record(domain.JobStream("j1"), &job.Released{Token: 1, Reason: "left", At: *modeltest.At(20)})
	w.Reach(w.Sup)
	if j, err := w.reads.Job(w.Ctx(), "acc", "j1"); err != nil || !j.DueAt.Equal(*modeltest.At(75)) {
		t.Errorf("released it is due at %s, %v", j.DueAt, err)
	}
}

func TestAReportIsRatedAndAnalysed(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.Run(w.Sup)
	read := func() (Job, Report) {
		t.Helper()
		w.Reach(w.Sup)
		j, err := w.reads.Job(w.Ctx(), "acc", "j1")
		must.NoError(t, err)
		r, err := w.reads.Report(w.Ctx(), "acc", "j1")
		must.NoError(t, err)
		return j, r
	}
	w.Log.Record(domain.JobStream("j1"), modeltest.Created("acc"), modeltest.Claimed("ann"), modeltest.Completed("fail"))
	if j, r := read(); j.AIReport() != AIReportGenerating || r.CheckerRating != nil {
		t.Errorf("just completed: %s, rated %v", j.AIReport(), r.CheckerRating)
	}
	if _, err := w.reads.AIReport(w.Ctx(), "acc", "j1"); !domain.IsKind(err, domain.KindNotFound) {
		t.Errorf("there is an analysis already: %v", err)
	}
	w.Log.Record(domain.JobStream("j1"), &job.Rated{Rating: 2, At: modeltest.Noon}, &job.Rated{Rating: 4, At: modeltest.Noon}, modeltest.Analysed(62))
	j, r := read()
	if j.AIReport() != AIReportReady || r.CheckerRating == nil || *r.CheckerRating != 4 {
		t.Errorf("analysed and rated: %s, rated %v", j.AIReport(), r.CheckerRating)
	}
	report, err := w.reads.AIReport(w.Ctx(), "acc", "j1")
	must.NoError(t, err)
	modeltest.Same(t, report, modeltest.Analysed(62).AIReport)
	if _, err := w.reads.AIReport(w.Ctx(), "other", "j1"); !domain.IsKind(err, domain.KindNotFound) {
		t.Errorf("another account reads the analysis: %v", err)
	}
	w.Sound(w.Sup, "jobs")
}

// A recording that comes late is in the report like one that came in time; the
// report leads to the first, unless the checker named another.
func TestARecordingIsInTheReportWheneverItComes(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.Run(w.Sup)
	named := modeltest.Completed("fail")
	unnamed := *named
	unnamed.RecordingURL = ""
	w.Log.Record(domain.JobStream("j1"), modeltest.Created("acc"), modeltest.Claimed("ann"), modeltest.Recorded("a"), &unnamed)
	w.Log.Record(domain.JobStream("j2"), modeltest.Created("acc"), modeltest.Claimed("ann"), &unnamed)
	w.Log.Record(domain.JobStream("j3"), modeltest.Created("acc"), modeltest.Claimed("ann"), named)
	look := func(want ...string) {
		t.Helper()
		w.Reach(w.Sup)
		for n, id := range []string{"j1", "j2", "j3"} {
			r, err := w.reads.Report(w.Ctx(), "acc", id)
			must.NoError(t, err)
			got := r.RecordingURL
			for _, of := range r.Recordings {
				got += " " + of.ID
			}
			if got != want[n] {
				t.Errorf("%s shows %q, not %q", id, got, want[n])
			}
		}
	}
	look("/v1/evidence/a a", "", named.RecordingURL)
	for _, id := range []string{"j1", "j2", "j3"} {
		w.Log.Record(domain.JobStream(id), modeltest.Recorded("b"), modeltest.Recorded("c"))
	}
	look("/v1/evidence/a a b c", "/v1/evidence/b b c", named.RecordingURL+" b c")
	w.Sound(w.Sup, "jobs")
}

// A checker looks back at what they completed, as long as it is not an account's
// that they belong to.
func TestACheckersOwnWork(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.Run(w.Sup)
	for _, id := range []string{"j1", "j2"} {
		w.Log.Record(domain.JobStream(id), modeltest.Created("acc"), modeltest.Claimed("ann"), modeltest.Completed("fail"))
	}
	w.Log.Record(domain.JobStream("j3"), modeltest.Created("acc"), modeltest.Claimed("ann"))
	w.Log.Record(domain.JobStream("j4"), modeltest.Created("acc"), modeltest.Claimed("bob"), modeltest.Completed("fail"))
	w.Log.Record(domain.JobStream("j1"), &job.Rated{Rating: 2, Note: "short", At: modeltest.Noon}, &job.Rated{Rating: 4, Note: "thorough", At: modeltest.Noon})
	look := func() (string, Record) {
		t.Helper()
		w.Reach(w.Sup)
		done, all, err := w.reads.Done(w.Ctx(), "ann", 10)
		must.NoError(t, err)
		var told []string
		for _, d := range done {
			told = append(told, d.JobID+" "+d.OverallStatus+" "+d.Note)
		}
		return strings.Join(told, ", "), all
	}
	if told, all := look(); told != "j2 fail , j1 fail thorough" || all != (Record{Done: 2, Rated: 1, Average: 4}) {
		t.Errorf("ann has done %s, %+v", told, all)
	}
	one, err := w.reads.DoneBy(w.Ctx(), "ann", "j1")
	if err != nil || len(one.Items) == 0 || one.Rating == nil || *one.Rating != 4 {
		t.Errorf("j1 is %+v, %v", one, err)
	}
	for _, other := range [][2]string{{"ann", "j3"}, {"ann", "j4"}, {"", "j1"}, {"bob", "j1"}, {"ann", "none"}} {
		if _, err := w.reads.DoneBy(w.Ctx(), other[0], other[1]); !domain.IsKind(err, domain.KindNotFound) {
			t.Errorf("%s reads %s: %v", other[0], other[1], err)
		}
	}
	w.Log.Record(domain.PersonStream("p1"), &person.Invited{Grant: person.Grant{Role: person.Checker, CheckerID: "ann"}},
		&person.RoleGranted{Grant: person.Grant{Role: person.Viewer, AccountID: "acc"}})
	if told, all := look(); told != "" || all.Done != 0 {
		t.Errorf("who belongs to the account has done %s, %+v", told, all)
	}
	if _, err := w.reads.DoneBy(w.Ctx(), "ann", "j1"); !domain.IsKind(err, domain.KindNotFound) {
		t.Errorf("and reads j1: %v", err)
	}
	w.Sound(w.Sup, "jobs")
}

func TestABatchIsReadInSubmittedOrder(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.Run(w.Sup)
	for i, id := range []string{"c", "a", "b"} {
		w.Log.Record(domain.JobStream(id), modeltest.Created("acc", func(e *job.Created) { e.BatchID, e.BatchIndex = "b1", i }))
	}
	w.Log.Record(domain.JobStream("x"), modeltest.Created("acc"))
	w.Reach(w.Sup)
	jobs, err := w.reads.Batch(w.Ctx(), "acc", "b1")
	if err != nil || len(jobs) != 3 || jobs[0].ID != "c" || jobs[1].ID != "a" || jobs[2].ID != "b" {
		t.Errorf("got %+v, %v", jobs, err)
	}
	for _, other := range [][2]string{{"other", "b1"}, {"acc", "b2"}, {"acc", ""}} {
		if _, err := w.reads.Batch(w.Ctx(), other[0], other[1]); !domain.IsKind(err, domain.KindNotFound) {
			t.Errorf("%s reads batch %q: %v", other[0], other[1], err)
		}
	}
}

// A list counts once, by the last test that had it: however its items are ordered, and
// whatever the checker found beside them.
func TestTheDifferentChecklistsOfAProject(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.Run(w.Sup)
	item := func(key string) job.Item {
		return job.Item{ID: "i-" + key, Key: key, Description: key, Severity: job.Minor}
	}
	created := func(id, account string, minute int, keys ...string) {
		w.Log.Record(domain.JobStream(id), modeltest.Created(account, func(e *job.Created) {
			e.ProjectID, e.Title, e.CreatedAt, e.Items = "p1", "The "+id, *modeltest.At(minute), nil
			if id == "review" {
				e.Type = job.AIReview
			}
			for _, key := range keys {
				e.Items = append(e.Items, item(key))
			}
		}))
	}
	created("old", "acc", 0, "pay", "mail")
	created("short", "acc", 1, "pay")
	created("new", "acc", 2, "mail", "pay")
	created("erased", "acc", 3, "pay", "mail", "refund")
	created("unwritten", "acc", 4)
	created("review", "acc", 5, "headers")
	created("theirs", "other", 6, "secret")
	w.Log.Record(domain.JobStream("new"), modeltest.Claimed("ann"),
		&job.FindingAdded{Item: job.Item{ID: "finding-1", Key: "odd", Description: "odd"}, Status: job.ItemFail})
	w.Log.Record(domain.JobStream("erased"), &job.Erased{By: "owner", Reason: "asked", At: modeltest.Noon})
	w.Reach(w.Sup)
	all := []Checklist{
		{JobID: "new", Title: "The new", CreatedAt: *modeltest.At(2), Items: 2}, {JobID: "short", Title: "The short", CreatedAt: *modeltest.At(1), Items: 1},
	}
	for limit := range 4 {
		lists, err := w.reads.Checklists(w.Ctx(), "acc", "p1", limit)
		must.NoError(t, err)
		for i := range lists {
			lists[i].CreatedAt = lists[i].CreatedAt.UTC()
		}
		modeltest.Same(t, append([]Checklist{}, lists...), all[:min(limit, len(all))])
	}
	if lists, err := w.reads.Checklists(w.Ctx(), "other", "p2", 5); err != nil || len(lists) != 0 {
		t.Errorf("%+v of another project, %v", lists, err)
	}
}

// Submissions that were written before they said so themselves.
func TestAnOldSubmissionOfASandboxIsASandboxJob(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.Run(w.Sup)
	w.Log.Record(domain.AccountStream("acc"), &account.Created{Name: "trial", Sandbox: true})
	w.Log.Record(domain.JobStream("j1"), modeltest.Created("acc"))
	w.Reach(w.Sup)
	if j, err := w.reads.Job(w.Ctx(), "acc", "j1"); err != nil || !j.Sandbox {
		t.Errorf("got %+v, %v", j, err)
	}
}
