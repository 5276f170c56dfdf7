package openapi

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

var methods = []string{"get", "head", "post", "put", "patch", "delete"}

// complete adds to every operation what holds for all of them (package httpapi,
// api.go): the headers of every answer, and the refusals that come before a
// handler or instead of one.
func complete(doc *yaml.Node) error {
	paths := get(doc, "paths")
	known := take(doc, "x-refusals")
	for i := 1; i < len(paths.Content); i += 2 {
		item := paths.Content[i]
		for j := 0; j < len(item.Content); j += 2 {
			if method := item.Content[j].Value; slices.Contains(methods, method) {
				op := item.Content[j+1]
				if err := addRefusals(method, op, known); err != nil {
					return err
				}
				completeOperation(op)
			}
		}
	}
	putExamples(doc, known)
	if hooks := get(doc, "x-webhooks"); hooks != nil {
		for i := 1; i < len(hooks.Content); i += 2 {
			completeWebhook(get(hooks.Content[i], "post"))
		}
	}
	markAdditive(doc, get(get(doc, "components"), "schemas"))
	nameExamples(doc)
	return nil
}

// nameExamples writes a body's one example as the first of several, which says
// the same: the viewer does not draw an example that has a null in it.
func nameExamples(n *yaml.Node) {
	for i := 0; n.Kind == yaml.MappingNode && i < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if key.Value != "example" || value.Kind != yaml.MappingNode || get(n, "schema") == nil {
			continue
		}
		named, wrapped := &yaml.Node{Kind: yaml.MappingNode}, &yaml.Node{Kind: yaml.MappingNode}
		put(wrapped, "value", value)
		put(named, "example", wrapped)
		n.Content[i] = text("examples")
		n.Content[i+1] = named
	}
	for _, c := range n.Content {
		nameExamples(c)
	}
}

// markAdditive says in words, for those who read a viewer, what x-additive says
// to programs. A schema that is referred to and marked becomes a list of one,
// with the same description: what stands beside a $ref does not count (OpenAPI
// 3.0, "Reference Object").
func markAdditive(n, schemas *yaml.Node) {
	for _, c := range n.Content {
		markAdditive(c, schemas)
	}
	if n.Kind != yaml.MappingNode {
		return
	}
	if ref := get(n, "$ref"); ref != nil && len(n.Content) > 2 {
		take(n, "$ref")
		one := &yaml.Node{Kind: yaml.MappingNode}
		put(one, "$ref", ref)
		put(n, "allOf", &yaml.Node{Kind: yaml.SequenceNode, Content: []*yaml.Node{one}})
		name := ref.Value[strings.LastIndex(ref.Value, "/")+1:]
		if described := get(get(schemas, name), "description"); described != nil && get(n, "description") == nil {
			put(n, "description", text(described.Value))
		}
	}
	marked := get(n, "x-additive")
	if marked == nil || marked.Value != "true" {
		return
	}
	if get(n, "operationId") != nil {
		badge := &yaml.Node{Kind: yaml.MappingNode}
		put(badge, "label", text("additive"))
		put(badge, "color", text("grey"))
		put(n, "x-badges", &yaml.Node{Kind: yaml.SequenceNode, Content: []*yaml.Node{badge}})
	}
	description := get(n, "description")
	if description == nil {
		put(n, "description", text("Additive."))
		return
	}
	words := strings.TrimSuffix(strings.TrimRight(description.Value, "\n "), " Additive.")
	*description = *text(words + " Additive.")
}

// early refusals may come before the request is counted.
var early = []string{"403", "500", "503"}

// completeOperation adds the headers.
func completeOperation(op *yaml.Node) {
	responses := get(op, "responses")
	counted := credential(op) != ""
	if get(op, "parameters") == nil {
		put(op, "parameters", &yaml.Node{Kind: yaml.SequenceNode})
	}
	parameters := get(op, "parameters")
	parameters.Content = append(parameters.Content, reference("parameters", "RequestId"))
	for i := 0; i < len(responses.Content); i += 2 {
		addHeader(responses.Content[i+1], "x-request-id", "RequestId")
		switch {
		case !counted:
		case slices.Contains(early, responses.Content[i].Value):
			addRateLimit(responses.Content[i+1], "IfCounted")
		default:
			addRateLimit(responses.Content[i+1], "")
		}
	}
}

// credential is the operation's security scheme; nobody is asked who they are
// where it is empty.
func credential(op *yaml.Node) string {
	own := get(op, "security")
	switch {
	case own == nil:
		return "apiKey"
	case len(own.Content) == 0:
		return ""
	}
	return own.Content[0].Content[0].Value
}

var webhookHeaders = []string{
	"WebhookSignature", "WebhookPreviousSignature", "WebhookEvent", "WebhookUserAgent",
	"WebhookDelivery", "StandardWebhookId", "StandardWebhookTimestamp", "StandardWebhookSignature",
}

// completeWebhook adds what is the same for every kind of event.
func completeWebhook(op *yaml.Node) {
	parameters := &yaml.Node{Kind: yaml.SequenceNode}
	for _, name := range webhookHeaders {
		parameters.Content = append(parameters.Content, reference("parameters", name))
	}
	put(op, "parameters", parameters)
	tags := &yaml.Node{Kind: yaml.SequenceNode, Content: []*yaml.Node{text("Webhooks")}}
	put(op, "tags", tags)
	responses, taken := &yaml.Node{Kind: yaml.MappingNode}, &yaml.Node{Kind: yaml.MappingNode}
	put(taken, "description", text("Any 2xx: taken. Anything else, a redirect too, is retried after 1, 10 and 60 seconds with the same bytes; when the third retry fails, the webhook is disabled."))
	put(responses, "2XX", taken)
	put(op, "responses", responses)
}

func addRateLimit(response *yaml.Node, suffix string) {
	addHeader(response, "X-RateLimit-Limit", "RateLimit"+suffix)
	addHeader(response, "X-RateLimit-Remaining", "RateRemaining"+suffix)
	addHeader(response, "X-RateLimit-Reset", "RateReset"+suffix)
}

func addHeader(response *yaml.Node, header, component string) {
	if get(response, "headers") == nil {
		put(response, "headers", &yaml.Node{Kind: yaml.MappingNode})
	}
	put(get(response, "headers"), header, reference("headers", component))
}

func reference(kind, name string) *yaml.Node {
	n := &yaml.Node{Kind: yaml.MappingNode}
	put(n, "$ref", text("#/components/"+kind+"/"+name))
	return n
}

func text(s string) *yaml.Node { return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s} }
