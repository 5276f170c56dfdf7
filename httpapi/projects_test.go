package httpapi

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"humanqa/domain"
	"humanqa/domain/project"
	"humanqa/domain/subscription"
	"humanqa/internal/testing/must"
)

func eventList(names ...string) []any {
	out := []any{}
	for _, n := range names {
		out = append(out, n)
	}
	return out
}

func (s *service) project(key, body string) string {
	s.t.Helper()
	id, _ := s.call(key, "POST", "/v1/projects", body).want(http.StatusCreated)["projectId"].(string)
	return id
}

func TestCreatingAProject(t *testing.T) {
	t.Parallel()
	s := shared(t)
	_, key := s.account(100)
	created := s.call(key, "POST", "/v1/projects", `{"name":"Shop","description":"All of it","defaultUrl":"https://shop.example.com",
		"defaultJobType":"General QA","defaultSlaMinutes":15,"webhookUrl":"https://hooks.example.com/in","subscribedWebhookEvents":["job.completed"]}`).want(http.StatusCreated)
	id, _ := created["projectId"].(string)
	hook, _ := created["deployHookUrl"].(string)
	if token, ok := strings.CutPrefix(hook, "https://qa.example/v1/hooks/deploy/qh_"); !ok || len(token) < 22 {
		t.Errorf("the deploy hook is %q", hook)
	}
	with(t, created, map[string]any{"name": "Shop"})

	got := s.call(key, "GET", "/v1/projects/"+id, "")
	body := got.want(http.StatusOK)
	if strings.Contains(got.Body.String(), "qh_") || strings.Contains(got.Body.String(), "whsec_") {
		t.Errorf("a secret is shown: %s", got.Body)
	}
	equal(t, body["subscribedWebhookEvents"], eventList("job.completed"))
	equal(t, body["webhookSecretRotations"], []any{})
	with(t, body, map[string]any{
		"id": id, "projectId": id, "name": "Shop", "description": "All of it", "defaultUrl": "https://shop.example.com",
		"defaultJobType": "General QA", "defaultSlaMinutes": 15.0, "webhookUrl": "https://hooks.example.com/in",
		"webhookDisabled": false, "webhookDisabledReason": nil, "webhookSecretRotatedAt": nil, "allWebhookEvents": false,
		"loopAlertsSnoozedUntil": nil, "jobCount": 0.0, "completedCount": 0.0, "passRate": 0.0,
	})

	submitted := s.call(key, "POST", "/v1/jobs", strings.Replace(aJob, "{", `{"projectId":"`+id+`",`, 1)).want(http.StatusCreated)
	with(t, submitted, map[string]any{"estimatedCompletionMinutes": 15.0, "projectId": id})
	list, _ := s.call(key, "GET", "/v1/projects", "").want(http.StatusOK)["projects"].([]any)
	with(t, list[0].(map[string]any), map[string]any{"id": id, "jobCount": 1.0, "passRate": 0.0})
}

func TestWhatAProjectMayNotBe(t *testing.T) {
	t.Parallel()
	s := shared(t)
	_, key := s.account(100)
	equal(t, s.call(key, "POST", "/v1/projects", `{"name":" ","description":1,"defaultUrl":"http://localhost/x","defaultJobType":"Nope",
		"defaultSlaMinutes":20,"webhookUrl":"http://hooks.example.com","subscribedWebhookEvents":["job.completed","job.claimed",7]}`).paths(),
		[]string{"defaultJobType", "defaultSlaMinutes", "defaultUrl", "description", "name",
			"subscribedWebhookEvents[1]", "subscribedWebhookEvents[2]", "webhookUrl"})
	for _, bad := range []string{
		"https://localhost/x", "https://127.0.0.1/x", "https://10.1.2.3/x", "https://[::1]/", "https://169.254.169.254/latest", "https://user@hooks.example.com/",
		"ftp://hooks.example.com/", "hooks.example.com", "https://", "https://0x7f.1/",
	} {
		equal(t, s.call(key, "POST", "/v1/projects", `{"name":"x","webhookUrl":"`+bad+`"}`).paths(), []string{"webhookUrl"})
	}
	equal(t, s.count("project.created"), 0)
}

