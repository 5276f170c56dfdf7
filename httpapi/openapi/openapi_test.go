package openapi

import (
	"encoding/json"
	"os"
	"path"
	"path/filepath"
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
	if err := load(t).Validate(t.Context(), openapi3.EnableExamplesValidation()); err != nil {
		t.Error(err)
	}
}

func TestNoKeyStandsTwice(t *testing.T) {
	t.Parallel()
	for name, files := range map[string]fstest.MapFS{
		"in two files": {"a.yaml": {Data: []byte("paths: {/a: {get: {}}}")}, "b.yaml": {Data: []byte("paths: {/a: {get: 1}}")}},
		"in one file":  {"a.yaml": {Data: []byte("a: 1\na: 2")}},
	} {
		if doc, err := assemble(files); err == nil {
			t.Errorf("%s: no error, but %s", name, doc)
		}
	}
}

func TestKeysKeepTheirOrder(t *testing.T) {
	t.Parallel()
	doc, err := assemble(fstest.MapFS{
		"openapi.yaml": {Data: []byte("z: 1\npaths: {/b: {}, /a: {}}\ncomponents: {responses: {}}")},
		"a.yaml":       {Data: []byte(`paths: {/0: {"2": "2026-01-02"}}`)},
	})
	if want := `{"z":1,"paths":{"/b":{},"/a":{},"/0":{"2":"2026-01-02"}},"components":{"responses":{}}}`; err != nil || string(doc) != want {
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
