package httpapi

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"humanqa/domain"
	"humanqa/domain/announce"
	"humanqa/domain/command"
	"humanqa/domain/job"
	v1 "humanqa/httpapi/v1"
	"humanqa/httpapi/wire"
	"humanqa/internal/testing/commandtest"
	"humanqa/internal/testing/must"
)

// Specification, "POST /v1/jobs"; decisions, "Job types", "URL under test" and
// "Lengths". A field that is wrong is named; one that is right is taken.
func TestWhatASubmissionMustHold(t *testing.T) {
	t.Parallel()
	s := shared(t)
	_, key := s.account(10_000)
	long := func(n int) string { return `"` + strings.Repeat("é", n) + `"` }
	items := func(n int) string { return "[" + strings.Repeat(`{"description":"x"},`, n-1) + `{"description":"x"}]` }
	for _, c := range []struct {
		field string
		right []string
		wrong []string
	}{
		{"url", []string{
			`"http://example.com"`, `"https://example.com:8443/a?b#c"`, `"https://93.184.216.34/"`,
			`"https://example.com/` + strings.Repeat("é", 2048-20) + `"`,
		}, []string{
			`null`, `""`, `" "`, `7`, `"example.com"`, `"ftp://example.com"`, `"javascript:alert(1)"`, `"file:///etc/passwd"`, `"data:text/html,x"`,
			`"https://user:pass@example.com"`, `"https://localhost/"`, `"https://127.0.0.1/"`, `"https://10.0.0.1/"`, `"https://[::1]/"`,
			`"https://169.254.169.254/"`, `"https://example.com/\u0001"`, `"https://example.com/` + strings.Repeat("é", 2048-19) + `"`,
		}},
		{"title", []string{`"x"`, long(200)}, []string{`null`, `""`, `"  "`, `[]`, long(201)}},
		{"description", []string{`"x"`, long(5000)}, []string{`null`, `""`, `"\n"`, `{}`, long(5001)}},
		{"jobType", []string{`"Payment Flow"`, `"payment_flow"`, `"auth_flow"`, `"AI REVIEW"`}, []string{`null`, `""`, `"payment-flow"`, `"nope"`, `7`}},
		{"priority", []string{`null`, `"normal"`, `"Urgent"`}, []string{`"urgently"`, `""`, `true`}},
		{"slaMinutes", []string{`null`, `15`, `30`, `60`, `60.0`}, []string{`0`, `20`, `-15`, `15.5`, `"15"`, `1e99`}},
		{"generateChecklist", []string{`null`, `"async"`, `"sync"`}, []string{`"later"`, `""`, `false`}},
		{"projectId", []string{`null`, `""`}, []string{`"a b"`, `7`, long(65)}},
		{"targetDevice", []string{`null`, `""`, long(100)}, []string{`{}`, long(101)}},
		{"accessInstructions", []string{`null`, `""`, long(4000)}, []string{`["x"]`, long(4001)}},
		{"credentials", []string{`null`, `{}`, `{"username":"u"}`}, []string{`"u:p"`, `[]`}},
		{"checklistItems", []string{`null`, `[]`, items(1), items(100)}, []string{`{}`, `"x"`, items(101)}},
		{"unknownKey", []string{`null`, `{"a":[1]}`}, nil},
	} {
		with := func(value string) string {
			fields := map[string]json.RawMessage{}
			must.NoError(t, json.Unmarshal([]byte(aJob), &fields))
			fields[c.field] = json.RawMessage(value)
			body, err := json.Marshal(fields)
			must.NoError(t, err)
			return string(body)
		}
		for _, value := range c.right {
			if r := s.call(key, "POST", "/v1/jobs", with(value)); r.Code != http.StatusCreated {
				t.Errorf("%s %.60s: %d %s", c.field, value, r.Code, r.Body)
			}
		}
		for _, value := range c.wrong {
			r := s.call(key, "POST", "/v1/jobs", with(value))
			if got := r.paths(); fmt.Sprint(got) != fmt.Sprint([]string{c.field}) {
				t.Errorf("%s %.60s: %v", c.field, value, got)
			}
		}
	}
}

