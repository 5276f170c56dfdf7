package ai

import (
	"embed"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/google/jsonschema-go/jsonschema"
)

// errMalformed says that the model's answer does not fit the question. The model may be
// asked again, once.
var errMalformed = errors.New("the answer does not fit the question")

// schema is the required form of an answer, for the server and for us. It keeps to the
// subset that servers enforce ("strict"); lengths and references are checked after it.
type schema struct {
	name     string
	document json.RawMessage // as it is sent
	resolved *jsonschema.Resolved
}

//go:embed *.schema.json
var schemaFiles embed.FS

var checklistSchema, analysisSchema = newSchema("checklist"), newSchema("analysis")

func newSchema(name string) schema {
	text, err := schemaFiles.ReadFile(name + ".schema.json")
	if err != nil {
		panic(err) // a file of ours
	}
	var document jsonschema.Schema
	if err := json.Unmarshal(text, &document); err != nil {
		panic(err)
	}
	resolved, err := document.Resolve(nil)
	if err != nil {
		panic(err)
	}
	return schema{name: name, document: text, resolved: resolved}
}

// decode validates an answer and reads it. Its errors quote nothing of it.
func (s schema) decode(answer string, into any) error {
	var value any
	if json.Unmarshal([]byte(answer), &value) != nil {
		return fmt.Errorf("%w: it is not JSON", errMalformed)
	}
	if s.resolved.Validate(value) != nil {
		return fmt.Errorf("%w: it does not match the schema", errMalformed)
	}
	if json.Unmarshal([]byte(answer), into) != nil {
		return fmt.Errorf("%w: it does not decode", errMalformed)
	}
	return nil
}
