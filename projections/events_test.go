package projections

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"humanqa/domain"
	"humanqa/domain/job"
	"humanqa/domain/loop"
	"humanqa/domain/session"
)

// feed is a world with events to read.
type feed struct{ *world }

func setupFeed(t *testing.T) feed {
	t.Helper()
	f := feed{setup(t)}
	f.run(f.sup)
	return f
}

// all waits until the feed shows n events of the account.
func (f feed) all(accountID string, n int) (events []AccountEvent) {
	f.t.Helper()
	f.eventually(fmt.Sprint(n, " events"), func() bool {
		events = f.page(accountID, EventFilter{Limit: 1000})
		return len(events) >= n
	})
	return events
}

func (f feed) page(accountID string, filter EventFilter) []AccountEvent {
	f.t.Helper()
	events, err := f.reads.Events.After(f.ctx(), accountID, filter)
	if err != nil {
		f.t.Fatal(err)
	}
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
	submitted := created("acc", func(e *job.Created) {
		e.ProjectID, e.SessionID, e.Urgent = "p1", "s1", true
		e.Credentials, e.AccessInstructions = "sealed-credentials", "sealed-instructions"
	})
	slots := []session.Slot{{Slot: 1, RoleLabel: "buyer", JobID: "j1"}, {Slot: 2, RoleLabel: "seller", JobID: "j2"}}
	f.log.append(domain.JobStream("j1"), submitted)
	f.log.append(domain.SessionStream("s1"),
		&session.Created{AccountID: "acc", ProjectID: "p1", Slots: slots, At: noon},
		&session.SlotReady{Slot: 1, CheckerID: "ann", At: noon},
		&session.Started{Ready: []int{1}, Dropped: []int{2}, At: noon})
	f.log.append(domain.JobStream("j1"),
		claimed("ann"), &job.Heartbeat{Token: 1, At: noon},
		&job.SLAMissed{RequeueCount: 1, Requeued: true, DueAt: noon, At: noon},
		claimed("bob"), &job.ItemChecked{ItemID: "i1", Status: job.ItemPass, At: noon},
		completed("fail"), analysed(60), &job.Rated{Rating: 3, At: noon})
	f.log.append(domain.SessionStream("s1"), &session.CompletedWith{FailCount: 1, At: noon})
	f.log.append(domain.JobStream("j3"), created("acc"), &job.FailedBy{Reason: "operator", At: noon})
	f.log.append(domain.JobStream("j4"), created("acc"), &job.CancelledBy{Reason: "client", At: noon})
	loopStream := domain.LoopStream("l1")
	f.log.append(loopStream,
		&loop.Started{SessionID: "x", AccountID: "acc", ProjectID: "p2", At: noon},
		&loop.Ended{SessionID: "x", FinalStatus: loop.Passed, At: noon},
		&loop.Started{SessionID: "y", AccountID: "acc", ProjectID: "p2", At: noon},
		&loop.Ended{SessionID: "y", FinalStatus: loop.OutOfCredits, Alert: true, At: noon})
	f.log.append(domain.JobStream("headless"), claimed("ann"))
	f.log.append(domain.JobStream("theirs"), created("other"))

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
	plain := *submitted
	plain.Credentials, plain.AccessInstructions = "", ""
	same(t, events[0].Recorded.Event, &plain)
	if n := f.count("SELECT COUNT(*) FROM readmodel.account_events WHERE data LIKE '%sealed%'"); n > 0 {
		t.Error("a secret reached the read model")
	}
	job1 := EventSubject{
		URL: submitted.URL, Title: submitted.Title, Type: submitted.Type, TypeEcho: submitted.TypeEcho,
		Urgent: true, SLAMinutes: 60, SessionID: "s1", ReportID: "r1",
	}
	same(t, events[6].About, job1)
	same(t, events[6].Recorded.Event, analysed(60))
	same(t, events[7].About, EventSubject{Slots: slots, Dropped: []int{2}})
	for i, want := range map[int]string{0: "p1", 1: "p1", 7: "p1", 8: "", 12: "p2"} {
		if events[i].ProjectID != want {
			t.Errorf("event %d is of project %q, want %q", i, events[i].ProjectID, want)
		}
	}
	f.sound(f.sup, "events")
}

