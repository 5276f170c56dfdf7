package main

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"humanqa/internal/testing/eventually"
	"humanqa/internal/testing/must"
	"humanqa/internal/testing/process"
)

// A story is what a client plays in a sandbox. It calls blow where a crash
// would hurt most.
type story func(t *testing.T, s *instance, blow func())

var sandboxStories = map[string]story{
	"three missed SLAs fail the job, give everything back and send three webhooks": missedSLAs,
	"a session of three starts with two at its deadline":                           sessionStartsShort,
	"a session that one waits in expires":                                          sessionExpires,
	"a loop that is stuck on the same bug ends":                                    loopIsStuck,
	"a lot that expires leaves the total":                                          lotExpires,
	"a checklist and an AI report by rules, end to end":                            rulesEndToEnd,
	"a robot asks, and goes on with an answer and without one":                     robotAsks,
}

// The stories that TestTheService plays, at the same time, with a second policy node beside the
// service, which is killed in the middle of each: every effect comes once.
func TestASandboxPlaysEveryStoryThroughCrashes(t *testing.T) {
	t.Parallel()
	log := process.Address(t)
	p := newEmbedded(t, "HUMANQA_EVENTSTORE_LISTEN_INSECURE="+log)
	s := p.spawn("--demo")
	second := newProgram(t, "HUMANQA_DATABASE_URL="+p.dsn(),
		"HUMANQA_EVENTSTORE_URL=esdb://"+log+"?tls=false",
		"HUMANQA_MASTER_KEY_FILE="+filepath.Join(p.dir, "master-keyset.json"))
	other := second.serve("--roles", "policy,projector")

	// A story arrives in its middle, or at its end if it fails before. All of them wait there
	// for the one kill.
	var stories, arriving sync.WaitGroup
	arriving.Add(len(sandboxStories))
	goOn := make(chan struct{})
	for name, play := range sandboxStories {
		stories.Go(func() {
			t.Run(name, func(t *testing.T) {
				arrive := sync.OnceFunc(arriving.Done)
				defer arrive()
				play(t, s.in(t), func() { arrive(); <-goOn })
			})
		})
	}
	arriving.Wait()
	s.kill()
	s = p.spawn("--demo")
	close(goOn)
	stories.Wait()
	other.stop()
	s.fsck()
}

func missedSLAs(t *testing.T, s *instance, blow func()) {
	account, key := s.newSandbox(100)
	inbox := s.openInboxFor(t)
	project := s.call(201, "POST", "/v1/projects", key, map[string]any{"name": "Shop", "webhookUrl": inbox.URL()}).text("projectId")
	inbox.trust(s, project)
	id := s.call(201, "POST", "/v1/jobs", key, submission(2, "projectId", project, "slaMinutes", 15)).text("jobId")

	for miss := 1; miss <= 3; miss++ {
		s.advance(key, 15*60+1)
		if miss == 2 {
			blow()
		}
		eventually.Within(t, eventually.Patience, func() error {
			got := s.call(200, "GET", "/v1/jobs/"+id, key, nil)
			if miss < 3 && (got.number("requeueCount") != miss || got.text("status") != "pending") ||
				miss == 3 && got.text("status") != "failed" {
				return fmt.Errorf("after miss %d: %s", miss, got.body)
			}
			return nil
		})
	}
	eventually.Within(t, eventually.Patience, func() error {
		if got := s.call(200, "GET", "/v1/credits", key, nil); got.number("available") != 100 || got.number("used") != 0 {
			return fmt.Errorf("not refunded: %s", got.body)
		}
		return nil
	})
	eventually.Within(t, eventually.Patience, func() error {
		if got := inbox.count("job.failed_sla"); got != 3 {
			return fmt.Errorf("%d webhooks job.failed_sla, want 3", got)
		}
		return nil
	})
	requeued := inbox.field("job.failed_sla", "requeued")
	if fmt.Sprint(requeued) != "[true true false]" {
		t.Errorf("requeued: %v", requeued)
	}
	s.happened(t, "job-"+id, map[string]int{"job.created": 1, "job.failed_sla": 3, "job.failed": 1})
	s.happened(t, "credits-"+account, map[string]int{"credits.granted": 1, "credits.debited": 1, "credits.refunded": 1})
}

