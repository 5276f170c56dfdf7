package httpapi

import (
	"crypto/hmac"
	"crypto/sha1" // Vercel signs by it
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"hash"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"humanqa/domain"
	"humanqa/internal/signature"
)

// A signature is a second factor beside the token in the hook's URL.
func TestADeployHookAsksForTheSignatureOfItsPlatform(t *testing.T) {
	t.Parallel()
	s := shared(t).node(nil)
	_, key := s.account(100)
	_, other := s.account(100)
	project, hook := s.hook(key, withURL)
	const canary = "canary-of-the-platform"
	patch := func(key, signature string) result {
		return s.call(key, "PATCH", "/v1/projects/"+project, `{"deployHookSignature":`+signature+`}`)
	}
	set := patch(key, `{"scheme":"github","secret":"`+canary+`"}`)
	equal(t, set.want(http.StatusOK)["deployHookSignature"], any("github"))
	read := s.call(key, "GET", "/v1/projects/"+project, "")
	equal(t, read.want(http.StatusOK)["deployHookSignature"], any("github"))
	patch(other, `null`).refused(http.StatusNotFound, domain.CodeNotFound)
	for text, paths := range map[string][]string{
		`{"scheme":"gitea","secret":"` + canary + `"}`: {"deployHookSignature.scheme"}, `{"scheme":"github"}`: {"deployHookSignature.secret"},
		`{"scheme":"github","secret":"short"}`: {"deployHookSignature.secret"}, `7`: {"deployHookSignature"},
	} {
		refused := patch(key, text)
		equal(t, refused.paths(), paths)
		if strings.Contains(refused.Body.String(), canary) {
			t.Error("a refusal shows the secret")
		}
	}

	body := platformBody(t, "github")
	mac := hmac.New(sha256.New, []byte(canary))
	_, _ = mac.Write([]byte(body))
	signed := []string{"X-GitHub-Event", "deployment_status", "X-Hub-Signature-256", "sha256=" + hex.EncodeToString(mac.Sum(nil))}
	head := s.written()
	for name, c := range map[string]struct {
		body    string
		headers []string
		says    string
	}{
		"none":         {body, signed[:2], "the header X-Hub-Signature-256 is missing"},
		"another body": {body + " ", signed, "does not match the body"},
		"a ping":       {"{}", []string{"X-GitHub-Event", "ping"}, "is missing"},
		"our own body": {`{"url":"https://example.com"}`, nil, "is missing"},
	} {
		refused := s.call("", "POST", hook, c.body, c.headers...)
		got := refused.refused(http.StatusUnauthorized, domain.CodeUnauthorized)
		if text, _ := got["error"].(string); !strings.Contains(text, c.says) || got["hint"] == nil {
			t.Errorf("%s: %v", name, got)
		}
	}
	equal(t, s.written(), head)
	made := s.call("", "POST", hook, body, signed...).want(http.StatusCreated)
	again := s.call("", "POST", hook, body, signed...).want(http.StatusOK) // a replay is the same test
	equal(t, again["jobId"], made["jobId"])

	patch(key, `{"scheme":"standard","secret":"`+canary+`"}`).want(http.StatusOK)
	s.call("", "POST", hook, body, signed...).refused(http.StatusUnauthorized, domain.CodeUnauthorized)
	render := platformBody(t, "render")
	at := time.Now()
	for _, c := range []struct {
		at   time.Time
		want int
	}{{at.Add(-time.Hour), http.StatusUnauthorized}, {at, http.StatusCreated}} {
		standard := []string{"webhook-id", "msg_1", "webhook-signature", signature.Standard([]byte(canary), "msg_1", c.at, []byte(render))}
		for _, h := range signature.Headers("e", "msg_1", "", c.at, signature.Pair{Service: "-", Standard: "-"}) {
			if h.Name == "webhook-timestamp" {
				standard = append(standard, h.Name, h.Value)
			}
		}
		equal(t, s.call("", "POST", hook, render, standard...).Code, c.want)
	}
	equal(t, patch(key, `null`).want(http.StatusOK)["deployHookSignature"], nil)
	s.call("", "POST", hook, platformBody(t, "vercel")).want(http.StatusCreated)
	for what, text := range map[string]string{"answer": set.Body.String() + read.Body.String(), "log": s.stored(), "words": s.logged.String()} {
		if strings.Contains(text, canary) {
			t.Errorf("the %s shows the secret", what)
		}
	}
}

