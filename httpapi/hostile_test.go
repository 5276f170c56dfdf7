package httpapi

import (
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"humanqa/httpapi/wire"
	"humanqa/internal/testing/must"
)

// enough requests meet every route some times, and every kind of answer.
const enough = 400

var (
	hostileSeed  = flag.Uint64("hostile.seed", 1, "seed of the hostile requests")
	hostileCount = flag.Int("hostile.count", enough, "how many hostile requests are sent")
)

// hostile makes requests that no honest client would send.
type hostile struct {
	*rand.Rand
	own     []string // ids of the caller's account
	foreign []string // ids of another account
	hook    string   // the token of the caller's deploy hook
}

func pick[T any](h *hostile, from []T) T { return from[h.IntN(len(from))] }

// bases are bodies that are all right, each for some routes.
var bases = []string{
	aJob,
	`{"jobs":[` + aJob + `,` + aJob + `]}`,
	`{"url":"https://app.example.com/cart","feature":"Pay","webhookUrl":"https://hooks.example.com/b","webhookSecret":"0123456789abcdef0123456789abcdef","subscribedWebhookEvents":["job.completed"],"jobType":"payment_flow"}`,
	`{"url":"https://app.example.com/","slots":[{"roleLabel":"Host"},{"targetDevice":"Phone"}],"scenarioBrief":"Go","voiceEnabled":false}`,
	`{"projectId":"","fixedBugIds":["item-1"],"fixedDescriptions":["the cart"]}`,
	`{"name":"n","defaultUrl":"https://app.example.com/","defaultJobType":"General QA","defaultSlaMinutes":30,"webhookUrl":"https://hooks.example.com/b","loopAlertsSnoozedUntil":"2030-01-01T00:00:00Z"}`,
	`{"rating":5,"note":"good"}`,
	`{"finalStatus":"passed"}`,
	`{"status":"fail","note":"n","severity":"HIGH","description":"d"}`,
	`{"status":"skip","reason":"blocked"}`,
	`{"summary":"done","recordingUrl":"https://example.com/r.mp4"}`,
	`{"reason":"no_access","note":"n"}`,
	`{"seconds":60}`,
	`{"results":[{"item":"item-1","status":"fail","note":"n"}],"summary":"s"}`,
	`{"slots":[1,2]}`,
	`{"commitSha":"9fceb02","branch":"main","url":"https://app.example.com/","deduplicationKey":"k"}`,
}

var hostileKeys = []string{
	"url", "title", "description", "jobType", "checklistItems", "priority", "projectId", "slaMinutes", "credentials",
	"generateChecklist", "accessInstructions", "targetDevice", "name", "defaultUrl", "defaultJobType", "defaultSlaMinutes",
	"webhookUrl", "webhookSecret", "subscribedWebhookEvents", "jobId", "status", "note", "severity", "reason", "screenshotUrl",
	"summary", "recordingUrl", "username", "expectedOutcome", "key", "jobs", "slots", "fixedBugIds", "fixedDescriptions",
	"rating", "finalStatus", "seconds", "results", "item", "feature", "scenarioBrief", "voiceEnabled", "commitSha",
	"deduplicationKey", "loopAlertsSnoozedUntil", "", "\x00", "__proto__", "ключ",
}

var hostileTexts = []string{
	"", " ", "x", "https://example.com/", "https://[::ffff:10.0.0.1]/", "http://127.0.0.1:5432/", "https://exa mple.com", "javascript:alert(1)",
	"Payment Flow", "payment_flow", "PAYMENT_FLOW", "auth flow", "AI Review", "PASS", "pass", "skip", "urgent", "sync", "job.created", "'; DROP TABLE jobs; --", "\x00", "\u202e", "\ufffd",
	"../../etc/passwd", "%00", "%s%n", "{{7*7}}", "🧨", strings.Repeat("ü", 5001), "https://" + strings.Repeat("a", 70) + ".example/", "https://xn--zzzz/",
}

func (h *hostile) value(depth int) any {
	switch n := h.IntN(12); {
	case n < 5:
		return pick(h, hostileTexts)
	case n == 5:
		return uuid.NewString()
	case n == 6:
		return pick(h, []any{0, -1, 15, 30, 60, 60.5, 1e300, 9007199254740993, nil, true, false})
	case n == 7 && depth > 0:
		list := make([]any, h.IntN(4))
		for i := range list {
			list[i] = h.value(depth - 1)
		}
		return list
	case depth > 0:
		return h.object(depth - 1)
	}
	return nil
}

