package openapi

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"humanqa/domain/job"
	"humanqa/httpapi/report"
	"humanqa/internal/testing/must"
)

// operations calls see with every operation, by "GET /v1/jobs".
func operations(doc *openapi3.T, see func(name string, item *openapi3.PathItem, op *openapi3.Operation)) {
	for pattern, item := range doc.Paths.Map() {
		for method, op := range item.Operations() {
			see(method+" "+pattern, item, op)
		}
	}
}

// exampled are the media types whose bodies are shown. The others are files,
// pages and scripts.
func exampled(media string) bool {
	return strings.Contains(media, "json") || media == "text/event-stream" || media == "text/markdown" || media == "application/xml"
}

// Whoever reads the document signs in once: there is one scheme, and an
// operation wants it or nothing.
func TestThereIsOneWayToSignIn(t *testing.T) {
	t.Parallel()
	doc := load(t)
	for name, s := range doc.Components.SecuritySchemes {
		if name != "bearer" || s.Value.Type != "http" || s.Value.Scheme != "bearer" {
			t.Errorf("%s is %s %s", name, s.Value.Type, s.Value.Scheme)
		}
	}
	open := 0
	operations(doc, func(name string, _ *openapi3.PathItem, op *openapi3.Operation) {
		wanted := doc.Security
		if op.Security != nil {
			wanted = *op.Security
		}
		if len(wanted) == 0 {
			open++
			return
		}
		if scopes, ok := wanted[0]["bearer"]; len(wanted) > 1 || len(wanted[0]) != 1 || !ok || len(scopes) > 0 {
			t.Errorf("%s wants %v", name, wanted)
		}
	})
	if n := doc.Paths.Len(); open == 0 || open > n/4 {
		t.Errorf("%d operations of %d paths want nothing", open, n)
	}
}

func TestEveryBodyHasAnExample(t *testing.T) {
	t.Parallel()
	operations(load(t), func(name string, _ *openapi3.PathItem, op *openapi3.Operation) {
		if op.RequestBody != nil {
			for media, body := range op.RequestBody.Value.Content {
				if exampled(media) && len(body.Examples) == 0 && body.Example == nil {
					t.Errorf("%s: the request has no example", name)
				}
			}
		}
		answers := 0
		for status, response := range op.Responses.Map() {
			if strings.HasPrefix(status, "2") {
				answers++
			}
			for media, body := range response.Value.Content {
				if exampled(media) && len(body.Examples) == 0 && body.Example == nil {
					t.Errorf("%s: %s %s has no example", name, status, media)
				}
			}
		}
		if answers == 0 {
			t.Errorf("%s: no answer but refusals", name)
		}
	})
}

// A field's words may stand on what it refers to.
// Generators such as openapi-typescript take a field with a default for one that is
// always there, and then ask for it in a request, too.
func TestNoFieldOfABodyHasADefault(t *testing.T) {
	t.Parallel()
	err := load(t).WalkSchemas(func(at string, s *openapi3.SchemaRef) error {
		if s.Value.Default != nil && !strings.Contains(at, "/parameters/") {
			t.Errorf("%s has the default %v: its description can say so", at, s.Value.Default)
		}
		return nil
	})
	must.NoError(t, err)
}

func TestEveryOperationParameterAndFieldIsDescribed(t *testing.T) {
	t.Parallel()
	doc := parsed(t)
	said := func(node any) bool {
		words, _ := doc.follow(node).of["description"].(string)
		return words != "" && words != "Additive."
	}
	described := func(schema any) bool {
		all, _ := doc.follow(schema).of["allOf"].([]any)
		return said(schema) || slices.ContainsFunc(all, said)
	}
	var walk func(where string, schema any)
	walk = func(where string, schema any) {
		of, _ := schema.(map[string]any) // what is referred to is a component of its own
		properties, _ := of["properties"].(map[string]any)
		for name, property := range properties {
			if !described(property) {
				t.Errorf("%s.%s is not described", where, name)
			}
			walk(where+"."+name, property)
		}
		if items, ok := of["items"]; ok {
			walk(where+"[]", items)
		}
	}
	for name, schema := range doc.at("components").at("schemas").of {
		walk(name, schema)
	}
	for name, parameter := range doc.at("components").at("parameters").of {
		if !said(parameter) {
			t.Errorf("the parameter %s is not described", name)
		}
	}
	operations(load(t), func(name string, item *openapi3.PathItem, op *openapi3.Operation) {
		if op.Summary == "" || op.Description == "" {
			t.Errorf("%s is not described", name)
		}
		for _, p := range slices.Concat(item.Parameters, op.Parameters) {
			if p.Value.Description == "" {
				t.Errorf("%s: the parameter %s is not described", name, p.Value.Name)
			}
		}
	})
}

var update = flag.Bool("update", false, "write the golden files")

