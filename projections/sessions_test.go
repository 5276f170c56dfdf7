package projections

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"humanqa/domain"
	"humanqa/domain/credits"
	"humanqa/domain/job"
	"humanqa/domain/session"
)

// gathering is a session of three slots with the jobs <id>-1, <id>-2 and
// <id>-3.
func gathering(id string, change ...func(*session.Created)) *session.Created {
	e := &session.Created{
		AccountID: "acc", ProjectID: "p1", URL: "https://app.example", Feature: "chat", ScenarioBrief: "buy and sell",
		VoiceEnabled: true, Type: job.GeneralQA, TypeEcho: "General QA", SLAMinutes: 60, SlotPrice: 5, ItemCount: 4,
		ReadyDeadline: noon.Add(15 * time.Minute), At: noon,
		Slots: []session.Slot{
			{Slot: 1, RoleLabel: "Buyer", JobID: id + "-1", Target: job.Target{Device: "phone"}},
			{Slot: 2, RoleLabel: "Seller", JobID: id + "-2"},
			{Slot: 3, RoleLabel: "Checker 3", JobID: id + "-3"},
		},
	}
	for _, c := range change {
		c(e)
	}
	return e
}

// gathered is what the read model shows of a session that was just opened.
func gathered(id string) Session {
	return Session{
		ID: id, AccountID: "acc", ProjectID: "p1", Status: session.Lobby, URL: "https://app.example", Feature: "chat",
		ScenarioBrief: "buy and sell", VoiceEnabled: true, Type: job.GeneralQA, TypeEcho: "General QA", ItemCount: 4,
		CreditsCharged: 15, ReadyDeadline: *at(15), CreatedAt: noon,
		Slots: []SessionSlot{
			{Slot: 1, RoleLabel: "Buyer", JobID: id + "-1", Target: job.Target{Device: "phone"}, Status: SlotWaiting, JobStatus: job.Pending},
			{Slot: 2, RoleLabel: "Seller", JobID: id + "-2", Status: SlotWaiting, JobStatus: job.Pending},
			{Slot: 3, RoleLabel: "Checker 3", JobID: id + "-3", Status: SlotWaiting, JobStatus: job.Pending},
		},
	}
}

// gather appends a session and its slots' jobs.
func gather(m *memoryLog, id string, change ...func(*session.Created)) {
	e := gathering(id, change...)
	m.append(domain.SessionStream(id), e)
	for _, slot := range e.Slots {
		m.append(domain.JobStream(slot.JobID), created(e.AccountID, func(c *job.Created) { c.SessionID, c.SessionSlot = id, slot.Slot }))
	}
}

func refunded(jobID string) *credits.Refunded {
	return &credits.Refunded{JobID: jobID, Amount: 5, Parts: []credits.Part{}}
}

func (w *world) session(id string) Session {
	w.t.Helper()
	w.reach(w.sup)
	s, err := w.reads.Sessions.Session(w.ctx(), "acc", id)
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}

