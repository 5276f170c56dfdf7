package openapi

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// addRefusals turns the names of an operation's refusals, its own (x-refusals)
// and those that everybody gets, into responses: one a status, which lists the
// codes in words and shows the envelope of each case.
func addRefusals(method string, op, known *yaml.Node) error {
	names := commonRefusals(method, op)
	if own := take(op, "x-refusals"); own != nil {
		for _, n := range own.Content {
			names = append(names, n.Value)
		}
	}
	if known == nil { // a test's document
		return nil
	}
	byStatus := map[string][]string{}
	for _, name := range names {
		refusal := get(known, name)
		if refusal == nil {
			return fmt.Errorf("%s: there is no refusal %s", get(op, "operationId").Value, name)
		}
		status := get(refusal, "status").Value
		byStatus[status] = append(byStatus[status], name)
	}
	responses := get(op, "responses")
	for _, status := range statusOrder {
		names := byStatus[status]
		switch {
		case names != nil && get(responses, status) != nil:
			return fmt.Errorf("%s: %s stands twice", get(op, "operationId").Value, status)
		case names != nil:
			put(responses, status, refusalResponse(status, names, known, replays(op)))
		}
	}
	return nil
}

var statusOrder = []string{"400", "401", "402", "403", "404", "409", "413", "429", "500", "503"}

// commonRefusals are those of the way to a handler, and of losing it.
func commonRefusals(method string, op *yaml.Node) []string {
	var names []string
	switch credential(op) {
	case "apiKey":
		names = []string{"KeyMissing", "KeyInvalid", "Suspended"}
		if scope := take(op, "x-read-only-keys"); method != "get" && scope == nil {
			names = append(names, "ReadOnly")
		}
	case "checkerKey":
		names = []string{"KeyMissing", "KeyInvalid"}
	case "hookToken":
		names = []string{"HookNotFound", "Suspended"}
	default:
		return []string{"Internal", "Away"}
	}
	names = append(names, "RateLimited", "Internal", "Away")
	if method != "get" {
		names = append(names, "BodyBroken", "TooLarge")
		if body := get(op, "requestBody"); body != nil && get(get(body, "content"), "application/json") != nil {
			names = append(names, "Fields", "NotJson")
		}
	}
	if replays(op) {
		names = append(names, "KeyHeader", "KeyUsed", "KeyInFlight")
	}
	return names
}

// replays says whether the operation honours an Idempotency-Key.
func replays(op *yaml.Node) bool {
	parameters := get(op, "parameters")
	return parameters != nil && slices.ContainsFunc(parameters.Content, func(p *yaml.Node) bool {
		ref := get(p, "$ref")
		return ref != nil && strings.HasSuffix(ref.Value, "/IdempotencyKey")
	})
}

func refusalResponse(status string, names []string, known *yaml.Node, replays bool) *yaml.Node {
	headers, examples := &yaml.Node{Kind: yaml.MappingNode}, &yaml.Node{Kind: yaml.MappingNode}
	var codes []string
	cases := map[string][]string{}
	for _, name := range names {
		refusal := get(known, name)
		code := get(refusal, "code").Value
		if cases[code] == nil {
			codes = append(codes, code)
		}
		cases[code] = append(cases[code], get(refusal, "when").Value)
		put(examples, name, reference("examples", name))
		if get(refusal, "retryAfter") != nil && get(headers, "Retry-After") == nil {
			put(headers, "Retry-After", reference("headers", "RetryAfter"))
		}
	}
	if status == "401" {
		put(headers, "WWW-Authenticate", reference("headers", "Authenticate"))
	}
	if replays && slices.Contains([]string{"402", "404", "409"}, status) {
		put(headers, "Idempotent-Replayed", reference("headers", "IdempotentReplayed"))
	}
	var words []string
	for _, code := range codes {
		words = append(words, code+": "+strings.Join(cases[code], "; ")+".")
	}
	response, content, media := &yaml.Node{Kind: yaml.MappingNode}, &yaml.Node{Kind: yaml.MappingNode}, &yaml.Node{Kind: yaml.MappingNode}
	put(response, "description", text(strings.Join(words, " ")))
	if status == "503" {
		put(response, "x-additive", &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!bool", Value: "true"})
	}
	if len(headers.Content) > 0 {
		put(response, "headers", headers)
	}
	put(media, "schema", reference("schemas", "Error"))
	put(media, "examples", examples)
	put(content, "application/json", media)
	put(response, "content", content)
	return response
}

// exampleID is the request id of every example.
const exampleID = "7k2m9qxw4t1bz0hc"

// putExamples makes an envelope of each refusal.
func putExamples(doc, known *yaml.Node) {
	if known == nil {
		return
	}
	examples := &yaml.Node{Kind: yaml.MappingNode}
	for i := 0; i < len(known.Content); i += 2 {
		example, value := &yaml.Node{Kind: yaml.MappingNode}, &yaml.Node{Kind: yaml.MappingNode}
		refusal := known.Content[i+1]
		for j := 0; j < len(refusal.Content); j += 2 {
			switch key := refusal.Content[j].Value; key {
			case "status", "retryAfter":
			case "when":
				put(example, "summary", refusal.Content[j+1])
			default:
				put(value, key, refusal.Content[j+1])
			}
		}
		put(value, "requestId", text(exampleID))
		put(example, "value", value)
		put(examples, known.Content[i].Value, example)
	}
	put(get(doc, "components"), "examples", examples)
}
