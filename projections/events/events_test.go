package events

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"humanqa/domain"
	"humanqa/domain/announce"
	"humanqa/domain/job"
	"humanqa/domain/loop"
	"humanqa/domain/session"
	"humanqa/internal/testing/modeltest"
	"humanqa/internal/testing/must"
)

// feed is a world with events to read.
type feed struct{ *world }

func setupFeed(t *testing.T) feed {
	t.Helper()
	f := feed{setup(t)}
	f.Run(f.Sup)
	return f
}

// all waits until the feed shows n events of the account.
func (f feed) all(accountID string, n int) (events []AccountEvent) {
	f.T.Helper()
	f.Eventually(fmt.Sprint(n, " events"), func() bool {
		events = f.page(accountID, Filter{Limit: 1000})
		return len(events) >= n
	})
	return events
}

func (f feed) page(accountID string, filter Filter) []AccountEvent {
	f.T.Helper()
	events, err := f.reads.After(f.Ctx(), accountID, filter)
	must.NoError(f.T, err)
	return events
}

func types(events []AccountEvent) string {
	var list []string
	for _, e := range events {
		list = append(list, e.Recorded.Type)
	}
	return strings.Join(list, " ")
}

func TestTheFeedHoldsWhatIsAnnouncedInTheOrderOfTheLog(t *testing.T) {
	t.Parallel()
	f := setupFeed(t)
	submitted := modeltest.Created("acc", func(e *job.Created) {
		e.ProjectID, e.SessionID, e.Urgent = "p1", "s1", true
		e.Credentials, e.AccessInstructions = "sealed-credentials", "sealed-instructions"
	})
	slots := []session.Slot{{Slot: 1, RoleLabel: "buyer", JobID: "j1"}, {Slot: 2, RoleLabel: "seller", JobID: "j2"}}
	f.Log.Record(domain.JobStream("j1"), submitted)
	f.Log.Record(domain.SessionStream("s1"),
		&session.Created{Submission: session.Submission{AccountID: "acc", ProjectID: "p1", Slots: slots}, At: modeltest.Noon},
		&session.SlotReady{Slot: 1, CheckerID: "ann", At: modeltest.Noon},
		&session.Started{Ready: []int{1}, Dropped: []int{2}, At: modeltest.Noon})
	f.Log.Record(domain.JobStream("j1"),
		modeltest.Claimed("ann"), &job.Heartbeat{Token: 1, At: modeltest.Noon},
		&job.SLAMissed{RequeueCount: 1, Requeued: true, DueAt: modeltest.Noon, At: modeltest.Noon},
		modeltest.Claimed("bob"), &job.ItemChecked{ItemID: "i1", Status: job.ItemPass, At: modeltest.Noon},
		modeltest.Completed("fail"), modeltest.Analysed(60), &job.Rated{Rating: 3, At: modeltest.Noon})
	f.Log.Record(domain.SessionStream("s1"), &session.Completed{FailCount: 1, At: modeltest.Noon})
	f.Log.Record(domain.JobStream("j3"), modeltest.Created("acc"), &job.Failed{Reason: "operator", At: modeltest.Noon})
	f.Log.Record(domain.JobStream("j4"), modeltest.Created("acc"), &job.Cancelled{Reason: "client", At: modeltest.Noon})
	loopStream := domain.LoopStream("l1")
	f.Log.Record(loopStream,
		&loop.Started{SessionID: "x", AccountID: "acc", ProjectID: "p2", At: modeltest.Noon},
		&loop.Ended{SessionID: "x", FinalStatus: loop.StatusPassed, At: modeltest.Noon},
		&loop.Started{SessionID: "y", AccountID: "acc", ProjectID: "p2", At: modeltest.Noon},
		&loop.Ended{SessionID: "y", FinalStatus: loop.StatusOutOfCredits, Alert: true, At: modeltest.Noon})
	f.Log.Record(domain.JobStream("headless"), modeltest.Claimed("ann"))
	f.Log.Record(domain.JobStream("theirs"), modeltest.Created("other"))

	f.all("other", 1)
	events := f.all("acc", 13)
	if got, want := types(events), "job.created session.started job.claimed job.failed_sla job.claimed job.completed "+
		"job.ai_report_ready session.completed job.created job.failed job.created job.cancelled loop_session.ended"; got != want {
		t.Fatalf("got  %s\nwant %s", got, want)
	}
	for i, e := range events {
		if i > 0 && e.Recorded.Position.Compare(events[i-1].Recorded.Position) <= 0 {
			t.Errorf("event %d stands before its time", i)
		}
	}
	modeltest.Same(t, events[0].Recorded.Event, announce.Told(submitted))
	if n := f.Count(`SELECT COUNT(*) FROM readmodel.account_events WHERE data::text LIKE '%sealed%'`); n > 0 {
		t.Error("a secret reached the read model")
	}
	job1 := announce.Enrichment{Submission: submitted.Submission, ReportID: "r1"}
	job1.Description, job1.Feature = "", "" // no announcement says them
	modeltest.Same(t, events[6].About, job1)
	modeltest.Same(t, events[6].Recorded.Event, announce.Told(modeltest.Analysed(60)))
	modeltest.Same(t, events[7].About, announce.Enrichment{
		Submission: job.Submission{AccountID: "acc", ProjectID: "p1"}, Slots: slots, Dropped: []int{2},
	})
	for i, want := range map[int]string{0: "p1", 1: "p1", 7: "p1", 8: "", 12: "p2"} {
		if events[i].About.ProjectID != want {
			t.Errorf("event %d is of project %q, want %q", i, events[i].About.ProjectID, want)
		}
	}
	f.Sound(f.Sup, "events")
}

