package openapi

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
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

// The order of checks says who may get what (decisions, section 2).
func TestEveryOperationListsItsRefusals(t *testing.T) {
	t.Parallel()
	operations(load(t), func(name string, item *openapi3.PathItem, op *openapi3.Operation) {
		method, pattern, _ := strings.Cut(name, " ")
		want := []string{"500", "503"}
		parameters := slices.Concat(item.Parameters, op.Parameters)
		has := func(in string) bool {
			return slices.ContainsFunc(parameters, func(p *openapi3.ParameterRef) bool { return p.Value.In == in })
		}
		scheme := "apiKey"
		if op.Security != nil {
			scheme = ""
			for _, s := range *op.Security {
				for scheme = range s {
				}
			}
		}
		switch scheme {
		case "apiKey":
			want = append(want, "401", "403", "429")
		case "checkerKey":
			want = append(want, "401", "429")
		case "hookToken":
			want = append(want, "403", "404", "429")
		}
		if scheme != "" && (has("query") || method != "GET") {
			want = append(want, "400")
		}
		if scheme != "" && method != "GET" {
			want = append(want, "413")
		}
		if has("path") {
			want = append(want, "404")
		}
		if replays := slices.ContainsFunc(parameters, func(p *openapi3.ParameterRef) bool { return p.Value.Name == "Idempotency-Key" }); replays {
			want = append(want, "409")
		}
		if slices.Contains(charging, name) {
			want = append(want, "402")
		} else if op.Responses.Value("402") != nil {
			t.Errorf("%s charges nothing, and lists 402", name)
		}
		if method == "POST" && strings.Contains(pattern, "{id}/") || method == "PUT" {
			want = append(want, "409")
		}
		for _, status := range want {
			if op.Responses.Value(status) == nil {
				t.Errorf("%s does not list %s", name, status)
			}
		}
	})
}

var charging = []string{
	"POST /v1/jobs", "POST /v1/jobs/bulk", "POST /v1/jobs/{id}/retest", "POST /v1/hosted/test",
	"POST /v1/hosted/sessions", "POST /v1/hooks/deploy/{token}",
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
		"ACCOUNT_SUSPENDED": "403", "NOT_FOUND": "404", "CONFLICT": "409", "WEBHOOK_SECRET_CONFLICT": "409",
		"PAYLOAD_TOO_LARGE": "413", "RATE_LIMITED": "429", "INTERNAL_ERROR": "500", "UNAVAILABLE": "503",
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
				if want := statuses[code]; want != status && status != "416" {
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
	if err := json.Unmarshal(Document(), &doc); err != nil {
		t.Fatal(err)
	}
	shown := map[string]any{}
	for _, hook := range doc.Webhooks {
		for name, example := range hook.Post.RequestBody.Content["application/json"].Examples {
			shown[name] = example.Value
		}
	}
	sent := map[string]any{}
	files, err := filepath.Glob("../../webhooks/testdata/*.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var body any
		if err := json.Unmarshal(raw, &body); err != nil {
			t.Fatal(err)
		}
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