func sessionStartsShort(t *testing.T, s *instance, blow func()) {
	_, key := s.newSandbox(100)
	session := s.newSession(key, 3)
	s.readySlots(key, session.id, 1, 2)
	s.advance(key, 15*60+1)
	blow()
	eventually.Within(t, eventually.Patience, func() error {
		got := s.call(200, "GET", "/v1/hosted/sessions/"+session.id, key, nil)
		if got.text("status") != "active" || got.number("readyCount") != 2 || got.number("creditsRefunded") != 5 {
			return fmt.Errorf("session: %s", got.body)
		}
		return nil
	})
	for _, slot := range session.jobs[:2] {
		eventually.Within(t, eventually.Patience, func() error {
			r, err := s.try("POST", "/v1/sandbox/jobs/"+slot+"/play", key, map[string]any{"summary": "fine"})
			if err != nil || r.status != http.StatusOK {
				return fmt.Errorf("play: %w %d %s", err, r.status, r.body)
			}
			return nil
		})
	}
	eventually.Within(t, eventually.Patience, func() error {
		got := s.call(200, "GET", "/v1/hosted/sessions/"+session.id, key, nil)
		if got.text("status") != "completed" || got.text("closeReason") != "completed" {
			return fmt.Errorf("session: %s", got.body)
		}
		return nil
	})
	if got := s.call(200, "GET", "/v1/credits", key, nil); got.number("used") != 10 {
		t.Errorf("credits: %s", got.body)
	}
	s.happened(t, "session-"+session.id, map[string]int{
		"session.created": 1, "session.slot_ready": 2, "session.started": 1, "session.completed": 1,
	})
	s.happened(t, "job-"+session.jobs[2], map[string]int{"job.created": 1, "job.cancelled": 1})
}

func sessionExpires(t *testing.T, s *instance, blow func()) {
	account, key := s.newSandbox(100)
	session := s.newSession(key, 2)
	s.readySlots(key, session.id, 2)
	s.advance(key, 15*60+1)
	blow()
	eventually.Within(t, eventually.Patience, func() error {
		got := s.call(200, "GET", "/v1/hosted/sessions/"+session.id, key, nil)
		credits := s.call(200, "GET", "/v1/credits", key, nil)
		if got.text("status") != "expired" || got.number("creditsRefunded") != 10 || credits.number("available") != 100 {
			return fmt.Errorf("session: %s, credits: %s", got.body, credits.body)
		}
		return nil
	})
	s.call(409, "POST", "/v1/hosted/sessions/"+session.id+"/cancel", key, nil)
	s.happened(t, "session-"+session.id, map[string]int{"session.created": 1, "session.slot_ready": 1, "session.expired": 1})
	s.happened(t, "credits-"+account, map[string]int{"credits.granted": 1, "credits.debited": 2, "credits.refunded": 2})
}

func loopIsStuck(t *testing.T, s *instance, blow func()) {
	_, key := s.newSandbox(100)
	for iteration := 1; iteration <= 3; iteration++ {
		test := s.call(201, "POST", "/v1/hosted/test", key, map[string]any{"url": "https://example.com/loop", "feature": "sign in"},
			"X-Agent-Skill", "fixer", "X-Agent-Iteration", fmt.Sprint(iteration))
		if iteration == 3 {
			blow()
		}
		s.call(200, "POST", "/v1/sandbox/jobs/"+test.text("jobId")+"/play", key,
			map[string]any{"results": []any{map[string]any{"item": "item-1", "status": "fail", "note": "the same again"}}})
	}
	var ended []map[string]any
	eventually.Within(t, eventually.Patience, func() error {
		ended = s.events(t, key, "loop_session.ended")
		if len(ended) == 0 {
			return fmt.Errorf("no loop_session.ended")
		}
		return nil
	})
	data, _ := ended[0]["data"].(map[string]any)
	if len(ended) != 1 || data["finalStatus"] != "stuck_same_bug" || data["iterations"] != 3.0 || data["creditsSpent"] != 15.0 || ended[0]["jobId"] != nil {
		t.Errorf("ended: %v", ended)
	}
}