// Decisions, "Lengths", "Severity" and "Item keys".
func TestWhatAChecklistItemMustHold(t *testing.T) {
	t.Parallel()
	s := shared(t)
	_, key := s.account(1000)
	const path = "checklistItems[1]"
	for item, want := range map[string][]string{
		`{"description":"x","severity":"huge"}`:                        {path + ".severity"},
		`{"severity":7}`:                                               {path + ".description", path + ".severity"},
		`{"description":"","expectedOutcome":[]}`:                      {path + ".description", path + ".expectedOutcome"},
		`{"description":"` + strings.Repeat("x", 1001) + `"}`:          {path + ".description"},
		`{"description":"x","key":"` + strings.Repeat("x", 201) + `"}`: {path + ".key"},
		`"text"`: {path},
	} {
		equal(t, s.call(key, "POST", "/v1/jobs", jobWith(`"checklistItems":[{"description":"fine"},`+item+`]`)).paths(), want)
	}
	id := s.submittedWith(key, `"checklistItems":[{"description":"a"},{"description":"b","severity":"HIGH"},
		{"description":"c","severity":"low","expectedOutcome":"seen","key":"mine"}]`)
	claim := s.call(s.checker(), "POST", "/v1/checker/claims", `{"jobId":"`+id+`"}`).want(http.StatusCreated)
	list, _ := claim["checklist"].([]any)
	for i, want := range []map[string]any{
		{"description": "a", "severity": "major", "expectedOutcome": ""},
		{"description": "b", "severity": "major", "expectedOutcome": ""},
		{"description": "c", "severity": "minor", "expectedOutcome": "seen", "key": "mine"},
	} {
		item, _ := list[i].(map[string]any)
		with(t, item, want)
	}
}

// submissions notes what SubmitJob is told.
type submissions struct {
	v1.Submitter
	last command.SubmitJob
}

func (s *submissions) SubmitJob(ctx context.Context, cause command.Cause, in command.SubmitJob) (command.SubmittedJob, error) {
	s.last = in
	return s.Submitter.SubmitJob(ctx, cause, in)
}

// Specification, "POST /v1/jobs", generateChecklist.
func TestOnlyASynchronousChecklistIsWaitedFor(t *testing.T) {
	t.Parallel()
	s := shared(t).node(nil)
	_, key := s.account(100)
	spy := &submissions{Submitter: s.clients.Submits}
	s.clients.Submits = spy
	for field, want := range map[string]bool{
		`"generateChecklist":"sync"`: true, `"generateChecklist":"async"`: false, `"generateChecklist":null`: false, `"x":0`: false,
	} {
		s.submittedWith(key, field)
		if spy.last.Wait != want {
			t.Errorf("%s: it waits: %t", field, spy.last.Wait)
		}
	}
}

// Specification, "GET /v1/jobs"; decisions, "List order", "since"
// and "status filter".
func TestAPageOfJobs(t *testing.T) {
	t.Parallel()
	s := shared(t)
	_, key := s.account(100)
	for range 3 {
		s.submitted(key)
	}
	for _, c := range []struct {
		query string
		wrong string
	}{
		{"limit=0", "limit"}, {"limit=101", "limit"}, {"limit=-1", "limit"}, {"limit=x", "limit"}, {"limit=1.5", "limit"},
		{"offset=-1", "offset"}, {"offset=x", "offset"}, {"offset=99999999999999999999", "offset"},
		{"status=in_progress", "status"}, {"status=waiting", "status"}, {"status=voided", "status"},
		{"since=yesterday", "since"}, {"since=2026-13-01", "since"}, {"since=1772601367", "since"},
		{"limit=1", ""}, {"limit=100", ""}, {"offset=0", ""}, {"limit=", ""}, {"status=", ""}, {"unknown=x", ""},
	} {
		r := s.call(key, "GET", "/v1/jobs?"+c.query, "")
		if c.wrong == "" {
			with(t, r.want(http.StatusOK), map[string]any{"total": 3.0})
			continue
		}
		equal(t, r.paths(), []string{c.wrong})
	}
	equal(t, s.call(key, "GET", "/v1/jobs", "").want(http.StatusOK)["limit"], any(20.0))
	equal(t, s.call(key, "GET", "/v1/jobs?offset=3", "").want(http.StatusOK), map[string]any{
		"jobs": []any{}, "total": 3.0, "limit": 20.0, "offset": 3.0, "nextCursor": nil,
	})
}

