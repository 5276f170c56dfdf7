package httpapi

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"humanqa/domain"
	"humanqa/domain/account"
	"humanqa/domain/command"
	"humanqa/httpapi/wire"
)

const twoSlots = `{"url":"https://shop.example.com/","slots":[{},{}]}`

// openedSession is a session as its POST answered it.
type openedSession struct {
	id, project string
	jobs        []string
	deadline    time.Time
	body        map[string]any
}

func (s *service) openSession(key, body string, headers ...string) openedSession {
	s.t.Helper()
	out := openedSession{body: s.call(key, "POST", "/v1/hosted/sessions", body, headers...).want(http.StatusCreated)}
	out.id, _ = out.body["sessionId"].(string)
	out.project, _ = out.body["projectId"].(string)
	slots, _ := out.body["slots"].([]any)
	for _, slot := range slots {
		id, _ := slot.(map[string]any)["jobId"].(string)
		out.jobs = append(out.jobs, id)
	}
	at, _ := out.body["readyDeadline"].(string)
	var err error
	if out.deadline, err = time.Parse(wire.TimestampLayout, at); err != nil {
		s.t.Fatalf("readyDeadline: %v", err)
	}
	return out
}

// takes has a checker claim the slot's job.
func (s *service) takes(checker string, o openedSession, slot int) map[string]any {
	s.t.Helper()
	return s.call(checker, "POST", "/v1/checker/claims", `{"jobId":"`+o.jobs[slot-1]+`"}`).want(http.StatusCreated)
}

// joins has a new checker claim the slot's job and say ready; they then fail or
// pass every item with finish.
func (s *service) joins(o openedSession, slot int) (checker string, claim map[string]any) {
	s.t.Helper()
	checker = s.checker()
	claim = s.takes(checker, o, slot)
	s.call(checker, "POST", "/v1/checker/sessions/"+o.id+"/ready", "").want(http.StatusOK)
	return checker, claim
}

func (s *service) finish(checker string, claim map[string]any, status string) {
	s.t.Helper()
	work := "/v1/checker/jobs/" + claim["jobId"].(string)
	under := []string{"X-Claim-Token", claim["claimToken"].(string)}
	for _, item := range claim["checklist"].([]any) {
		id, _ := item.(map[string]any)["id"].(string)
		s.call(checker, "PUT", work+"/items/"+id, `{"status":"`+status+`"}`, under...).want(http.StatusOK)
	}
	s.call(checker, "POST", work+"/complete", `{"summary":"done"}`, under...).want(http.StatusOK)
}

// settleAt settles the session as a timer of that time would.
func (s *service) settleAt(o openedSession, at time.Time) {
	s.t.Helper()
	position, err := s.commands.SettleSession(s.t.Context(), command.Cause{
		CommandID: uuid.New(), Actor: "policy:session", NotBefore: at,
	}, o.id)
	s.visible(position, err)
}

func (s *service) session(key string, o openedSession) map[string]any {
	s.t.Helper()
	return s.call(key, "GET", "/v1/hosted/sessions/"+o.id, "").want(http.StatusOK)
}

// slotWords are the slots of a session, "status jobStatus" each.
func slotWords(body map[string]any) string {
	var out []string
	slots, _ := body["slots"].([]any)
	for _, slot := range slots {
		m, _ := slot.(map[string]any)
		out = append(out, fmt.Sprintf("%v %v", m["status"], m["jobStatus"]))
	}
	return strings.Join(out, ", ")
}

func TestASessionTellsWhatOfItsRefundHadExpired(t *testing.T) {
	t.Parallel()
	s := shared(t)
	accountID, key := s.account(0)
	soon := time.Now().Add(time.Hour)
	for _, lot := range []struct {
		amount  domain.Credits
		expires *time.Time
	}{{7, &soon}, {5, nil}} {
		_, at, err := s.commands.GrantCredits(t.Context(), operator(uuid.New()), accountID, lot.amount, lot.expires, "")
		s.visible(at, err)
	}
	o := s.openSession(key, twoSlots) // 5, then 2 and 3
	s.settleAt(o, soon.Add(time.Minute))
	told := map[string]any{"status": "expired", "creditsCharged": 10.0, "creditsRefunded": 3.0, "creditsExpired": 7.0}
	with(t, s.session(key, o), told)
	list := s.call(key, "GET", "/v1/hosted/sessions", "").want(http.StatusOK)
	with(t, list["sessions"].([]any)[0].(map[string]any), told)
}

