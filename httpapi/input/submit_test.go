package input

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"humanqa/domain"
	"humanqa/domain/job"
	"humanqa/httpapi/wire"
	"humanqa/internal/testing/must"
)

// details gives "path: message" of everything that is wrong.
func details(t *testing.T, err error) []string {
	t.Helper()
	if err == nil {
		return nil
	}
	var refused *domain.Error
	if !errors.As(err, &refused) || refused.Kind != domain.KindInvalid {
		t.Fatalf("got %v, want an invalid request", err)
	}
	list, _ := refused.Extras["details"].([]domain.Detail)
	var out []string
	for _, d := range list {
		out = append(out, d.Path+": "+d.Message)
	}
	return out
}

func TestABodyMustBeOneJSONObject(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ body, want string }{
		"empty":                 {"", "body: must be a JSON object, is empty"},
		"blank":                 {" \n\t", "body: must be a JSON object, is empty"},
		"cut off":               {`{"url":`, "body: must be valid JSON: line 1, column 7: unexpected end of JSON input"},
		"trailing garbage":      {`{} x`, "body: must be valid JSON: line 1, column 4: invalid character 'x' after top-level value"},
		"two objects":           {`{}{}`, "body: must be valid JSON: line 1, column 3: invalid character '{' after top-level value"},
		"an array":              {`[]`, "body: must be an object"},
		"null":                  {`null`, "body: must be an object"},
		"a number":              {`7`, "body: must be an object"},
		"invalid UTF-8":         {"{\"url\":\"\xff\"}", "body: must be valid UTF-8"},
		"a raw NUL":             {"{\"url\":\"a\x00b\"}", "body: must be valid JSON: line 1, column 10: invalid character '\\x00' in string literal"},
		"nested too deep":       {strings.Repeat(`{"a":`, 20_000) + "1" + strings.Repeat("}", 20_000), "body: must be valid JSON: line 1, column 50001: invalid character '{' exceeded max depth"},
		"far too many keys":     {manyKeys(wire.MaxKeys + 1), "body: has more than 256 keys"},
		"one key far too often": {"{" + strings.Repeat(`"url":0,`, wire.MaxKeys) + `"url":0}`, "body: has more than 256 keys"},
		"a single quote":        {`{'a':1}`, "body: must be valid JSON: line 1, column 2: invalid character '\\'' looking for beginning of object key string"},
		"a comma at the end":    {`{"a":1,}`, "body: must be valid JSON: line 1, column 8: invalid character '}' looking for beginning of object key string"},
		"on a later line":       {"{\n  \"url\": \"a\",\n  \"ü\": x\n}", "body: must be valid JSON: line 3, column 8: invalid character 'x' looking for beginning of value"},
		"at a line's beginning": {"{\r\n}}", "body: must be valid JSON: line 2, column 2: invalid character '}' after top-level value"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var p wire.Problems
			Submit(wire.ParseObject([]byte(c.body), &p))
			if got := details(t, p.Err()); !reflect.DeepEqual(got, []string{c.want}) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func manyKeys(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `,"k%d":0`, i)
	}
	return "{" + b.String()[1:] + "}"
}

