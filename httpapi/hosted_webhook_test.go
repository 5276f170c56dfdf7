package httpapi

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"humanqa/domain"
	"humanqa/domain/account"
	"humanqa/domain/command"
	"humanqa/domain/project"
	"humanqa/domain/subscription"
	"humanqa/internal/testing/must"
)

func TestTheWebhookSecretOfAHostedTest(t *testing.T) {
	t.Parallel()
	s := shared(t).node(nil)
	_, key := s.account(1000)
	body := func(url, secret string) string {
		return `,"webhookUrl":"` + url + `","webhookSecret":"` + secret + `"`
	}
	signs := func(projectID any) string {
		t.Helper()
		secret, err := s.commands.WebhookSecret(t.Context(), projectID.(string))
		must.NoError(t, err)
		return secret
	}
	t.Run("rule 1: passed with a webhookUrl it signs", func(t *testing.T) {
		equal(t, signs(s.hosted(key, "one.example.com", body(hookURL, secretS)).want(http.StatusCreated)["projectId"]), secretS)
	})
	t.Run("rule 1: passed without a webhookUrl it counts for nothing", func(t *testing.T) {
		id := s.hosted(key, "bare.example.com", `,"webhookSecret":"`+secretS+`"`).want(http.StatusCreated)["projectId"].(string)
		_, err := s.commands.WebhookSecret(t.Context(), id)
		equal(t, domain.IsKind(err, domain.KindNotFound), true)
		with(t, s.call(key, "GET", "/v1/projects/"+id, "").want(http.StatusOK), map[string]any{"webhookUrl": nil, "webhookSecretRotations": nil})
	})
	t.Run("rule 2: passed again it changes nothing", func(t *testing.T) {
		id := s.hosted(key, "two.example.com", body(hookURL, secretS)).want(http.StatusCreated)["projectId"]
		before := s.call(key, "GET", "/v1/projects/"+id.(string), "").want(http.StatusOK)
		s.hosted(key, "two.example.com", body(hookURL, secretS)).want(http.StatusCreated)
		after := s.call(key, "GET", "/v1/projects/"+id.(string), "").want(http.StatusOK)
		equal(t, after["webhookSecretRotations"], []any{})
		equal(t, after["updatedAt"], before["updatedAt"])
		equal(t, signs(id), secretS)
	})
	t.Run("rule 3: another one is a conflict without any effect", func(t *testing.T) {
		id := s.hosted(key, "three.example.com", body(hookURL, secretS)).want(http.StatusCreated)["projectId"]
		before := s.written()
		for _, more := range []string{
			body("https://hooks.example.com/other", secretT) + `,"subscribedWebhookEvents":[]`,
			`,"webhookSecret":"` + secretT + `"`,
		} {
			s.hosted(key, "three.example.com", more).refused(http.StatusConflict, domain.CodeSecretConflict)
		}
		equal(t, s.written(), before)
		with(t, s.call(key, "GET", "/v1/projects/"+id.(string), "").want(http.StatusOK), map[string]any{
			"webhookUrl": hookURL, "allWebhookEvents": true, "jobCount": 1.0,
		})
		equal(t, signs(id), secretS)
	})
	t.Run("rule 4: omitted it is made when a URL is first attached", func(t *testing.T) {
		id := s.hosted(key, "four.example.com", "").want(http.StatusCreated)["projectId"]
		s.hosted(key, "four.example.com", `,"webhookUrl":"`+hookURL+`"`).want(http.StatusCreated)
		made := signs(id)
		equal(t, strings.HasPrefix(made, "whsec_"), true)
		s.hosted(key, "four.example.com", `,"webhookUrl":"https://hooks.example.com/moved"`).want(http.StatusCreated)
		equal(t, signs(id), made)
	})
	t.Run("is in no answer and no log", func(t *testing.T) {
		for _, secret := range []string{secretS, secretT} {
			if strings.Contains(s.logged.String(), secret) {
				t.Error("the log shows a secret")
			}
		}
		if got := s.hosted(key, "five.example.com", body(hookURL, secretS)); strings.Contains(got.Body.String(), secretS) {
			t.Errorf("the answer shows the secret: %s", got.Body)
		}
	})
}

