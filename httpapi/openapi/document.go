package openapi

import (
	"bytes"
	"encoding/json"
)

type operation struct {
	OperationID string
	Tags        []string
	Additive    bool `json:"x-additive"`
	Summary     string
	Description string
	Parameters  []parameter
	RequestBody *content
	Responses   json.RawMessage
}

type parameter struct {
	Ref         string `json:"$ref"`
	Name        string
	In          string
	Required    bool
	Description string
	Additive    bool `json:"x-additive"`
	Schema      *schema
}

type content struct {
	Description string
	Content     map[string]struct {
		Schema   *schema
		Example  json.RawMessage
		Examples json.RawMessage
	}
}

type member struct {
	name string
	raw  json.RawMessage
}

// members are the members of an object, in their order; none of any other value.
func members(raw json.RawMessage) (all []member) {
	d := json.NewDecoder(bytes.NewReader(raw))
	if begin, err := d.Token(); err != nil || begin != json.Delim('{') {
		return nil
	}
	for d.More() {
		name, err := d.Token()
		text, isText := name.(string)
		m := member{name: text}
		if err != nil || !isText || d.Decode(&m.raw) != nil {
			return all
		}
		all = append(all, m)
	}
	return all
}