func (h *hostile) object(depth int) map[string]any {
	out := map[string]any{}
	for range h.IntN(12) {
		key := pick(h, hostileKeys)
		out[key] = h.value(depth)
		switch key { // another account's ids never go into a text that is stored
		case "projectId", "jobId":
			out[key] = pick(h, append(h.foreign, "", "nope", pick(h, h.own)))
		case "fixedBugIds":
			out[key] = []string{pick(h, h.foreign), "item-1"}
		}
	}
	return out
}

// body is an almost valid one, a random object, or no JSON at all.
func (h *hostile) body(t *testing.T) string {
	object := h.object(3)
	switch h.IntN(5) {
	case 0, 1:
		base := map[string]any{}
		must.NoError(t, json.Unmarshal([]byte(pick(h, bases)), &base))
		if h.IntN(3) > 0 {
			for k, v := range object {
				if h.IntN(4) == 0 {
					base[k] = v
				}
			}
		}
		if _, there := base["projectId"]; there && h.IntN(2) == 0 {
			base["projectId"] = pick(h, append(h.foreign, h.own...))
		}
		object = base
	case 2:
		return pick(h, []string{
			"", "null", "[]", "{", "{}}", "\xff\xfe", "\"", strings.Repeat("[", 9999), strings.Repeat(`{"a":`, 9999), `{"a":"\ud800"}`,
			`{"title":"\u0000"}`, "{\"title\":\"\xc3\"}", "0x1", strings.Repeat(" ", 2<<20), `{"name":"a","name":{"b":1}}`,
			`{"jobs":[` + strings.Repeat(`{},`, 5000) + `{}]}`, "\ufeff{}", `{"slaMinutes":1e999}`,
		})
	}
	raw, err := json.Marshal(object)
	must.NoError(t, err)
	return string(raw)
}

func (h *hostile) query() string {
	if h.IntN(2) == 0 {
		return ""
	}
	name := pick(h, []string{"limit", "offset", "since", "status", "projectId", "format", "after", "types", "x", "wait"})
	value := pick(h, []string{
		"", "0", "-1", "1e3", "99999999999999999999", "%00", "%FF", "%zz", "2026-01-01", "0000-01-01", "9999-12-31T23:59:59%2B23:59",
		"pending", "in_progress", "'", "a;b", "junit", "ctrf", "md", "job.completed,job.failed", pick(h, h.foreign), pick(h, h.own),
	})
	return "?" + name + "=" + value
}

// target is the pattern with something in each of its variables.
func (h *hostile) target(row wire.Route) string {
	for strings.Contains(row.Pattern, "{") {
		before, rest, _ := strings.Cut(row.Pattern, "{")
		name, after, _ := strings.Cut(rest, "}")
		value := pick(h, []string{
			pick(h, h.own), pick(h, h.own), pick(h, h.foreign), uuid.NewString(), "%00", "%2e%2e", "x%2Fy", strings.Repeat("a", 200), "%F0%9F%A7%A8", "'", "%FF",
		})
		switch {
		case name == "token" && h.IntN(2) == 0:
			value = h.hook
		case name == "itemId":
			value = pick(h, []string{"item-1", "item-2", "finding-1", "%00", pick(h, h.foreign)})
		case name == "file":
			value = pick(h, []string{"page.css", "page.html", "..%2fpage.html", "%00", "schemas"})
		}
		row.Pattern = before + value + after
	}
	return row.Pattern + h.query()
}

func (h *hostile) headers() []string {
	headers := []string{
		"X-Request-Id", pick(h, []string{"ok-1", "", "a b", "\x7f", strings.Repeat("x", 81), "a\r\nSet-Cookie: x=1"}),
		"X-Claim-Token", pick(h, []string{"1", "0", "x", "1 ", "2", "99999999999999999999", "-1"}),
		"Content-Type", pick(h, []string{"application/json", "text/plain", "", "multipart/form-data", "application/json; charset=utf-16"}),
	}
	for name, values := range map[string][]string{
		"Accept":                 {"application/xml", "text/markdown;q=2", "*/*", "a/b, ;;q=x", "application/vnd.ctrf+json", "\x00"},
		"Idempotency-Key":        {"k", "k2", "", "é", strings.Repeat("k", 300), "a/b", "\x01"},
		"X-Agent-Skill":          {"fix", "", "é", strings.Repeat("s", 101)},
		"X-Agent-Iteration":      {"1", "2", "0", "x", "1e3", "99999999999999999999"},
		"If-None-Match":          {"*", `"x"`, "W/", strings.Repeat(`"a",`, 500)},
		"Last-Event-ID":          {"1", "x", "-1", "\x00"},
		"X-Forwarded-For":        {"127.0.0.1"},
		"X-HTTP-Method-Override": {"DELETE"},
		"Range":                  {"bytes=0-1"},
	} {
		if h.IntN(6) == 0 {
			headers = append(headers, name, pick(h, values))
		}
	}
	return headers
}

