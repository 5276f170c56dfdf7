package assemble

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
)

// refusal is a refusal that errors.yaml names. Its other keys are the envelope's.
type refusal struct {
	Status     int    `json:"status"`
	Code       string `json:"code"`
	When       string `json:"when"`
	RetryAfter bool   `json:"retryAfter"`
	envelope   map[string]any
}

// takeRefusals removes the names from the document and puts an envelope of each
// among its examples.
func takeRefusals(doc *openapi3.T) (map[string]refusal, error) {
	raw, err := json.Marshal(doc.Extensions["x-refusals"])
	if err != nil {
		return nil, err
	}
	delete(doc.Extensions, "x-refusals")
	var named map[string]refusal
	if err := json.Unmarshal(raw, &named); err != nil {
		return nil, fmt.Errorf("x-refusals: %w", err)
	}
	var envelopes map[string]map[string]any
	if err := json.Unmarshal(raw, &envelopes); err != nil {
		return nil, fmt.Errorf("x-refusals: %w", err)
	}
	for name, r := range named {
		r.envelope = envelopes[name]
		for _, ours := range []string{"status", "when", "retryAfter"} {
			delete(r.envelope, ours)
		}
		r.envelope["requestId"] = exampleID
		named[name] = r
		if doc.Components.Examples == nil {
			doc.Components.Examples = openapi3.Examples{}
		}
		doc.Components.Examples[name] = &openapi3.ExampleRef{Value: &openapi3.Example{Summary: r.When, Value: r.envelope}}
	}
	return named, nil
}

// exampleID is the request id of every example.
const exampleID = "7k2m9qxw4t1bz0hc"

// addRefusals turns the names of an operation's refusals, its own (x-refusals) and those
// of all operations, into responses. Each status has one, which lists the codes in words
// and shows the envelope of each case.
func addRefusals(method string, op *openapi3.Operation, known map[string]refusal) error {
	names := commonRefusals(method, op)
	own, _ := op.Extensions["x-refusals"].([]any)
	delete(op.Extensions, "x-refusals")
	for _, name := range own {
		names = append(names, fmt.Sprint(name))
	}
	byStatus := map[int][]string{}
	for _, name := range names {
		refusal, ok := known[name]
		if !ok {
			return fmt.Errorf("%s: there is no refusal %s", op.OperationID, name)
		}
		byStatus[refusal.Status] = append(byStatus[refusal.Status], name)
	}
	for status, names := range byStatus {
		key := strconv.Itoa(status)
		if op.Responses.Value(key) != nil {
			return fmt.Errorf("%s: %d stands twice", op.OperationID, status)
		}
		op.Responses.Set(key, &openapi3.ResponseRef{Value: refusalResponse(status, names, known, replays(op))})
	}
	return nil
}

// commonRefusals are the refusals that come before a handler, or instead of its answer.
func commonRefusals(method string, op *openapi3.Operation) []string {
	var names []string
	writes := method != http.MethodGet && method != http.MethodHead
	_, readOnlyToo := op.Extensions["x-read-only-keys"]
	delete(op.Extensions, "x-read-only-keys")
	switch audience(op) {
	case clients:
		names = []string{"KeyMissing", "KeyInvalid", "Suspended"}
		if writes && !readOnlyToo {
			names = append(names, "ReadOnly")
		}
	case checkers:
		names = []string{"KeyMissing", "KeyInvalid"}
	case hooks:
		names = []string{"HookNotFound", "Suspended"}
	default:
		return []string{"Malformed", "Internal", "Away"}
	}
	names = append(names, "RateLimited", "Internal", "Away")
	switch {
	case takes(op, "asOf"):
		names = append(names, "AsOf", "TooManyPast", "MomentOfAnotherLog", "MomentGone")
	case !writes && audience(op) == clients:
		names = append(names, "NoMoment")
	}
	if writes {
		names = append(names, "BodyBroken", "TooLarge", "Encoding")
		if op.RequestBody != nil && op.RequestBody.Value.Content["application/json"] != nil {
			names = append(names, "Fields", "NotJson")
		}
	}
	if replays(op) {
		names = append(names, "KeyHeader", "KeyUsed", "KeyInFlight")
	}
	return names
}

// replays says whether the operation honours an Idempotency-Key.
func replays(op *openapi3.Operation) bool { return takes(op, "Idempotency-Key") }

func takes(op *openapi3.Operation, name string) bool {
	return slices.ContainsFunc(op.Parameters, func(p *openapi3.ParameterRef) bool {
		return p.Value != nil && p.Value.Name == name
	})
}

func refusalResponse(status int, names []string, known map[string]refusal, replays bool) *openapi3.Response {
	response := &openapi3.Response{Headers: openapi3.Headers{}}
	examples := openapi3.Examples{}
	var codes []string
	cases := map[string][]string{}
	for _, name := range names {
		refusal := known[name]
		if cases[refusal.Code] == nil {
			codes = append(codes, refusal.Code)
		}
		cases[refusal.Code] = append(cases[refusal.Code], refusal.When)
		examples[name] = &openapi3.ExampleRef{Ref: "#/components/examples/" + name}
		if refusal.RetryAfter {
			addHeader(response, "Retry-After", "RetryAfter")
		}
	}
	switch status {
	case http.StatusUnauthorized:
		addHeader(response, "WWW-Authenticate", "Authenticate")
	case http.StatusUnsupportedMediaType:
		addHeader(response, "Accept-Encoding", "AcceptEncoding")
	}
	if replays && slices.Contains([]int{http.StatusPaymentRequired, http.StatusNotFound, http.StatusConflict}, status) {
		addHeader(response, "Idempotent-Replayed", "IdempotentReplayed")
	}
	for i, code := range codes {
		codes[i] = code + ": " + strings.Join(cases[code], "; ") + "."
	}
	words := strings.Join(codes, " ")
	response.Description = &words
	if status == http.StatusServiceUnavailable || status == http.StatusGone || status == http.StatusUnsupportedMediaType {
		response.Extensions = map[string]any{additive: true}
	}
	response.Content = openapi3.Content{"application/json": {
		Schema:   &openapi3.SchemaRef{Ref: "#/components/schemas/Error"},
		Examples: examples,
	}}
	return response
}
