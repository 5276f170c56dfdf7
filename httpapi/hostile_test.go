package httpapi

import (
	"encoding/json"
	"flag"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"
)

var (
	hostileSeed  = flag.Uint64("hostile.seed", 1, "seed of the hostile requests")
	hostileCount = flag.Int("hostile.count", 1500, "how many hostile requests are sent")
)

// hostile makes requests that no honest client would send.
type hostile struct {
	*rand.Rand
	ids []string // of another account
}

func pick[T any](h *hostile, from []T) T { return from[h.IntN(len(from))] }

var hostileKeys = []string{
	"url", "title", "description", "jobType", "checklistItems", "priority", "projectId", "slaMinutes", "credentials",
	"generateChecklist", "accessInstructions", "targetDevice", "name", "defaultUrl", "defaultJobType", "defaultSlaMinutes",
	"webhookUrl", "subscribedWebhookEvents", "jobId", "status", "note", "severity", "reason", "screenshotUrl", "summary",
	"recordingUrl", "username", "expectedOutcome", "key", "", "\x00", "__proto__", "ключ",
}

var hostileTexts = []string{
	"", " ", "x", "https://example.com/", "https://[::ffff:10.0.0.1]/", "http://127.0.0.1:5432/", "https://exa mple.com", "javascript:alert(1)",
	"Payment Flow", "payment_flow", "PASS", "pass", "skip", "urgent", "sync", "job.created", "'; DROP TABLE jobs; --", "\x00", "\u202e", "\ufffd",
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
		if key == "projectId" || key == "jobId" { // never into a text that is stored
			out[key] = pick(h, append(h.ids, "", "nope"))
		}
	}
	return out
}

// body is an almost valid submission or project, a random object, or no JSON
// at all.
func (h *hostile) body(t *testing.T) string {
	object := h.object(3)
	switch h.IntN(4) {
	case 0:
		base := map[string]any{}
		if err := json.Unmarshal([]byte(aJob), &base); err != nil {
			t.Fatal(err)
		}
		base["name"], base["status"] = "n", "pass"
		for k, v := range object {
			if h.IntN(3) == 0 {
				base[k] = v
			}
		}
		object = base
	case 1:
		return pick(h, []string{"", "null", "[]", "{", "{}}", "\xff\xfe", "\"", strings.Repeat("[", 9999), `{"a":"\ud800"}`, `{"title":"\u0000"}`, "{\"title\":\"\xc3\"}", "0x1", strings.Repeat(" ", 2<<20)})
	}
	raw, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func (h *hostile) query() string {
	if h.IntN(2) == 0 {
		return ""
	}
	return "?" + pick(h, []string{"limit", "offset", "since", "status", "projectId", "x"}) + "=" +
		pick(h, []string{"", "0", "-1", "1e3", "99999999999999999999", "%00", "%FF", "%zz", "2026-01-01", "0000-01-01", "9999-12-31T23:59:59%2B23:59", "pending", "'", pick(h, h.ids), "a;b"})
}

// Whatever comes: never a 500, always the envelope and a request id (call
// checks both), never another account's id that was not asked for.
func TestHostileRequests(t *testing.T) {
	t.Parallel()
	s := setup(t)
	_, keyA := s.account(1000)
	_, keyB := s.account(1_000_000)
	checker := s.checker()
	project := s.project(keyA, `{"name":"A's"}`)
	h := &hostile{Rand: rand.New(rand.NewPCG(*hostileSeed, 0)), ids: []string{s.submitted(keyA), project, uuid.NewString()}}
	own := []string{s.submitted(keyB), s.project(keyB, `{"name":"B's"}`)}
	codes := map[int]int{}
	for i := range *hostileCount {
		row := pick(h, routes)
		method := row.method
		if h.IntN(10) == 0 {
			method = pick(h, allMethods)
		}
		id := pick(h, []string{pick(h, own), pick(h, h.ids), uuid.NewString(), "%00", "%2e%2e", "x%2Fy", strings.Repeat("a", 200), "%F0%9F%A7%A8", "'"})
		target := at(row.pattern, id) + h.query()
		headers := []string{
			"X-Request-Id", pick(h, []string{"ok-1", "", "a b", "\x7f", strings.Repeat("x", 81)}),
			"X-Claim-Token", pick(h, []string{"1", "0", "x", "1 ", "2"}),
			"Content-Type", pick(h, []string{"application/json", "text/plain", "", "multipart/form-data"}),
		}
		if h.IntN(3) == 0 {
			headers = append(headers, "Idempotency-Key", pick(h, []string{"k", "k2", "", "é", strings.Repeat("k", 300)}))
		}
		key := s.keyFor(row.audience, keyB, checker)
		if h.IntN(20) == 0 {
			key = pick(h, []string{"", "x", checker, keyB})
		}
		body := h.body(t)
		r := s.call(key, method, target, body, headers...)
		codes[r.Code]++
		if r.Code == http.StatusInternalServerError || r.Code == http.StatusServiceUnavailable {
			t.Fatalf("seed %d, request %d: %s %s %q: %d %.500s", *hostileSeed, i, method, target, body, r.Code, r.Body)
		}
		for _, foreign := range h.ids[:2] {
			// Checkers see every account's queue; an echo is no leak.
			if row.audience == clients && strings.Contains(r.Body.String(), foreign) && !strings.Contains(target+body, foreign) {
				t.Fatalf("seed %d, request %d: %s %s shows %s: %.500s", *hostileSeed, i, method, target, foreign, r.Body)
			}
		}
	}
	t.Logf("seed %d: %v", *hostileSeed, codes)
	for _, want := range []int{200, 201, 400, 401, 404, 405, 409} {
		if codes[want] == 0 && *hostileCount >= 1000 {
			t.Errorf("no answer was %d: the requests are not hostile enough, or too much so", want)
		}
	}
}
