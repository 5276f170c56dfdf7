package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/lib/pq"
	"github.com/sirupsen/logrus"

	"humanqa/domain"
	"humanqa/httpapi/admit"
	"humanqa/httpapi/wire"
	"humanqa/internal/testing/must"
)

func quiet() *logrus.Logger {
	l := logrus.New()
	l.SetOutput(io.Discard)
	return l
}

func testRequest(t *testing.T) *wire.Request {
	t.Helper()
	return &wire.Request{Request: httptest.NewRequestWithContext(t.Context(), "GET", "/", nil), ID: "req-1", Log: quiet()}
}

func TestEveryErrorHasItsStatusAndCode(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err    error
		status int
		code   domain.Code
	}{
		{domain.Invalid(domain.Detail{Path: "url", Message: "is required"}), 400, domain.CodeInvalidRequest},
		{domain.Unauthorized("no"), 401, domain.CodeUnauthorized},
		{domain.InsufficientCredits(10, 7), 402, domain.CodeInsufficientCredits},
		{domain.Forbidden("no"), 403, domain.CodeForbidden},
		{admit.ErrSuspended, 403, domain.CodeAccountSuspended},
		{domain.NotFound("job"), 404, domain.CodeNotFound},
		{domain.Conflict("taken"), 409, domain.CodeConflict},
		{&domain.Error{Kind: domain.KindConflict, Code: domain.CodeSecretConflict}, 409, domain.CodeSecretConflict},
		{wire.ErrTooLarge, 413, domain.CodePayloadTooLarge},
		{&domain.Error{Kind: domain.KindRateLimited, Code: domain.CodeRateLimited}, 429, domain.CodeRateLimited},
		{errors.New("disk on fire at /srv/secret"), 500, domain.CodeInternal},
		{&domain.Error{Message: "of no kind"}, 500, domain.CodeInternal},
		{domain.Unavailable(errors.New("10.0.0.1 is away")), 503, domain.CodeUnavailable},
		{&pq.Error{Code: "57P01", Message: "terminating"}, 503, domain.CodeUnavailable},
		{&pq.Error{Code: "53300", Message: "too many"}, 503, domain.CodeUnavailable},
		{&pq.Error{Code: "42703", Message: "column \"new\" does not exist"}, 503, domain.CodeUnavailable},
		{&pq.Error{Code: "40P01", Message: "deadlock detected"}, 503, domain.CodeUnavailable},
		{&pq.Error{Code: "42601", Message: "syntax error"}, 500, domain.CodeInternal},
		{&pq.Error{Code: "42601", Message: "syntax"}, 500, domain.CodeInternal},
		{fmt.Errorf("read: %w", context.DeadlineExceeded), 503, domain.CodeUnavailable},
		{&net.OpError{Op: "dial", Err: errors.New("refused")}, 503, domain.CodeUnavailable},
	} {
		ans := wire.Refuse(testRequest(t), fmt.Errorf("wrapped: %w", c.err))
		var got struct {
			Error, RequestID string
			Code             domain.Code
		}
		must.NoError(t, json.Unmarshal(ans.Body, &got))
		if ans.Status != c.status || got.Code != c.code || got.RequestID != "req-1" || got.Error == "" && c.status != 409 && c.status != 429 {
			t.Errorf("%v: got %d %s", c.err, ans.Status, ans.Body)
		}
		if text := string(ans.Body); strings.Contains(text, "10.0.0.1") || strings.Contains(text, "secret") && c.status == 500 {
			t.Errorf("%v: the cause is shown: %s", c.err, text)
		}
	}
}