func TestAFeedIsReadOnFromAnyOfItsCursors(t *testing.T) {
	t.Parallel()
	f := setupFeed(t)
	for i := range 10 {
		f.Log.Record(domain.JobStream(fmt.Sprint("j", i)), modeltest.Created("acc", func(e *job.Created) {
			e.ProjectID = []string{"p1", "p2"}[i%2]
		}), modeltest.Claimed("ann"))
		f.Log.Record(domain.JobStream(fmt.Sprint("o", i)), modeltest.Created("other"))
	}
	whole := f.all("acc", 20)
	var read []AccountEvent
	for after := ""; ; {
		page := f.page("acc", Filter{After: after, Limit: 3})
		if len(page) == 0 {
			break
		}
		read = append(read, page...)
		after = page[len(page)-1].Cursor
	}
	modeltest.Same(t, read, whole)
	one := f.page("acc", Filter{After: whole[4].Cursor, Types: []string{"job.claimed", "job.completed"}, ProjectID: "p2", Limit: 2})
	if len(one) != 2 || one[0].Cursor != whole[7].Cursor || one[1].Cursor != whole[11].Cursor {
		t.Errorf("got %+v", one)
	}
	for _, bad := range []string{"x", "1", "1-", "-1-1", "01-1", "1-1-1", "1-9223372036854775808", "99999999999999999999-1", "1 -1"} {
		_, err := f.reads.After(f.Ctx(), "acc", Filter{After: bad, Limit: 1})
		if !domain.IsKind(err, domain.KindInvalid) || !strings.Contains(err.Error(), "after") {
			t.Errorf("cursor %q: %v", bad, err)
		}
	}
}

func TestAJobsEventsAreItsAccountsOnly(t *testing.T) {
	t.Parallel()
	f := setupFeed(t)
	f.Log.Record(domain.JobStream("j1"), modeltest.Created("acc"), modeltest.Claimed("ann"))
	f.Log.Record(domain.JobStream("j2"), modeltest.Created("acc"))
	f.all("acc", 3)
	for accountID, want := range map[string]string{"acc": "job.created job.claimed", "other": ""} {
		events, err := f.reads.OfJob(f.Ctx(), accountID, "j1")
		if err != nil || types(events) != want {
			t.Errorf("%s reads %q, %v", accountID, types(events), err)
		}
	}
}