func TestSinceIsStrictlyAfter(t *testing.T) {
	t.Parallel()
	s := shared(t)
	_, key := s.account(100)
	text, _ := s.call(key, "GET", "/v1/jobs/"+s.submitted(key), "").want(http.StatusOK)["createdAt"].(string)
	at, err := time.Parse(wire.TimestampLayout, text)
	must.NoError(t, err)
	zone := time.FixedZone("", 2*60*60)
	for since, want := range map[string]float64{
		text: 0,
		at.Add(-time.Millisecond).Format(wire.TimestampLayout):                       1,
		at.Add(time.Millisecond).Format(wire.TimestampLayout):                        0,
		at.In(zone).Format(time.RFC3339Nano):                                         0, // its "+" arrives as a blank
		url.QueryEscape(at.In(zone).Add(-time.Millisecond).Format(time.RFC3339Nano)): 1,
		at.Add(-24 * time.Hour).Format(time.DateOnly):                                1,
		at.Add(24 * time.Hour).Format(time.DateOnly):                                 0,
	} {
		body := s.call(key, "GET", "/v1/jobs?since="+strings.ReplaceAll(since, " ", "%20"), "").want(http.StatusOK)
		if body["total"] != want {
			t.Errorf("since %s (created %s): %v jobs, want %v", since, text, body["total"], want)
		}
	}
}

// Decisions, "SLA" and "Job states": the state names are frozen, the detail is in
// further fields.
func TestAJobThatMissedItsSLA(t *testing.T) {
	t.Parallel()
	s := shared(t)
	accountID, key := s.account(5)
	id := s.submittedWith(key, `"slaMinutes":15`)
	createdAt := s.call(key, "GET", "/v1/jobs/"+id, "").want(http.StatusOK)["createdAt"]
	s.claims(s.checker(), id)
	var late atomic.Pointer[time.Time] // read by goroutines of the service's
	now := s.deps.Now()
	late.Store(&now)
	commands := command.New(command.Deps{
		Log: s.log, Sealer: s.deps.Vault, AI: commandtest.AI{}, Reads: commandtest.NoReads{},
		Now: func() time.Time { return *late.Load() }, ClaimsPerChecker: 1,
	})
	t.Cleanup(commands.Drain)
	for miss := 1; miss <= 3; miss++ {
		now := late.Load().Add(16 * time.Minute)
		late.Store(&now)
		at, err := commands.MissSLA(t.Context(), command.Cause{CommandID: uuid.New(), Actor: "policy:sla", AccountID: accountID}, id)
		s.visible(at, err)
		body := s.call(key, "GET", "/v1/jobs/"+id, "").want(http.StatusOK)
		want := map[string]any{
			"status": "pending", "claimedAt": nil, "createdAt": createdAt, "requeueCount": float64(miss), "isFinal": false,
			"creditsUsed": 5.0, "failReason": nil, "lastFailedSlaAt": now.UTC().Format(wire.TimestampLayout),
		}
		if miss == 3 {
			want["status"], want["isFinal"], want["creditsUsed"], want["failReason"] = "failed", true, 0.0, "sla"
			want["requeueCount"] = 2.0
		}
		with(t, body, want)
	}
}

// noted is an AI that notes what it is asked.
type noted struct {
	commandtest.AI
	mu      sync.Mutex
	prompts []string
}

func (n *noted) note(brief any) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.prompts = append(n.prompts, fmt.Sprintf("%+v", brief))
}

func (n *noted) Checklist(ctx context.Context, b command.ChecklistBrief) ([]command.NewItem, string, error) {
	n.note(b)
	return n.AI.Checklist(ctx, b)
}

func (n *noted) Analyse(ctx context.Context, b command.AnalysisBrief) (job.AIReport, error) {
	n.note(b)
	return n.AI.Analyse(ctx, b)
}

