package sessions

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"humanqa/domain"
	"humanqa/domain/credits"
	"humanqa/domain/job"
	"humanqa/domain/session"
	"humanqa/internal/testing/modeltest"
	"humanqa/internal/testing/must"
)

// gathered is what the read model shows of a session that was just opened.
func gathered(id string) Session {
	return Session{
		ID: id, AccountID: "acc", ProjectID: "p1", Status: session.StatusLobby, URL: "https://app.example", Feature: "chat",
		ScenarioBrief: "buy and sell", VoiceEnabled: true, Type: job.GeneralQA, TypeEcho: "General QA", ItemCount: 4,
		CreditsCharged: 15, ReadyDeadline: *modeltest.At(15), CreatedAt: modeltest.Noon,
		Slots: []Slot{
			{Slot: 1, RoleLabel: "Buyer", JobID: id + "-1", Target: job.Target{Device: "phone"}, Status: SlotWaiting, JobStatus: job.StatusPending},
			{Slot: 2, RoleLabel: "Seller", JobID: id + "-2", Status: SlotWaiting, JobStatus: job.StatusPending},
			{Slot: 3, RoleLabel: "Checker 3", JobID: id + "-3", Status: SlotWaiting, JobStatus: job.StatusPending},
		},
		Marks: []Mark{},
	}
}

func (w *world) session(id string) Session {
	w.T.Helper()
	w.Reach(w.Sup)
	s, err := w.reads.Session(w.Ctx(), "acc", id)
	must.NoError(w.T, err)
	return s
}

