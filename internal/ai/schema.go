package ai

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// errMalformed says that the model's answer does not fit the question. The model may be
// asked again, once.
var errMalformed = errors.New("the answer does not fit the question")

// schema is the required form of an answer, for the server and for us. It keeps to the
// subset that servers enforce ("strict"); lengths and references are checked after it.
type schema struct {
	name     string
	document any // as it is sent
	compiled *jsonschema.Schema
}

func newSchema(name, text string) schema {
	document, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		panic(err) // a constant of ours
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource(name, document); err != nil {
		panic(err)
	}
	return schema{name: name, document: document, compiled: compiler.MustCompile(name)}
}

// decode validates an answer and reads it. Its errors quote nothing of it.
func (s schema) decode(answer string, into any) error {
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(answer))
	if err != nil {
		return fmt.Errorf("%w: it is not JSON", errMalformed)
	}
	if s.compiled.Validate(value) != nil {
		return fmt.Errorf("%w: it does not match the schema", errMalformed)
	}
	if json.Unmarshal([]byte(answer), into) != nil {
		return fmt.Errorf("%w: it does not decode", errMalformed)
	}
	return nil
}

var checklistSchema = newSchema("checklist", `{
	"type": "object", "additionalProperties": false, "required": ["items"],
	"properties": {"items": {"type": "array", "items": {
		"type": "object", "additionalProperties": false,
		"required": ["description", "expectedOutcome", "severity"],
		"properties": {
			"description": {"type": "string"},
			"expectedOutcome": {"type": "string"},
			"severity": {"type": "string", "enum": ["critical", "major", "minor"]}
		}
	}}}
}`)

var analysisSchema = newSchema("analysis", `{
	"type": "object", "additionalProperties": false,
	"required": ["executiveSummary", "bugs", "strengths", "recommendations"],
	"properties": {
		"executiveSummary": {"type": "string"},
		"bugs": {"type": "array", "items": {
			"type": "object", "additionalProperties": false,
			"required": ["itemId", "title", "description", "reproductionSteps", "suggestedFix"],
			"properties": {
				"itemId": {"type": "string"},
				"title": {"type": "string"},
				"description": {"type": "string"},
				"reproductionSteps": {"type": "array", "items": {"type": "string"}},
				"suggestedFix": {"type": "string"}
			}
		}},
		"strengths": {"type": "array", "items": {"type": "string"}},
		"recommendations": {"type": "array", "items": {"type": "string"}}
	}
}`)
