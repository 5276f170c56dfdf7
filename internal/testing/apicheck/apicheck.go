// Package apicheck checks answers against the OpenAPI document, for tests. It is
// stricter than a client may be: a status, a header or a field that is not in the
// document is an error here. So the document stays complete.
package apicheck

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
)

// Checker knows one document.
type Checker struct {
	doc   *openapi3.T
	paths []path // literal segments before variables
}

type path struct {
	pattern  string
	segments []string
	item     *openapi3.PathItem
}

// New reads a document in the form in which it is served.
func New(document []byte) (*Checker, error) {
	doc, err := openapi3.NewLoader().LoadFromData(document)
	if err != nil {
		return nil, fmt.Errorf("read the document: %w", err)
	}
	c := &Checker{doc: doc}
	for pattern, item := range doc.Paths.Map() {
		c.paths = append(c.paths, path{pattern: pattern, segments: strings.Split(pattern, "/"), item: item})
	}
	slices.SortFunc(c.paths, func(a, b path) int {
		return strings.Compare(strings.ReplaceAll(a.pattern, "{", "\uffff"), strings.ReplaceAll(b.pattern, "{", "\uffff"))
	})
	c.closeSchemas()
	return c, nil
}

// Operations lists the document's operations, as "GET /v1/jobs/{id}".
func (c *Checker) Operations() []string {
	var out []string
	for _, p := range c.paths {
		for method := range p.item.Operations() {
			out = append(out, method+" "+p.pattern)
		}
	}
	slices.Sort(out)
	return out
}

// Operation gives the document's description of an operation, or nil.
func (c *Checker) Operation(method, pattern string) *openapi3.Operation {
	item := c.doc.Paths.Value(pattern)
	if item == nil {
		return nil
	}
	return item.GetOperation(method)
}

// Response fails if the document does not describe a part of an answer. escaped is
// the request's path as it was sent.
func (c *Checker) Response(method, escaped string, status int, header http.Header, body []byte) error {
	op := c.find(method, escaped)
	if op == nil {
		return c.refusal(method, status, header, body)
	}
	described := op.Responses.Status(status)
	if described == nil {
		return fmt.Errorf("%s does not have the status %d", op.OperationID, status)
	}
	return errors.Join(
		headers(described.Value, status, header),
		content(described.Value, method, header, body),
	)
}

// Schema fails if the named schema of the document does not describe a part of a body.
func (c *Checker) Schema(name string, body []byte) error {
	ref := c.doc.Components.Schemas[name]
	if ref == nil {
		return fmt.Errorf("the document has no schema %q", name)
	}
	return matches(ref.Value, body)
}

func (c *Checker) find(method, escaped string) *openapi3.Operation {
	segments := strings.Split(escaped, "/")
	for _, p := range c.paths {
		if !p.matches(segments) {
			continue
		}
		if method == http.MethodHead && p.item.Head == nil {
			method = http.MethodGet // which answers it, without a body
		}
		return p.item.GetOperation(method)
	}
	return nil
}

func (p path) matches(segments []string) bool {
	if len(segments) != len(p.segments) {
		return false
	}
	for i, s := range p.segments {
		if variable := strings.HasPrefix(s, "{"); variable && segments[i] == "" || !variable && s != segments[i] {
			return false
		}
	}
	return true
}

// refusal checks the answer to a request without an operation: the envelope is the
// same.
func (c *Checker) refusal(method string, status int, header http.Header, body []byte) error {
	if status < 400 {
		return fmt.Errorf("the document has no such operation, and the answer is %d", status)
	}
	if header.Get("X-Request-Id") == "" {
		return errors.New("the answer has no x-request-id")
	}
	if method == http.MethodHead {
		return nil // it has no body
	}
	return matches(c.doc.Components.Schemas["Error"].Value, body)
}

// ordinary headers belong to HTTP, not to an operation.
var ordinary = []string{
	"Accept-Ranges", "Allow", "Cache-Control", "Connection", "Content-Disposition", "Content-Length", "Content-Range",
	"Content-Security-Policy", "Content-Type", "Cross-Origin-Resource-Policy", "Date", "Referrer-Policy",
	"Transfer-Encoding", "Vary", "X-Accel-Buffering", "X-Content-Type-Options",
}

// early refusals may come before a request is counted. All other answers say what is left.
var early = []int{http.StatusForbidden, http.StatusInternalServerError, http.StatusServiceUnavailable}

func headers(described *openapi3.Response, status int, header http.Header) error {
	var wrong []error
	known := make(map[string]bool)
	for name, ref := range described.Headers {
		known[http.CanonicalHeaderKey(name)] = true
		value := header.Get(name)
		if value == "" {
			if ref.Value.Required || strings.HasPrefix(name, "X-RateLimit-") && !slices.Contains(early, status) {
				wrong = append(wrong, fmt.Errorf("the header %s is missing", name))
			}
			continue
		}
		if err := matchesText(ref.Value.Schema.Value, value); err != nil {
			wrong = append(wrong, fmt.Errorf("the header %s is %q: %w", name, value, err))
		}
	}
	for name := range header {
		if !known[name] && !slices.Contains(ordinary, name) {
			wrong = append(wrong, fmt.Errorf("the document does not have the header %s", name))
		}
	}
	return errors.Join(wrong...)
}