func TestNewsNamesTheAccountsWithNewEvents(t *testing.T) {
	t.Parallel()
	f := setupFeed(t)
	if newest, err := f.reads.Newest(f.Ctx()); newest != "" || err != nil {
		t.Errorf("before the first event: %q, %v", newest, err)
	}
	news := func(after string, want ...string) string {
		t.Helper()
		accounts, next, err := f.reads.News(f.Ctx(), after)
		if err != nil || !slices.Equal(accounts, want) {
			t.Errorf("news behind %q: %v, %v", after, accounts, err)
		}
		return next
	}
	if next := news(""); next != "" {
		t.Errorf("nothing leads to %q", next)
	}
	f.Log.Record(domain.JobStream("b"), modeltest.Created("bob"), modeltest.Claimed("c"))
	f.Log.Record(domain.JobStream("a"), modeltest.Created("ann"))
	f.all("ann", 1)
	next := news("", "ann", "bob")
	if newest, err := f.reads.Newest(f.Ctx()); newest != next || err != nil {
		t.Errorf("the newest is %q, want %q, %v", newest, next, err)
	}
	if again := news(next); again != next {
		t.Errorf("nothing new leads to %q", again)
	}
	f.Log.Record(domain.JobStream("a"), modeltest.Claimed("c"))
	f.all("ann", 2)
	news(next, "ann")
}

const longStreamsSQL = `
INSERT INTO {events}.event_streams (position, stream, account_id, project_id, about)
SELECT n, 'job-' || n, 'acc' || (n % 10), 'p', '{}'
FROM generate_series(1, 6000) n`

const longFeedSQL = `
INSERT INTO {events}.account_events
    (commit_position, prepare_position, time, event_id, account_id, stream, revision, schema_version, type, data)
SELECT n, n, now(), gen_random_uuid(), 'acc' || (n / 4) % 10, 'job-' || n / 4, 0, 1, 'job.created', jsonb_build_object('data', repeat('d', 100))
FROM generate_series(4, 24000) n`

func TestAFeedIsReadThroughItsIndexes(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.Exec(longStreamsSQL)
	w.Exec(longFeedSQL)
	w.Exec("ANALYZE")
	page := func(f Filter) (string, []any) {
		where := f.where("acc1", place{12000, 12000})
		return selectEventsSQL + where.SQL + orderEventsSQL + "\nLIMIT " + where.Param(100), where.Args
	}
	for _, test := range []struct {
		name, index string
		query       func() (string, []any)
	}{
		{"page", "account_events_in_order", func() (string, []any) { return page(Filter{}) }},
		{"page of a type", "account_events_in_order", func() (string, []any) { return page(Filter{Types: []string{"job.created"}}) }},
		{"notices", "account_events_noticed", func() (string, []any) {
			where := Filter{}.where("acc1", place{12000, 12000})
			return selectEventsSQL + where.SQL + orderNoticesSQL + "\nLIMIT " + where.Param(10), where.Args
		}},
		{"news", "account_events_pkey", func() (string, []any) { return newsSQL, []any{23990, 23990, newsPage} }},
		{"newest", "account_events_pkey", func() (string, []any) { return newestEventSQL, nil }},
	} {
		query, args := test.query()
		plan := w.Plan(query, args...)
		if !strings.Contains(plan, test.index) || strings.Contains(plan, "Sort") || strings.Contains(plan, "Seq Scan on account") {
			t.Errorf("%s does not walk %s:\n%s", test.name, test.index, plan)
		}
	}
	// A job's events are few, and may be sorted.
	if plan := w.Plan(jobEventsSQL, "acc1", "job-71"); !strings.Contains(plan, "account_events_by_stream") || strings.Contains(plan, "Seq Scan") {
		t.Errorf("a job's events do not walk their index:\n%s", plan)
	}
}

// The secret of an answer stays in the log, sealed as it is; that there is one is told.
func TestTheFeedKeepsNoSecretOfAnAnswer(t *testing.T) {
	t.Parallel()
	f := setupFeed(t)
	f.Log.Record(domain.JobStream("j"), modeltest.Created("acc"), modeltest.Claimed("ann"),
		&job.QuestionAsked{QuestionID: "q", Kind: "code", Text: "Which code?", At: modeltest.Noon, Then: &job.Script{Summary: "the robot's own words"}},
		&job.AnswerGiven{QuestionID: "q", Text: "It is the secret", Sealed: "ciphertext", At: modeltest.Noon})
	events := f.all("acc", 4)
	if answer, ok := events[3].Recorded.Event.(*job.AnswerGiven); !ok || answer.Sealed == "" || answer.Text != "It is the secret" {
		t.Errorf("the answer is kept as %+v", events[3].Recorded.Event)
	}
	if n := f.Count(`SELECT COUNT(*) FROM readmodel.account_events WHERE data::text LIKE '%ciphertext%' OR data::text LIKE '%own words%'`); n > 0 {
		t.Errorf("%d rows have what no announcement tells", n)
	}
}
