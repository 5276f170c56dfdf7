package httpapi

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/google/uuid"

	"humanqa/internal/testing/must"
)

// Decisions, "Lengths": each on every endpoint that takes the text,
// at its limit and one over. The character takes four bytes and two UTF-16
// units, so that nothing but characters can have been counted. ¤ is where the
// text goes.
func TestEveryLengthIsCountedInCharacters(t *testing.T) {
	t.Parallel()
	s := shared(t)
	_, key := s.account(100_000)
	projectID, hook := s.hook(key, withURL)
	const (
		origin  = "https://example.com/"
		job     = `"url":"https://example.com/","title":"t","description":"d","jobType":"custom"`
		hosted  = `{"url":"https://a.example/",%s}`
		meeting = `{"url":"https://a.example/","slots":[{},{%s}]}`
	)
	type row struct {
		at, path string // METHOD and path, offending path
		limit    int
		body     string
	}
	url := func(at, path, body string) row {
		return row{at, path, 2048 - len(origin), strings.Replace(body, "¤", origin+"¤", 1)}
	}
	rows := []row{
		url("POST /v1/jobs", "url", `{"url":"¤","title":"t","description":"d","jobType":"custom"}`),
		{"POST /v1/jobs", "title", 200, `{"url":"https://example.com/","title":"¤","description":"d","jobType":"custom"}`},
		{"POST /v1/jobs", "description", 5000, `{"url":"https://example.com/","title":"t","description":"¤","jobType":"custom"}`},
		{"POST /v1/jobs", "accessInstructions", 4000, `{` + job + `,"accessInstructions":"¤"}`},
		{"POST /v1/jobs", "credentials.username", 256, `{` + job + `,"credentials":{"username":"¤"}}`},
		{"POST /v1/jobs", "credentials.password", 256, `{` + job + `,"credentials":{"password":"¤"}}`},
		{"POST /v1/jobs", "credentials.notes", 2000, `{` + job + `,"credentials":{"notes":"¤"}}`},
		{"POST /v1/jobs", "checklistItems[1].description", 1000, `{` + job + `,"checklistItems":[{"description":"x"},{"description":"¤"}]}`},
		{"POST /v1/jobs", "checklistItems[0].expectedOutcome", 1000, `{` + job + `,"checklistItems":[{"description":"x","expectedOutcome":"¤"}]}`},
		{"POST /v1/jobs/bulk", "jobs[0].title", 200, `{"jobs":[{"url":"https://example.com/","title":"¤","description":"d","jobType":"custom"}]}`},
		{"POST /v1/jobs/bulk", "jobs[1].description", 5000, `{"jobs":[{` + job + `},{"url":"https://example.com/","title":"t","description":"¤","jobType":"custom"}]}`},
		{"POST /v1/jobs/bulk", "jobs[0].credentials.notes", 2000, `{"jobs":[{` + job + `,"credentials":{"notes":"¤"}}]}`},
		{"POST /v1/estimate", "title", 200, `{"url":"https://example.com/","title":"¤","description":"d","jobType":"custom"}`},

		url("POST /v1/hosted/test", "url", `{"url":"¤"}`),
		url("POST /v1/hosted/test", "webhookUrl", fmt.Sprintf(hosted, `"webhookUrl":"¤"`)),
		{"POST /v1/hosted/test", "feature", 2000, fmt.Sprintf(hosted, `"feature":"¤"`)},
		{"POST /v1/hosted/test", "accessInstructions", 4000, fmt.Sprintf(hosted, `"accessInstructions":"¤"`)},
		url("POST /v1/hosted/sessions", "url", `{"url":"¤","slots":[{},{}]}`),
		{"POST /v1/hosted/sessions", "feature", 2000, fmt.Sprintf(hosted, `"slots":[{},{}],"feature":"¤"`)},
		{"POST /v1/hosted/sessions", "scenarioBrief", 2000, fmt.Sprintf(hosted, `"slots":[{},{}],"scenarioBrief":"¤"`)},
		{"POST /v1/hosted/sessions", "accessInstructions", 4000, fmt.Sprintf(hosted, `"slots":[{},{}],"accessInstructions":"¤"`)},
		{"POST /v1/hosted/sessions", "slots[1].roleLabel", 80, fmt.Sprintf(meeting, `"roleLabel":"¤"`)},
		{"POST /v1/hosted/prepare-next", "fixedDescriptions[0]", 1000, `{"projectId":"` + projectID + `","fixedDescriptions":["¤"]}`},
		url("POST "+hook, "url", `{"url":"¤"}`),
		{"POST " + hook, "feature", 2000, `{"feature":"¤"}`},

		{"POST /v1/projects", "name", 120, `{"name":"¤"}`},
		{"POST /v1/projects", "description", 2000, `{"name":"n","description":"¤"}`},
		url("POST /v1/projects", "defaultUrl", `{"name":"n","defaultUrl":"¤"}`),
		url("POST /v1/projects", "webhookUrl", `{"name":"n","webhookUrl":"¤"}`),
		{"PATCH /v1/projects/" + projectID, "name", 120, `{"name":"¤"}`},
		{"PATCH /v1/projects/" + projectID, "description", 2000, `{"description":"¤"}`},
		url("PATCH /v1/projects/"+projectID, "webhookUrl", `{"webhookUrl":"¤"}`),
		url("PATCH /v1/projects/"+projectID, "defaultUrl", `{"defaultUrl":"¤"}`),
	}
	for _, target := range []string{"targetDevice", "targetOS", "targetBrowser", "targetScreenSize", "targetNetwork"} {
		field := `"` + target + `":"¤"`
		rows = append(rows,
			row{"POST /v1/jobs", target, 100, `{` + job + `,` + field + `}`},
			row{"POST /v1/hosted/test", target, 100, fmt.Sprintf(hosted, field)},
			row{"POST /v1/hosted/sessions", "slots[1]." + target, 100, fmt.Sprintf(meeting, field)})
	}
	for _, r := range rows {
		method, path, _ := strings.Cut(r.at, " ")
		caller := key
		if path == hook {
			caller = ""
		}
		send := func(n int) result {
			return s.call(caller, method, path, strings.Replace(r.body, "¤", strings.Repeat("𝄞", n), 1))
		}
		before := s.written()
		if over := send(r.limit + 1); over.Code != http.StatusBadRequest || !slices.Equal(over.paths(), []string{r.path}) {
			t.Errorf("%s, %s, one over: %d %.300s", r.at, r.path, over.Code, over.Body)
		}
		if s.written() != before {
			t.Errorf("%s, %s, one over: something was written", r.at, r.path)
		}
		if full := send(r.limit); full.Code >= http.StatusMultipleChoices {
			t.Errorf("%s, %s, at the limit: %d %.300s", r.at, r.path, full.Code, full.Body)
		}
	}
}