func lotExpires(t *testing.T, s *instance, blow func()) {
	var out struct{ AccountID, APIKey string }
	s.cli(&out, "account", "create", "--name", "Acme", "--sandbox", "--credits", "30", "--credits-expire", "720h")
	s.cli(nil, "credits", "grant", "--account", out.AccountID, "--amount", "12")
	eventually.Within(t, eventually.Patience, func() error {
		if got := s.call(200, "GET", "/v1/credits", out.APIKey, nil); got.number("total") != 42 || len(got.list("expiringCredits")) != 1 {
			return fmt.Errorf("credits: %s", got.body)
		}
		return nil
	})
	s.call(201, "POST", "/v1/jobs", out.APIKey, submission(1))
	s.advance(out.APIKey, 721*3600)
	blow()
	eventually.Within(t, eventually.Patience, func() error {
		got := s.call(200, "GET", "/v1/credits", out.APIKey, nil)
		if got.number("available") != 12 || got.number("used") != 5 || got.number("total") != 17 || len(got.list("expiringCredits")) != 0 {
			return fmt.Errorf("credits: %s", got.body)
		}
		return nil
	})
	eventually.Within(t, eventually.Patience, func() error {
		if n := s.history("credits-" + out.AccountID)["credits.lot_expired"]; n != 1 {
			return fmt.Errorf("%d lots expired in the log", n)
		}
		return nil
	})
}

// robotAsks has robots ask in two tests. The first is answered; the other one's question is
// open until the sandbox's clock has passed it.
func robotAsks(t *testing.T, s *instance, blow func()) {
	_, key := s.newSandbox(100)
	ask := func() (job, question string) {
		job = s.call(201, "POST", "/v1/jobs", key, submission(2, "slaMinutes", 15)).text("jobId")
		r := s.call(202, "POST", "/v1/sandbox/jobs/"+job+"/play", key, map[string]any{
			"summary": "played", "results": []any{map[string]any{"item": "item-2", "status": "fail", "note": "broken"}},
			"question": map[string]any{"text": "Which code came by mail?", "kind": "code", "item": "item-1"},
		})
		asked, _ := r.field("question").(map[string]any)
		question, _ = asked["id"].(string)
		return job, question
	}
	ends := func(job string, passed, failed, skipped int) {
		t.Helper()
		eventually.Within(t, eventually.Patience, func() error {
			r, err := s.try("GET", "/v1/jobs/"+job+"/report", key, nil)
			if err != nil || r.number("passCount") != passed || r.number("failCount") != failed || r.number("skipCount") != skipped {
				return fmt.Errorf("%w %d %s", err, r.status, r.body)
			}
			return nil
		})
	}
	due := func(job string) time.Time {
		t.Helper()
		at, err := time.Parse(time.RFC3339Nano, s.call(200, "GET", "/v1/jobs/"+job, key, nil).text("dueAt"))
		must.NoError(t, err)
		return at
	}
	job, question := ask()
	before := due(job)
	s.advance(key, 10*60)
	s.call(200, "POST", "/v1/jobs/"+job+"/questions/"+question+"/answer", key, map[string]any{"text": "483112"})
	ends(job, 1, 1, 0)
	if later := due(job).Sub(before); later < 10*time.Minute || later > 12*time.Minute {
		t.Errorf("after a wait of ten minutes the SLA ends later by %s", later)
	}
	s.happened(t, "job-"+job, map[string]int{
		"job.created": 1, "job.claimed": 1, "job.question_asked": 1, "job.question_answered": 1, "job.completed": 1,
	})
	job, _ = ask()
	s.advance(key, 29*60) // beyond the SLA, whose clock stands
	if got := s.call(200, "GET", "/v1/jobs/"+job, key, nil); got.text("status") != "claimed" || got.number("requeueCount") != 0 {
		t.Errorf("while the question is open: %s", got.body)
	}
	blow()
	s.advance(key, 61)
	ends(job, 0, 1, 1)
	s.happened(t, "job-"+job, map[string]int{
		"job.created": 1, "job.claimed": 1, "job.question_asked": 1, "job.question_closed": 1, "job.item_checked": 1, "job.completed": 1,
	})
}

