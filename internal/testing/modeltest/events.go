package modeltest

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"humanqa/domain"
	"humanqa/domain/account"
	"humanqa/domain/credits"
	"humanqa/domain/job"
	"humanqa/domain/loop"
	"humanqa/domain/project"
	"humanqa/domain/session"
	"humanqa/internal/testing/logtest"
	"humanqa/internal/testing/must"
)

// Noon is the time around which everything in these tests happens.
var Noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func Created(accountID string, change ...func(*job.Created)) *job.Created {
	e := &job.Created{
		Submission: job.Submission{
			AccountID: accountID, URL: "https://app.example", Title: "checkout", Description: "buy a pair of shoes",
			Type: job.PaymentFlow, TypeEcho: "Payment Flow", SLAMinutes: 60, Price: 5, Source: "api",
		},
		CreatedAt: Noon,
		Items: []job.Item{
			{ID: "i1", Key: "pay", Description: "pay by card", Severity: job.Critical},
			{ID: "i2", Key: "mail", Description: "a mail arrives", Severity: job.Minor},
		},
	}
	for _, c := range change {
		c(e)
	}
	return e
}

func Claimed(checkerID string) *job.Claimed {
	return &job.Claimed{CheckerID: checkerID, Token: 1, DueAt: Noon.Add(90 * time.Minute), At: Noon.Add(time.Minute)}
}

func Completed(overall string) *job.Completed {
	return &job.Completed{
		ReportID: "r1", OverallStatus: overall, PassCount: 1, FailCount: 1, Summary: "mostly fine",
		RecordingURL: "https://rec.example/1", At: Noon.Add(30 * time.Minute),
		Items: []job.ReportItem{
			{Item: job.Item{ID: "i1", Key: "pay", Description: "pay by card", Severity: job.Critical}, Status: job.ItemPass},
			{Item: job.Item{ID: "i2", Key: "mail", Description: "a mail arrives", Severity: job.Minor}, Status: job.ItemFail,
				Note: "none came"},
		},
	}
}

// Lives appends the lives of n jobs, interleaved, in many different states.
func Lives(m *logtest.Memory, prefix string, n int) {
	for i := range n {
		stream := domain.JobStream(fmt.Sprintf("%s%d", prefix, i))
		accountID := fmt.Sprintf("acc%d", i%3)
		m.Record(stream, Created(accountID, func(e *job.Created) {
			e.ProjectID = []string{"", "p1", "p2"}[i%3]
			e.CreatedAt = Noon.Add(time.Duration(i) * time.Second)
		}))
		older := domain.JobStream(fmt.Sprintf("%s%d", prefix, i/2))
		switch i % 6 {
		case 0:
			m.Record(stream, &job.Cancelled{Reason: "client", Refund: 5, At: Noon})
		case 1, 2:
			m.Record(stream, Claimed("c1"), &job.ItemChecked{ItemID: "i1", Status: job.ItemPass, At: Noon})
		case 3:
			m.Record(stream, Claimed("c1"), Completed("pass"))
		case 4:
			m.Record(stream, Claimed("c1"), &job.Released{Token: 1, Reason: "checker", At: Noon})
		case 5:
			m.Record(older, &job.FindingAdded{Item: job.Item{ID: "f" + stream, Description: "odd"}, Status: job.ItemFail})
		}
	}
}

func Issued(n int) *account.KeyIssued {
	return &account.KeyIssued{KeyID: fmt.Sprint("k", n), Hash: fmt.Sprint("hash", n), Prefix: "qa_live_ab", Scope: account.ScopeFull}
}