func TestASessionAsItsClientSeesIt(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.run(w.sup)
	stream, one, two, three := domain.SessionStream("s1"), domain.JobStream("s1-1"), domain.JobStream("s1-2"), domain.JobStream("s1-3")
	want := gathered("s1")

	w.log.append(stream, gathering("s1"))
	same(t, w.session("s1"), want)

	for _, j := range []string{one, two, three} {
		w.log.append(j, created("acc", func(c *job.Created) { c.SessionID = "s1" }))
	}
	w.log.append(one, claimed("ann"))
	w.log.append(two, claimed("bob"))
	w.log.append(stream, &session.SlotReady{Slot: 1, CheckerID: "ann", At: *at(2)}, &session.SlotReady{Slot: 2, CheckerID: "bob", At: *at(3)})
	want.Slots[0].JobStatus, want.Slots[0].Status, want.Slots[0].ReadyAt = job.Claimed, SlotReady, at(2)
	want.Slots[1].JobStatus, want.Slots[1].Status, want.Slots[1].ReadyAt = job.Claimed, SlotReady, at(3)
	want.ReadyCount = 2
	same(t, w.session("s1"), want)

	w.log.append(stream, &session.SlotLeft{Slot: 2, CheckerID: "bob", At: *at(4)})
	w.log.append(two, &job.Released{Token: 1, Reason: "left", At: *at(4)})
	w.log.append(one, &job.Released{Token: 1, Reason: "silent", At: *at(4)}) // the session does not say so yet
	for i := range 2 {
		want.Slots[i].JobStatus, want.Slots[i].Status, want.Slots[i].ReadyAt = job.Pending, SlotWaiting, nil
	}
	want.ReadyCount = 0
	same(t, w.session("s1"), want)

	w.log.append(one, claimed("ann"))
	w.log.append(stream, &session.SlotLeft{Slot: 1, CheckerID: "ann", At: *at(5)}, &session.SlotReady{Slot: 1, CheckerID: "ann", At: *at(5)})
	want.Slots[0].JobStatus, want.Slots[0].Status, want.Slots[0].ReadyAt = job.Claimed, SlotReady, at(5)

	w.log.append(two, claimed("eve"))
	w.log.append(stream, &session.SlotReady{Slot: 2, CheckerID: "eve", At: *at(5)},
		&session.Started{Ready: []int{1, 2}, Dropped: []int{3}, DueAt: *at(75), At: *at(15)})
	w.log.append(three, &job.CancelledBy{Reason: job.CancelSessionExpired, Refund: 5, SessionID: "s1", At: *at(15)})
	w.log.append(domain.CreditsStream("acc"), refunded("s1-3"))
	want.Status, want.StartedAt, want.ReadyCount, want.CreditsRefunded = session.Active, at(15), 2, 5
	want.Slots[0].Status = SlotActive
	want.Slots[1].JobStatus, want.Slots[1].Status, want.Slots[1].ReadyAt = job.Claimed, SlotActive, at(5)
	want.Slots[2].JobStatus, want.Slots[2].Status = job.Cancelled, SlotDropped
	same(t, w.session("s1"), want)

	w.log.append(one, completed("pass"))
	w.log.append(two, &job.SLAMissed{SessionID: "s1", Refund: 5, At: *at(75)}, &job.FailedBy{Reason: "sla", Refund: 5, SessionID: "s1", At: *at(75)})
	w.log.append(stream, &session.CompletedWith{PassCount: 1, At: *at(75)})
	w.log.append(domain.CreditsStream("acc"), refunded("s1-2"))
	want.Status, want.ClosedAt, want.CloseReason, want.PassCount, want.CreditsRefunded = session.Completed, at(75), "completed", 1, 10
	want.Slots[0].JobStatus, want.Slots[0].Status, want.Slots[0].ReportID = job.Completed, SlotEnded, "r1"
	want.Slots[1].JobStatus, want.Slots[1].Status = job.Failed, SlotEnded
	same(t, w.session("s1"), want)
	w.sound(w.sup, "sessions")
}

func TestASessionThatExpiredOrWasCancelledSaysWhy(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.run(w.sup)
	gather(w.log, "s1")
	gather(w.log, "s2")
	w.log.append(domain.SessionStream("s1"), &session.SlotReady{Slot: 1, CheckerID: "ann", At: *at(1)}, &session.ExpiredBy{ReadyCount: 1, At: *at(15)})
	w.log.append(domain.SessionStream("s2"), &session.CancelledBy{Reason: session.CancelClient, At: *at(3)})
	w.log.append(domain.JobStream("s2-1"), &job.CancelledBy{Reason: job.CancelSessionCancelled, Refund: 5, SessionID: "s2", At: *at(3)})
	w.log.append(domain.CreditsStream("acc"), refunded("s2-1"), refunded("no session's"))

	expired := gathered("s1")
	expired.Status, expired.CloseReason, expired.ClosedAt, expired.ReadyCount = session.Expired, "expired", at(15), 1
	expired.Slots[0].Status, expired.Slots[0].ReadyAt = SlotReady, at(1)
	same(t, w.session("s1"), expired)

	cancelled := gathered("s2")
	cancelled.Status, cancelled.CloseReason, cancelled.ClosedAt, cancelled.CreditsRefunded = session.Cancelled, "client", at(3), 5
	cancelled.Slots[0].Status, cancelled.Slots[0].JobStatus = SlotEnded, job.Cancelled
	same(t, w.session("s2"), cancelled)
	w.sound(w.sup, "sessions")
}

// A crash between the session and its jobs leaves slots whose charge is voided.
func TestASlotWhoseJobNeverCameShowsAsCancelled(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.run(w.sup)
	w.log.append(domain.SessionStream("s1"), gathering("s1"))
	w.log.append(domain.JobStream("s1-3"), &job.VoidedOrphan{AccountID: "acc", At: noon})
	w.log.append(domain.CreditsStream("acc"), refunded("s1-3"))
	s := w.session("s1")
	same(t, s.Slots[2], SessionSlot{Slot: 3, RoleLabel: "Checker 3", JobID: "s1-3", Status: SlotEnded, JobStatus: job.Cancelled})
	same(t, s.CreditsRefunded, domain.Credits(5))
}