// Issue: "Credentials and access instructions appear in no answer, event
// replay, webhook, log or prompt." The claimant's brief is the one exception.
func TestSecretsShowNowhereButInTheClaimantsBrief(t *testing.T) {
	t.Parallel()
	s := own(t)
	ai := &noted{}
	s.commands = s.parts.Process(ai)
	s.deps.Commands = s.commands
	s.serve()
	accountID, key := s.account(100)
	project, _ := s.call(key, "POST", "/v1/projects", `{"name":"Shop","webhookUrl":"https://hooks.example.com/x"}`).want(http.StatusCreated)["projectId"].(string)
	secrets := []string{"us3r-name", "s3cr3t-pass", "n0te-of-it", "4711-door"}
	const fields = `"credentials":{"username":"us3r-name","password":"s3cr3t-pass","notes":"n0te-of-it"},"accessInstructions":"4711-door"`

	seen := map[string]string{}
	see := func(key, method, target, body string, headers ...string) result {
		r := s.call(key, method, target, body, headers...)
		seen[fmt.Sprintf("%d %s %s", len(seen), method, target)] = r.Body.String() + fmt.Sprint(r.Header())
		return r
	}
	body := jobWith(fields + `,"projectId":"` + project + `"`)
	id, _ := see(key, "POST", "/v1/jobs", body, "Idempotency-Key", "k").want(http.StatusCreated)["jobId"].(string)
	see(key, "POST", "/v1/jobs", body, "Idempotency-Key", "k").want(http.StatusCreated)
	see(key, "POST", "/v1/estimate", body).want(http.StatusOK)
	see(key, "POST", "/v1/jobs", jobWith(fields+`,"slaMinutes":7`)).want(http.StatusBadRequest)
	batch := see(key, "POST", "/v1/jobs/bulk", `{"jobs":[`+body+`]}`).want(http.StatusCreated)["batchId"]
	checker := s.checker()
	see(checker, "GET", "/v1/checker/queue", "").want(http.StatusOK)
	w := s.claims(checker, id)
	w.checks(fails).completes("Broken.")
	s.analysed(accountID, id)
	see(checker, "POST", "/v1/checker/claims", `{"jobId":"`+id+`"}`).want(http.StatusConflict)
	for _, target := range []string{
		"/v1/jobs", "/v1/jobs/" + id, "/v1/jobs/" + id + "/report", "/v1/jobs/" + id + "/report?format=junit",
		"/v1/jobs/" + id + "/report?format=ctrf", "/v1/jobs/" + id + "/report?format=md", "/v1/jobs/" + id + "/ai-report",
		"/v1/hosted/status/" + id, fmt.Sprintf("/v1/jobs/bulk/%v", batch), "/v1/projects/" + project,
		"/v1/projects/" + project + "/history", "/v1/jobs/" + id + "/events", "/v1/events?limit=100", "/v1/jobs?limit=100",
	} {
		equal(t, see(key, "GET", target, "").Code, http.StatusOK)
	}
	see(key, "POST", "/v1/jobs/"+id+"/retest", "").want(http.StatusCreated)

	for i, e := range s.events() {
		raw, err := json.Marshal(e.Event)
		must.NoError(t, err)
		seen[fmt.Sprintf("event %d %s", i, e.Type)] = string(raw)
		if announced, _, err := announce.Render("https://qa.example", e, announce.Enrichment{Submission: job.Submission{ProjectID: project}}); err == nil {
			seen[fmt.Sprintf("webhook %d %s", i, e.Type)] = string(announced)
		}
	}
	ai.mu.Lock()
	seen["prompts"] = strings.Join(ai.prompts, "\n")
	ai.mu.Unlock()
	seen["log"] = s.logged.String()
	for where, text := range seen {
		for _, secret := range secrets {
			if strings.Contains(text, secret) {
				t.Errorf("%q shows in %s", secret, where)
			}
		}
	}
	if seen["prompts"] == "" {
		t.Error("nothing was prompted")
	}
	for _, table := range s.tables() {
		for _, secret := range secrets {
			var n int
			must.NoError(t, s.db.Get(&n, `SELECT count(*) FROM `+table+` AS t WHERE t::text LIKE '%' || $1 || '%'`, secret))
			if n > 0 {
				t.Errorf("%q stands in %s", secret, table)
			}
		}
	}
}

// tables lists every table of the database, quoted.
func (s *service) tables() []string {
	s.t.Helper()
	var names []string
	err := s.db.Select(&names, `
SELECT format('%I.%I', schemaname, tablename)
FROM pg_tables
WHERE schemaname NOT IN ('pg_catalog', 'information_schema')`)
	must.NoError(s.t, err)
	return names
}

// Decisions, "Item keys": a derived key is a hash, which tells nothing of an erased text. A
// project that knows the item by a readable key keeps that one.
func TestADerivedKeyIsAHashUnlessTheProjectKnowsAReadableOne(t *testing.T) {
	t.Parallel()
	s := shared(t)
	_, key := s.account(100)
	project := s.project(key, `{"name":"shop"}`)
	keyOf := func(item string) string {
		id := s.submittedWith(key, `"projectId":"`+project+`","checklistItems":[`+item+`]`)
		s.complete(id)
		created, _ := s.log.Stream(domain.JobStream(id))[0].Event.(*job.Created)
		return created.Items[0].Key
	}
	equal(t, keyOf(`{"description":"Log in works."}`), job.KeyFor("log in   works"))
	equal(t, keyOf(`{"description":"Sign out works","key":"sign-out-works"}`), "sign-out-works")
	equal(t, keyOf(`{"description":"Sign out works."}`), "sign-out-works")
}