// testdata/refusals.txt says which refusals each operation has. A change of
// completion or of a list shows as a change of that file.
func TestEveryOperationListsItsRefusals(t *testing.T) {
	t.Parallel()
	const golden = "testdata/refusals.txt"
	var lines []string
	operations(load(t), func(name string, _ *openapi3.PathItem, op *openapi3.Operation) {
		listed := map[string]bool{}
		for status, response := range op.Responses.Map() {
			if media := response.Value.Content["application/json"]; media != nil && status >= "400" {
				for _, example := range media.Examples {
					listed[fmt.Sprint(status, " ", example.Value.Value.(map[string]any)["code"])] = true
				}
			}
		}
		lines = append(lines, name+": "+strings.Join(slices.Sorted(maps.Keys(listed)), ", ")+"\n")
	})
	slices.Sort(lines)
	got := strings.Join(lines, "")
	if *update {
		must.NoError(t, os.WriteFile(golden, []byte(got), 0o644))
	}
	want, err := os.ReadFile(golden)
	must.NoError(t, err)
	for line := range strings.Lines(got) {
		if !strings.Contains(string(want), line) {
			t.Errorf("the document has\n%swhich %s has not", line, golden)
		}
	}
	for line := range strings.Lines(string(want)) {
		if !strings.Contains(got, line) {
			t.Errorf("%s has\n%swhich the document has not", golden, line)
		}
	}
}

// A refusal that nobody lists is one that nobody gets.
func TestEveryRefusalIsListedSomewhere(t *testing.T) {
	t.Parallel()
	document := string(Document())
	for name := range parsed(t).at("components").at("examples").of {
		if !strings.Contains(document, `"#/components/examples/`+name+`"`) {
			t.Errorf("no operation lists %s", name)
		}
	}
}

// A client reads the codes in the description, a program in the examples.
func TestEveryRefusalSaysItsCodesAndShowsTheirEnvelopes(t *testing.T) {
	t.Parallel()
	statuses := map[string]string{
		"INVALID_REQUEST": "400", "UNAUTHORIZED": "401", "INSUFFICIENT_CREDITS": "402", "FORBIDDEN": "403",
		"ACCOUNT_SUSPENDED": "403", "NOT_FOUND": "404", "CONFLICT": "409", "GONE": "410", "WEBHOOK_SECRET_CONFLICT": "409",
		"PAYLOAD_TOO_LARGE": "413", "RATE_LIMITED": "429", "INTERNAL_ERROR": "500", "UNAVAILABLE": "503",
		"CURSOR_AHEAD": "409", "CURSOR_GONE": "410", "ANOTHER_LOG": "409",
	}
	operations(load(t), func(name string, _ *openapi3.PathItem, op *openapi3.Operation) {
		for status, response := range op.Responses.Map() {
			if status < "400" {
				continue
			}
			media := response.Value.Content["application/json"]
			if media == nil || len(media.Examples) == 0 {
				t.Errorf("%s: %s shows no envelope", name, status)
				continue
			}
			for which, example := range media.Examples {
				envelope, _ := example.Value.Value.(map[string]any)
				code, _ := envelope["code"].(string)
				if want := statuses[code]; want != status && status != "415" && status != "416" {
					t.Errorf("%s: %s shows %s, which belongs to %q", name, status, which, want)
				}
				if !strings.Contains(*response.Value.Description, code+": ") {
					t.Errorf("%s: %s does not name %s", name, status, code)
				}
			}
		}
	})
}

// The examples of the webhooks are what the sender's golden files hold, each
// under its name.
func TestTheWebhooksExamplesAreWhatIsSent(t *testing.T) {
	t.Parallel()
	var doc struct {
		Webhooks map[string]struct {
			Post struct {
				RequestBody struct {
					Content map[string]struct {
						Examples map[string]struct{ Value any }
					}
				}
			}
		} `json:"x-webhooks"`
	}
	must.NoError(t, json.Unmarshal(Document(), &doc))
	shown := map[string]any{}
	for _, hook := range doc.Webhooks {
		for name, example := range hook.Post.RequestBody.Content["application/json"].Examples {
			shown[name] = example.Value
		}
	}
	sent := map[string]any{}
	files, err := filepath.Glob("../../webhooks/testdata/*.json")
	must.NoError(t, err)
	for _, file := range files {
		raw, err := os.ReadFile(file)
		must.NoError(t, err)
		var body any
		must.NoError(t, json.Unmarshal(raw, &body))
		name := strings.TrimSuffix(filepath.Base(file), ".json")
		sent[name] = body
		if !reflect.DeepEqual(shown[name], body) {
			t.Errorf("%s: the document shows\n%v\nand this is sent\n%v", name, shown[name], body)
		}
	}
	for name := range shown {
		if sent[name] == nil {
			t.Errorf("the document shows %s, which is never sent", name)
		}
	}
}

