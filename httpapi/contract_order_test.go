package httpapi

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/uuid"

	"humanqa/domain"
	"humanqa/domain/account"
	"humanqa/domain/command"
	"humanqa/httpapi/wire"
)

// huge sends a request that says it is larger than is taken.
func (s *service) huge(key, method, target, body string) result {
	s.t.Helper()
	r := httptest.NewRequestWithContext(s.t.Context(), method, target, strings.NewReader(body))
	r.ContentLength = wire.MaxBody + 1
	r.Header.Set("Authorization", "Bearer "+key)
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	checkEnvelope(s.t, method+" "+target, w)
	checkDocumented(s.t, r, w)
	return result{w, s.t}
}

// Decisions, "Order of checks": what is wrong in two ways is refused
// for the one that is looked at first.
func TestThe401And403And429And413ComeInThisOrder(t *testing.T) {
	t.Parallel()
	s := shared(t)
	id, key := s.account(0)
	issued, err := s.commands.IssueKey(t.Context(), operator(uuid.New()), id, command.IssueKey{Scope: account.ScopeFull})
	s.visible(issued.Position, err)
	at, err := s.commands.RevokeKey(t.Context(), operator(uuid.New()), id, issued.KeyID)
	s.visible(at, err)
	readOnly := s.key(id, command.IssueKey{Scope: account.ScopeRead})
	one := s.limited(1)
	for _, k := range []string{key, readOnly} {
		one.call(k, "GET", "/v1/credits", "").want(http.StatusOK) // the only one of the minute
	}
	before := s.written()
	targets := [][2]string{{"POST", "/v1/jobs"}, {"POST", "/v1/hosted/test"}, {"POST", "/v1/hosted/sessions"}, {"PATCH", "/v1/projects/x"}}
	each := func(what string, send func(method, path string) result, status int, code domain.Code) {
		t.Helper()
		for _, c := range targets {
			r := send(c[0], c[1])
			if r.Code != status || !strings.Contains(r.Body.String(), string(code)) {
				t.Errorf("%s, %s %s: got %d %s, want %d", what, c[0], c[1], r.Code, r.Body, status)
			}
		}
	}
	each("429 before 413", func(method, path string) result { return one.huge(key, method, path, "{") }, 429, domain.CodeRateLimited)
	each("413 before 400", func(method, path string) result { return s.huge(key, method, path, "{") }, 413, domain.CodePayloadTooLarge)
	each("429 before read-only", func(method, path string) result { return one.huge(readOnly, method, path, "{") }, 429, domain.CodeRateLimited)
	each("read-only before 413", func(method, path string) result { return s.huge(readOnly, method, path, "{") }, 403, domain.CodeForbidden)
	each("401 before 413", func(method, path string) result { return s.huge(issued.Token, method, path, "{") }, 401, domain.CodeUnauthorized)
	equal(t, s.written(), before)

	at, err = s.commands.SuspendAccount(t.Context(), operator(uuid.New()), id)
	s.visible(at, err)
	before = s.written()
	each("suspended before 429 and 413", func(method, path string) result { return one.huge(key, method, path, "{") }, 403, domain.CodeAccountSuspended)
	each("suspended before read-only", func(method, path string) result { return s.huge(readOnly, method, path, "{") }, 403, domain.CodeAccountSuspended)
	each("401 before suspended", func(method, path string) result { return s.call(issued.Token, method, path, "{") }, 401, domain.CodeUnauthorized)
	equal(t, s.written(), before)
}

