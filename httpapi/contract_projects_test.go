package httpapi

import (
	"net/http"
	"slices"
	"testing"

	"github.com/google/uuid"

	"humanqa/domain"
	"humanqa/domain/subscription"
	"humanqa/httpapi/input"
	"humanqa/httpapi/wire"
)

// Specification, "GET /v1/projects"; decisions, "List order" and "Counts".
func TestTheListOfProjects(t *testing.T) {
	t.Parallel()
	s := shared(t)
	_, key := s.account(100)
	first := s.project(key, `{"name":"First","defaultUrl":"https://first.example.com","webhookUrl":"https://hooks.example.com/in"}`)
	second := s.project(key, `{"name":"Second"}`)
	for _, verdict := range []string{passes, passes, fails, passes} { // 3 of 4
		id := s.submittedWith(key, `"projectId":"`+first+`",`+checklistOf(1))
		s.claims(s.checker(), id).checks(verdict).completes("Tested.")
	}
	s.submittedWith(key, `"projectId":"`+first+`"`) // runs: no test yet
	list, _ := s.call(key, "GET", "/v1/projects", "").want(http.StatusOK)["projects"].([]any)
	equal(t, len(list), 2)
	alone := func(id string) any { return any(s.call(key, "GET", "/v1/projects/"+id, "").want(http.StatusOK)) }
	equal(t, list, []any{alone(second), alone(first)}) // newest first, each as it is read alone
	entry, _ := list[1].(map[string]any)
	equal(t, entry["webhookSecretRotations"], any([]any{}))
	equal(t, entry["subscribedWebhookEvents"], any(eventList(subscription.Specified()...)))
	equal(t, with(t, entry, map[string]any{
		"id": first, "projectId": first, "name": "First", "defaultUrl": "https://first.example.com", "jobCount": 5.0, "completedCount": 4.0, "passRate": 0.75,
		"webhookSecretRotatedAt": nil, "description": nil, "webhookUrl": "https://hooks.example.com/in", "allWebhookEvents": true,
	})["webhookSecret"], nil)
	with(t, list[0].(map[string]any), map[string]any{
		"jobCount": 0.0, "completedCount": 0.0, "passRate": 0.0, "defaultUrl": nil, "webhookSecretRotatedAt": nil, "webhookSecretRotations": nil,
	})
	history := s.call(key, "GET", "/v1/projects/"+first+"/history", "").want(http.StatusOK)
	with(t, history, map[string]any{"totalTests": 4.0, "passCount": 3.0, "failCount": 1.0, "completedCount": 4.0, "passRate": 75.0})
}

// Specification, "POST /v1/hosted/sessions": what is not said has its default.
func TestTheDefaultsOfASession(t *testing.T) {
	t.Parallel()
	s := shared(t)
	_, key := s.account(100)
	o := s.openSession(key, `{"url":"https://shop.example.com/","slots":[{"roleLabel":""},{"roleLabel":"  "},{"roleLabel":"Checker 1"},{}]}`)
	body := s.session(key, o)
	with(t, body, map[string]any{"voiceEnabled": true, "scenarioBrief": nil, "feature": nil, "checkerCount": 4.0, "creditsCharged": 20.0})
	var labels []any
	for n := range o.jobs {
		labels = append(labels, field(body["slots"], n, "roleLabel"))
		equal(t, field(body["slots"], n, "slot"), any(float64(n+1)))
	}
	equal(t, labels, []any{"Checker 1", "Checker 2", "Checker 1", "Checker 4"})
	with(t, s.call(key, "GET", "/v1/jobs/"+o.jobs[0], "").want(http.StatusOK), map[string]any{
		"priority": "normal", "source": "session", "sessionId": o.id, "creditsUsed": 5.0,
	})
}

// Decisions, "Open failures": sessions, too, repeat what failed and
// what was fixed.
func TestASessionTakesFailuresAndPreparedFixesAlong(t *testing.T) {
	t.Parallel()
	s := shared(t)
	_, key := s.account(1000)
	first := s.hosted(key, "shop.example.com", "").want(http.StatusCreated)
	s.complete(first["jobId"].(string), "item-1")
	s.call(key, "POST", "/v1/hosted/prepare-next", `{"projectId":"`+first["projectId"].(string)+`","fixedDescriptions":["The cart adds up"]}`).
		want(http.StatusOK)
	o := s.openSession(key, twoSlots)
	equal(t, o.project, first["projectId"])
	equal(t, o.body["checklistItemCount"], any(2.0)) // per slot
	for _, id := range o.jobs {
		equal(t, s.checklist(id), []string{"The cart adds up prepared_fix", "the page loads open_failure"})
	}
}