// notNull are the optional values that a change tells apart from null (decisions, "PATCH").
var notNull = []string{"ProjectChange.name", "ProjectChange.webhookUrl"}

// A typed client sends null for an optional value that nobody set, or, where null is no value,
// the first of a list, false or 0.
func TestEveryOptionalValueOfARequestMayBeNull(t *testing.T) {
	t.Parallel()
	looked := map[*openapi3.Schema]bool{}
	var look func(at string, ref *openapi3.SchemaRef)
	look = func(at string, ref *openapi3.SchemaRef) {
		if ref == nil || looked[ref.Value] {
			return
		}
		s := ref.Value
		looked[s] = true
		if name := strings.TrimPrefix(ref.Ref, "#/components/schemas/"); name != "" {
			at = name
		}
		look(at, s.Items)
		for _, part := range slices.Concat(s.AllOf, s.AnyOf, s.OneOf) {
			look(at, part)
		}
		for name, p := range s.Properties {
			scalar := !p.Value.Type.Is(openapi3.TypeArray) && !p.Value.Type.Is(openapi3.TypeObject) && p.Value.Type != nil
			place := at + "." + name
			if scalar && !p.Value.Nullable && !slices.Contains(s.Required, name) && !slices.Contains(notNull, place) {
				t.Errorf("%s is optional, and not nullable", place)
			}
			look(place, p)
		}
	}
	operations(load(t), func(name string, _ *openapi3.PathItem, op *openapi3.Operation) {
		if op.RequestBody == nil {
			return
		}
		for _, body := range op.RequestBody.Value.Content {
			look(name, body.Schema)
		}
	})
	if len(looked) < 50 {
		t.Errorf("%d schemas were looked at", len(looked))
	}
}

// large are the names of numbers that outgrow 32 bits: a typed client reads an integer without
// a format into 32.
var large = regexp.MustCompile(`^(credits\w*|Credits\w*|amount|balance\w*|change|available|used|expired|size|bytes|uploadOffset|revision|index|eventsBehind|partLimit|durationMs)$`)

func TestNumbersThatGrowHave64Bits(t *testing.T) {
	t.Parallel()
	found := 0
	var look func(at string, value any)
	look = func(at string, value any) {
		object, _ := value.(map[string]any)
		if object["type"] == "integer" && large.MatchString(at) {
			found++
			if object["format"] != "int64" {
				t.Errorf("%s has no format int64", at)
			}
		}
		for name, of := range object {
			look(name, of)
		}
	}
	var document any
	must.NoError(t, json.Unmarshal(Document(), &document))
	look("", document)
	if found < 20 {
		t.Errorf("%d such numbers were found", found)
	}
}

// A value stands in the code's table and in the document.
func TestTheDocumentListsTheValuesOfTheCode(t *testing.T) {
	t.Parallel()
	components := load(t).Components
	var types, formats []any
	for _, kind := range job.Types() {
		types = append(types, string(kind))
	}
	for _, f := range report.Formats() {
		formats = append(formats, f.Name)
	}
	formats = append(formats, "markdown") // another word for md
	reasons := []any{}
	for _, reason := range job.FailReasons() {
		reasons = append(reasons, reason)
	}
	for name, of := range map[string]struct{ listed, known []any }{
		"JobTypeCode":  {components.Schemas["JobTypeCode"].Value.Enum, types},
		"failReason":   {components.Schemas["Job"].Value.Properties["failReason"].Value.Enum, append(reasons, nil)},
		"ReportFormat": {components.Parameters["ReportFormat"].Value.Schema.Value.Enum, formats},
	} {
		if !reflect.DeepEqual(of.listed, of.known) {
			t.Errorf("%s lists %v, the code %v", name, of.listed, of.known)
		}
	}
}

// The skill lists the price of each type.
func TestTheSkillNamesThePriceOfEveryType(t *testing.T) {
	t.Parallel()
	const file, head = "../../integrations/skill/human-qa/SKILL.md", "| Type | Normal | Urgent |\n|---|---|---|\n"
	text, err := os.ReadFile(file)
	must.NoError(t, err)
	before, table, _ := strings.Cut(string(text), head)
	_, after, found := strings.Cut(table, "\n\n")
	if !found {
		t.Fatalf("%s has no table of prices", file)
	}
	var rows []string
	for _, kind := range job.Types() {
		rows = append(rows, fmt.Sprintf("| %s (`%s`) | %d | %d |", kind.Title(), kind, kind.Price(false), kind.Price(true)))
	}
	want := before + head + strings.Join(rows, "\n") + "\n\n" + after
	if *update {
		must.NoError(t, os.WriteFile(file, []byte(want), 0o644))
		return
	}
	if want != string(text) {
		t.Errorf("%s has other prices than\n%s", file, strings.Join(rows, "\n"))
	}
}