// patched is a project whose PATCH is under test.
type patched struct {
	*service
	key, id string
}

func setupPatch(t *testing.T, more string) patched {
	t.Helper()
	s := shared(t)
	_, key := s.account(100)
	return patched{s, key, s.project(key, `{"name":"Shop"`+more+`}`)}
}

func (p patched) patch(body string) result {
	p.t.Helper()
	return p.call(p.key, "PATCH", "/v1/projects/"+p.id, body)
}

// changed patches the project and checks that GET answers what PATCH did.
func (p patched) changed(body string) map[string]any {
	p.t.Helper()
	after := p.patch(body).want(http.StatusOK)
	got := p.get()
	delete(got, "jobCount")
	delete(got, "passRate")
	delete(got, "completedCount")
	delete(after, "warnings") // of the request, not of the project
	equal(p.t, after, got)
	return after
}

func (p patched) get() map[string]any {
	p.t.Helper()
	return p.call(p.key, "GET", "/v1/projects/"+p.id, "").want(http.StatusOK)
}

func (p patched) secret() string {
	p.t.Helper()
	secret, err := p.commands.WebhookSecret(p.t.Context(), p.id)
	must.NoError(p.t, err)
	return secret
}

// rotate replaces the secret as the dashboard does; no user: a legacy entry.
func (p patched) rotate(at time.Time, user *string) {
	p.t.Helper()
	p.happened(domain.ProjectStream(p.id), at,
		&project.SecretSet{SecretID: uuid.NewString(), Sealed: "x", Fingerprint: uuid.NewString(), At: at, UserID: user, Rotated: true})
}

// happened appends what no command of this service writes.
func (s *service) happened(stream string, at time.Time, e domain.Event) {
	s.t.Helper()
	last := domain.NoStream
	err := s.log.Load(s.t.Context(), stream, 0, func(r domain.Recorded) error {
		last = domain.ExpectedRevision(r.Revision)
		return nil
	})
	must.NoError(s.t, err)
	written, err := s.log.Append(s.t.Context(), stream, last, []domain.NewEvent{{
		ID: uuid.New(), Meta: domain.Metadata{CommandID: uuid.New(), Actor: "user", Time: at}, Event: e,
	}})
	s.visible(written.Position, err)
}

func TestAPatchOfNothingChangesNothing(t *testing.T) {
	t.Parallel()
	p := setupPatch(t, `,"description":"d","defaultUrl":"https://shop.example.com","defaultJobType":"custom","defaultSlaMinutes":30,
		"webhookUrl":"https://hooks.example.com/in","subscribedWebhookEvents":["job.created"]`)
	before, head := p.get(), p.written()
	for _, body := range []string{`{}`, `{"unknown":1}`, `{"name":"Shop","description":"d","defaultSlaMinutes":30,"webhookUrl":"https://hooks.example.com/in"}`} {
		p.changed(body)
		equal(t, p.get(), before) // updatedAt, too
	}
	equal(t, p.written(), head)
	equal(t, p.patch("").paths(), []string{"body"})
}

