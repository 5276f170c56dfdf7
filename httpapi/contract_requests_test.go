package httpapi

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"

	"humanqa/domain"
	"humanqa/httpapi/wire"
	"humanqa/internal/testing/must"
)

// Decisions, "Unknown keys": ignored on every endpoint, in the body
// and in the query, however they are nested.
func TestUnknownKeysAreIgnoredEverywhere(t *testing.T) {
	t.Parallel()
	s := shared(t)
	_, key := s.account(1000)
	of := s.belongings(key, "a.example.com")
	_, hook := s.hook(key, withURL)
	const odd = `"zzz":{"deep":[1,{"__proto__":null}]},"Url":7,"job_type":[],"Jobs":"x"`
	with := func(body string) string { return strings.Replace(body, "{", "{"+odd+",", 1) }
	checker := s.checker()
	w := s.claims(checker, s.submittedWith(key, checklistOf(1)))
	claim := []string{wire.ClaimTokenHeader, w.token}
	work := "/v1/checker/jobs/" + w.jobID
	for _, c := range []struct {
		key, method, path, body string
		headers                 []string
	}{
		// Values that nobody set, as a typed client sends them.
		{key, "POST", "/v1/jobs", strings.Replace(aJob, "{", `{"priority":null,"projectId":null,"generateChecklist":null,"targetDevice":null,`+
			`"accessInstructions":null,"credentials":{"username":null,"password":null,"notes":null},`+
			`"checklistItems":[{"description":"x","expectedOutcome":null,"severity":null,"key":null}],`+
			`"commitStatus":null,`, 1), nil},
		{key, "POST", "/v1/hosted/test", `{"url":"https://a.example.com/","feature":null,"webhookUrl":null,"webhookSecret":null,` +
			`"priority":null,"jobType":null,"accessInstructions":null,"targetOS":null}`, nil},
		{key, "POST", "/v1/hosted/sessions", `{"url":"https://a.example.com/","scenarioBrief":null,"feature":null,"jobType":null,"priority":null,` +
			`"webhookUrl":null,"voiceEnabled":null,"slots":[{"roleLabel":null,"targetDevice":null},{}]}`, nil},
		{key, "POST", "/v1/projects", `{"name":"n","webhookUrl":null}`, nil},
		{key, "POST", "/v1/jobs/" + of.job + "/rating", `{"rating":4,"note":null}`, nil},
		{"", "POST", hook, `{"url":null,"feature":null,"commitSha":null,"branch":null,"environment":null,"priority":null,"deduplicationKey":null}`, nil},
		{checker, "PUT", work + "/items/" + w.items[0], `{"status":"pass","note":null,"severity":null,"reason":null,"screenshotUrl":null}`, claim},
		{checker, "POST", work + "/items", `{"description":"y","status":"fail","key":null,"note":null,"severity":null}`, claim},
		{key, "POST", "/v1/jobs", strings.Replace(with(aJob), "{", `{"checklistItems":[{"description":"x","zzz":1}],"credentials":{"zzz":[]},`, 1), nil},
		{key, "POST", "/v1/jobs/bulk", with(`{"jobs":[` + with(aJob) + `]}`), nil},
		{key, "POST", "/v1/estimate", with(aJob), nil},
		{key, "POST", "/v1/hosted/test", with(`{"url":"https://a.example.com/"}`), nil},
		{key, "POST", "/v1/hosted/sessions", with(`{"url":"https://a.example.com/","slots":[{"zzz":1},{}]}`), nil},
		{key, "POST", "/v1/hosted/prepare-next", with(`{"projectId":"` + of.project + `","fixedDescriptions":["x"]}`), nil},
		{key, "POST", "/v1/projects", with(`{"name":"n"}`), nil},
		{key, "PATCH", "/v1/projects/" + of.project, with(`{"name":"n"}`), nil},
		{key, "POST", "/v1/jobs/" + of.job + "/rating", with(`{"rating":4}`), nil},
		{key, "POST", "/v1/loop-sessions/" + of.loop + "/finalize", with(`{"finalStatus":"passed"}`), nil},
		{"", "POST", hook, with(`{"branch":"b"}`), nil},
		{checker, "PUT", work + "/items/" + w.items[0], with(`{"status":"pass"}`), claim},
		{checker, "POST", work + "/items", with(`{"description":"x","status":"fail"}`), claim},
		{checker, "POST", work + "/complete", with(`{"summary":"s"}`), claim},
	} {
		if r := s.call(c.key, c.method, c.path+"?zzz=1&limit%5B%5D=0&Limit=x", c.body, c.headers...); r.Code >= http.StatusMultipleChoices {
			t.Errorf("%s %s: %d %s", c.method, c.path, r.Code, r.Body)
		}
	}
	for _, row := range routes {
		if row.Method != http.MethodGet || row.Audience != wire.Clients || strings.HasSuffix(row.Pattern, "{batchId}/report") || needs[row.Pattern] != "" { // it still runs; it wants a parameter
			continue
		}
		r := s.call(key, "GET", of.at(t, row.Pattern)+"?zzz=%00&zzz=&Limit=x&LIMIT=0", "")
		if r.Code >= http.StatusMultipleChoices {
			t.Errorf("GET %s: %d %s", row.Pattern, r.Code, r.Body)
		}
	}
}

