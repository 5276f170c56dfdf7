package ai

import (
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

func newSchema(name, text string) schema {
	var document jsonschema.Schema
	if err := json.Unmarshal([]byte(text), &document); err != nil {
		panic(err) // a constant of ours
	}
	resolved, err := document.Resolve(nil)
	if err != nil {
		panic(err)
	}
	return schema{name: name, document: json.RawMessage(text), resolved: resolved}
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