func TestASessionAnswersItsHandle(t *testing.T) {
	t.Parallel()
	s := shared(t)
	_, key := s.account(100)
	o := s.openSession(key, `{
		"url":"https://shop.replit.app/cart","feature":"the cart","scenarioBrief":" buy the last pair ","voiceEnabled":false,
		"priority":"urgent","accessInstructions":"code 4711-door",
		"slots":[{"roleLabel":" Buyer ","targetDevice":"iPhone 15","targetOS":"iOS"},{"targetNetwork":"3G"},{"roleLabel":null}]}`)
	status := "https://qa.example/v1/hosted/status/"
	slot := func(n int, label string, device any) map[string]any {
		return map[string]any{
			"slot": float64(n), "roleLabel": label, "jobId": o.jobs[n-1], "targetDevice": device, "statusUrl": status + o.jobs[n-1],
		}
	}
	equal(t, o.body, map[string]any{
		"sessionId": o.id, "projectId": o.project, "status": "lobby", "checkerCount": 3.0,
		"creditsDeducted": 30.0, "creditsCharged": 30.0, "creditsRemaining": 70.0, "checklistItemCount": 1.0,
		"jobType": "General QA", "jobTypeCode": "general_qa", "isHostedApp": true,
		"readyDeadline": o.deadline.Format(wire.TimestampLayout), "sessionUrl": "https://qa.example/dashboard/sessions/" + o.id,
		"slots": []any{slot(1, "Buyer", "iPhone 15"), slot(2, "Checker 2", nil), slot(3, "Checker 3", nil)},
	})

	read := s.session(key, o)
	created, _ := read["createdAt"].(string)
	if at, err := time.Parse(wire.TimestampLayout, created); err != nil || !at.Add(15*time.Minute).Equal(o.deadline) {
		t.Errorf("created at %s, ready until %s", created, o.deadline)
	}
	delete(read, "createdAt")
	seen := func(n int, label string, device, os, network any) map[string]any {
		m := slot(n, label, device)
		for k, v := range map[string]any{
			"targetOS": os, "targetBrowser": nil, "targetScreenSize": nil, "targetNetwork": network,
			"status": "waiting", "readyAt": nil, "jobStatus": "pending",
		} {
			m[k] = v
		}
		return m
	}
	equal(t, read, map[string]any{
		"sessionId": o.id, "projectId": o.project, "status": "lobby", "url": "https://shop.replit.app/cart", "feature": "the cart",
		"scenarioBrief": "buy the last pair", "voiceEnabled": false, "jobType": "General QA", "jobTypeCode": "general_qa",
		"checkerCount": 3.0, "readyCount": 0.0, "checklistItemCount": 1.0, "creditsCharged": 30.0, "creditsRefunded": 0.0, "creditsExpired": 0.0,
		"readyDeadline": o.deadline.Format(wire.TimestampLayout), "startedAt": nil, "closedAt": nil, "closeReason": nil,
		"passCount": 0.0, "failCount": 0.0, "sessionUrl": "https://qa.example/dashboard/sessions/" + o.id,
		"slots": []any{
			seen(1, "Buyer", "iPhone 15", "iOS", nil), seen(2, "Checker 2", nil, nil, "3G"), seen(3, "Checker 3", nil, nil, nil),
		},
	})
	with(t, s.call(key, "GET", "/v1/jobs/"+o.jobs[0], "").want(http.StatusOK), map[string]any{
		"status": "pending", "priority": "urgent", "projectId": o.project, "targetDevice": "iPhone 15", "creditsUsed": 10.0,
	})

	brief, _ := s.takes(s.checker(), o, 1)["brief"].(map[string]any)
	with(t, brief, map[string]any{
		"feature": "the cart", "accessInstructions": "code 4711-door", "scenarioBrief": "buy the last pair", "roleLabel": "Buyer",
	})
}

