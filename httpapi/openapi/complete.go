package openapi

import (
	"slices"

	"go.yaml.in/yaml/v3"
)

var methods = []string{"get", "head", "post", "put", "patch", "delete"}

// complete adds to every operation what holds for all of them (package httpapi,
// api.go): the headers of every answer, and the refusals that come before a
// handler or instead of one.
func complete(doc *yaml.Node) {
	paths := get(doc, "paths")
	for i := 1; i < len(paths.Content); i += 2 {
		item := paths.Content[i]
		for j := 0; j < len(item.Content); j += 2 {
			if method := item.Content[j].Value; slices.Contains(methods, method) {
				completeOperation(method, item.Content[j+1])
			}
		}
	}
	responses := get(get(doc, "components"), "responses")
	for i := 0; i < len(responses.Content); i += 2 {
		addHeader(responses.Content[i+1], "x-request-id", "RequestId")
		suffix := ""
		if slices.Contains(early, responses.Content[i].Value) {
			suffix = "IfCounted"
		}
		addRateLimit(responses.Content[i+1], suffix)
	}
	nameExamples(doc)
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
		n.Content[i] = &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: "examples"}
		n.Content[i+1] = named
	}
	for _, c := range n.Content {
		nameExamples(c)
	}
}

// early refusals may come before the request is counted.
var early = []string{"Forbidden", "InternalError", "Unavailable"}

func addRateLimit(response *yaml.Node, suffix string) {
	addHeader(response, "X-RateLimit-Limit", "RateLimit"+suffix)
	addHeader(response, "X-RateLimit-Remaining", "RateRemaining"+suffix)
	addHeader(response, "X-RateLimit-Reset", "RateReset"+suffix)
}

func completeOperation(method string, op *yaml.Node) {
	responses := get(op, "responses")
	limited := true
	if own := get(op, "security"); own != nil && len(own.Content) == 0 {
		limited = false // nobody is asked who they are
	}
	for i := 1; i < len(responses.Content); i += 2 {
		addHeader(responses.Content[i], "x-request-id", "RequestId")
	}
	add := func(status, name string) {
		if get(responses, status) == nil {
			put(responses, status, reference("responses", name))
		}
	}
	if limited {
		if get(op, "parameters") == nil {
			put(op, "parameters", &yaml.Node{Kind: yaml.SequenceNode})
		}
		parameters := get(op, "parameters")
		parameters.Content = append(parameters.Content, reference("parameters", "RequestId"))
		if method == "post" || method == "put" || method == "patch" {
			add("400", "InvalidRequest")
			add("413", "PayloadTooLarge")
		}
		add("401", "Unauthorized")
		add("403", "Forbidden")
		add("429", "RateLimited")
	}
	add("500", "InternalError")
	add("503", "Unavailable")
	if !limited {
		return
	}
	for i := 1; i < len(responses.Content); i += 2 {
		addRateLimit(responses.Content[i], "")
	}
}

func addHeader(response *yaml.Node, header, component string) {
	if get(response, "$ref") != nil {
		return
	}
	if get(response, "headers") == nil {
		put(response, "headers", &yaml.Node{Kind: yaml.MappingNode})
	}
	put(get(response, "headers"), header, reference("headers", component))
}

func reference(kind, name string) *yaml.Node {
	n := &yaml.Node{Kind: yaml.MappingNode}
	put(n, "$ref", &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: "#/components/" + kind + "/" + name})
	return n
}