func TestEveryOffendingPathIsNamedInOrder(t *testing.T) {
	t.Parallel()
	items := make([]string, 12)
	for i := range items {
		items[i] = `{"description":"fine"}`
	}
	items[10] = `{"severity":"bad"}`
	items[2] = `{"description":"  ","expectedOutcome":7}`
	items[3] = `"text"`
	body := `{
		"url": "javascript:alert(1)", "title": ["x"], "jobType": "Nonsense", "priority": "URGENTLY",
		"slaMinutes": 20, "generateChecklist": "later", "projectId": "a b",
		"credentials": {"username": 1, "password": "p\u0000q", "unknown": []},
		"targetOS": {}, "accessInstructions": false,
		"checklistItems": [` + strings.Join(items, ",") + `]}`
	var p wire.Problems
	Submit(wire.ParseObject([]byte(body), &p))
	want := []string{
		"accessInstructions: must be a string",
		"checklistItems[2].description: must not be blank",
		"checklistItems[2].expectedOutcome: must be a string",
		"checklistItems[3]: must be an object",
		"checklistItems[10].description: is required",
		"checklistItems[10].severity: must be critical, major or minor",
		"credentials.password: must not contain NUL",
		"credentials.username: must be a string",
		"description: is required",
		"generateChecklist: must be sync or async",
		"jobType: must be first_impression, general_qa, payment_flow, custom, ai_review, auth_flow, form_submission, mobile_responsive or full_user_story",
		"priority: must be normal or urgent",
		"projectId: must be an id",
		"slaMinutes: must be 15, 30 or 60",
		"targetOS: must be a string",
		"title: must be a string",
		"url: must be an absolute URL with a host",
	}
	if got := details(t, p.Err()); !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestAFullSubmissionIsRead(t *testing.T) {
	t.Parallel()
	body := `{"url":"https://example.com/x","title":"first","title":"last","description":"d","jobType":"payment FLOW",
		"priority":"urgent","slaMinutes":15.0,"projectId":"p1","generateChecklist":"sync","targetDevice":"  phone ",
		"credentials":{"username":"u","password":"p","notes":null},"accessInstructions":"ring twice","extra":[[1]],
		"checklistItems":[{"description":"pays","severity":"HIGH","expectedOutcome":"receipt","key":"pay"},{"description":"b","severity":null}]}`
	var p wire.Problems
	in, _ := Submit(wire.ParseObject([]byte(body), &p))
	must.NoError(t, p.Err())
	got, err := json.Marshal(in)
	must.NoError(t, err)
	want := `{"accountId":"","projectId":"p1","url":"https://example.com/x","title":"last","description":"d",` +
		`"type":"payment_flow","typeEcho":"payment FLOW","urgent":true,"slaMinutes":15,"price":0,"source":"",` +
		`"target":{"device":"phone"},"Items":[` +
		`{"id":"","key":"pay","description":"pays","expectedOutcome":"receipt","severity":"major"},` +
		`{"id":"","key":"","description":"b","severity":"major"}],` +
		`"Credentials":{"username":"u","password":"p"},"AccessInstructions":"ring twice","Wait":true}`
	if string(got) != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestLengthsCountCharacters(t *testing.T) {
	t.Parallel()
	read := func(title string) []string {
		body, err := json.Marshal(map[string]string{"title": title})
		must.NoError(t, err)
		var p wire.Problems
		wire.ParseObject(body, &p).Required("title", maxTitle)
		return details(t, p.Err())
	}
	if got := read(strings.Repeat("ü", maxTitle)); got != nil {
		t.Errorf("200 characters of two bytes: %v", got)
	}
	want := []string{"title: must have at most 200 characters, has 201"}
	if got := read(strings.Repeat("𝄞", maxTitle+1)); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestListsAreBounded(t *testing.T) {
	t.Parallel()
	var p wire.Problems
	o := wire.ParseObject([]byte(`{"checklistItems":[`+strings.Repeat("{},", 5000)+`{}]}`), &p)
	if items := o.Objects("checklistItems", maxItems); items != nil {
		t.Errorf("%d items were read", len(items))
	}
	want := []string{"checklistItems: must have at most 100 entries"}
	if got := details(t, p.Err()); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestSeveritiesAndTheirSynonyms(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]job.Severity{
		`"Critical"`: job.Critical, `"high"`: job.Major, `"MEDIUM"`: job.Minor, `"low"`: job.Minor, `null`: job.Major, `""`: job.Major,
	} {
		var p wire.Problems
		got := readSeverity(wire.ParseObject([]byte(`{"severity":`+raw+`}`), &p), job.Major)
		if err := p.Err(); err != nil || got != want {
			t.Errorf("%s: got %q, %v, want %q", raw, got, err, want)
		}
	}
}