func TestASessionAsItsClientSeesIt(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.Run(w.Sup)
	stream, one, two, three := domain.SessionStream("s1"), domain.JobStream("s1-1"), domain.JobStream("s1-2"), domain.JobStream("s1-3")
	want := gathered("s1")

	w.Log.Record(stream, modeltest.Gathering("s1"))
	modeltest.Same(t, w.session("s1"), want)

	for _, j := range []string{one, two, three} {
		w.Log.Record(j, modeltest.Created("acc", func(c *job.Created) { c.SessionID = "s1" }))
	}
	w.Log.Record(one, modeltest.Claimed("ann"))
	w.Log.Record(two, modeltest.Claimed("bob"))
	w.Log.Record(stream, &session.SlotReady{Slot: 1, CheckerID: "ann", At: *modeltest.At(2)}, &session.SlotReady{Slot: 2, CheckerID: "bob", At: *modeltest.At(3)})
	want.Slots[0].JobStatus, want.Slots[0].Status, want.Slots[0].ReadyAt = job.StatusClaimed, SlotReady, modeltest.At(2)
	want.Slots[1].JobStatus, want.Slots[1].Status, want.Slots[1].ReadyAt = job.StatusClaimed, SlotReady, modeltest.At(3)
	modeltest.Same(t, w.session("s1"), want)
	modeltest.Same(t, w.session("s1").ReadyCount(), 2)

	w.Log.Record(stream, &session.SlotLeft{Slot: 2, CheckerID: "bob", At: *modeltest.At(4)})
	w.Log.Record(two, &job.Released{Token: 1, Reason: "left", At: *modeltest.At(4)})
	w.Log.Record(one, &job.Released{Token: 1, Reason: "silent", At: *modeltest.At(4)}) // the session does not say so yet
	for i := range 2 {
		want.Slots[i].JobStatus, want.Slots[i].Status, want.Slots[i].ReadyAt = job.StatusPending, SlotWaiting, nil
	}
	modeltest.Same(t, w.session("s1"), want)
	modeltest.Same(t, w.session("s1").ReadyCount(), 0)

	w.Log.Record(one, modeltest.Claimed("ann"))
	w.Log.Record(stream, &session.SlotLeft{Slot: 1, CheckerID: "ann", At: *modeltest.At(5)}, &session.SlotReady{Slot: 1, CheckerID: "ann", At: *modeltest.At(5)})
	want.Slots[0].JobStatus, want.Slots[0].Status, want.Slots[0].ReadyAt = job.StatusClaimed, SlotReady, modeltest.At(5)

	w.Log.Record(two, modeltest.Claimed("eve"))
	w.Log.Record(stream, &session.SlotReady{Slot: 2, CheckerID: "eve", At: *modeltest.At(5)},
		&session.Started{Ready: []int{1, 2}, Dropped: []int{3}, DueAt: *modeltest.At(75), At: *modeltest.At(15)})
	w.Log.Record(three, &job.Cancelled{Reason: job.CancelSessionExpired, Refund: 5, SessionID: "s1", At: *modeltest.At(15)})
	w.Log.Record(domain.CreditsStream("acc"), modeltest.Refunded("s1-3"))
	w.Log.Record(stream, &session.Marked{ID: "m1", Slot: 2, CheckerID: "eve", Note: "here", At: *modeltest.At(16)})
	w.Log.Record(stream, &session.Marked{ID: "m2", PersonID: "owner", At: *modeltest.At(17)})
	want.Marks = []Mark{{Slot: 2, Note: "here", At: *modeltest.At(16)}, {At: *modeltest.At(17)}}
	want.Status, want.StartedAt, want.CreditsRefunded = session.StatusActive, modeltest.At(15), 5
	want.Slots[0].Status = SlotActive
	want.Slots[1].JobStatus, want.Slots[1].Status, want.Slots[1].ReadyAt = job.StatusClaimed, SlotActive, modeltest.At(5)
	want.Slots[2].JobStatus, want.Slots[2].Status = job.StatusCancelled, SlotDropped
	modeltest.Same(t, w.session("s1"), want)
	modeltest.Same(t, w.session("s1").ReadyCount(), 2)

	w.Log.Record(one, modeltest.Completed("pass"))
	w.Log.Record(two, &job.SLAMissed{SessionID: "s1", Refund: 5, At: *modeltest.At(75)}, &job.Failed{Reason: "sla", Refund: 5, SessionID: "s1", At: *modeltest.At(75)})
	w.Log.Record(stream, &session.Completed{PassCount: 1, At: *modeltest.At(75)})
	w.Log.Record(domain.CreditsStream("acc"), modeltest.Refunded("s1-2"))
	want.Status, want.ClosedAt, want.CloseReason, want.PassCount, want.CreditsRefunded = session.StatusCompleted, modeltest.At(75), "completed", 1, 10
	want.Slots[0].JobStatus, want.Slots[0].Status, want.Slots[0].ReportID = job.StatusCompleted, SlotEnded, "r1"
	want.Slots[1].JobStatus, want.Slots[1].Status = job.StatusFailed, SlotEnded
	modeltest.Same(t, w.session("s1"), want)
	w.Sound(w.Sup, "sessions")
}

func TestASessionThatExpiredOrWasCancelledSaysWhy(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.Run(w.Sup)
	modeltest.Gather(w.Log, "s1")
	modeltest.Gather(w.Log, "s2")
	w.Log.Record(domain.SessionStream("s1"), &session.SlotReady{Slot: 1, CheckerID: "ann", At: *modeltest.At(1)}, &session.Expired{ReadyCount: 1, At: *modeltest.At(15)})
	w.Log.Record(domain.SessionStream("s2"), &session.Cancelled{Reason: session.CancelClient, At: *modeltest.At(3)})
	w.Log.Record(domain.JobStream("s2-1"), &job.Cancelled{Reason: job.CancelSessionCancelled, Refund: 5, SessionID: "s2", At: *modeltest.At(3)})
	w.Log.Record(domain.CreditsStream("acc"), modeltest.Refunded("s2-1"), modeltest.Refunded("no session's"))

	expired := gathered("s1")
	expired.Status, expired.CloseReason, expired.ClosedAt = session.StatusExpired, "expired", modeltest.At(15)
	expired.Slots[0].Status, expired.Slots[0].ReadyAt = SlotReady, modeltest.At(1)
	modeltest.Same(t, w.session("s1"), expired)
	modeltest.Same(t, w.session("s1").ReadyCount(), 1)

	cancelled := gathered("s2")
	cancelled.Status, cancelled.CloseReason, cancelled.ClosedAt, cancelled.CreditsRefunded = session.StatusCancelled, "client", modeltest.At(3), 5
	cancelled.Slots[0].Status, cancelled.Slots[0].JobStatus = SlotEnded, job.StatusCancelled
	modeltest.Same(t, w.session("s2"), cancelled)
	w.Sound(w.Sup, "sessions")
}