// Decisions, "Retest": works on any job; what it was part of, it is
// not.
func TestASlotAndABatchsJobAreTestedAgainAlone(t *testing.T) {
	t.Parallel()
	s := shared(t)
	_, key := s.account(1000)
	of := s.call(key, "POST", "/v1/jobs/bulk", bulkOf(1, nil)).want(http.StatusCreated)
	review := s.submittedAs(key, `{"url":"https://example.com/","title":"t","description":"d","jobType":"AI Review"}`)
	for _, parent := range []string{s.openSession(key, twoSlots).jobs[1], texts(of["jobIds"])[0], review} {
		was := s.call(key, "GET", "/v1/jobs/"+parent, "").want(http.StatusOK)
		again := s.call(key, "POST", "/v1/jobs/"+parent+"/retest", "").want(http.StatusCreated)
		equal(t, again["creditsDeducted"], was["creditsUsed"])
		with(t, s.call(key, "GET", "/v1/jobs/"+again["jobId"].(string), "").want(http.StatusOK), map[string]any{
			"parentJobId": parent, "source": "retest", "sessionId": nil, "batchId": nil, "status": "pending",
			"projectId": was["projectId"], "jobType": was["jobType"], "url": was["url"],
		})
	}
}

// Decisions, "Idempotency-Key": a 400 is not stored, also where only
// the project's past, or its settings, tell that it is one.
func TestARefusalThatThePastTellsIsNotStored(t *testing.T) {
	t.Parallel()
	s := shared(t)
	_, key := s.account(1000)
	under := []string{wire.IdempotencyHeader, "k"}
	first := s.hosted(key, "a.example.com", "").want(http.StatusCreated)
	projectID, _ := first["projectId"].(string)
	prepare := func() result {
		return s.call(key, "POST", "/v1/hosted/prepare-next", `{"projectId":"`+projectID+`","fixedBugIds":["item-1"]}`, under...)
	}
	equal(t, prepare().paths(), []string{"fixedBugIds[0]"})
	s.complete(first["jobId"].(string), "item-1")
	equal(t, prepare().want(http.StatusOK)["regressionItems"], any(1.0))

	bare, hook := s.hook(key, "")
	equal(t, s.call("", "POST", hook, "", under...).paths(), []string{"url"})
	s.call(key, "PATCH", "/v1/projects/"+bare, `{"defaultUrl":"https://a.example.com/"}`).want(http.StatusOK)
	s.call("", "POST", hook, "", under...).want(http.StatusCreated)
}

// Decisions, "While disabled": a PATCH that sets webhookUrl enables
// it again.
func TestAWebhookThatIsSetAnewIsEnabled(t *testing.T) {
	t.Parallel()
	s := shared(t)
	_, key := s.account(100)
	id := s.project(key, `{"name":"Shop","webhookUrl":"https://hooks.example.com/in"}`)
	for _, url := range []string{"https://hooks.example.com/in", "https://hooks.example.com/other"} {
		at, err := s.commands.DisableWebhook(t.Context(), operator(uuid.New()), id, uuid.NewString(), "status 500")
		s.visible(at, err)
		with(t, s.call(key, "PATCH", "/v1/projects/"+id, `{"name":"Store"}`).want(http.StatusOK), map[string]any{"webhookDisabled": true})
		with(t, s.call(key, "PATCH", "/v1/projects/"+id, `{"webhookUrl":"`+url+`"}`).want(http.StatusOK), map[string]any{
			"webhookDisabled": false, "webhookDisabledReason": nil, "webhookUrl": url,
		})
	}
}