// Each platform's own body, signed as it signs: with the right key it is one test, however
// often it comes, and with anything else it is none.
func TestEachPlatformsSignatureIsASecondFactor(t *testing.T) {
	t.Parallel()
	const secret = "secret-of-the-platform"
	of := func(hash func() hash.Hash, key string, body string) []byte {
		mac := hmac.New(hash, []byte(key))
		_, _ = mac.Write([]byte(body))
		return mac.Sum(nil)
	}
	for scheme, c := range map[string]struct {
		headers []string
		body    string
		signed  func(key, body string) []string // the headers of the signature
	}{
		"github": {[]string{"X-GitHub-Event", "deployment_status"}, "github", func(key, body string) []string {
			return []string{"X-Hub-Signature-256", "sha256=" + hex.EncodeToString(of(sha256.New, key, body))}
		}},
		"vercel": {nil, "vercel", func(key, body string) []string {
			return []string{"X-Vercel-Signature", hex.EncodeToString(of(sha1.New, key, body))}
		}},
		"netlify": {[]string{"X-Netlify-Event", "deploy_created"}, "netlify", func(key, body string) []string {
			sum := sha256.Sum256([]byte(body))
			claims := `{"iss":"netlify","sha256":"` + hex.EncodeToString(sum[:]) + `"}`
			token := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"HS256"}`)) + "." + base64.RawURLEncoding.EncodeToString([]byte(claims))
			return []string{"X-Webhook-Signature", token + "." + base64.RawURLEncoding.EncodeToString(of(sha256.New, key, token))}
		}},
		"gitlab": {[]string{"X-Gitlab-Event", "Deployment Hook"}, "gitlab", func(key, _ string) []string {
			return []string{"X-Gitlab-Token", key}
		}},
		"standard": {nil, "render", func(key, body string) []string {
			at := strconv.FormatInt(time.Now().Unix(), 10)
			mac := base64.StdEncoding.EncodeToString(of(sha256.New, key, "msg_1."+at+"."+body))
			return []string{"Webhook-Id", "msg_1", "Webhook-Timestamp", at, "Webhook-Signature", "v1," + mac}
		}},
	} {
		t.Run(scheme, func(t *testing.T) {
			t.Parallel()
			s := shared(t)
			_, key := s.account(100)
			project, hook := s.hook(key, withURL)
			s.call(key, "PATCH", "/v1/projects/"+project, `{"deployHookSignature":{"scheme":"`+scheme+`","secret":"`+secret+`"}}`).want(http.StatusOK)
			body, head := platformBody(t, c.body), s.written()
			send := func(body string, signature []string) result {
				return s.call("", "POST", hook, body, slices.Concat(c.headers, signature)...)
			}
			right := c.signed(secret, body)
			calls := map[string]result{
				"missing": send(body, nil), "another key": send(body, c.signed("another-secret-of-it", body)),
				"an empty one": send(body, []string{right[len(right)-2], ""}),
			}
			if scheme != "gitlab" { // its token is no signature of the body
				calls["another body"] = send(body+" ", right)
			}
			for name, refused := range calls {
				if refused.Code != http.StatusUnauthorized {
					t.Errorf("%s: %d %s", name, refused.Code, refused.Body)
				}
			}
			equal(t, s.written(), head)
			made := send(body, right).want(http.StatusCreated)
			with(t, send(body, c.signed(secret, body)).want(http.StatusOK), map[string]any{"jobId": made["jobId"], "deduplicated": true})
		})
	}
}
