package openapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"

	"humanqa/domain/announce"
)

// EventType is a kind of event that webhooks carry, as the catalogue shows it: its
// description in the document, and when the service sends it.
type EventType struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Sent        string          `json:"sent"`
	Additive    bool            `json:"additive"` // beyond the specification
	Schema      json.RawMessage `json:"schema"`   // JSON Schema 2020-12, whole
	Examples    []EventExample  `json:"examples"`
}

// EventExample is a body as it is sent.
type EventExample struct {
	Summary string          `json:"summary"`
	Value   json.RawMessage `json:"value"`
}

// schemaDialect is the dialect of OpenAPI 3.1.
const schemaDialect = "https://json-schema.org/draft/2020-12/schema"

// modern is what is read from the document in OpenAPI 3.1, whose schemas are JSON Schema.
type modern struct {
	Webhooks   json.RawMessage
	Components struct{ Schemas map[string]json.RawMessage }
}

func document31() *modern {
	doc := new(modern)
	check(json.Unmarshal(Document31(), doc))
	return doc
}

// EventTypes is the catalogue, in the document's order. The document has descriptions,
// schemas and examples; domain/announce says when a kind is sent.
var EventTypes = sync.OnceValue(func() (all []EventType) {
	doc := document31()
	for _, hook := range members(doc.Webhooks) {
		op := decoded[struct {
			Post struct {
				Description string
				Additive    bool `json:"x-additive"`
				RequestBody struct {
					Content map[string]struct {
						Schema   json.RawMessage
						Examples json.RawMessage
					}
				}
			}
		}](hook.raw).Post
		body := op.RequestBody.Content["application/json"]
		event := EventType{
			Name: hook.name, Description: op.Description, Sent: sentWhen(hook.name), Additive: op.Additive,
			Schema: wholeSchema(body.Schema, doc.Components.Schemas),
		}
		for _, m := range members(body.Examples) {
			event.Examples = append(event.Examples, *decoded[EventExample](m.raw))
		}
		all = append(all, event)
	}
	return all
})

// sentWhen says which webhooks get a kind of event.
func sentWhen(name string) string {
	at := slices.IndexFunc(announce.Kinds(), func(k announce.Kind) bool { return k.Name == name })
	switch {
	case at < 0:
		return "Only when a test event is asked for."
	case announce.Kinds()[at].OfAccount, announce.Kinds()[at].Listed:
		return "Only where subscribedWebhookEvents names it."
	case announce.Kinds()[at].Subscribable, announce.Kinds()[at].Nameable:
		return "Where subscribedWebhookEvents names it, and while that list was never set."
	}
	return "Only while subscribedWebhookEvents was never set: a list cannot name it."
}

var schemaRef = regexp.MustCompile(`"#/components/schemas/([^"]+)"`)

// wholeSchema is a schema with all schemas that it refers to, so that it stands alone.
func wholeSchema(one json.RawMessage, shared map[string]json.RawMessage) json.RawMessage {
	defs := map[string]json.RawMessage{}
	var gather func(raw []byte) []byte
	gather = func(raw []byte) []byte {
		for _, found := range schemaRef.FindAllSubmatch(raw, -1) {
			name := string(found[1])
			if _, known := defs[name]; !known {
				defs[name] = nil // it may refer to itself
				defs[name] = gather(shared[name])
			}
		}
		return schemaRef.ReplaceAll(raw, []byte(`"#/$$defs/$1"`))
	}
	root := members(gather(one))
	var out bytes.Buffer
	fmt.Fprintf(&out, `{"$schema":%q`, schemaDialect)
	for _, m := range root {
		fmt.Fprintf(&out, `,%q:%s`, m.name, m.raw)
	}
	out.WriteString(`,"$defs":{`)
	for i, name := range slices.Sorted(maps.Keys(defs)) {
		if i > 0 {
			out.WriteString(",")
		}
		fmt.Fprintf(&out, `%q:%s`, name, defs[name])
	}
	out.WriteString("}}")
	return out.Bytes()
}

const eventsFile = "webhooks.json"

// eventCatalogue is the catalogue as JSON, for programs that make types of it.
var eventCatalogue = sync.OnceValue(func() File {
	return NewFile("application/json", made(json.MarshalIndent(struct {
		Events []EventType `json:"events"`
	}{EventTypes()}, "", " ")))
})

// eventView is a kind of event on its page.
type eventView struct {
	EventType
	ID     string
	Fields []fieldView
	Bodies []listing
	Schema string
}

// eventsOf are the kinds of events of the operations that announce them.
func (b *book) eventsOf(operations []operationView) (all []eventView) {
	for _, event := range EventTypes() {
		at := slices.IndexFunc(operations, func(op operationView) bool { return op.Call == event.Name })
		body := operations[at].Body
		data := decoded[struct{ Data schema }](b.shared[body.Name].Properties).Data
		view := eventView{
			EventType: event, ID: operations[at].ID, Fields: append(body.Fields, b.fields(data, "data.")...),
			Schema: string(indented(event.Schema)),
		}
		for _, e := range event.Examples {
			view.Bodies = append(view.Bodies, listing{Language: e.Summary, Text: string(indented(e.Value))})
		}
		all = append(all, view)
	}
	return all
}

func firstSentence(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if first, _, more := strings.Cut(text, ". "); more {
		return first + "."
	}
	return text
}

func indented(raw json.RawMessage) []byte {
	var out bytes.Buffer
	if json.Indent(&out, raw, "", "  ") != nil {
		return raw
	}
	return out.Bytes()
}