// A crash between the session and its jobs leaves slots whose charge is voided.
func TestASlotWhoseJobNeverCameShowsAsCancelled(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.Run(w.Sup)
	w.Log.Record(domain.SessionStream("s1"), modeltest.Gathering("s1"))
	w.Log.Record(domain.JobStream("s1-3"), &job.Voided{AccountID: "acc", At: modeltest.Noon})
	w.Log.Record(domain.CreditsStream("acc"), modeltest.Refunded("s1-3"))
	s := w.session("s1")
	modeltest.Same(t, s.Slots[2], Slot{Slot: 3, RoleLabel: "Checker 3", JobID: "s1-3", Status: SlotEnded, JobStatus: job.StatusCancelled})
	modeltest.Same(t, s.CreditsRefunded, domain.Credits(5))
}

func TestASessionTellsWhatCameBackFromWhatHadExpired(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.Run(w.Sup)
	w.Log.Record(domain.SessionStream("s1"), modeltest.Gathering("s1"))
	ledger := domain.CreditsStream("acc")
	w.Log.Record(ledger, &credits.Refunded{JobID: "s1-1", Amount: 5, Expired: 5, Parts: []credits.Part{{LotID: "soon", Amount: 5, Expired: true}}})
	w.Log.Record(ledger, &credits.Refunded{JobID: "s1-2", Amount: 5, Expired: 2, Parts: []credits.Part{
		{LotID: "soon", Amount: 2, Expired: true}, {LotID: "later", Amount: 3},
	}})
	want := gathered("s1")
	want.CreditsRefunded, want.CreditsExpired = 3, 7
	modeltest.Same(t, w.session("s1"), want)
	w.Log.Record(ledger, modeltest.Refunded("s1-3")) // in a batch of its own
	want.CreditsRefunded = 8
	modeltest.Same(t, w.session("s1"), want)
	w.Sound(w.Sup, "sessions")
}