func matchesText(schema *openapi3.Schema, text string) error {
	if !schema.Type.Is(openapi3.TypeInteger) {
		return schema.VisitJSON(text)
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		return err
	}
	return schema.VisitJSON(float64(n))
}

func content(described *openapi3.Response, method string, header http.Header, body []byte) error {
	if method == http.MethodHead {
		return nil
	}
	if len(described.Content) == 0 {
		if len(body) > 0 {
			return fmt.Errorf("the document has no body here: %.200s", body)
		}
		return nil
	}
	sent, _, err := mime.ParseMediaType(header.Get("Content-Type"))
	if err != nil {
		return fmt.Errorf("the content type %q: %w", header.Get("Content-Type"), err)
	}
	media := described.Content[sent]
	if media == nil {
		return fmt.Errorf("the document does not have the content type %s here", sent)
	}
	if sent != "application/json" && !strings.HasSuffix(sent, "+json") {
		return nil
	}
	if err := matches(media.Schema.Value, body); err != nil {
		return err
	}
	return codes(media, body)
}

// codes checks a refusal's code against the examples: an operation has one for
// every code that it gives.
func codes(media *openapi3.MediaType, body []byte) error {
	var refusal struct{ Code, RequestID string }
	if json.Unmarshal(body, &refusal) != nil || refusal.Code == "" || refusal.RequestID == "" {
		return nil //nolint:nilerr // no envelope, no code
	}
	for _, example := range media.Examples {
		if value, ok := example.Value.Value.(map[string]any); ok && value["code"] == refusal.Code {
			return nil
		}
	}
	return fmt.Errorf("the document has no example with the code %s here", refusal.Code)
}

func matches(schema *openapi3.Schema, body []byte) error {
	var value any
	if err := json.Unmarshal(body, &value); err != nil {
		return fmt.Errorf("%w: %.200s", err, body)
	}
	err := schema.VisitJSON(value, openapi3.VisitAsResponse(), openapi3.EnableFormatValidation(), openapi3.MultiErrors())
	if err != nil {
		return fmt.Errorf("%w\nin %.1000s", err, body)
	}
	return nil
}

// closeSchemas forbids fields that a schema does not name, unless the schema allows
// additional ones.
func (c *Checker) closeSchemas() {
	seen := make(map[*openapi3.Schema]bool)
	for _, ref := range c.doc.Components.Schemas {
		closeSchema(ref, seen)
	}
	for _, p := range c.paths {
		for _, op := range p.item.Operations() {
			for _, response := range op.Responses.Map() {
				for _, media := range response.Value.Content {
					closeSchema(media.Schema, seen)
				}
			}
		}
	}
}

func closeSchema(ref *openapi3.SchemaRef, seen map[*openapi3.Schema]bool) {
	if ref == nil || ref.Value == nil || seen[ref.Value] {
		return
	}
	s := ref.Value
	seen[s] = true
	if len(s.Properties) > 0 && s.AdditionalProperties.Has == nil && s.AdditionalProperties.Schema == nil {
		closed := false
		s.AdditionalProperties.Has = &closed
	}
	closeSchema(s.Items, seen)
	for _, property := range s.Properties {
		closeSchema(property, seen)
	}
	for _, list := range []openapi3.SchemaRefs{s.AllOf, s.AnyOf, s.OneOf} {
		for _, one := range list {
			closeSchema(one, seen)
		}
	}
}

// Transport checks every answer that comes through base, but for streams, which
// have no end to wait for.
func (c *Checker) Transport(base http.RoundTripper, report func(error)) http.RoundTripper {
	return transport{c, base, report}
}

type transport struct {
	checker *Checker
	base    http.RoundTripper
	report  func(error)
}

func (t transport) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := t.base.RoundTrip(r)
	if err != nil || strings.HasPrefix(answer.Header.Get("Content-Type"), "text/event-stream") {
		return answer, err
	}
	body, broken := io.ReadAll(answer.Body)
	_ = answer.Body.Close()
	if broken != nil { // the test sees the same when it reads
		answer.Body = io.NopCloser(io.MultiReader(bytes.NewReader(body), failing{broken}))
		return answer, nil //nolint:nilerr // reading the body gives it
	}
	answer.Body = io.NopCloser(bytes.NewReader(body))
	if err := t.checker.Response(r.Method, r.URL.EscapedPath(), answer.StatusCode, answer.Header, body); err != nil {
		t.report(fmt.Errorf("%s %s: %d: %w", r.Method, r.URL.Path, answer.StatusCode, err))
	}
	return answer, nil
}

// CloseIdleConnections is called by http.Client's method of the same name.
func (t transport) CloseIdleConnections() {
	if base, ok := t.base.(interface{ CloseIdleConnections() }); ok {
		base.CloseIdleConnections()
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }
