package webhooks_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"humanqa/domain"
	"humanqa/domain/announce"
	"humanqa/domain/job"
	"humanqa/domain/loop"
	"humanqa/domain/session"
	"humanqa/domain/subscription"
	"humanqa/internal/testing/hooktest"
	"humanqa/internal/testing/must"
)

var update = flag.Bool("update", false, "write the golden files")

// told is an event and the golden file of its announcement; without a file it
// is not announced.
type told struct {
	stream string
	event  domain.Event
	file   string
}

func stories() []told {
	inSession := hooktest.Created("p1")
	inSession.SessionID, inSession.Urgent = "sess", true
	unlisted := hooktest.Created("p1")
	unlisted.Items = nil
	var list []told
	job1, job2, job3 := domain.JobStream("j1"), domain.JobStream("j2"), domain.JobStream("j3")
	list = append(list,
		told{job1, inSession, "job.created.session.json"},
		told{job1, hooktest.Claimed(), "job.claimed.json"},
		told{job1, &job.Heartbeat{Token: 1, At: hooktest.At}, ""},
		told{job1, hooktest.Completed(), "job.completed.json"},
		told{job1, analysed(), "job.ai_report_ready.json"},
		told{job1, &job.Rated{Rating: 5, Note: "well done", At: hooktest.At}, ""},

		told{job2, hooktest.Created("p1"), "job.created.json"},
		told{job2, &job.Cancelled{Reason: "client", Refund: 5, At: hooktest.At}, "job.cancelled.json"},

		told{job3, unlisted, "job.created.no_checklist.json"},
		told{job3, &job.SLAMissed{RequeueCount: 1, Requeued: true, DueAt: hooktest.At.Add(time.Hour), At: hooktest.At}, "job.failed_sla.json"},
		told{job3, &job.UntestableReported{CheckerID: "ann-the-checker", Reason: "no_access", At: hooktest.At}, ""},
		told{job3, &job.QuestionAsked{QuestionID: "q1", Token: 1, ItemID: "i1", Kind: "code", Text: "A code was sent by mail. What is it?", At: hooktest.At, Until: hooktest.At.Add(30 * time.Minute)}, "job.question_asked.json"},
		told{job3, &job.AnswerGiven{QuestionID: "q1", AnswerID: "a1", Text: "It is the secret.", Sealed: "sealed-secret", At: hooktest.At, DueAt: hooktest.At.Add(time.Hour)}, "job.question_answered.json"},
		told{job3, &job.SLAMissed{RequeueCount: 3, Refund: 5, At: hooktest.At}, "job.failed_sla.last.json"},
		told{job3, &job.Failed{Reason: "sla", Note: "no_access: The login is refused.", Refund: 5, At: hooktest.At}, "job.failed.json"},
	)
	job4 := domain.JobStream("job-4")
	list = append(list,
		told{job4, &job.Disputed{DisputeID: "d1", ItemID: "i1", Verdict: job.ItemFail, Reason: "The page was down for a minute.", AnswerUntil: hooktest.At.Add(24 * time.Hour), At: hooktest.At}, "job.disputed.json"},
		told{job4, &job.DisputeAnswered{DisputeID: "d1", ItemID: "i1", Text: "It was blank three times.", At: hooktest.At}, "job.dispute_answered.json"},
		told{job4, &job.DisputeDecided{DisputeID: "d1", ItemID: "i1", Key: "k", Decision: job.Overturned, Before: "fail", OverallStatus: "pass", PassCount: 1, SkipCount: 1, HealthScore: 100, At: hooktest.At}, "job.dispute_decided.json"},
		told{job4, &job.DisputeSettled{DisputeID: "d1", At: hooktest.At}, ""},
	)
	lobby := domain.SessionStream("sess")
	list = append(list,
		told{lobby, openSession(), ""},
		told{lobby, &session.SlotReady{Slot: 1, CheckerID: "ann-the-checker", At: hooktest.At}, ""},
		told{lobby, &session.Started{Ready: []int{1, 3}, Dropped: []int{2}, DueAt: hooktest.At.Add(time.Hour), At: hooktest.At}, "job.session_ready.json"},
		told{lobby, &session.Completed{PassCount: 1, FailCount: 1, At: hooktest.At}, "job.session_completed.json"},
	)
	ended := loop.Ended{
		SessionID: "loop-session", ProjectID: "p1", ProjectName: "Shop", Skill: "fix-until-green",
		FinalStatus: loop.StatusStuckSameBug, Iterations: 4, CreditsSpent: 20, FinalReportID: "rep", Alert: true, At: hooktest.At,
	}
	snoozed, noReport := ended, ended
	snoozed.Alert = false
	noReport.FinalReportID, noReport.FinalStatus = "", loop.StatusOutOfCredits
	loops := domain.LoopStream("l1")
	return append(list,
		told{loops, &loop.Started{SessionID: "loop-session", ProjectID: "p1", At: hooktest.At}, ""},
		told{loops, &snoozed, ""},
		told{loops, &ended, "loop_session.ended.json"},
		told{loops, &noReport, "loop_session.ended.no_report.json"},
	)
}