func TestAFeedIsReadOnFromAnyOfItsCursors(t *testing.T) {
	t.Parallel()
	f := setupFeed(t)
	for i := range 10 {
		f.log.append(domain.JobStream(fmt.Sprint("j", i)), created("acc", func(e *job.Created) {
			e.ProjectID = []string{"p1", "p2"}[i%2]
		}), claimed("ann"))
		f.log.append(domain.JobStream(fmt.Sprint("o", i)), created("other"))
	}
	whole := f.all("acc", 20)
	var read []AccountEvent
	for after := ""; ; {
		page := f.page("acc", EventFilter{After: after, Limit: 3})
		if len(page) == 0 {
			break
		}
		read = append(read, page...)
		after = page[len(page)-1].Cursor
	}
	same(t, read, whole)
	one := f.page("acc", EventFilter{After: whole[4].Cursor, Types: []string{"job.claimed", "job.completed"}, ProjectID: "p2", Limit: 2})
	if len(one) != 2 || one[0].Cursor != whole[7].Cursor || one[1].Cursor != whole[11].Cursor {
		t.Errorf("got %+v", one)
	}
	for _, bad := range []string{"x", "1", "1-", "-1-1", "01-1", "1-1-1", "1-9223372036854775808", "99999999999999999999-1", "1 -1"} {
		_, err := f.reads.Events.After(f.ctx(), "acc", EventFilter{After: bad, Limit: 1})
		if !domain.IsKind(err, domain.KindInvalid) || !strings.Contains(err.Error(), "after") {
			t.Errorf("cursor %q: %v", bad, err)
		}
	}
}

func TestAJobsEventsAreItsAccountsOnly(t *testing.T) {
	t.Parallel()
	f := setupFeed(t)
	f.log.append(domain.JobStream("j1"), created("acc"), claimed("ann"))
	f.log.append(domain.JobStream("j2"), created("acc"))
	f.all("acc", 3)
	for accountID, want := range map[string]string{"acc": "job.created job.claimed", "other": ""} {
		events, err := f.reads.Events.OfJob(f.ctx(), accountID, "j1")
		if err != nil || types(events) != want {
			t.Errorf("%s reads %q, %v", accountID, types(events), err)
		}
	}
}

func TestNewsNamesTheAccountsWithNewEvents(t *testing.T) {
	t.Parallel()
	f := setupFeed(t)
	if newest, err := f.reads.Events.Newest(f.ctx()); newest != "" || err != nil {
		t.Errorf("before the first event: %q, %v", newest, err)
	}
	news := func(after string, want ...string) string {
		t.Helper()
		accounts, next, err := f.reads.Events.News(f.ctx(), after)
		if err != nil || !slices.Equal(accounts, want) {
			t.Errorf("news behind %q: %v, %v", after, accounts, err)
		}
		return next
	}
	if next := news(""); next != "" {
		t.Errorf("nothing leads to %q", next)
	}
	f.log.append(domain.JobStream("b"), created("bob"), claimed("c"))
	f.log.append(domain.JobStream("a"), created("ann"))
	f.all("ann", 1)
	next := news("", "ann", "bob")
	if newest, err := f.reads.Events.Newest(f.ctx()); newest != next || err != nil {
		t.Errorf("the newest is %q, want %q, %v", newest, next, err)
	}
	if again := news(next); again != next {
		t.Errorf("nothing new leads to %q", again)
	}
	f.log.append(domain.JobStream("a"), claimed("c"))
	f.all("ann", 2)
	news(next, "ann")
}

const longFeedSQL = `
INSERT INTO events_v1_g1.event_streams
SELECT 'job-' || n, 'acc' || (n % 10), 'p', '{}'
FROM generate_series(1, 6000) n;
INSERT INTO events_v1_g1.account_events
SELECT n, n, 'acc' || ((n / 4) % 10), 'job-' || (n / 4), 0, gen_random_uuid(), 'job.created', 1, now(), repeat('d', 400)
FROM generate_series(4, 24000) n;
ANALYZE;`

func TestAFeedIsReadThroughItsIndexes(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.exec(longFeedSQL)
	page := func(f EventFilter) (string, []any) {
		where := f.where("acc1", place{12000, 12000})
		return selectEventsSQL + where.sql + orderEventsSQL + "\nLIMIT " + where.param(100), where.args
	}
	for _, test := range []struct {
		name, index string
		query       func() (string, []any)
	}{
		{"page", "account_events_in_order", func() (string, []any) { return page(EventFilter{}) }},
		{"page of a type", "account_events_in_order", func() (string, []any) { return page(EventFilter{Types: []string{"job.created"}}) }},
		{"job", "account_events_by_stream", func() (string, []any) { return jobEventsSQL, []any{"acc1", "job-71"} }},
		{"news", "account_events_pkey", func() (string, []any) { return newsSQL, []any{23990, 23990, newsPage} }},
		{"newest", "account_events_pkey", func() (string, []any) { return newestEventSQL, nil }},
	} {
		query, args := test.query()
		plan := w.plan(query, args...)
		if !strings.Contains(plan, test.index) || strings.Contains(plan, "Sort") || strings.Contains(plan, "Seq Scan on account") {
			t.Errorf("%s does not walk %s:\n%s", test.name, test.index, plan)
		}
	}
}