// Specification, "Webhook hosts" of every endpoint that takes one: HTTPS only,
// no loopback, private or internal host.
func TestEveryEndpointRefusesTheSameWebhookHosts(t *testing.T) {
	t.Parallel()
	s := shared(t)
	_, key := s.account(100)
	id := s.project(key, `{"name":"Shop"}`)
	before := s.written()
	for _, url := range []string{
		"http://hooks.example.com/", "https://localhost/", "https://app.localhost/", "https://127.0.0.1/", "https://127.1/", "https://0.0.0.0/",
		"https://10.0.0.1/", "https://172.16.0.1/", "https://192.168.0.1/", "https://169.254.169.254/", "https://100.64.0.1/",
		"https://[::1]/", "https://[fc00::1]/", "https://[fe80::1]/", "https://[::ffff:10.0.0.1]/", "https://2130706433/", "https://0x7f000001/",
		"https://db.internal/", "https://printer.local/", "https://user@hooks.example.com/", "ftp://hooks.example.com/", "javascript:alert(1)", "hooks.example.com",
	} {
		field := `"webhookUrl":"` + url + `"`
		for _, c := range [][3]string{
			{"POST", "/v1/hosted/test", `{"url":"https://a.example.com/",` + field + `}`},
			{"POST", "/v1/hosted/sessions", `{"url":"https://a.example.com/","slots":[{},{}],` + field + `}`},
			{"POST", "/v1/projects", `{"name":"n",` + field + `}`},
			{"PATCH", "/v1/projects/" + id, `{` + field + `}`},
		} {
			r := s.call(key, c[0], c[1], c[2])
			if r.Code != http.StatusBadRequest || !slices.Equal(r.paths(), []string{"webhookUrl"}) {
				t.Errorf("%s %s takes %s: %d", c[0], c[1], url, r.Code)
			}
		}
	}
	equal(t, s.written(), before)
}

// Specification, "POST /v1/projects": "when set, a webhook secret is
// generated", which no answer ever holds.
func TestACreatedProjectsSecretIsGenerated(t *testing.T) {
	t.Parallel()
	s := shared(t)
	_, key := s.account(0)
	id := s.project(key, `{"name":"Shop","webhookUrl":"https://hooks.example.com/in"}`)
	secret := patched{s, key, id}.secret()
	if len(secret) < input.MinSecret || len(secret) > input.MaxSecret || !input.Printable(secret) {
		t.Errorf("the secret has %d characters", len(secret))
	}
	bare := s.project(key, `{"name":"Bare"}`)
	if _, err := s.commands.WebhookSecret(t.Context(), bare); !domain.IsKind(err, domain.KindNotFound) {
		t.Errorf("without a webhook: %v", err)
	}
}

// Specification, "Project history", preparedRegressions: what is queued for the
// next test, with the ids of the bugs it names; decisions, "prepare-next": it
// leaves with the job that takes it along, and comes back if that is cancelled
// or failed.
func TestTheHistoryShowsWhatIsPreparedForTheNextTest(t *testing.T) {
	t.Parallel()
	s := shared(t)
	accountID, key := s.account(100)
	first := s.hosted(key, "a.example.com", "").want(http.StatusCreated)
	s.complete(first["jobId"].(string), "item-1")
	projectID, _ := first["projectId"].(string)
	history := func() map[string]any {
		t.Helper()
		return s.call(key, "GET", "/v1/projects/"+projectID+"/history", "").want(http.StatusOK)
	}
	failure := history()["latestFailures"]
	equal(t, field(failure, 0, "severity"), any("Major"))
	bug, _ := field(failure, 0, "id").(string)
	s.call(key, "POST", "/v1/hosted/prepare-next", `{"projectId":"`+projectID+`","fixedBugIds":["`+bug+`"],"fixedDescriptions":["The cart adds up"]}`).
		want(http.StatusOK)
	prepared := history()["preparedRegressions"]
	at, _ := field(prepared, 0, "preparedAt").(string)
	want := any([]any{map[string]any{
		"bugIds": []any{bug}, "descriptions": []any{"the page loads", "The cart adds up"}, "preparedAt": at,
	}})
	equal(t, prepared, want)
	if !momentValue.MatchString(at) {
		t.Errorf("prepared at %q", at)
	}
	next := s.hosted(key, "a.example.com", "").want(http.StatusCreated)
	equal(t, next["regressionItemsIncluded"], any(2.0))
	equal(t, history()["preparedRegressions"], any([]any{}))
	s.call(key, "POST", "/v1/jobs/"+next["jobId"].(string)+"/cancel", "").want(http.StatusOK)
	equal(t, history()["preparedRegressions"], want)

	again := s.hosted(key, "a.example.com", "").want(http.StatusCreated)
	equal(t, again["regressionItemsIncluded"], any(2.0))
	s.failed(accountID, again["jobId"].(string))
	equal(t, history()["preparedRegressions"], want)
	last := s.hosted(key, "a.example.com", "").want(http.StatusCreated)
	equal(t, last["regressionItemsIncluded"], any(2.0))
	s.complete(last["jobId"].(string))
	equal(t, history()["preparedRegressions"], any([]any{}))
}
