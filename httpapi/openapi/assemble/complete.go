package assemble

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"

	"humanqa/domain/subscription"
)

// additive is the extension that marks each part that goes beyond the specification.
const additive = "x-additive"

// complete adds the parts that every operation has (package httpapi, order.go): the
// headers of every answer, and the refusals that come before a handler or instead of one.
func complete(doc *openapi3.T) error {
	known, err := takeRefusals(doc)
	if err != nil {
		return err
	}
	for _, item := range doc.Paths.Map() {
		for method, op := range item.Operations() {
			if err := addRefusals(method, op, known); err != nil {
				return err
			}
			completeOperation(op)
		}
	}
	for event, item := range doc.Webhooks {
		for _, op := range item.Operations() {
			completeWebhook(event, op)
		}
	}
	nameEvents(doc)
	return markAdditive(doc)
}

// nameEvents lists the events that can be subscribed to where clients read it.
func nameEvents(doc *openapi3.T) {
	if doc.Components == nil || doc.Components.Schemas["EventName"] == nil {
		return
	}
	names := doc.Components.Schemas["EventName"].Value
	for _, name := range subscription.Names() {
		names.Enum = append(names.Enum, name)
	}
}

// completeOperation adds the headers.
func completeOperation(op *openapi3.Operation) {
	counted := audience(op) != public
	op.Parameters = append(op.Parameters, parameter("RequestId"))
	for status, response := range op.Responses.Map() {
		addHeader(response.Value, "x-request-id", "RequestId")
		if counted && strings.HasPrefix(status, "2") {
			addHeader(response.Value, "X-Warnings", "Warnings")
		}
		if counted && takes(op, "asOf") && (strings.HasPrefix(status, "2") || status == "304") {
			addHeader(response.Value, "X-Log-Position", "LogPosition")
		}
		if counted {
			addHeader(response.Value, "X-RateLimit-Limit", "RateLimit")
			addHeader(response.Value, "X-RateLimit-Remaining", "RateRemaining")
			addHeader(response.Value, "X-RateLimit-Reset", "RateReset")
		}
	}
	for _, media := range bodies(op) {
		nameExample(media)
	}
}

// Audiences are the callers of an operation. The document has one bearer scheme, so the
// files name every audience but clients (x-audience), or ask for no credential.
const (
	clients  = "clients"
	checkers = "checkers"
	hooks    = "hooks"
	public   = "public"
)

func audience(op *openapi3.Operation) string {
	if named, ok := op.Extensions["x-audience"].(string); ok {
		return named
	}
	if op.Security != nil {
		return public
	}
	return clients
}

// bodies are the bodies that an operation takes and answers.
func bodies(op *openapi3.Operation) []*openapi3.MediaType {
	var all []*openapi3.MediaType
	if op.RequestBody != nil {
		all = slices.Collect(maps.Values(op.RequestBody.Value.Content))
	}
	for _, response := range op.Responses.Map() {
		all = slices.AppendSeq(all, maps.Values(response.Value.Content))
	}
	return all
}

// nameExample writes a body's one example as the first of several, which says
// the same: the viewer does not draw an example that has a null in it.
func nameExample(media *openapi3.MediaType) {
	value, ok := media.Example.(map[string]any)
	if !ok {
		return
	}
	media.Example = nil
	media.Examples = openapi3.Examples{"example": {Value: &openapi3.Example{Value: value}}}
}

var webhookHeaders = []string{
	"WebhookSignature", "WebhookEvent", "WebhookUserAgent",
	"WebhookDelivery", "WebhookLog", "WebhookRequest", "WebhookTrace",
	"StandardWebhookId", "StandardWebhookTimestamp", "StandardWebhookSignature",
}

// completeWebhook adds the parts that are the same for every kind of event.
func completeWebhook(event string, op *openapi3.Operation) {
	op.OperationID = "on"
	for _, word := range strings.FieldsFunc(event, func(c rune) bool { return c == '.' || c == '_' }) {
		op.OperationID += strings.ToUpper(word[:1]) + word[1:]
	}
	for _, name := range webhookHeaders {
		op.Parameters = append(op.Parameters, parameter(name))
	}
	op.Tags = []string{"Webhooks"}
	taken := "Any 2xx: taken. Anything else, a redirect too, is retried after 1, 10 and 60 seconds with the same bytes; when the third retry fails, the webhook is disabled."
	op.Responses = &openapi3.Responses{}
	op.Responses.Set("2XX", &openapi3.ResponseRef{Value: &openapi3.Response{Description: &taken}})
}

// markAdditive puts the mark x-additive into words, for people who read a viewer.
func markAdditive(doc *openapi3.T) error {
	operations := slices.Collect(maps.Values(doc.Webhooks))
	operations = slices.AppendSeq(operations, maps.Values(doc.Paths.Map()))
	for _, item := range operations {
		for _, op := range item.Operations() {
			if op.Extensions[additive] == true {
				op.Extensions["x-badges"] = []map[string]string{{"label": "additive", "color": "grey"}}
				op.Description = inWords(op.Description)
			}
			for _, response := range op.Responses.Map() {
				if response.Value.Extensions[additive] == true {
					*response.Value.Description = inWords(*response.Value.Description)
				}
			}
		}
	}
	err := doc.WalkParameters(func(_ string, p *openapi3.ParameterRef) error {
		if p.Value.Extensions[additive] == true {
			p.Value.Description = inWords(p.Value.Description)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return doc.WalkSchemas(func(_ string, s *openapi3.SchemaRef) error {
		for name, property := range s.Value.Properties {
			alone, err := withoutSiblings(property)
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			s.Value.Properties[name] = alone
		}
		if s.Value.Extensions[additive] == true {
			s.Value.Description = inWords(s.Value.Description)
		}
		return nil
	})
}

func inWords(description string) string {
	description = strings.TrimSuffix(strings.TrimRight(description, "\n "), "Additive.")
	return strings.TrimSpace(strings.TrimRight(description, " ") + " Additive.")
}

// withoutSiblings makes a list of one of a schema that is referred to and marked or
// described: fields beside a $ref do not count (OpenAPI 3.0, "Reference Object").
func withoutSiblings(ref *openapi3.SchemaRef) (*openapi3.SchemaRef, error) {
	if ref.Ref == "" {
		return ref, nil
	}
	raw, err := json.Marshal(ref) // the reference has no fields for them
	if err != nil {
		return nil, err
	}
	beside := openapi3.NewSchema()
	if err := json.Unmarshal(raw, beside); err != nil {
		return nil, err
	}
	delete(beside.Extensions, "$ref")
	if len(beside.Extensions) == 0 && beside.Description == "" {
		return ref, nil
	}
	beside.AllOf = openapi3.SchemaRefs{openapi3.NewSchemaRef(ref.Ref, ref.Value)}
	beside.Description = cmp.Or(beside.Description, ref.Value.Description)
	return beside.NewRef(), nil
}

func parameter(name string) *openapi3.ParameterRef {
	return &openapi3.ParameterRef{Ref: "#/components/parameters/" + name}
}

func addHeader(response *openapi3.Response, header, component string) {
	if response.Headers == nil {
		response.Headers = openapi3.Headers{}
	}
	response.Headers[header] = &openapi3.HeaderRef{Ref: "#/components/headers/" + component}
}
