package openapi

import (
	"encoding/json"
	"strings"
	"testing"

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
