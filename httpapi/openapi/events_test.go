package openapi

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"humanqa/domain/announce"
	"humanqa/internal/testing/must"
)

// Every type that the service sends stands in the catalogue, as page, text and JSON. Its schema needs
// nothing else, takes each of its examples, and nothing that is no such event.
func TestTheCatalogueHasEveryEventAndItsExamplesFitTheirSchemas(t *testing.T) {
	t.Parallel()
	sent := []string{announce.TestName}
	for _, k := range announce.Kinds() {
		sent = append(sent, k.Name)
	}
	page, text := string(ReferencePages()["webhooks"].Body), string(ReferenceTexts()["webhooks"].Body)
	var file struct{ Events []EventType }
	must.NoError(t, json.Unmarshal(ReferenceFiles()[eventsFile].Body, &file))
	var shown []string
	for _, event := range file.Events {
		shown = append(shown, event.Name)
		if !strings.Contains(page, `-name">`+event.Name+"</h2>") || !strings.Contains(text, "\n### "+event.Name+"\n") {
			t.Errorf("%s is not on the page, or not in the text", event.Name)
		}
		compiler := jsonschema.NewCompiler()
		schema, err := jsonschema.UnmarshalJSON(bytes.NewReader(event.Schema))
		must.NoError(t, err)
		must.NoError(t, compiler.AddResource("event.json", schema))
		compiled, err := compiler.Compile("event.json")
		if err != nil {
			t.Errorf("%s: %v", event.Name, err)
			continue
		}
		if len(event.Examples) == 0 {
			t.Errorf("%s has no example", event.Name)
		}
		for _, example := range event.Examples {
			value, err := jsonschema.UnmarshalJSON(bytes.NewReader(example.Value))
			must.NoError(t, err)
			if err := compiled.Validate(value); err != nil {
				t.Errorf("%s, %s: %v", event.Name, example.Summary, err)
			}
			body := value.(map[string]any)
			if body["event"] != event.Name {
				t.Errorf("%s has the example of %s", event.Name, body["event"])
			}
			delete(body, "data")
			if compiled.Validate(body) == nil {
				t.Errorf("%s: the schema takes a body without data", event.Name)
			}
		}
	}
	slices.Sort(sent)
	slices.Sort(shown)
	if !slices.Equal(sent, shown) {
		t.Errorf("sent are %v\nshown are %v", sent, shown)
	}
}