// Stories appends jobs that meet all events that a job can have, interleaved.
func Stories(m *logtest.Memory, prefix string, n int) {
	id := func(i int) string { return fmt.Sprint(prefix, "story", i) }
	stream := func(i int) string { return domain.JobStream(id(i)) }
	for i := range n {
		m.Record(stream(i), Created(fmt.Sprint("acc", i%3), func(e *job.Created) {
			e.ProjectID = []string{"", "p1", "p2", "p1"}[i%4]
			e.BatchID, e.BatchIndex, e.LoopID, e.HostedApp, e.Sandbox = "b"+prefix, n-i, "l", true, i%9 == 8
			if i%2 == 0 {
				e.Items, e.BatchName = nil, "Release "+prefix
			}
		}))
	}
	written := &job.ChecklistWritten{Items: Created("").Items, GeneratedBy: "rules", At: Noon}
	missed := func(n int) *job.SLAMissed {
		return &job.SLAMissed{RequeueCount: n, Requeued: n < 3, DueAt: Noon.AddDate(0, 0, n), At: *At(n)}
	}
	for i := range n {
		if i%2 == 0 {
			m.Record(stream(i), written)
		}
		switch i % 7 {
		case 0:
			m.Record(stream(i), missed(1), Claimed("ann"), missed(2), missed(3), &job.Failed{Reason: "sla", Refund: 5, At: Noon})
		case 1:
			m.Record(stream(i), Claimed("ann"), &job.UntestableReported{CheckerID: "ann", Token: 1, Reason: "down", At: Noon})
		case 2:
			m.Record(stream(i), Claimed("ann"), &job.UntestableReported{CheckerID: "ann", Token: 1, Reason: "down", At: Noon},
				Claimed("bob"), &job.UntestableReported{CheckerID: "bob", Token: 2, Reason: "down", At: Noon},
				&job.Failed{Reason: "untestable", Refund: 5, At: Noon})
		case 3:
			m.Record(stream(i), Claimed("ann"), Recorded("a"), Completed("pass"), Recorded("b"), &job.Rated{Rating: 2, At: Noon},
				Analysed(80), &job.Rated{Rating: 4, At: Noon})
		case 4:
			m.Record(stream(i), Claimed("ann"), Completed("fail"))
			m.Record(stream(i/2), &job.SlotStarted{DueAt: *At(i), At: Noon})
		case 5:
			odd := job.Item{ID: "odd" + stream(i), Description: "odd"}
			m.Record(stream(i), Claimed("ann"), &job.FindingAdded{Item: odd, Status: job.ItemFail},
				&job.FindingEdited{Item: odd, Status: job.ItemPass, Note: "fine"}, &job.FindingWithdrawn{FindingID: odd.ID, At: Noon},
				&job.Heartbeat{Token: 1, At: Noon}, &job.Released{Token: 1, Reason: "silent", At: Noon})
		case 6:
			m.Record(stream(i), &job.Cancelled{Reason: "client", Refund: 5, At: Noon})
		}
	}
	for i := 4; i < n; i += 7 {
		m.Record(stream(i), Recorded("c"), &job.MomentMarked{Moment: job.Moment{ID: "m", At: Noon}, Token: 1})
		m.Record(stream(i), Analysed(i), &job.Rated{Rating: 1 + i%5, At: Noon}, &job.Rated{Rating: 5, At: Noon})
	}
}

// Recorded is a recording of the claim that Claimed makes.
func Recorded(id string) *job.RecordingAttached {
	return &job.RecordingAttached{At: Noon, Recording: job.Recording{
		ID: id, Token: 1, URL: "/v1/evidence/" + id, ContentType: "video/webm", Size: 9, StartedAt: Noon, DurationMs: 60_000,
	}}
}

func Analysed(score int) *job.AIReportReady {
	return &job.AIReportReady{AIReport: job.AIReport{
		ID: "a1", ExecutiveSummary: "shaky", HealthScore: score, PassCount: 1, FailCount: 1, GeneratedBy: "rules", At: Noon,
		Bugs: []job.Bug{{
			ItemID: "i2", Title: "no mail", Severity: job.Minor, Description: "none came",
			ReproductionSteps: []string{"pay", "wait"}, SuggestedFix: "send one",
		}},
		Strengths: []string{"fast"}, Recommendations: []string{"send mails"},
	}}
}

// Prepared queues a fix for each key; its ids are the batch's with a number.
func Prepared(batchID string, keys ...string) *project.RegressionsPrepared {
	e := &project.RegressionsPrepared{BatchID: batchID, At: *At(7)}
	for i, key := range keys {
		p := project.Prepared{ID: fmt.Sprint(batchID, i), Key: key, Description: "fixed " + key, Severity: "major"}
		if i == 0 {
			p.BugID = "bug-" + key
		}
		e.Items = append(e.Items, p)
	}
	return e
}