func TestAListOfSessionsIsTheAccountsOwnNewestFirst(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.Run(w.Sup)
	for i := range 6 {
		modeltest.Gather(w.Log, fmt.Sprint("s", i), func(e *session.Created) {
			e.At = modeltest.Noon.Add(time.Duration(i/2) * time.Second)
			e.ProjectID = []string{"p1", "p2"}[i%2]
			e.AccountID = []string{"acc", "acc", "other"}[i%3]
		})
	}
	w.Log.Record(domain.SessionStream("s1"), &session.Cancelled{Reason: "client", At: *modeltest.At(1)})
	w.Reach(w.Sup)
	for _, c := range []struct {
		filter Filter
		want   string
		total  int
	}{
		{Filter{Limit: 10}, "s4 s3 s1 s0", 4}, // s2 and s5 are another account's
		{Filter{Limit: 2}, "s4 s3", 4},
		{Filter{Limit: 2, Offset: 3}, "s0", 4},
		{Filter{Limit: 10, ProjectID: "p1"}, "s4 s0", 2},
		{Filter{Limit: 10, Status: session.StatusCancelled}, "s1", 1},
		{Filter{Limit: 10, Status: session.StatusLobby, ProjectID: "p2"}, "s3", 1},
		{Filter{Limit: 10, ProjectID: "nobody's"}, "", 0},
	} {
		list, total, err := w.reads.List(w.Ctx(), "acc", c.filter)
		must.NoError(t, err)
		var ids []string
		for _, s := range list {
			ids = append(ids, s.ID)
			modeltest.Same(t, len(s.Slots), 3)
		}
		if got := strings.Join(ids, " "); got != c.want || total != c.total {
			t.Errorf("%+v gives %q of %d, want %q of %d", c.filter, got, total, c.want, c.total)
		}
	}
	for _, id := range []string{"s2", "no-such"} {
		if _, err := w.reads.Session(w.Ctx(), "acc", id); !domain.IsKind(err, domain.KindNotFound) {
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
		modeltest.Gather(w.Log, id)
		w.Log.Record(domain.JobStream(id+"-1"), modeltest.Claimed("ann"))
		w.Log.Record(domain.SessionStream(id), &session.SlotReady{Slot: 1, CheckerID: "ann", At: *modeltest.At(i)})
		older := fmt.Sprint("s", i/2)
		w.Log.Record(domain.CreditsStream("acc"), modeltest.Refunded(older+"-3"))
		switch i % 3 {
		case 0:
			w.Log.Record(domain.SessionStream(id), &session.Expired{ReadyCount: 1, At: *modeltest.At(15)})
		case 1:
			w.Log.Record(domain.SessionStream(id), &session.Started{Ready: []int{1, 2}, Dropped: []int{3}, At: *modeltest.At(15)})
			w.Log.Record(domain.JobStream(id+"-1"), modeltest.Completed("fail"))
		}
	}
	w.Run(w.Sup) // in large batches
	w.Sound(w.Sup, "sessions")
	for i := range 10 { // one by one
		w.Log.Record(domain.SessionStream(fmt.Sprint("s", i)), &session.Completed{FailCount: 1, At: *modeltest.At(20)})
		w.Reach(w.Sup)
	}
	w.Sound(w.Sup, "sessions")
}

const manySessionsSQL = `
INSERT INTO {sessions}.sessions
SELECT r.*
FROM generate_series(1, 12000) n,
     json_populate_record(NULL::{sessions}.sessions, json_build_object(
        'id', 's' || n, 'account_id', 'acc' || (n % 3), 'project_id', 'p' || (n % 50),
        'status', CASE WHEN n % 100 = 0 THEN 'lobby' WHEN n % 7 = 0 THEN 'active' ELSE 'completed' END,
        'url', 'https://app.example', 'feature', '', 'scenario_brief', repeat('b', 200), 'voice_enabled', true,
        'type', 'custom', 'type_echo', 'Custom', 'item_count', 4, 'charged', 15, 'refunded', 0, 'expired', 0, 'pass_count', 0,
        'fail_count', 0, 'close_reason', '', 'ready_deadline', now(),
        'created_at', now() - n * interval '1 second', 'slots', '[]'::json, 'marks', '[]'::json)) r`

// A page of sessions is read off an index in the order of the answer.
func TestListsOfSessionsWalkTheirIndexes(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.Exec(manySessionsSQL)
	w.Exec("ANALYZE {sessions}.sessions")
	for index, f := range map[string]Filter{
		"sessions_by_account": {},
		"sessions_by_status":  {Status: session.StatusLobby},
		"sessions_by_project": {ProjectID: "p7"},
	} {
		where := f.where("acc1")
		query := listSessionsSQL + where.SQL + fmt.Sprintf(orderSessionsSQL, where.Param(100), where.Param(0))
		var lines []string
		must.NoError(t, w.DB.SelectContext(w.Ctx(), &lines, "EXPLAIN "+query, where.Args...))
		plan := strings.Join(lines, "\n")
		if !strings.Contains(plan, index) || strings.Contains(plan, "Sort") || strings.Contains(plan, "Seq Scan") {
			t.Errorf("%+v does not walk %s:\n%s", f, index, plan)
		}
	}
}