func rulesEndToEnd(t *testing.T, s *instance, blow func()) {
	_, key := s.newSandbox(100)
	test := s.call(201, "POST", "/v1/hosted/test", key, map[string]any{
		"url": "https://example.com/checkout", "feature": "pay with a voucher at the checkout",
	})
	if test.number("checklistItemCount") < 5 || test.text("jobType") != "Payment Flow" {
		t.Errorf("test: %s", test.body)
	}
	id := test.text("jobId")
	s.call(404, "GET", "/v1/jobs/"+id+"/ai-report", key, nil)
	s.call(200, "POST", "/v1/sandbox/jobs/"+id+"/play", key, map[string]any{
		"summary": "the voucher is ignored",
		"results": []any{map[string]any{"item": "item-1", "status": "fail", "note": "The total stays the same", "severity": "critical"}},
	})
	blow()
	// A writer that is killed at its work keeps its lease for two minutes.
	eventually.Within(t, 2*time.Minute+eventually.Patience, func() error {
		got := s.call2xx("GET", "/v1/jobs/"+id+"/ai-report", key)
		if got.status != http.StatusOK {
			return fmt.Errorf("%d %s", got.status, got.body)
		}
		bugs := got.list("bugs")
		if got.text("status") != "completed" || got.number("healthScore") != 75 || len(bugs) != 1 || got.text("generatedBy") != "rules" ||
			len(got.list("strengths")) == 0 || len(got.list("recommendations")) == 0 {
			t.Errorf("AI report: %s", got.body)
		}
		return nil
	})
	s.happened(t, "job-"+id, map[string]int{"job.created": 1, "job.claimed": 1, "job.completed": 1, "job.ai_report_ready": 1})
}

// A model that is down costs the client nothing but the wait: the rules write
// the list and finish the report, and the answers say so.
func TestGenerateChecklistSyncWithTheModelDown(t *testing.T) {
	t.Parallel()
	s := newProgram(t, "HUMANQA_AI=openai", "HUMANQA_AI_BASE_URL=http://"+process.Address(t), "HUMANQA_AI_MODEL=gone", "HUMANQA_AI_KEY=none").start()
	_, key := s.newSandbox(100)
	body := submission(0, "generateChecklist", "sync")
	delete(body, "checklistItems")
	created := s.call(201, "POST", "/v1/jobs", key, body)
	if created.number("checklistItemCount") < 5 {
		t.Errorf("sync: %s", created.body)
	}
	body["generateChecklist"] = "async"
	later := s.call(201, "POST", "/v1/jobs", key, body)
	id := later.text("jobId")
	eventually.Within(t, eventually.Patience, func() error {
		if got := s.call(200, "GET", "/v1/hosted/status/"+id, key, nil); len(got.body) == 0 || strings.Contains(string(got.body), `"totalItems":0`) {
			return fmt.Errorf("async: %s", got.body)
		}
		return nil
	})
	s.call(200, "POST", "/v1/sandbox/jobs/"+id+"/play", key, map[string]any{"summary": "done"})
	eventually.Within(t, eventually.Patience, func() error {
		got := s.call2xx("GET", "/v1/jobs/"+id+"/ai-report", key)
		if got.status != http.StatusOK || got.text("generatedBy") != "rules" {
			return fmt.Errorf("%d %s", got.status, got.body)
		}
		return nil
	})
	s.fsck()
}