func TestWhatASessionMayNotBe(t *testing.T) {
	t.Parallel()
	s := shared(t)
	_, key := s.account(100)
	with := func(more string) string { return strings.Replace(twoSlots, "{", "{"+more+",", 1) }
	slots := func(list string) string { return `{"url":"https://a.example","slots":` + list + `}` }
	long := func(n int) string { return strings.Repeat("ü", n) }
	before := s.written()
	for body, paths := range map[string][]string{
		``:                    {"body"},
		`[]`:                  {"body"},
		`{}`:                  {"slots", "url"},
		slots(`null`):         {"slots"},
		slots(`{}`):           {"slots"},
		slots(`"two"`):        {"slots"},
		slots(`[]`):           {"slots"},
		slots(`[{}]`):         {"slots"},
		slots(`[{},7]`):       {"slots[1]"},
		slots(`[null,"two"]`): {"slots[0]", "slots[1]"},
		slots(`[{}` + strings.Repeat(`,{}`, 10) + `]`):                       {"slots"},
		slots(`[{"roleLabel":7},{"roleLabel":"` + long(81) + `"}]`):          {"slots[0].roleLabel", "slots[1].roleLabel"},
		slots(`[{"targetDevice":[]},{"targetNetwork":"` + long(101) + `"}]`): {"slots[0].targetDevice", "slots[1].targetNetwork"},
		with(`"scenarioBrief":"` + long(2001) + `"`):                         {"scenarioBrief"},
		with(`"scenarioBrief":7`):                                            {"scenarioBrief"},
		with(`"voiceEnabled":"yes"`):                                         {"voiceEnabled"},
		with(`"voiceEnabled":0`):                                             {"voiceEnabled"},
		with(`"jobType":"AI Review"`):                                        {"jobType"},
		with(`"jobType":"auth_flow"`):                                        {"jobType"},
		with(`"priority":"now"`):                                             {"priority"},
		with(`"webhookUrl":"http://hooks.example.com/"`):                     {"webhookUrl"},
		with(`"webhookUrl":"https://127.0.0.1/"`):                            {"webhookUrl"},
		with(`"subscribedWebhookEvents":["job.claimed"]`):                    {"subscribedWebhookEvents[0]"},
		with(`"feature":false,"accessInstructions":1`):                       {"accessInstructions", "feature"},
		strings.Replace(twoSlots, "shop.example.com", "10.0.0.1", 1):         {"url"},
	} {
		got := s.call(key, "POST", "/v1/hosted/sessions", body)
		if got.Code != http.StatusBadRequest {
			t.Errorf("%s: %d", body, got.Code)
			continue
		}
		equal(t, got.paths(), paths)
	}
	equal(t, s.written(), before)
	s.openSession(key, strings.Replace(slots(`[{"roleLabel":"`+long(80)+`"},{"targetOS":"`+long(100)+`"}]`), "{", `{"scenarioBrief":"`+long(2000)+`","voiceEnabled":null,`, 1))
}

func TestASessionUnderAnIdempotencyKeyIsOpenedOnce(t *testing.T) {
	t.Parallel()
	s := shared(t)
	_, key := s.account(100)
	first := s.openSession(key, twoSlots, "Idempotency-Key", "k1")
	again := s.call(key, "POST", "/v1/hosted/sessions", twoSlots, "Idempotency-Key", "k1")
	equal(t, again.want(http.StatusCreated), first.body)
	equal(t, again.Header().Get(replayedHeader), "true")
	equal(t, s.count("session.created"), 1)
}

func TestASessionAttachesItsWebhookToTheProject(t *testing.T) {
	t.Parallel()
	s := shared(t)
	_, key := s.account(100)
	o := s.openSession(key, strings.Replace(twoSlots, "{", `{"webhookUrl":"https://hooks.example.com/in","subscribedWebhookEvents":["job.session_ready"],`, 1))
	p := s.call(key, "GET", "/v1/projects/"+o.project, "").want(http.StatusOK)
	equal(t, p["webhookUrl"], "https://hooks.example.com/in")
	equal(t, p["subscribedWebhookEvents"], []any{"job.session_ready"})
	equal(t, p["jobCount"], 2.0)
}