func TestAPatchedFieldIsAbsentOrNullOrAValue(t *testing.T) {
	t.Parallel()
	p := setupPatch(t, `,"description":"d","defaultUrl":"https://shop.example.com","defaultJobType":"custom","defaultSlaMinutes":30`)
	full := map[string]any{
		"description": "d", "defaultUrl": "https://shop.example.com", "defaultJobType": "custom", "defaultSlaMinutes": 30.0,
		"loopAlertsSnoozedUntil": "2026-12-24T18:00:00.000Z",
	}
	body := map[string]string{
		"description": `"d"`, "defaultUrl": `"https://shop.example.com"`, "defaultJobType": `"custom"`, "defaultSlaMinutes": `30`,
		"loopAlertsSnoozedUntil": `"2026-12-24T19:00:00+01:00"`,
	}
	for field, value := range body {
		empty := []string{"null"}
		if strings.HasPrefix(field, "d") && field != "defaultSlaMinutes" {
			empty = append(empty, `""`) // clears a text as null does
		}
		for _, nothing := range empty {
			with(t, p.changed(`{"`+field+`":`+value+`}`), map[string]any{field: full[field]})
			with(t, p.changed(`{"name":"absent changes nothing"}`), map[string]any{field: full[field]})
			with(t, p.changed(`{"`+field+`":`+nothing+`}`), map[string]any{field: nil})
		}
	}
	equal(t, p.get()["name"], any("absent changes nothing"))
}

func TestWhatAPatchMayNotBe(t *testing.T) {
	t.Parallel()
	p := setupPatch(t, "")
	before := p.written()
	for body, paths := range map[string][]string{
		`{"name":""}`:   {"name"},
		`{"name":" "}`:  {"name"},
		`{"name":null}`: {"name"},
		`{"name":"` + strings.Repeat("ü", 121) + `"}`:                             {"name"},
		`{"description":"` + strings.Repeat("ü", 2001) + `"}`:                     {"description"},
		`{"description":[]}`:                                                      {"description"},
		`{"defaultUrl":"file:///etc/passwd"}`:                                     {"defaultUrl"},
		`{"defaultUrl":"  "}`:                                                     {"defaultUrl"},
		`{"defaultJobType":"  "}`:                                                 {"defaultJobType"},
		`{"defaultJobType":"Nope"}`:                                               {"defaultJobType"},
		`{"defaultSlaMinutes":45}`:                                                {"defaultSlaMinutes"},
		`{"defaultSlaMinutes":0}`:                                                 {"defaultSlaMinutes"},
		`{"defaultSlaMinutes":"30"}`:                                              {"defaultSlaMinutes"},
		`{"webhookUrl":null}`:                                                     {"webhookUrl"},
		`{"webhookUrl":"  "}`:                                                     {"webhookUrl"},
		`{"webhookUrl":"http://hooks.example.com"}`:                               {"webhookUrl"},
		`{"webhookUrl":"https://192.168.1.1/"}`:                                   {"webhookUrl"},
		`{"subscribedWebhookEvents":null}`:                                        {"subscribedWebhookEvents"},
		`{"subscribedWebhookEvents":"job.created"}`:                               {"subscribedWebhookEvents"},
		`{"subscribedWebhookEvents":["job.created","job.claimed","created"]}`:     {"subscribedWebhookEvents[1]", "subscribedWebhookEvents[2]"},
		`{"loopAlertsSnoozedUntil":"tomorrow"}`:                                   {"loopAlertsSnoozedUntil"},
		`{"loopAlertsSnoozedUntil":""}`:                                           {"loopAlertsSnoozedUntil"},
		`{"loopAlertsSnoozedUntil":"2026-12-24"}`:                                 {"loopAlertsSnoozedUntil"},
		`{"loopAlertsSnoozedUntil":7}`:                                            {"loopAlertsSnoozedUntil"},
		`{"name":null,"webhookUrl":null,"defaultSlaMinutes":45,"description":[]}`: {"defaultSlaMinutes", "description", "name", "webhookUrl"},
	} {
		if got := p.patch(body).paths(); !slices.Equal(got, paths) {
			t.Errorf("%.80s\nis refused for %v, want %v", body, got, paths)
		}
	}
	equal(t, p.written(), before)
	p.id = uuid.NewString()
	p.patch(`{"name":"x"}`).refused(http.StatusNotFound, domain.CodeNotFound)
	equal(t, p.patch(`{"name":1}`).paths(), []string{"name"}) // 400 before 404
}