// Decisions, "Lengths"; specification, "Limits": how many entries a
// list may have.
func TestEveryListTakesAsManyEntriesAsItsLimit(t *testing.T) {
	t.Parallel()
	s := shared(t)
	_, key := s.account(100_000)
	first := s.hosted(key, "a.example.com", "").want(http.StatusCreated)
	s.complete(first["jobId"].(string), "item-1")
	projectID, _ := first["projectId"].(string)
	for _, c := range []struct {
		target, path string
		limit        int
		body, entry  string
	}{
		{"/v1/jobs", "checklistItems", 100, jobWith(`"checklistItems":[¤]`), `{"description":"x"}`},
		{"/v1/jobs/bulk", "jobs", 20, `{"jobs":[¤]}`, aJob},
		{"/v1/hosted/sessions", "slots", 10, `{"url":"https://s.example.com/","slots":[¤]}`, `{}`},
		{"/v1/hosted/prepare-next", "fixedBugIds", 50, `{"projectId":"` + projectID + `","fixedBugIds":[¤]}`, `"item-1"`},
		{"/v1/hosted/prepare-next", "fixedDescriptions", 50, `{"projectId":"` + projectID + `","fixedDescriptions":[¤]}`, `"x"`},
	} {
		send := func(n int) result {
			entries := strings.Join(slices.Repeat([]string{c.entry}, n), ",")
			return s.call(key, "POST", c.target, strings.Replace(c.body, "¤", entries, 1))
		}
		equal(t, send(c.limit+1).paths(), []string{c.path})
		if full := send(c.limit); full.Code >= http.StatusMultipleChoices {
			t.Errorf("%s, %d %s: %d %.300s", c.target, c.limit, c.path, full.Code, full.Body)
		}
	}
}

