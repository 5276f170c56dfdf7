package httpapi

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"humanqa/httpapi/input"
	"humanqa/httpapi/wire"
	"humanqa/internal/testing/must"
)

// slips are bodies with a slip or two, by the call they are sent to, and the
// paths of the warnings.
var slips = map[string]struct {
	body  string
	paths []string
}{
	"POST /v1/jobs": {
		jobWith(`"priorty":"urgent","sla_minutes":15,"feature":"pay","note":"x","credentials":{"user_name":"u","notes":"n"},` +
			`"checklistItems":[{"description":"a"},{"description":"b","severty":"minor"}]`),
		[]string{"feature", "priorty", "sla_minutes", "checklistItems[1].severty", "credentials.user_name"},
	},
	"POST /v1/estimate": {jobWith(`"Priority":"urgent"`), []string{"Priority"}},
	"POST /v1/jobs/bulk": {
		`{"priority":"urgent","jobs":[` + aJob + `,` + jobWith(`"projectID":"p","webhookUrl":"https://a.example/"`) + `]}`,
		[]string{"priority", "jobs[1].projectID", "jobs[1].webhookUrl"},
	},
	"POST /v1/hosted/test": {
		`{"url":"https://example.com/","title":"t","checklistItems":[],"webhookURL":"https://a.example/"}`,
		[]string{"title", "webhookURL"},
	},
	"POST /v1/hosted/sessions": {
		`{"url":"https://example.com/","slots":[{"rolelabel":"a"},{"url":"x"}],"voice":true,"voiceEnable":true}`,
		[]string{"voiceEnable", "slots[0].rolelabel"},
	},
	"POST /v1/hooks/deploy/{token}": {
		`{"url":"https://example.com/","commitSHA":"abc","repository":{"url":1},"slots":[]}`,
		[]string{"commitSHA", "slots"},
	},
}

func TestASubmissionsAnswerWarnsOfSlipsAndItsChargeStands(t *testing.T) {
	t.Parallel()
	for _, row := range routes {
		name := row.Method + " " + row.Pattern
		c, known := slips[name]
		if known != row.Submits {
			t.Errorf("%s: it submits: %v; this test has a row: %v", name, row.Submits, known)
		}
		if !known {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := shared(t)
			_, key := s.account(100)
			path := row.Pattern
			if row.Audience == wire.Hooks {
				_, path = s.hook(key, "")
			}
			r := s.call(key, row.Method, path, c.body, wire.IdempotencyHeader, "slip")
			if r.Code >= 300 {
				t.Fatalf("%d: %s", r.Code, r.Body)
			}
			var paths []string
			list, _ := r.want(r.Code)["warnings"].([]any)
			for n := range list {
				paths = append(paths, fmt.Sprint(field(list, n, "path")))
			}
			equal(t, paths, c.paths)
			if charged := s.call(key, "GET", "/v1/credits", "").want(http.StatusOK)["used"] != 0.0; charged != row.Creates {
				t.Errorf("charged: %v", charged)
			}
			again := s.call(key, row.Method, path, c.body, wire.IdempotencyHeader, "slip")
			equal(t, again.Body.String(), r.Body.String())
		})
	}
}

func TestASlipIsExplained(t *testing.T) {
	t.Parallel()
	s := shared(t)
	_, key := s.account(100)
	equal(t, s.call(key, "POST", "/v1/jobs", jobWith(`"priorty":"urgent","slots":[]`)).want(http.StatusCreated)["warnings"], any([]any{
		map[string]any{"path": "priorty", "message": "is not known and was ignored; did you mean priority?"},
		map[string]any{"path": "slots", "message": "was ignored here: it is a field of POST /v1/hosted/sessions"},
	}))
}

func TestABodyWithoutASlipHasNoWarnings(t *testing.T) {
	t.Parallel()
	s := shared(t)
	_, key := s.account(100)
	for path, body := range map[string]string{
		"/v1/jobs":            jobWith(`"priority":null,"x-trace":"1","meta":{"priorty":1},"labels":["a"]`),
		"/v1/jobs/bulk":       `{"jobs":[` + aJob + `],"name":"nightly"}`,
		"/v1/hosted/test":     `{"url":"https://example.com/","ref":"main"}`,
		"/v1/hosted/sessions": `{"url":"https://example.com/","slots":[{},{"color":"red"}]}`,
		"/v1/jobs/" + s.submitted(key) + "/retest": `{"priorty":1}`,
	} {
		if warnings, there := s.call(key, "POST", path, body).want(http.StatusCreated)["warnings"]; there {
			t.Errorf("%s: %v", path, warnings)
		}
	}
}

func TestWhatIsASlip(t *testing.T) {
	t.Parallel()
	for pair, want := range map[string]bool{
		"priorty priority": true, "prioritty priority": true, "pirority priority": true, "PRIORITY priority": true,
		"job_type jobType": true, "job-type jobType": true, "slaMinute slaMinutes": true, "uri url": true, "webhook_uri webhookUrl": true,
		"prio priority": false, "urn2 url": false, "name title": false, "jobs jobType": false, "é url": false, " url": false,
	} {
		name, known, _ := strings.Cut(pair, " ")
		if wire.Near(name, known) != want {
			t.Errorf("%q for %q: %v", name, known, !want)
		}
	}
}

// Thousands of unknown keys cost what a few hundred do, and the answer stays
// small.
func TestWarningsAreBounded(t *testing.T) {
	t.Parallel()
	keys := func(format string, n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `,"`+format+`":0`, i)
		}
		return b.String()
	}
	for name, c := range map[string]struct {
		body string
		want int
	}{
		"many slips":                 {`{"jobs":[` + strings.Repeat(`{"url":"u"`+keys("url%d", 9)+`},`, 19) + `{}]}`, wire.MaxWarnings},
		"slips behind unknown keys":  {`{"jobs":[{"url":"u"` + keys("a-key-of-nobody-%03d", 240) + `},{"url":"u"` + keys("url%d", 9) + `}]}`, 0},
		"a slip of a very long name": {`{"jobs":[{"url":"u"},{"` + strings.Repeat("priority", 1000) + `":1}]}`, 0},
	} {
		var p wire.Problems
		input.Bulk(wire.ParseObject([]byte(c.body), &p), nil)
		if got := len(p.Warnings(input.Submissions())); got != c.want {
			t.Errorf("%s: %d warnings, not %d", name, got, c.want)
		}
	}
}

// The fields by call are those of the document.
func TestTheFieldsOfEachSubmissionAreKnown(t *testing.T) {
	t.Parallel()
	checker, err := documented()
	must.NoError(t, err)
	for _, submission := range input.Submissions() {
		method, pattern, _ := strings.Cut(submission.Name, " ")
		schema := checker.Operation(method, pattern).RequestBody.Value.Content["application/json"].Schema.Value
		known := slices.Collect(maps.Keys(schema.Properties))
		if pattern == "/v1/hooks/deploy/{token}" {
			known = append(known, "deployment", "details", "payload", "webhook_metadata") // of platforms' bodies, which the document names as such
		}
		equal(t, slices.Compact(slices.Sorted(slices.Values(submission.Fields))), slices.Sorted(slices.Values(known)))
	}
}