func TestAPatchOfTheWebhook(t *testing.T) {
	t.Parallel()
	const in, two = `{"webhookUrl":"https://hooks.example.com/in"}`, `{"webhookUrl":"https://hooks.example.com/two"}`
	t.Run("with a first URL generates a secret, which is no rotation", func(t *testing.T) {
		p := setupPatch(t, "")
		equal(t, p.get()["webhookSecretRotations"], nil)
		got := p.changed(in)
		equal(t, got["webhookSecretRotations"], []any{})
		with(t, got, map[string]any{"webhookUrl": "https://hooks.example.com/in", "webhookSecretRotatedAt": nil, "allWebhookEvents": true})
		equal(t, strings.HasPrefix(p.secret(), "whsec_"), true)
	})
	t.Run("with a new URL keeps the secret and the list", func(t *testing.T) {
		p := setupPatch(t, `,"webhookUrl":"https://hooks.example.com/in","subscribedWebhookEvents":["job.created"]`)
		secret := p.secret()
		equal(t, p.changed(two)["subscribedWebhookEvents"], eventList("job.created"))
		equal(t, p.secret(), secret)
	})
	t.Run("with the empty string clears URL and list and keeps the secret, which signs for a later URL", func(t *testing.T) {
		p := setupPatch(t, `,"webhookUrl":"https://hooks.example.com/in","subscribedWebhookEvents":["job.created"]`)
		secret := p.secret()
		cleared := p.changed(`{"webhookUrl":""}`)
		equal(t, cleared["subscribedWebhookEvents"], eventList())
		with(t, cleared, map[string]any{"webhookUrl": nil, "webhookSecretRotations": nil, "allWebhookEvents": false})
		with(t, p.changed(two), map[string]any{"allWebhookEvents": true})
		equal(t, p.secret(), secret)
		equal(t, p.count("project.webhook_secret_set"), 1)
	})
	t.Run("shows the five newest of seven rotations, and null without a URL", func(t *testing.T) {
		p := setupPatch(t, `,"webhookUrl":"https://hooks.example.com/in"`)
		start := time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)
		for n := range 7 {
			var user *string // the fifth is a legacy entry
			if n != 4 {
				name := "user-" + strconv.Itoa(n)
				user = &name
			}
			p.rotate(start.Add(time.Duration(n)*time.Minute), user)
		}
		entry := func(minute int, user any) any {
			return map[string]any{"at": fmt.Sprintf("2026-11-21T09:%02d:00.000Z", minute), "userId": user, "keyId": nil}
		}
		want := []any{entry(6, "user-6"), entry(5, "user-5"), entry(4, nil), entry(3, "user-3"), entry(2, "user-2")}
		got := p.changed(`{"name":"Store"}`)
		equal(t, got["webhookSecretRotations"], any(want))
		equal(t, got["webhookSecretRotatedAt"], any("2026-11-21T09:06:00.000Z"))
		listed := p.call(p.key, "GET", "/v1/projects", "").want(http.StatusOK)["projects"].([]any)[0].(map[string]any)
		equal(t, listed["webhookSecretRotations"], any(want))
		equal(t, p.changed(`{"webhookUrl":""}`)["webhookSecretRotations"], nil)
		equal(t, p.changed(two)["webhookSecretRotations"], any(want))
	})
}

