package openapi

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"humanqa/internal/testing/must"
)

// Kiota's exceptions, and those of others, have the text of this field as their message.
func TestAnErrorSaysWhichFieldIsItsMessage(t *testing.T) {
	t.Parallel()
	primary := load(t).Components.Schemas["Error"].Value.Properties["error"].Value.Extensions["x-ms-primary-error-message"]
	if primary != true {
		t.Errorf("the field error says %v", primary)
	}
}

// A generator has to make up the name of a class for an object that has none: Data2, Results.
func TestEveryObjectWithFieldsHasAName(t *testing.T) {
	t.Parallel()
	named := 0
	var look func(at string, value any)
	look = func(at string, value any) {
		switch value := value.(type) {
		case map[string]any:
			if _, fields := value["properties"].(map[string]any); fields {
				if name, component := strings.CutPrefix(at, "/components/schemas/"); component && !strings.Contains(name, "/") {
					named++
				} else if !strings.HasSuffix(at, "/properties") { // a field may have that name
					t.Errorf("%s is an object without a name: make it a schema of the components", at)
				}
			}
			for key, of := range value {
				if key != "example" && (key != "examples" || strings.HasSuffix(at, "/properties")) {
					look(at+"/"+key, of)
				}
			}
		case []any:
			for _, of := range value {
				look(at+"/[]", of)
			}
		}
	}
	for _, document := range [][]byte{Document(), Document31()} {
		var all any
		must.NoError(t, json.Unmarshal(document, &all))
		look("", all)
	}
	if named < 200 {
		t.Errorf("%d objects with fields were found", named)
	}
}

// A generated method has one type of answer. NSwag throws at a second one, and Kiota reads it as
// the first.
func TestEverySuccessOfAnOperationHasOneSchema(t *testing.T) {
	t.Parallel()
	several := 0
	operations(load(t), func(name string, _ *openapi3.PathItem, op *openapi3.Operation) {
		first := ""
		for status, response := range op.Responses.Map() {
			media := response.Value.Content["application/json"]
			if media == nil || !strings.HasPrefix(status, "2") {
				continue
			}
			if first != "" {
				several++
			}
			if schema := media.Schema.Ref; first != "" && schema != first {
				t.Errorf("%s answers %s and %s", name, first, schema)
			}
			first = media.Schema.Ref
		}
	})
	if several < 4 {
		t.Errorf("%d operations have several successes", several)
	}
}

// A client that takes a text for JSON, or for a string, loses it; bytes are bytes.
func TestABodyThatIsNoJSONIsBinary(t *testing.T) {
	t.Parallel()
	operations(load(t), func(name string, _ *openapi3.PathItem, op *openapi3.Operation) {
		for status, response := range op.Responses.Map() {
			for media, body := range response.Value.Content {
				if media != "application/json" && !strings.HasSuffix(media, "+json") && body.Schema.Value.Format != "binary" {
					t.Errorf("%s: %s of %s is not binary", name, media, status)
				}
			}
		}
	})
}

// ogen makes one type of the headers of every answer with the same body.
func TestAHeaderIsAlwaysRequiredOrNever(t *testing.T) {
	t.Parallel()
	required := map[string]bool{}
	operations(load(t), func(name string, _ *openapi3.PathItem, op *openapi3.Operation) {
		for status, response := range op.Responses.Map() {
			for header, is := range response.Value.Headers {
				before, seen := required[header]
				if required[header] = is.Value.Required; seen && before != is.Value.Required {
					t.Errorf("%s: %s of %s is required: %v; elsewhere %v", name, header, status, is.Value.Required, before)
				}
			}
		}
	})
	if len(required) < 5 {
		t.Errorf("%d headers were found", len(required))
	}
}