func TestTheLifeOfASession(t *testing.T) {
	t.Parallel()
	s := shared(t)
	_, key := s.account(100)
	o := s.openSession(key, strings.Replace(twoSlots, "{},{}", "{},{},{}", 1))
	ann, annsClaim := s.joins(o, 1)
	equal(t, slotWords(s.session(key, o)), "ready claimed, waiting pending, waiting pending")

	bob := s.checker()
	bobsClaim := s.takes(bob, o, 2)
	early := s.call(bob, "POST", "/v1/checker/jobs/"+o.jobs[1]+"/complete", `{}`, "X-Claim-Token", bobsClaim["claimToken"].(string))
	early.refused(http.StatusConflict, domain.CodeConflict)
	equal(t, s.call(bob, "POST", "/v1/checker/sessions/"+o.id+"/ready", "").want(http.StatusOK), map[string]any{
		"sessionId": o.id, "status": "lobby", "slot": 2.0, "jobId": o.jobs[1], "readyCount": 2.0, "checkerCount": 3.0,
		"readyDeadline": o.deadline.Format(wire.TimestampLayout),
	})

	s.settleAt(o, o.deadline) // the third never came
	body := s.session(key, o)
	with(t, body, map[string]any{"status": "active", "readyCount": 2.0, "creditsRefunded": 5.0, "closedAt": nil})
	equal(t, slotWords(body), "active claimed, active claimed, dropped cancelled")
	if body["startedAt"] == nil {
		t.Error("startedAt is null")
	}
	late := s.checker()
	s.call(late, "POST", "/v1/checker/claims", `{"jobId":"`+o.jobs[2]+`"}`).refused(http.StatusConflict, domain.CodeConflict)

	s.finish(ann, annsClaim, "pass")
	s.finish(bob, bobsClaim, "fail")
	s.settleAt(o, o.deadline)
	body = s.session(key, o)
	with(t, body, map[string]any{
		"status": "completed", "closeReason": "completed", "passCount": 1.0, "failCount": 1.0, "creditsRefunded": 5.0,
	})
	equal(t, slotWords(body), "ended completed, ended completed, dropped cancelled")
	if id, _ := body["slots"].([]any)[0].(map[string]any)["reportId"].(string); id == "" {
		t.Error("the slot's report is not named")
	}
	for _, call := range []struct{ key, path string }{
		{key, "/v1/hosted/sessions/" + o.id + "/cancel"},
		{ann, "/v1/checker/sessions/" + o.id + "/ready"},
		{ann, "/v1/checker/sessions/" + o.id + "/leave"},
	} {
		refused := s.call(call.key, "POST", call.path, "").refused(http.StatusConflict, domain.CodeConflict)
		equal(t, refused["error"], "the session is closed")
	}
	with(t, s.call(key, "GET", "/v1/credits", "").want(http.StatusOK), map[string]any{"available": 90.0, "used": 10.0})
}

func TestCancellingASessionRefundsEverySlotOnce(t *testing.T) {
	t.Parallel()
	s := shared(t)
	_, key := s.account(100)
	o := s.openSession(key, twoSlots)
	s.joins(o, 1)
	slot := s.call(key, "POST", "/v1/jobs/"+o.jobs[1]+"/cancel", "").refused(http.StatusConflict, domain.CodeConflict)
	equal(t, slot["hint"], "cancel the session")
	want := map[string]any{"sessionId": o.id, "status": "cancelled", "creditsRefunded": 10.0, "creditsExpired": 0.0, "creditsRemaining": 100.0}
	for range 2 {
		equal(t, s.call(key, "POST", "/v1/hosted/sessions/"+o.id+"/cancel", "").want(http.StatusOK), want)
	}
	body := s.session(key, o)
	with(t, body, map[string]any{"status": "cancelled", "closeReason": "client", "creditsRefunded": 10.0})
	equal(t, slotWords(body), "ended cancelled, ended cancelled")
}

func TestLeavingALobbyGivesTheSlotBack(t *testing.T) {
	t.Parallel()
	s := shared(t)
	_, key := s.account(100)
	o := s.openSession(key, twoSlots)
	ann, _ := s.joins(o, 1)
	for range 2 {
		with(t, s.call(ann, "POST", "/v1/checker/sessions/"+o.id+"/leave", "").want(http.StatusOK), map[string]any{
			"status": "lobby", "slot": 1.0, "jobId": o.jobs[0], "readyCount": 0.0,
		})
	}
	equal(t, slotWords(s.session(key, o)), "waiting pending, waiting pending")
	stranger := s.call(s.checker(), "POST", "/v1/checker/sessions/"+o.id+"/ready", "").refused(http.StatusConflict, domain.CodeConflict)
	equal(t, stranger["hint"], "claim one of its jobs first")
}