func TestSubscribedWebhookEvents(t *testing.T) {
	t.Parallel()
	s := shared(t)
	_, key := s.account(100)
	const hook = `,"webhookUrl":"https://hooks.example.com/in"`
	const none, one = `,"subscribedWebhookEvents":[]`, `,"subscribedWebhookEvents":["job.created"]`
	every := eventList(subscription.Specified()...)
	for _, c := range []struct {
		name, created, patch string
		want                 []any
		all                  bool
	}{
		{"omitted on a new project with a webhook: every event", hook, "", every, true},
		{"empty on a new project: none", hook + none, "", eventList(), false},
		{"one on a new project: that one", hook + one, "", eventList("job.created"), false},
		{"on a new project without a webhook: not applied", one, "", eventList(), false},
		{"neither when its first URL comes", one, hook, every, true},
		{"omitted in a PATCH: untouched", hook + one, `,"name":"x"`, eventList("job.created"), false},
		{"empty in a PATCH: none", hook + one, none, eventList(), false},
		{"one in a PATCH: replaces every event", hook, one, eventList("job.created"), false},
		{"with a first URL in a PATCH: applied", "", hook + one, eventList("job.created"), false},
		{"in a PATCH without a webhook: not applied", "", one, eventList(), false},
		{"with the URL's end in a PATCH: cleared", hook, `,"webhookUrl":""` + one, eventList(), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := patched{s, key, s.project(key, `{"name":"Shop"`+c.created+`}`)}
			if c.patch != "" {
				p.changed(`{` + c.patch[1:] + `}`)
			}
			got := p.get()
			equal(t, []any{got["subscribedWebhookEvents"], got["allWebhookEvents"]}, []any{c.want, c.all})
		})
	}
	for bad, path := range map[string]string{
		`["job.created","nonsense"]`: "subscribedWebhookEvents[1]",
		`["Job Created"]`:            "subscribedWebhookEvents[0]",
		`["job.claimed"]`:            "subscribedWebhookEvents[0]",
		`[" job.created"]`:           "subscribedWebhookEvents[0]",
	} {
		for _, webhook := range []string{hook, ""} { // refused also where it would not be applied
			equal(t, s.call(key, "POST", "/v1/projects", `{"name":"x"`+webhook+`,"subscribedWebhookEvents":`+bad+`}`).paths(), []string{path})
		}
	}
}

func TestEnablingAWebhook(t *testing.T) {
	t.Parallel()
	s := shared(t)
	_, key := s.account(100)
	bare := s.project(key, `{"name":"bare"}`)
	s.call(key, "POST", "/v1/projects/"+bare+"/webhook/enable", "").refused(http.StatusConflict, domain.CodeConflict)
	id := s.project(key, `{"name":"Shop","webhookUrl":"https://hooks.example.com/in"}`)
	at, err := s.commands.DisableWebhook(t.Context(), operator(uuid.New()), id, "d1", "status 500")
	s.visible(at, err)
	with(t, s.call(key, "GET", "/v1/projects/"+id, "").want(http.StatusOK), map[string]any{
		"webhookDisabled": true, "webhookDisabledReason": "status 500",
	})
	for range 2 {
		with(t, s.call(key, "POST", "/v1/projects/"+id+"/webhook/enable", "").want(http.StatusOK), map[string]any{
			"webhookDisabled": false, "webhookDisabledReason": nil,
		})
	}
}

func TestAFieldIsClearedByItsNameToo(t *testing.T) {
	t.Parallel()
	s := shared(t)
	_, key := s.account(0)
	id, _ := s.hook(key, withURL+`,"description":"A shop","defaultSlaMinutes":30`)
	patch := func(body string) result { return s.call(key, "PATCH", "/v1/projects/"+id, body) }
	patch(`{"questionMinutes":5,"keepEvidenceDays":9}`).want(http.StatusOK)
	equal(t, patch(`{"clear":["name"]}`).paths(), []string{"clear[0]"})
	equal(t, patch(`{"clear":["description","defaultURL"],"defaultUrl":"https://a.example/"}`).paths(), []string{"clear[1]"})
	with(t, patch(`{"clear":["Description","defaultUrl","defaultSlaMinutes","questionMinutes","keepEvidenceDays"],"name":"Store"}`).want(http.StatusOK),
		map[string]any{"name": "Store", "description": nil, "defaultUrl": nil, "defaultSlaMinutes": nil, "questionMinutes": 30.0, "keepEvidenceDays": nil})
	hint := patch(`{"subscribedWebhookEvents":null}`).refused(http.StatusBadRequest, domain.CodeInvalidRequest)["hint"]
	if text, _ := hint.(string); strings.Contains(text, "every event") {
		t.Errorf("leaving the list out changes nothing, and the hint says %q", text)
	}
}
