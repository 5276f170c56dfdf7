package openapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"humanqa/httpapi/openapi/assemble"
	"humanqa/internal/testing/apicheck"
	"humanqa/internal/testing/must"
)

func load(t *testing.T) *openapi3.T {
	t.Helper()
	doc, err := openapi3.NewLoader().LoadFromData(Document())
	must.NoError(t, err)
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
		must.NoError(t, err)
		found := map[string]bool{}
		err = doc.WalkSchemas(func(at string, s *openapi3.SchemaRef) error {
			if !strings.HasPrefix(at, "/webhooks") { // 3.0 has them aside
				found[at] = s.Value.Nullable || s.Value.Type.Includes(openapi3.TypeNull)
			}
			return nil
		})
		must.NoError(t, err)
		return found
	}
	if older, newer := nullable(Document()), nullable(Document31()); !maps.Equal(older, newer) || len(older) == 0 {
		t.Errorf("3.0 has\n%v\n3.1 has\n%v", older, newer)
	}
	var older struct {
		Webhooks map[string]any `json:"x-webhooks"`
	}
	var newer struct{ Webhooks map[string]any }
	must.NoError(t, errors.Join(json.Unmarshal(Document(), &older), json.Unmarshal(Document31(), &newer)))
	names := func(hooks map[string]any) []string { return slices.Sorted(maps.Keys(hooks)) }
	if !slices.Equal(names(older.Webhooks), names(newer.Webhooks)) || len(newer.Webhooks) == 0 {
		t.Errorf("3.0 has %v, 3.1 has %v", names(older.Webhooks), names(newer.Webhooks))
	}
}

// What is served is what the files say.
func TestTheDocumentIsTheOneOfTheFiles(t *testing.T) {
	t.Parallel()
	v30, v31, err := assemble.Documents(os.DirFS("."), os.DirFS("../../webhooks/testdata"))
	must.NoError(t, err)
	for name, document := range map[string]struct{ made, is []byte }{"openapi.json": {v30, Document()}, "openapi-3.1.json": {v31, Document31()}} {
		if !bytes.Equal(document.made, document.is) {
			t.Errorf("%s is not what the files say: run make openapi", name)
		}
	}
}

// What the service announces, pinned by golden files beside the sender, is what
// the document describes.
func TestTheDocumentDescribesEveryWebhookAsItIsSent(t *testing.T) {
	t.Parallel()
	checker, err := apicheck.New(Document())
	must.NoError(t, err)
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
	must.NoError(t, json.Unmarshal(Document(), &head))
	sent, err := filepath.Glob("../../webhooks/testdata/*.json")
	if err != nil || len(sent) == 0 {
		t.Fatalf("no golden files: %v", err)
	}
	seen := map[string]bool{}
	for _, name := range sent {
		body, err := os.ReadFile(name)
		must.NoError(t, err)
		var envelope struct{ Event string }
		must.NoError(t, json.Unmarshal(body, &envelope))
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
