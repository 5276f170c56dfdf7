package openapi

import (
	"encoding/json"
	"testing"
	"testing/fstest"

	"github.com/getkin/kin-openapi/openapi3"
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
	var head struct {
		Paths json.RawMessage `json:"paths"`
	}
	if err := json.Unmarshal(Document(), &head); err != nil {
		t.Fatal(err)
	}
	if string(Document()[:19]) != `{"openapi":"3.0.3",` {
		t.Errorf("begins with %s", Document()[:40])
	}
}