func openSession() *session.Created {
	return &session.Created{
		Submission: session.Submission{
			AccountID: "acc", ProjectID: "p1", URL: "https://app.example", Slots: []session.Slot{
				{Slot: 1, RoleLabel: "Buyer", JobID: "j1"},
				{Slot: 2, RoleLabel: "Checker 2", JobID: "j2"},
				{Slot: 3, RoleLabel: "Seller", JobID: "j3"},
			},
		}, At: hooktest.At,
	}
}

func analysed() *job.AIReportReady {
	return &job.AIReportReady{AIReport: job.AIReport{
		ID: "air", ExecutiveSummary: "Checkout <crashes> & burns.", HealthScore: 62,
		Bugs: []job.Bug{{
			ItemID: "i1", Title: "Crash", Severity: job.Critical, Description: "It crashes.",
			ReproductionSteps: []string{"Open it."}, SuggestedFix: "Don't crash.",
		}},
		PassCount: 1, FailCount: 3, SkipCount: 1, Recommendations: []string{"Fix it."}, GeneratedBy: "rules", At: hooktest.At,
	}}
}

// However the subscriber comes to an event, with the job's story in mind or
// after a restart, the same bytes leave.
func TestPayloads(t *testing.T) {
	for _, way := range []struct {
		name    string
		restart bool
	}{{"read in one go", false}, {"with a restart before each event", true}} {
		t.Run(way.name, func(t *testing.T) {
			b := setup(t)
			e := b.Endpoint(hooktest.Status(http.StatusOK))
			b.Project("p1", e.URL, nil)
			disputes := subscription.Disputes()
			b.Project("p2", e.URL, &disputes)
			b.Events.Add(domain.JobStream("job-4"), hooktest.Created("p2"), hooktest.Claimed(), hooktest.Completed())
			b.Dispatch()
			stop := b.Subscribe()
			for _, s := range stories() {
				if way.restart {
					stop()
					stop = b.Subscribe()
				}
				b.Events.Add(s.stream, s.event)
				b.Subscribed()
				if s.file == "" {
					continue
				}
				r := e.Next()
				if kind, _ := announce.Of(s.event); r.Event() != kind.Name {
					t.Errorf("%s came, want %s", r.Event(), kind.Name)
				}
				for _, secret := range []string{"ann-the-checker", "sealed-credentials", "sealed-instructions", "secret of"} {
					if strings.Contains(r.Body, secret) {
						t.Errorf("%s shows %q", r.Event(), secret)
					}
				}
				golden(t, s.file, pretty(t, r.Body))
			}
			e.None()
		})
	}
}

func pretty(t *testing.T, body string) []byte {
	t.Helper()
	var out bytes.Buffer
	must.NoError(t, json.Indent(&out, []byte(body), "", "  "))
	out.WriteByte('\n')
	return out.Bytes()
}

func TestWhatNobodyHearsOfRendersToNothing(t *testing.T) {
	for _, s := range stories() {
		r := domain.Recorded{Stream: s.stream, Event: s.event}
		body, announced, err := announce.Render("https://qa.example", r, announce.Enrichment{})
		if want := s.file != ""; err != nil || announced != want || (body != nil) != want {
			t.Errorf("%s: announced %t with %d bytes, error %v", s.event.EventType(), announced, len(body), err)
		}
	}
}

// seen holds the golden files that this run has met. Only the first way to an announcement
// writes its file: each other way has to come to the same bytes.
var seen sync.Map

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if _, again := seen.LoadOrStore(name, true); *update && !again {
		must.NoError(t, os.WriteFile(path, got, 0o644))
	}
	want, err := os.ReadFile(path)
	must.NoError(t, err)
	if !bytes.Equal(got, want) {
		t.Errorf("%s:\n%s\nwant:\n%s", name, got, want)
	}
}