// owned gives the key's account a bit of everything, and the ids of it: a job
// first, then a project.
func (s *service) owned(key string) []string {
	s.t.Helper()
	created := s.call(key, "POST", "/v1/projects", `{"name":"mine","webhookUrl":"https://hooks.example.com/a"}`).want(http.StatusCreated)
	batch := s.call(key, "POST", "/v1/jobs/bulk", `{"jobs":[`+aJob+`]}`).want(http.StatusCreated)
	opened := s.call(key, "POST", "/v1/hosted/sessions", `{"url":"https://s.example.com/","slots":[{},{}],"accessInstructions":"a-secret-way-in"}`).want(http.StatusCreated)
	return []string{
		s.submitted(key), fmt.Sprint(created["projectId"]), fmt.Sprint(batch["batchId"]),
		fmt.Sprint(opened["sessionId"]), fmt.Sprint(opened["projectId"]),
	}
}

// hooked opens a project and gives the token of its deploy hook.
func (s *service) hooked(key string) string {
	s.t.Helper()
	created := s.call(key, "POST", "/v1/projects", `{"name":"hooked","defaultUrl":"https://h.example.com/"}`).want(http.StatusCreated)
	url := fmt.Sprint(created["deployHookUrl"])
	return url[strings.LastIndexByte(url, '/')+1:]
}

const secretA = "the-secret-of-an-endpoint-of-a-32"

// Whatever comes, on whatever route: never a 500, always the envelope and a
// request id, always as the document says (call checks these), never another
// account's id that was not asked for, never its secrets.
func TestHostileRequests(t *testing.T) {
	t.Parallel()
	s := own(t)
	accountA, keyA := s.account(1000)
	ids := append(s.owned(keyA), accountA)
	secrets := []string{keyA, s.hooked(keyA), secretA}
	s.call(keyA, "POST", "/v1/hosted/test", `{"url":"https://a.example.com/","webhookUrl":"https://hooks.example.com/a","webhookSecret":"`+secretA+`"}`).want(http.StatusCreated)
	_, keyB := s.account(1_000_000)
	checker := s.checker()
	h := &hostile{Rand: rand.New(rand.NewPCG(*hostileSeed, 0)), foreign: ids, own: s.owned(keyB), hook: s.hooked(keyB)}
	_, sandbox := s.sandbox()
	codes := map[int]int{}
	reached := map[string]bool{}
	for i := range *hostileCount {
		row := routes[i%len(routes)] // every route as often as the next
		method := row.Method
		if h.IntN(10) == 0 {
			method = pick(h, allMethods)
		}
		key := s.keyFor(row.Audience, keyB, checker)
		switch {
		case h.IntN(20) == 0:
			key = pick(h, []string{"", "x", checker, keyB, h.hook})
		case strings.HasPrefix(row.Pattern, "/v1/sandbox/") && h.IntN(2) == 0:
			key = sandbox
		}
		target, body := h.target(row), h.body(t)
		r := s.call(key, method, target, body, h.headers()...)
		codes[r.Code]++
		if r.Code < 400 {
			reached[row.Method+" "+row.Pattern] = true
		}
		if r.Code == http.StatusInternalServerError || r.Code == http.StatusServiceUnavailable || t.Failed() {
			t.Fatalf("seed %d, request %d: %s %s %.2000q: %d %.500s", *hostileSeed, i, method, target, body, r.Code, r.Body)
		}
		if strings.ContainsAny(fmt.Sprint(r.Header()), "\r\n") {
			t.Fatalf("seed %d, request %d: %s %s splits its headers: %v", *hostileSeed, i, method, target, r.Header())
		}
		hidden := secrets
		if row.Audience != wire.Checkers { // checkers see every account's queue
			hidden = append(slices.Clip(secrets), append(ids, "a-secret-way-in")...)
		}
		for _, foreign := range hidden {
			// An echo is no leak.
			if strings.Contains(r.Body.String(), foreign) && !strings.Contains(target+body, foreign) {
				t.Fatalf("seed %d, request %d: %s %s shows %s: %.500s", *hostileSeed, i, method, target, foreign, r.Body)
			}
		}
	}
	t.Logf("hostile requests: seed %d, %d sent over %d routes (%d answered well), %v",
		*hostileSeed, *hostileCount, len(routes), len(reached), codes)
	wants := []int{200, 201, 400, 401, 404, 405}
	if *hostileCount > enough { // a conflict is one answer of some hundreds
		wants = append(wants, 409)
	}
	for _, want := range wants {
		if codes[want] == 0 && *hostileCount >= enough {
			t.Errorf("no answer was %d: the requests are not hostile enough, or too much so", want)
		}
	}
}
