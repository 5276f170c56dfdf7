package httpapi

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"humanqa/domain"
	"humanqa/domain/account"
	"humanqa/domain/command"
	"humanqa/internal/testing/eventually"
	"humanqa/internal/testing/must"
)

// refusals are those that a key reads, once there are n entries.
func (s *service) refusals(key string, n int) (entries []map[string]any) {
	s.t.Helper()
	eventually.True(s.t, "the refusals are shown", func() bool {
		var page struct{ Refusals []map[string]any }
		must.NoError(s.t, json.Unmarshal(s.call(key, "GET", "/v1/refusals", "").Body.Bytes(), &page))
		entries = page.Refusals
		return len(entries) >= n
	})
	if len(entries) != n {
		s.t.Fatalf("%d entries, want %d: %v", len(entries), n, entries)
	}
	return entries
}

// counted are the counts of an entry, each in a line.
func counted(entry map[string]any) (lines []string) {
	for _, one := range entry["counts"].([]any) {
		c := one.(map[string]any)
		lines = append(lines, fmt.Sprint(c["reason"], " ", c["source"], " ", c["projectId"], " ", c["keyId"] != nil, " ", c["tests"]))
	}
	slices.Sort(lines)
	return lines
}

func TestEachTestThatCreditsLackForIsAFactOfTheAccount(t *testing.T) {
	t.Parallel()
	s := shared(t).node(nil)
	id, key := s.account(7)
	_, other := s.account(7)
	projectID, hook := s.hook(key, withURL)
	bound := s.key(id, command.IssueKey{Scope: account.ScopeFull, ProjectID: projectID})
	parent := s.submitted(key) // leaves 2
	lacks := func(key, path, body string, headers ...string) {
		t.Helper()
		s.call(key, "POST", path, body, headers...).refused(http.StatusPaymentRequired, domain.CodeInsufficientCredits)
	}
	lacks(key, "/v1/jobs", strings.Replace(aJob, "/shop", "/shop#access_token=geheim", 1))
	for range 3 {
		lacks(key, "/v1/jobs", aJob, "Idempotency-Key", "night")
	}
	lacks(bound, "/v1/jobs", aJob)
	lacks(key, "/v1/jobs/bulk", bulkOf(2, nil))
	lacks(key, "/v1/jobs/"+parent+"/retest", "")
	lacks(key, "/v1/hosted/test", `{"url":"https://blog.example.com/","feature":"Comments"}`)
	lacks(key, "/v1/hosted/sessions", `{"url":"https://chat.example.com/","slots":[{},{},{}]}`)
	for range 2 {
		lacks("", hook, `{"commitSha":"abcdef0","branch":"main","environment":"staging"}`)
	}
	lacks("", hook+"?x-vercel-protection-bypass=geheim", `{"url":"https://preview.example.com/","commitSha":"abcdef1","priority":"urgent"}`)
	s.call("", "POST", hook+"?dryRun=true", `{"commitSha":"abcdef0"}`).want(http.StatusOK)
	s.call(key, "POST", "/v1/estimate", aJob)
	s.call(key, "POST", "/v1/jobs", `{}`).want(http.StatusBadRequest)

	before := s.count("account.submissions_refused")
	s.Refusals.Record(t.Context())
	s.Refusals.Record(t.Context())
	if n := s.count("account.submissions_refused") - before; n != 1 {
		t.Fatalf("%d events for one account", n)
	}
	entry := s.refusals(key, 1)[0]
	want := []string{
		"INSUFFICIENT_CREDITS api <nil> true 4", "INSUFFICIENT_CREDITS api " + projectID + " true 1", "INSUFFICIENT_CREDITS bulk <nil> true 2",
		"INSUFFICIENT_CREDITS deploy " + projectID + " false 3", "INSUFFICIENT_CREDITS hosted <nil> true 1",
		"INSUFFICIENT_CREDITS retest <nil> true 1", "INSUFFICIENT_CREDITS session <nil> true 3",
	}
	slices.Sort(want)
	if got := counted(entry); !slices.Equal(got, want) {
		t.Errorf("counted\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if entry["tests"] != 15.0 {
		t.Errorf("%v tests", entry["tests"])
	}
	samples, err := json.Marshal(entry["samples"])
	must.NoError(t, err)
	for _, text := range []string{
		`{"commitSha":"abcdef0","branch":"main","environment":"staging","projectId":"` + projectID + `","source":"deploy","url":"https://shop.replit.app/start","whole":true}`,
		`{"commitSha":"abcdef1","projectId":"` + projectID + `","source":"deploy","url":"https://preview.example.com/","urgent":true}`,
		`{"source":"hosted","url":"https://blog.example.com/"}`,
	} {
		var one any
		must.NoError(t, json.Unmarshal([]byte(text), &one))
		sorted, err := json.Marshal(one)
		must.NoError(t, err)
		if !strings.Contains(string(samples), string(sorted)) {
			t.Errorf("no sample is %s: %s", sorted, samples)
		}
	}
	if n := len(entry["samples"].([]any)); n > account.MaxSamples || strings.Count(string(samples), "abcdef0") != 1 {
		t.Errorf("%d samples, or one of them twice: %s", n, samples)
	}
	if strings.Contains(s.stored(), "geheim") || strings.Contains(string(samples), "geheim") {
		t.Error("a secret of an address was kept")
	}
	s.refusals(other, 0)
	s.call(bound, "GET", "/v1/refusals", "").refused(http.StatusForbidden, domain.CodeForbidden)
	with(t, s.call(key, "GET", "/v1/refusals?limit=1", "").want(http.StatusOK), map[string]any{"nextCursor": nil})
	s.call(key, "GET", "/v1/refusals?cursor=x", "").refused(http.StatusBadRequest, domain.CodeInvalidRequest)
}

func TestRefusalsBeforeTheBodyAreCountedUnderTheirKey(t *testing.T) {
	t.Parallel()
	s := shared(t)
	id, key := s.account(100)
	_, reading := s.account(100)
	projectID, hook := s.hook(key, withURL)
	hasty := s.limited(2)
	for range 4 {
		hasty.call(key, "POST", "/v1/jobs", aJob)
		hasty.call(reading, "GET", "/v1/jobs", "")
	}
	hasty.Refusals.Record(t.Context())
	s.visible(s.commands.SuspendAccount(t.Context(), operator(domain.NewCommandID()), id))
	beside := s.limited(1_000_000)
	beside.call(key, "POST", "/v1/jobs/bulk", bulkOf(2, nil)).refused(http.StatusForbidden, domain.CodeAccountSuspended)
	beside.call(key, "GET", "/v1/jobs", "").refused(http.StatusForbidden, domain.CodeAccountSuspended)
	beside.call("", "POST", hook, `{}`).refused(http.StatusForbidden, domain.CodeAccountSuspended)
	beside.call("qa_live_of_a_stranger", "POST", "/v1/jobs", aJob).refused(http.StatusUnauthorized, domain.CodeUnauthorized)
	beside.Refusals.Record(t.Context())
	s.visible(s.commands.ReinstateAccount(t.Context(), operator(domain.NewCommandID()), id))
	entries := s.refusals(key, 2)
	want := []string{"ACCOUNT_SUSPENDED bulk <nil> true 1", "ACCOUNT_SUSPENDED deploy " + projectID + " false 1"}
	if got := counted(entries[0]); !slices.Equal(got, want) {
		t.Errorf("suspended: %v", got)
	}
	if got := counted(entries[1]); len(got) != 1 || !strings.HasPrefix(got[0], "RATE_LIMITED api <nil> true ") {
		t.Errorf("too many requests: %v", got)
	}
	s.refusals(reading, 0)
}

// A flood costs an event of each process, and a stop tells the last minute.
func TestAFloodOfRefusalsIsAnEventOfEachProcess(t *testing.T) {
	t.Parallel()
	s := shared(t)
	_, key := s.account(0)
	nodes := []*service{s.node(nil), s.node(nil)}
	var all sync.WaitGroup
	for _, node := range nodes {
		for range 4 {
			all.Go(func() {
				for n := range 25 {
					node.call(key, "POST", "/v1/jobs", strings.Replace(aJob, "/shop", fmt.Sprint("/", n), 1))
				}
			})
		}
	}
	all.Wait()
	stopped, stop := context.WithCancel(t.Context())
	stop()
	for _, node := range nodes {
		all.Go(func() { node.Refusals.Run(stopped) })
	}
	all.Wait()
	for _, entry := range s.refusals(key, 2) {
		if entry["tests"] != 100.0 || len(entry["samples"].([]any)) != account.MaxSamples {
			t.Errorf("an entry of %v tests with %d samples", entry["tests"], len(entry["samples"].([]any)))
		}
	}
	page := s.call(key, "GET", "/v1/refusals?limit=1", "").want(http.StatusOK)
	second := s.call(key, "GET", "/v1/refusals?limit=1&cursor="+fmt.Sprint(page["nextCursor"]), "").want(http.StatusOK)
	if len(second["refusals"].([]any)) != 1 || second["nextCursor"] != nil {
		t.Errorf("the second page: %v", second)
	}
}

// The texts go with the account, and none comes after it.
func TestAnErasedAccountHasNoTextsOfRefusals(t *testing.T) {
	t.Parallel()
	s := shared(t).node(nil)
	id, key := s.account(0)
	s.call(key, "POST", "/v1/jobs", aJob).refused(http.StatusPaymentRequired, domain.CodeInsufficientCredits)
	s.Refusals.Record(t.Context())
	s.refusals(key, 1)
	s.call(key, "POST", "/v1/jobs", aJob).refused(http.StatusPaymentRequired, domain.CodeInsufficientCredits)
	s.visible(s.commands.EraseAccount(t.Context(), operator(domain.NewCommandID()), id, "ada", "asked for it"))
	s.Refusals.Record(t.Context())
	eventually.True(t, "the texts are erased", func() bool {
		found, err := s.deps.Reads.Events.Refusals(t.Context(), id, "", 10)
		must.NoError(t, err)
		if len(found) != 1 {
			t.Fatalf("%d events", len(found))
		}
		e := found[0].Recorded.Event.(*account.SubmissionsRefused)
		return e.Samples[0].URL == domain.ErasedText && e.Samples[0].Title == domain.ErasedText && e.Counts[0].Tests == 1
	})
}