// Specification, "Errors": x-request-id. Honoured and echoed when it is 1 to 80
// of its characters; else ignored, never an error (decisions, "x-request-id"),
// on good answers and on refusals.
func TestAClientsRequestIDIsHonouredOrIgnoredOnGoodAnswersAndRefusals(t *testing.T) {
	t.Parallel()
	s := shared(t)
	_, key := s.account(0)
	for _, c := range []struct {
		path   string
		status int
	}{{"/v1/credits", 200}, {"/v1/jobs/" + uuid.NewString(), 404}, {"/v1/jobs?limit=0", 400}, {"/v1/nowhere", 404}} {
		for id, honoured := range map[string]bool{
			"x": true, strings.Repeat("aZ09._-x", 10): true,
			strings.Repeat("a", 81): false, "a b": false, " a": false, "a,b": false, "é": false, "日本": false, "a\u0000b": false, "": false,
		} {
			r := s.call(key, "GET", c.path, "", "X-Request-Id", id)
			equal(t, r.Code, c.status)
			got := r.Header().Get("X-Request-Id")
			if honoured != (got == id) {
				t.Errorf("%s: %q became %q", c.path, id, got)
			}
			if c.status >= 400 {
				equal(t, r.want(c.status)["requestId"], any(got))
			}
		}
	}
}

// Specification, "hosted test", webhookSecret: 32 to 256 printable ASCII
// characters, blanks inside included.
func TestAWebhookSecretMayHoldEveryPrintableCharacter(t *testing.T) {
	t.Parallel()
	s := shared(t)
	_, key := s.account(100)
	var every strings.Builder
	for c := ' '; c <= '~'; c++ {
		if c == '"' || c == '\\' {
			every.WriteByte('\\')
		}
		every.WriteRune(c)
	}
	for host, secret := range map[string]string{
		"every.example.com": every.String(), "least.example.com": strings.Repeat("k", 32), "most.example.com": strings.Repeat("k", 256),
	} {
		id, _ := s.hosted(key, host, `,"webhookUrl":"`+hookURL+`","webhookSecret":"`+secret+`"`).want(http.StatusCreated)["projectId"].(string)
		signs, err := s.commands.WebhookSecret(t.Context(), id)
		must.NoError(t, err)
		equal(t, signs, strings.NewReplacer(`\"`, `"`, `\\`, `\`).Replace(secret))
	}
}

// Decisions, "Deploy hook": the token has at least 128 bits, and is
// stored hashed.
func TestADeployHooksTokenStandsNowhereInTheClear(t *testing.T) {
	t.Parallel()
	s := shared(t)
	_, key := s.account(100)
	_, hook := s.hook(key, withURL)
	s.call("", "POST", hook, "").want(http.StatusCreated)
	token := strings.TrimPrefix(hook, "/v1/hooks/deploy/qh_")
	if len(token) < 22 || token == strings.TrimPrefix(func() string { _, other := s.hook(key, ""); return other }(), "/v1/hooks/deploy/qh_") {
		t.Errorf("the token is %q", token)
	}
	for _, table := range s.tables() {
		var n int
		must.NoError(t, s.db.Get(&n, `SELECT count(*) FROM `+table+` AS t WHERE strpos(t::text, $1) > 0`, token))
		if n > 0 {
			t.Errorf("it stands in %s", table)
		}
	}
	for _, e := range s.events() {
		raw, err := domain.EncodeJSON(e.Event)
		must.NoError(t, err)
		if strings.Contains(string(raw), token) {
			t.Errorf("it stands in a %s", e.Type)
		}
	}
}