// Everything appends projects, jobs and fixes with events of all kinds.
func Everything(m *logtest.Memory) {
	for i, id := range []string{"p1", "p2"} {
		stream := domain.ProjectStream(id)
		m.Record(stream, &project.Created{AccountID: fmt.Sprint("acc", i), Name: id, HookHash: id, At: Noon},
			Prepared("x"+id, "mail", "pay"), Prepared("y"+id, "cart", "mail"))
		for j := range 12 {
			m.Record(stream, &project.RegressionsAttached{
				JobIDs: []string{fmt.Sprint("bstory", 4*j+1+i), fmt.Sprint("bstory", 4*j+3-i)}, Items: []string{"y" + id + "1"}, At: Noon,
			}, &project.DeployReceived{Keys: []string{fmt.Sprint("commit:c", j)}, JobID: fmt.Sprint("bstory", 4*j+1+i), At: Noon})
		}
	}
	Lives(m, "a", 60)
	Stories(m, "b", 60)
	m.Record(domain.ProjectStream("p1"), Prepared("z", "mail", "later"), &project.SettingsChanged{Name: "shop", At: Noon},
		&project.WebhookDisabled{Reason: "answered 500", At: Noon})
	m.Record(domain.CreditsStream("acc0"), &credits.Granted{LotID: "l", Amount: 22, BalanceAfter: 22},
		&credits.Debited{JobID: "j", Amount: 5, BalanceAfter: 17})
}

// Gathering is a session of three slots with the jobs <id>-1, <id>-2 and
// <id>-3.
func Gathering(id string, change ...func(*session.Created)) *session.Created {
	e := &session.Created{
		Submission: session.Submission{
			AccountID: "acc", ProjectID: "p1", URL: "https://app.example", Feature: "chat", ScenarioBrief: "buy and sell",
			VoiceEnabled: true, Type: job.GeneralQA, TypeEcho: "General QA", SLAMinutes: 60, SlotPrice: 5, ItemCount: 4,
			Slots: []session.Slot{
				{Slot: 1, RoleLabel: "Buyer", JobID: id + "-1", Target: job.Target{Device: "phone"}},
				{Slot: 2, RoleLabel: "Seller", JobID: id + "-2"},
				{Slot: 3, RoleLabel: "Checker 3", JobID: id + "-3"},
			},
		},
		ReadyDeadline: Noon.Add(15 * time.Minute), At: Noon,
	}
	for _, c := range change {
		c(e)
	}
	return e
}

// Gather appends a session and its slots' jobs.
func Gather(m *logtest.Memory, id string, change ...func(*session.Created)) {
	e := Gathering(id, change...)
	m.Record(domain.SessionStream(id), e)
	for _, slot := range e.Slots {
		m.Record(domain.JobStream(slot.JobID), Created(e.AccountID, func(c *job.Created) { c.SessionID, c.SessionSlot = id, slot.Slot }))
	}
}

func Refunded(jobID string) *credits.Refunded {
	return &credits.Refunded{JobID: jobID, Amount: 5, Parts: []credits.Part{}}
}