func TestSessionsAreListedNewestFirst(t *testing.T) {
	t.Parallel()
	s := shared(t)
	accountID, key := s.account(100)
	one := s.openSession(key, twoSlots)
	two := s.openSession(key, strings.Replace(twoSlots, "shop", "blog", 1))
	s.call(key, "POST", "/v1/hosted/sessions/"+one.id+"/cancel", "").want(http.StatusOK)
	bound := s.key(accountID, command.IssueKey{Scope: account.ScopeFull, ProjectID: one.project})
	_, other := s.account(0)
	for _, c := range []struct{ key, query, want string }{
		{key, "", two.id + " " + one.id + " of 2"},
		{key, "?limit=1", two.id + " of 2"},
		{key, "?limit=1&offset=1", one.id + " of 2"},
		{key, "?status=lobby", two.id + " of 1"},
		{key, "?status=cancelled&projectId=" + one.project, one.id + " of 1"},
		{key, "?projectId=" + uuid.NewString(), " of 0"},
		{bound, "", one.id + " of 1"},
		{other, "?projectId=" + one.project, " of 0"},
	} {
		body := s.call(c.key, "GET", "/v1/hosted/sessions"+c.query, "").want(http.StatusOK)
		var ids []string
		for _, entry := range body["sessions"].([]any) {
			id, _ := entry.(map[string]any)["sessionId"].(string)
			ids = append(ids, id)
		}
		if got := fmt.Sprintf("%s of %v", strings.Join(ids, " "), body["total"]); got != c.want {
			t.Errorf("%q lists %s, want %s", c.query, got, c.want)
		}
	}
	equal(t, s.call(key, "GET", "/v1/hosted/sessions?status=open&limit=0&offset=-1", "").paths(), []string{"limit", "offset", "status"})
	s.call(bound, "GET", "/v1/hosted/sessions?projectId="+two.project, "").refused(http.StatusForbidden, domain.CodeForbidden)
}

func TestASessionIsItsAccountsAndItsProjectsOnly(t *testing.T) {
	t.Parallel()
	s := shared(t)
	accountID, key := s.account(100)
	_, other := s.account(100)
	o := s.openSession(key, twoSlots)
	elsewhere := s.openSession(key, strings.Replace(twoSlots, "shop", "blog", 1))
	bound := s.key(accountID, command.IssueKey{Scope: account.ScopeFull, ProjectID: elsewhere.project})
	reader := s.key(accountID, command.IssueKey{Scope: account.ScopeRead})
	own, stranger := s.checker(accountID), s.checker()
	path := "/v1/hosted/sessions/" + o.id
	before := s.written()
	for _, id := range []string{o.id, uuid.NewString(), "no'such"} {
		s.call(other, "GET", "/v1/hosted/sessions/"+id, "").refused(http.StatusNotFound, domain.CodeNotFound)
		s.call(other, "POST", "/v1/hosted/sessions/"+id+"/cancel", "").refused(http.StatusNotFound, domain.CodeNotFound)
		s.call(own, "POST", "/v1/checker/sessions/"+id+"/ready", "").refused(http.StatusNotFound, domain.CodeNotFound)
		s.call(own, "POST", "/v1/checker/sessions/"+id+"/leave", "").refused(http.StatusNotFound, domain.CodeNotFound)
		for _, nobody := range []string{own, stranger} {
			s.call(nobody, "GET", "/v1/checker/sessions/"+id, "").refused(http.StatusNotFound, domain.CodeNotFound)
		}
	}
	s.call(bound, "GET", path, "").refused(http.StatusForbidden, domain.CodeForbidden)
	s.call(bound, "POST", path+"/cancel", "").refused(http.StatusForbidden, domain.CodeForbidden)
	s.call(reader, "POST", path+"/cancel", "").refused(http.StatusForbidden, domain.CodeForbidden)
	s.call(reader, "POST", "/v1/hosted/sessions", twoSlots).refused(http.StatusForbidden, domain.CodeForbidden)
	s.call(reader, "GET", path, "").want(http.StatusOK)
	equal(t, s.written(), before)
	// A project-bound key's sessions go to its project, whatever their host.
	equal(t, s.openSession(bound, strings.Replace(twoSlots, "shop", "news", 1)).project, elsewhere.project)
}