func TestAListOfSessionsIsTheAccountsOwnNewestFirst(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.run(w.sup)
	for i := range 6 {
		gather(w.log, fmt.Sprint("s", i), func(e *session.Created) {
			e.At = noon.Add(time.Duration(i/2) * time.Second)
			e.ProjectID = []string{"p1", "p2"}[i%2]
			e.AccountID = []string{"acc", "acc", "other"}[i%3]
		})
	}
	w.log.append(domain.SessionStream("s1"), &session.CancelledBy{Reason: "client", At: *at(1)})
	w.reach(w.sup)
	for _, c := range []struct {
		filter SessionFilter
		want   string
		total  int
	}{
		{SessionFilter{Limit: 10}, "s4 s3 s1 s0", 4}, // s2 and s5 are another account's
		{SessionFilter{Limit: 2}, "s4 s3", 4},
		{SessionFilter{Limit: 2, Offset: 3}, "s0", 4},
		{SessionFilter{Limit: 10, ProjectID: "p1"}, "s4 s0", 2},
		{SessionFilter{Limit: 10, Status: session.Cancelled}, "s1", 1},
		{SessionFilter{Limit: 10, Status: session.Lobby, ProjectID: "p2"}, "s3", 1},
		{SessionFilter{Limit: 10, ProjectID: "nobody's"}, "", 0},
	} {
		list, total, err := w.reads.Sessions.List(w.ctx(), "acc", c.filter)
		if err != nil {
			t.Fatal(err)
		}
		var ids []string
		for _, s := range list {
			ids = append(ids, s.ID)
			same(t, len(s.Slots), 3)
		}
		if got := strings.Join(ids, " "); got != c.want || total != c.total {
			t.Errorf("%+v gives %q of %d, want %q of %d", c.filter, got, total, c.want, c.total)
		}
	}
	for _, id := range []string{"s2", "no-such"} {
		if _, err := w.reads.Sessions.Session(w.ctx(), "acc", id); !domain.IsKind(err, domain.KindNotFound) {
			t.Errorf("session %s: %v", id, err)
		}
	}
}

// However the log is cut into batches, and applied live or anew, the rows are
// the same.
func TestSessionsDoNotDependOnHowTheLogIsCut(t *testing.T) {
	t.Parallel()
	w := setup(t)
	for i := range 20 {
		id := fmt.Sprint("s", i)
		gather(w.log, id)
		w.log.append(domain.JobStream(id+"-1"), claimed("ann"))
		w.log.append(domain.SessionStream(id), &session.SlotReady{Slot: 1, CheckerID: "ann", At: *at(i)})
		older := fmt.Sprint("s", i/2)
		w.log.append(domain.CreditsStream("acc"), refunded(older+"-3"))
		switch i % 3 {
		case 0:
			w.log.append(domain.SessionStream(id), &session.ExpiredBy{ReadyCount: 1, At: *at(15)})
		case 1:
			w.log.append(domain.SessionStream(id), &session.Started{Ready: []int{1, 2}, Dropped: []int{3}, At: *at(15)})
			w.log.append(domain.JobStream(id+"-1"), completed("fail"))
		}
	}
	w.run(w.sup) // in large batches
	w.sound(w.sup, "sessions")
	for i := range 10 { // one by one
		w.log.append(domain.SessionStream(fmt.Sprint("s", i)), &session.CompletedWith{FailCount: 1, At: *at(20)})
		w.reach(w.sup)
	}
	w.sound(w.sup, "sessions")
}

const manySessionsSQL = `
INSERT INTO sessions_v1_g1.sessions
SELECT r.*
FROM generate_series(1, 12000) n,
     json_populate_record(NULL::sessions_v1_g1.sessions, json_build_object(
        'id', 's' || n, 'account_id', 'acc' || (n % 3), 'project_id', 'p' || (n % 50),
        'status', CASE WHEN n % 100 = 0 THEN 'lobby' WHEN n % 7 = 0 THEN 'active' ELSE 'completed' END,
        'url', 'https://app.example', 'feature', '', 'scenario_brief', repeat('b', 200), 'voice_enabled', true,
        'type', 'custom', 'type_echo', 'Custom', 'item_count', 4, 'charged', 15, 'refunded', 0, 'pass_count', 0,
        'fail_count', 0, 'close_reason', '', 'ready_deadline', now(),
        'created_at', now() - n * interval '1 second', 'slots', '[]'::json)) r`

// A page of sessions is read off an index in the order of the answer.
func TestListsOfSessionsWalkTheirIndexes(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.exec(manySessionsSQL)
	w.exec("ANALYZE sessions_v1_g1.sessions")
	for index, f := range map[string]SessionFilter{
		"sessions_by_account": {},
		"sessions_by_status":  {Status: session.Lobby},
		"sessions_by_project": {ProjectID: "p7"},
	} {
		where := f.where("acc1")
		query := listSessionsSQL + where.sql + fmt.Sprintf(orderSessionsSQL, where.param(100), where.param(0))
		var lines []string
		if err := w.db.SelectContext(w.ctx(), &lines, "EXPLAIN "+query, where.args...); err != nil {
			t.Fatal(err)
		}
		plan := strings.Join(lines, "\n")
		if !strings.Contains(plan, index) || strings.Contains(plan, "Sort") || strings.Contains(plan, "Seq Scan") {
			t.Errorf("%+v does not walk %s:\n%s", f, index, plan)
		}
	}
}
