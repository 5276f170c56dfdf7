package openapi

import (
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/getkin/kin-openapi/openapi3"

	"humanqa/internal/apicheck"
)

func load(t *testing.T) *openapi3.T {
	t.Helper()
	doc, err := openapi3.NewLoader().LoadFromData(Document())
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

// Valid includes that every example agrees with its schema.
func TestTheDocumentIsValid(t *testing.T) {
	t.Parallel()
	for name, raw := range map[string][]byte{"3.0": Document(), "3.1": Document31()} {
		doc, err := openapi3.NewLoader().LoadFromData(raw)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if err := doc.Validate(t.Context(), openapi3.EnableExamplesValidation()); err != nil || doc.OpenAPIMajorMinor() != name {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What can be null in one version can be in the other, and nothing else.
func TestBothVersionsSayTheSame(t *testing.T) {
	t.Parallel()
	nullable := func(raw []byte) map[string]bool {
		doc, err := openapi3.NewLoader().LoadFromData(raw)
		if err != nil {
			t.Fatal(err)
		}
		found := map[string]bool{}
		err = doc.WalkSchemas(func(at string, s *openapi3.SchemaRef) error {
			if !strings.HasPrefix(at, "/webhooks") { // 3.0 has them aside
				found[at] = s.Value.Nullable || s.Value.Type.Includes(openapi3.TypeNull)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	if older, newer := nullable(Document()), nullable(Document31()); !maps.Equal(older, newer) || len(older) == 0 {
		t.Errorf("3.0 has\n%v\n3.1 has\n%v", older, newer)
	}
	var older struct {
		Webhooks map[string]any `json:"x-webhooks"`
	}
	var newer struct{ Webhooks map[string]any }
	if err := errors.Join(json.Unmarshal(Document(), &older), json.Unmarshal(Document31(), &newer)); err != nil {
		t.Fatal(err)
	}
	names := func(hooks map[string]any) []string { return slices.Sorted(maps.Keys(hooks)) }
	if !slices.Equal(names(older.Webhooks), names(newer.Webhooks)) || len(newer.Webhooks) == 0 {
		t.Errorf("3.0 has %v, 3.1 has %v", names(older.Webhooks), names(newer.Webhooks))
	}
}

func TestNoKeyStandsTwice(t *testing.T) {
	t.Parallel()
	for name, files := range map[string]fstest.MapFS{
		"in two files": {"a.yaml": {Data: []byte("paths: {/a: {get: {}}}")}, "b.yaml": {Data: []byte("paths: {/a: {get: 1}}")}},
		"in one file":  {"a.yaml": {Data: []byte("a: 1\na: 2")}},
	} {
		if doc, err := assemble(files, webhooksAside); err == nil {
			t.Errorf("%s: no error, but %s", name, doc)
		}
	}
}

func TestKeysKeepTheirOrder(t *testing.T) {
	t.Parallel()
	doc, err := assemble(fstest.MapFS{
		"openapi.yaml": {Data: []byte("x-z: 1\ninfo: {version: '1', title: t}\npaths: {/b: {summary: b}, /a: {summary: a}}\ncomponents: {}")},
		"a.yaml":       {Data: []byte(`{paths: {/0: {summary: "2026-01-02"}}, webhooks: {b: {description: d}, a: {description: d, summary: s}}, openapi: 3.0.3}`)},
	}, webhooksAside)
	if want := `{"x-z":1,"info":{"version":"1","title":"t"},"paths":{"/b":{"summary":"b"},"/a":{"summary":"a"},"/0":{"summary":"2026-01-02"}},` +
		`"components":{},"openapi":"3.0.3","x-webhooks":{"b":{"description":"d"},"a":{"description":"d","summary":"s"}}}`; err != nil || string(doc) != want {
		t.Errorf("%s %v, want %s", doc, err, want)
	}
}

// What the service announces, pinned by golden files beside the sender, is what
// the document describes.
func TestTheDocumentDescribesEveryWebhookAsItIsSent(t *testing.T) {
	t.Parallel()
	checker, err := apicheck.New(Document())
	if err != nil {
		t.Fatal(err)
	}
	var head struct {
		Webhooks map[string]struct {
			Post struct {
				RequestBody struct {
					Content map[string]struct {
						Schema struct {
							Ref string `json:"$ref"`
						} `json:"schema"`
					} `json:"content"`
				} `json:"requestBody"`
			} `json:"post"`
		} `json:"x-webhooks"`
	}
	if err := json.Unmarshal(Document(), &head); err != nil {
		t.Fatal(err)
	}
	sent, err := filepath.Glob("../../webhooks/testdata/*.json")
	if err != nil || len(sent) == 0 {
		t.Fatalf("no golden files: %v", err)
	}
	seen := map[string]bool{}
	for _, name := range sent {
		body, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var envelope struct{ Event string }
		if err := json.Unmarshal(body, &envelope); err != nil {
			t.Fatal(err)
		}
		seen[envelope.Event] = true
		schema := path.Base(head.Webhooks[envelope.Event].Post.RequestBody.Content["application/json"].Schema.Ref)
		if err := checker.Schema(schema, body); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for event := range head.Webhooks {
		if !seen[event] {
			t.Errorf("%s is described and never sent", event)
		}
	}
}