// Hours appends sessions, loops and sandboxes whose clocks move meanwhile.
func Hours(m *logtest.Memory) {
	for i := range 12 {
		acc := fmt.Sprint("acc", i)
		m.Record(domain.AccountStream(acc), &account.Created{Name: acc, Sandbox: i%2 == 0})
		over := Noon.Add(time.Duration(i) * time.Hour)
		m.Record(domain.CreditsStream(acc), &credits.Granted{LotID: "lot" + acc, Amount: 100, ExpiresAt: &over})
		id := fmt.Sprint("s", i)
		Gather(m, id, func(e *session.Created) { e.AccountID = acc })
		if i%2 == 0 {
			m.Record(domain.AccountStream(acc), &account.ClockAdvanced{AdvanceID: "a", Seconds: 60, OffsetSeconds: 60})
		}
		slot := func(n int) string { return domain.JobStream(fmt.Sprint(id, "-", n)) }
		stream := domain.SessionStream(id)
		m.Record(slot(1), Claimed("ann"))
		m.Record(stream, &session.SlotReady{Slot: 1, CheckerID: "ann", Token: 1, At: Noon})
		switch i % 4 {
		case 0:
			m.Record(stream, &session.Expired{At: Noon})
			for n := 1; n <= 3; n++ {
				m.Record(slot(n), &job.Cancelled{Refund: 5, SessionID: id, At: Noon})
				m.Record(domain.CreditsStream(acc), Refunded(fmt.Sprint(id, "-", n)))
			}
		case 1:
			m.Record(slot(1), &job.Released{Token: 1, Reason: "checker", At: Noon})
			m.Record(stream, &session.SlotLeft{Slot: 1, CheckerID: "ann", At: Noon})
		default:
			m.Record(slot(2), Claimed("bob"))
			m.Record(stream, &session.Started{Ready: []int{1, 2}, Dropped: []int{3}, DueAt: over, At: Noon})
			m.Record(slot(1), &job.SlotStarted{DueAt: over, At: Noon}, &job.Heartbeat{Token: 1, At: over})
			m.Record(slot(3), &job.Cancelled{Refund: 5, SessionID: id, At: Noon})
			m.Record(slot(2), &job.SlotStarted{DueAt: over, At: Noon}, &job.SLAMissed{At: over}, &job.Failed{SessionID: id, At: over})
			if i%4 == 2 {
				m.Record(slot(1), &job.Completed{ReportID: "r", SessionID: id, OverallStatus: "pass", At: over})
				m.Record(stream, &session.Completed{PassCount: 1, At: over})
			}
		}
		loopStream, jobID := domain.LoopStream(fmt.Sprint("l", i%3)), fmt.Sprint("j", i)
		run := fmt.Sprint("run", i/3, "-", i%3)
		m.Record(loopStream,
			&loop.Started{SessionID: run, AccountID: acc, ProjectID: "p", Skill: "fix", MaxIterations: 10, At: Noon},
			&loop.Iterated{SessionID: run, JobID: jobID, Credits: 5, At: Noon})
		m.Record(domain.CreditsStream(acc), &credits.Debited{JobID: jobID, Amount: 5}, &credits.Closed{Number: 1})
		m.Record(domain.JobStream(jobID), Created(acc, func(e *job.Created) { e.LoopID = "l"; e.Items = e.Items[:i%2] }))
		if i%2 == 0 {
			m.Record(domain.AccountStream(acc), &account.ClockAdvanced{AdvanceID: "b", Seconds: 3600, OffsetSeconds: 3660})
			m.Record(domain.JobStream(jobID), &job.SLAMissed{Requeued: true, RequeueCount: 1, DueAt: over, At: Noon})
			m.Record(loopStream, &loop.OutcomeRecorded{SessionID: run, JobID: jobID, FailingKeys: []string{"k"}, ReportID: "r", At: Noon})
		}
		m.Record(loopStream, &loop.Ended{SessionID: run, FinalStatus: loop.StatusAbandoned, At: Noon})
	}
}

// Same compares as JSON, which shows the values behind pointers.
func Same(t *testing.T, got, want any) {
	t.Helper()
	if reflect.DeepEqual(got, want) {
		return
	}
	g, err := json.MarshalIndent(got, "", "  ")
	must.NoError(t, err)
	w, err := json.MarshalIndent(want, "", "  ")
	must.NoError(t, err)
	t.Errorf("got %s\nwant %s", g, w)
}

func At(minutes int) *time.Time {
	t := Noon.Add(time.Duration(minutes) * time.Minute)
	return &t
}

// Results completes a job so many minutes past noon. Each result is
// "key=status", its description the key in capitals.
func Results(jobID string, minute int, results ...string) *job.Completed {
	e := &job.Completed{ReportID: "r-" + jobID, At: *At(minute)}
	for i, r := range results {
		key, status, _ := strings.Cut(r, "=")
		e.Items = append(e.Items, job.ReportItem{
			Item: job.Item{
				ID: fmt.Sprint(jobID, "-", i), Key: key, Description: strings.ToUpper(key),
				ExpectedOutcome: "it works", Severity: job.Critical,
			},
			Status: job.ItemStatus(status),
		})
	}
	e.PassCount, e.FailCount, e.SkipCount = job.Counts(e.Items)
	e.OverallStatus = job.OverallStatus(e.Items)
	return e
}