// A text of a request has a limit in the document, and the service holds to it.
func TestEveryTextOfTheDocumentHasALimitThatHolds(t *testing.T) {
	t.Parallel()
	s := shared(t)
	_, key := s.account(100)
	_, sandbox := s.sandbox()
	_, hook := s.hook(key, "")
	checker := s.checker()
	document, err := documented()
	must.NoError(t, err)
	for _, operation := range document.Operations() {
		method, pattern, _ := strings.Cut(operation, " ")
		body := document.Operation(method, pattern).RequestBody
		if body == nil || body.Value.Content["application/json"] == nil {
			continue
		}
		caller, path := key, at(pattern, uuid.NewString())
		switch {
		case strings.HasPrefix(pattern, "/v1/checker/"):
			caller = checker
		case strings.HasPrefix(pattern, "/v1/sandbox/"):
			caller = sandbox
		case strings.HasPrefix(pattern, "/v1/hooks/"):
			caller, path = "", hook
		case strings.HasPrefix(pattern, "/v1/device"):
			caller = ""
		}
		for field, text := range textsOf(body.Value.Content["application/json"].Schema, "") {
			// An estimate and a batch's job share the schema of a job, but tell no commit.
			if strings.HasPrefix(pattern+" "+field, "/v1/estimate commitStatus.") || strings.HasPrefix(field, "jobs[].commitStatus.") {
				continue
			}
			if text.MaxLength == nil {
				t.Errorf("%s: %s has no limit in the document", operation, field)
				continue
			}
			got := s.call(caller, method, path, nested(field, strings.Repeat("𝄞", int(*text.MaxLength)+1)))
			if place := strings.ReplaceAll(field, "[]", "[0]"); got.Code != http.StatusBadRequest || !slices.Contains(got.paths(), place) {
				t.Errorf("%s: %s with more than %d characters: %d %.300s", operation, field, *text.MaxLength, got.Code, got.Body)
			}
		}
	}
}

// textsOf gives the free texts of a schema by their paths, such as "jobs[].title".
func textsOf(ref *openapi3.SchemaRef, path string) map[string]*openapi3.Schema {
	all, s := map[string]*openapi3.Schema{}, ref.Value
	for _, part := range slices.Concat(s.AllOf, s.AnyOf, s.OneOf) {
		maps.Copy(all, textsOf(part, path))
	}
	switch {
	case s.Items != nil:
		maps.Copy(all, textsOf(s.Items, path+"[]"))
	case s.Type.Is("string") && s.Enum == nil && s.Format == "":
		all[path] = s
	}
	for name, property := range s.Properties {
		maps.Copy(all, textsOf(property, strings.TrimPrefix(path+"."+name, ".")))
	}
	return all
}

// nested is an object whose only text is at the path.
func nested(path, text string) string {
	value := fmt.Sprintf("%q", text)
	for _, name := range slices.Backward(strings.Split(path, ".")) {
		name, list := strings.CutSuffix(name, "[]")
		if list {
			value = "[" + value + "]"
		}
		value = fmt.Sprintf("{%q:%s}", name, value)
	}
	return value
}