func TestExtrasStandBesideTheEnvelopeButNeverInItsPlace(t *testing.T) {
	t.Parallel()
	err := domain.InsufficientCredits(10, 7).With("error", "x").With("code", "x").With("requestId", "x")
	var got map[string]any
	must.NoError(t, json.Unmarshal(wire.Refuse(testRequest(t), err).Body, &got))
	want := map[string]any{
		"error": "not enough credits: 10 required, 7 available", "code": "INSUFFICIENT_CREDITS",
		"hint":      "add credits to the account, or submit fewer or cheaper jobs",
		"requestId": "req-1", "creditsRequired": 10.0, "creditsAvailable": 7.0, "creditsShort": 3.0,
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestWhatAGoneClientCausesIsNotAFault(t *testing.T) {
	t.Parallel()
	r := testRequest(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r.Request = r.WithContext(ctx)
	if ans := wire.Refuse(r, &pq.Error{Code: "57014"}); ans.Status != wire.StatusClientGone {
		t.Errorf("got %d", ans.Status)
	}
}

func TestEqualInstantsAreEqualStrings(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 1, 10, 0, 0, 120_456_789, time.FixedZone("", 7200))
	for _, one := range []time.Time{at, at.UTC()} {
		got, err := json.Marshal(wire.Timestamp(one))
		if err != nil || string(got) != `"2026-03-01T08:00:00.120Z"` {
			t.Errorf("got %s, %v", got, err)
		}
	}
}

func TestRequestIDs(t *testing.T) {
	t.Parallel()
	eighty := strings.Repeat("aZ09._-x", 10)
	for _, good := range []string{"a", "A.b_c-9", eighty} {
		if got := wire.RequestID(map[string][]string{wire.RequestIDHeader: {good}}); got != good {
			t.Errorf("%q became %q", good, got)
		}
	}
	seen := map[string]bool{}
	for _, bad := range []string{"", eighty + "x", "a b", "a\tb", "ä", "a/b", "a\"b", "a\x00"} {
		got := wire.RequestID(map[string][]string{wire.RequestIDHeader: {bad}})
		if got == bad || len(got) != 16 || !wire.ValidRequestID(got) || seen[got] {
			t.Errorf("%q became %q", bad, got)
		}
		seen[got] = true
	}
}

func TestA401SaysThatBearerIsMissing(t *testing.T) {
	t.Parallel()
	s := shared(t)
	_, key := s.account(0)
	hints := map[string]string{}
	for name, header := range map[string]string{
		"nothing": "", "the key alone": key, "another scheme": "Basic " + key, "a colon": "Bearer: " + key, "no key": "Bearer", "another key": "Bearer x",
	} {
		r := s.call("", "GET", "/v1/jobs", "", "Authorization", header)
		hints[name], _ = r.refused(http.StatusUnauthorized, domain.CodeUnauthorized)["hint"].(string)
	}
	const bearer, check = "write Bearer and a blank before the key: Authorization: Bearer <API_KEY>", "check the key, or create a new one in the account dashboard"
	equal(t, hints, map[string]string{
		"nothing": "send the header Authorization: Bearer <API_KEY>", "the key alone": bearer, "another scheme": bearer, "a colon": bearer,
		"no key": check, "another key": check,
	})
}

// The log names the path and the account, and no secret of either.
func TestTheLogOfRequestsNamesPathAndAccount(t *testing.T) {
	t.Parallel()
	s := shared(t).node(nil)
	accountID, key := s.account(100)
	_, hook := s.hook(key, withURL)
	token := hook[strings.LastIndexByte(hook, '/')+1:]
	jobID := s.submitted(key)
	asked := map[string]string{}
	for id, c := range map[string][3]string{
		"own":     {key, "GET", "/v1/jobs/" + jobID + "?asOf=secret"},
		"hook":    {"", "POST", hook},
		"wrong":   {"", "POST", "/v1/hooks/deploy/" + domain.HookTokenPrefix + "nobodys"},
		"slip":    {"", "POST", "/v1/hook/deploy/" + token},
		"nowhere": {key, "GET", "/v1/keys/" + key + "/" + strings.Repeat("é", 200)},
	} {
		s.call(c[0], c[1], c[2], "", wire.RequestIDHeader, id)
	}
	for line := range strings.Lines(s.logged.String()) {
		if _, id, found := strings.Cut(line, "requestId="); found && strings.Contains(line, "msg=request") {
			id, _, _ = strings.Cut(id, " ")
			path := logField(line, "path")
			asked[strings.TrimSpace(id)] = strings.TrimSpace(logField(line, "accountId") + " " + path)
		}
	}
	for id, want := range map[string]string{
		"own": accountID + " /v1/jobs/" + jobID, "hook": accountID + " /v1/hooks/deploy/{token}", "wrong": "/v1/hooks/deploy/{token}", "slip": "/v1/hook/deploy/{token}",
	} {
		equal(t, id+" "+asked[id], id+" "+want)
	}
	if nowhere := asked["nowhere"]; !strings.HasPrefix(nowhere, accountID+" /v1/keys/{token}/é") || len(nowhere) > 250 {
		t.Errorf("a long path: %s", nowhere)
	}
	for _, secret := range []string{token, key, "nobodys", "asOf"} {
		if strings.Contains(s.logged.String(), secret) {
			t.Errorf("%q is in the log", secret)
		}
	}
}

// logField reads a field of a line as logrus writes it.
func logField(line, name string) string {
	_, value, found := strings.Cut(line, " "+name+"=")
	if !found {
		return ""
	}
	if quoted, err := strconv.QuotedPrefix(value); err == nil {
		value, _ = strconv.Unquote(quoted) // it is a quoted one
		return value
	}
	value, _, _ = strings.Cut(strings.TrimSpace(value), " ")
	return value
}

func TestA400SaysTheNextStep(t *testing.T) {
	t.Parallel()
	s := shared(t)
	_, key := s.account(100)
	checker := s.checker()
	for _, c := range []struct{ key, call, body, want string }{
		{key, "POST /v1/jobs", strings.Replace(aJob, `"title"`, `"Title"`, 1), "Title is not known and was ignored; did you mean title?"},
		{key, "POST /v1/jobs", strings.Replace(aJob, `"jobType"`, `"job_type"`, 1), "job_type is not known and was ignored; did you mean jobType?"},
		{key, "POST /v1/jobs", `{`, wire.Hints["body"]},
		{key, "POST /v1/jobs", strings.Replace(aJob, "https://example.com", "ftp://example.com", 1), wire.Hints["url"]},
		{key, "POST /v1/jobs/bulk", `{"jobs":[` + strings.Replace(aJob, "Payment Flow", "Chess", 1) + `]}`, wire.Hints["jobType"]},
		{key, "GET /v1/jobs?since=yesterday", "", wire.Hints["since"]},
		{key, "GET /v1/events?after=x", "", wire.Hints["after"]},
		{checker, "POST /v1/checker/jobs/" + uuid.NewString() + "/release", "", wire.Hints[wire.ClaimTokenHeader]},
	} {
		method, path, _ := strings.Cut(c.call, " ")
		equal(t, s.call(c.key, method, path, c.body).refused(http.StatusBadRequest, domain.CodeInvalidRequest)["hint"], any(c.want))
	}
	// The message says it all.
	equal(t, s.call(key, "GET", "/v1/jobs?limit=0", "").refused(http.StatusBadRequest, domain.CodeInvalidRequest)["hint"], nil)
}