func TestThe400And404And409And402ComeInThisOrder(t *testing.T) {
	t.Parallel()
	s := shared(t)
	accountID, key := s.account(45)
	_, other := s.account(100)
	unknown := uuid.NewString()

	// What of another account would be a conflict, were it the caller's.
	theirs := s.tested(other, passes)
	theirsPending := s.submitted(other)
	theirProject := s.project(other, `{"name":"n"}`)
	theirSession := s.openSession(other, twoSlots)
	s.call(other, "POST", "/v1/hosted/sessions/"+theirSession.id+"/cancel", "").want(http.StatusOK)
	checker := s.checker()
	s.claims(checker, theirsPending)

	// What conflicts of the caller's own; then the money is gone.
	own := s.project(key, `{"name":"own"}`)
	mine := s.submitted(key)
	secret := `,"webhookUrl":"` + hookURL + `","webhookSecret":"` + secretS + `"`
	s.hosted(key, "shop.example.com", secret).want(http.StatusCreated)
	under := []string{"Idempotency-Key", "k"}
	s.call(key, "POST", "/v1/jobs", aJob, under...).want(http.StatusCreated)
	s.call(key, "POST", "/v1/jobs/bulk", bulkOf(1, nil), under...).want(http.StatusCreated)
	s.call(key, "POST", "/v1/hosted/sessions", twoSlots, under...).want(http.StatusCreated)
	s.call(key, "POST", "/v1/jobs/"+mine+"/retest", "", under...).want(http.StatusCreated)
	for s.call(key, "GET", "/v1/credits", "").want(http.StatusOK)["available"] != 0.0 {
		s.submitted(key)
	}
	reader := s.key(accountID, command.IssueKey{Scope: account.ScopeRead})

	before := s.written()
	inUnknown := jobWith(`"projectId":"` + unknown + `"`)
	conflicting := `,"webhookUrl":"` + hookURL + `","webhookSecret":"` + secretT + `"`
	for _, c := range []struct {
		order, key, method, path, body string
		headers                        []string
		status                         int
		code                           domain.Code
	}{
		{"403 before 400", reader, "POST", "/v1/jobs", `{`, nil, 403, domain.CodeForbidden},
		{"403 before 404", reader, "POST", "/v1/jobs/" + unknown + "/retest", ``, nil, 403, domain.CodeForbidden},

		{"400 before 404", key, "POST", "/v1/jobs", strings.Replace(inUnknown, "Payment Flow", "x", 1), nil, 400, domain.CodeInvalidRequest},
		{"400 before 404", key, "POST", "/v1/jobs/bulk", `{"jobs":[` + inUnknown + `,{}]}`, nil, 400, domain.CodeInvalidRequest},
		{"400 before 404", key, "PATCH", "/v1/projects/" + unknown, `{"name":""}`, nil, 400, domain.CodeInvalidRequest},
		{"400 before 404", key, "POST", "/v1/jobs/" + unknown + "/rating", `{"rating":9}`, nil, 400, domain.CodeInvalidRequest},
		{"400 before 404", key, "POST", "/v1/hosted/prepare-next", `{"projectId":"` + unknown + `"}`, nil, 400, domain.CodeInvalidRequest},
		{"400 before 404", key, "POST", "/v1/loop-sessions/" + unknown + "/finalize", `{}`, nil, 400, domain.CodeInvalidRequest},
		{"400 before 404", key, "POST", "/v1/jobs/" + unknown + "/retest", ``, []string{"Idempotency-Key", ""}, 400, domain.CodeInvalidRequest},
		{"400 before 404", key, "GET", "/v1/hosted/status/" + unknown + "?wait=x", ``, nil, 400, domain.CodeInvalidRequest},
		{"400 before 404", key, "GET", "/v1/jobs/" + unknown + "/report?format=x", ``, nil, 400, domain.CodeInvalidRequest},
		{"400 before 404", key, "GET", "/v1/projects/" + unknown + "/open-failures?limit=0", ``, nil, 400, domain.CodeInvalidRequest},
		{"400 before 404", checker, "POST", "/v1/checker/jobs/" + unknown + "/items", `{}`, nil, 400, domain.CodeInvalidRequest},

		{"404 before 409", key, "POST", "/v1/jobs/" + theirs + "/cancel", ``, nil, 404, domain.CodeNotFound},
		{"404 before 409", key, "POST", "/v1/jobs/" + theirsPending + "/rating", `{"rating":1}`, nil, 404, domain.CodeNotFound},
		{"404 before 409", key, "POST", "/v1/projects/" + theirProject + "/webhook/enable", ``, nil, 404, domain.CodeNotFound},
		{"404 before 409", key, "POST", "/v1/hosted/sessions/" + theirSession.id + "/cancel", ``, nil, 404, domain.CodeNotFound},
		{"404 before 409", checker, "POST", "/v1/checker/jobs/" + unknown + "/complete", `{}`, []string{wire.ClaimTokenHeader, "99"}, 404, domain.CodeNotFound},
		{"404 before 409", key, "POST", "/v1/jobs/" + unknown + "/retest", ``, under, 404, domain.CodeNotFound},

		{"404 before 402", key, "POST", "/v1/jobs", inUnknown, nil, 404, domain.CodeNotFound},
		{"404 before 402", key, "POST", "/v1/jobs/bulk", `{"jobs":[` + aJob + `,` + inUnknown + `]}`, nil, 404, domain.CodeNotFound},
		{"404 before 402", key, "POST", "/v1/jobs/" + theirs + "/retest", ``, nil, 404, domain.CodeNotFound},

		{"409 before 402", key, "POST", "/v1/hosted/test", `{"url":"https://shop.example.com/"` + conflicting + `}`, nil, 409, domain.CodeSecretConflict},
		{"409 before 402", key, "POST", "/v1/hosted/sessions", `{"url":"https://shop.example.com/","slots":[{},{}]` + conflicting + `}`, nil, 409, domain.CodeSecretConflict},
		{"409 before 402", key, "POST", "/v1/jobs", jobWith(`"priority":"urgent"`), under, 409, domain.CodeConflict},
		{"409 before 402", key, "POST", "/v1/jobs/bulk", bulkOf(2, nil), under, 409, domain.CodeConflict},
		{"409 before 402", key, "POST", "/v1/hosted/sessions", strings.Replace(twoSlots, "shop", "blog", 1), under, 409, domain.CodeConflict},

		{"402 last", key, "POST", "/v1/jobs", jobWith(`"projectId":"` + own + `"`), nil, 402, domain.CodeInsufficientCredits},
		{"402 last", key, "POST", "/v1/jobs/" + mine + "/retest", ``, nil, 402, domain.CodeInsufficientCredits},
		{"402 last", key, "POST", "/v1/hosted/test", `{"url":"https://shop.example.com/"` + secret + `}`, nil, 402, domain.CodeInsufficientCredits},
		{"402 last", key, "POST", "/v1/hosted/sessions", `{"url":"https://new.example.com/","slots":[{},{}],"webhookUrl":"` + hookURL + `"}`, nil, 402, domain.CodeInsufficientCredits},
	} {
		r := s.call(c.key, c.method, c.path, c.body, c.headers...)
		if r.Code != c.status || !strings.Contains(r.Body.String(), fmt.Sprintf(`"code":%q`, c.code)) {
			t.Errorf("%s, %s %s %s: got %d %s", c.order, c.method, c.path, c.body, r.Code, r.Body)
		}
	}
	equal(t, s.written(), before)
}