func TestTheSubscriptionOfAHostedTest(t *testing.T) {
	t.Parallel()
	s := shared(t)
	_, key := s.account(1000)
	url := `,"webhookUrl":"` + hookURL + `"`
	events := func(names string) string { return `,"subscribedWebhookEvents":[` + names + `]` }
	every := eventList(subscription.Specified()...)
	one := `"job.completed"`
	for n, c := range []struct {
		name         string
		first, again string
		want         []any
		all          bool
	}{
		{"omitted on a new project: every event", url, "", every, true},
		{"empty on a new project: none", url + events(""), "", eventList(), false},
		{"one on a new project: that one", url + events(one), "", eventList("job.completed"), false},
		{"on a new project without webhookUrl: not applied", events(one), "", eventList(), false},
		{"and not remembered for the first URL either", events(one), url, every, true},
		{"omitted on an existing project: untouched", url + events(one), url, eventList("job.completed"), false},
		{"one on an existing project: replaces", url, events(one), eventList("job.completed"), false},
		{"empty on an existing project: replaces", url + events(one), events(""), eventList(), false},
		{"on an existing project without a webhook: not applied", "", events(one), eventList(), false},
		{"null is as omitted", url + events(one), `,"subscribedWebhookEvents":null`, eventList("job.completed"), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			host := fmt.Sprintf("s%d.example.com", n)
			s.hosted(key, host, c.first).want(http.StatusCreated)
			id := s.hosted(key, host, c.again).want(http.StatusCreated)["projectId"].(string)
			got := s.call(key, "GET", "/v1/projects/"+id, "").want(http.StatusOK)
			equal(t, []any{got["subscribedWebhookEvents"], got["allWebhookEvents"]}, []any{c.want, c.all})
		})
	}
}

func TestASecretThatLibrariesCannotReadIsTakenWithAWarning(t *testing.T) {
	t.Parallel()
	s := shared(t)
	_, key := s.account(1000)
	n := 0
	inBase64 := func(n int) string { return "whsec_" + base64.StdEncoding.EncodeToString(make([]byte, n)) }
	for secret, warns := range map[string]bool{
		strings.Repeat("x", 32): false, inBase64(24): false, inBase64(64): false,
		"whsec_" + strings.Repeat("-", 40): true, inBase64(23): true, inBase64(65): true, strings.TrimRight(inBase64(25), "="): true,
	} {
		n++
		host := fmt.Sprintf("h%d.example.com", n)
		made := s.hosted(key, host, `,"webhookUrl":"`+hookURL+`","webhookSecret":"`+secret+`"`).want(http.StatusCreated)
		if got := strings.Contains(fmt.Sprint(made["warnings"]), "Standard Webhooks"); got != warns || strings.Contains(fmt.Sprint(made), secret) {
			t.Errorf("%s: %v", secret, made["warnings"])
		}
	}
}

// What is known of a client's secret is kept in the log; it must not be what
// the same text means elsewhere.
func TestASecretThatIsSpelledLikeAnotherUseGivesItsTokenToNobody(t *testing.T) {
	t.Parallel()
	s := shared(t)
	id, key := s.account(100)
	made := s.call(key, "POST", "/v1/projects", `{"name":"Own"}`).want(http.StatusCreated)
	own, hook := made["projectId"].(string), made["deployHookUrl"].(string)
	bound := s.key(id, command.IssueKey{Scope: account.ScopeFull, ProjectID: own})
	secret := `,"webhookUrl":"` + hookURL + `","webhookSecret":"deploy hook of ` + own + `"`
	s.hosted(bound, "any.example.com", secret).want(http.StatusCreated)
	token := hook[strings.LastIndex(hook, domain.HookTokenPrefix)+len(domain.HookTokenPrefix):]
	if len(token) != 64 || strings.Contains(s.stored(), token) {
		t.Errorf("the log holds the deploy hook's token %q", token)
	}
	s.hosted(bound, "any.example.com", secret).want(http.StatusCreated) // and is known again
}

// A fingerprint may be from before fingerprints carried their use.
func TestASecretIsKnownAgainWhateverItsFingerprintWasMadeFrom(t *testing.T) {
	t.Parallel()
	s := shared(t)
	id, key := s.account(100)
	own := s.project(key, `{"name":"Own"}`)
	bound := s.key(id, command.IssueKey{Scope: account.ScopeFull, ProjectID: own})
	url, secret := `,"webhookUrl":"`+hookURL+`"`, `,"webhookSecret":"`
	s.hosted(bound, "any.example.com", url).want(http.StatusCreated)
	sealed, err := s.deps.Vault.Seal(t.Context(), id, domain.ProjectStream(own), []byte(secretS))
	must.NoError(t, err)
	s.happened(domain.ProjectStream(own), time.Now(), &project.SecretSet{SecretID: "s", Sealed: sealed, Fingerprint: "older", At: time.Now(), Rotated: true})
	s.hosted(bound, "any.example.com", url+secret+secretS+`"`).want(http.StatusCreated)
	s.hosted(bound, "any.example.com", url+secret+secretT+`"`).refused(http.StatusConflict, domain.CodeSecretConflict)
	equal(t, s.count("project.webhook_secret_set"), 2)
}
