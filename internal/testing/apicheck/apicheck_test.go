package apicheck

import (
	"net/http"
	"strings"
	"testing"

	"humanqa/internal/testing/must"
)

const document = `{"openapi":"3.0.3","info":{"title":"t","version":"1"},"paths":{
"/things/{id}":{"get":{"operationId":"getThing","parameters":[{"name":"id","in":"path","required":true,"schema":{"type":"string"}}],"responses":{
	"200":{"description":"d","headers":{"X-Left":{"required":true,"schema":{"type":"integer","minimum":0}}},
		"content":{"application/json":{"schema":{"$ref":"#/components/schemas/Thing"}},"text/markdown":{"schema":{"type":"string"}}}},
	"204":{"description":"d"},
	"409":{"description":"d","content":{"application/json":{"schema":{"type":"object"},"examples":{"a":{"value":{"code":"CONFLICT"}}}}}}}}},
"/things/all":{"get":{"operationId":"all","responses":{"200":{"description":"d","content":{"application/json":{"schema":{"type":"object"}}}}}}}},
"components":{"schemas":{
"Thing":{"type":"object","required":["id"],"properties":{"id":{"type":"string"},"at":{"type":"string","format":"date-time","nullable":true}}},
"Error":{"type":"object","required":["code"],"properties":{"code":{"type":"string"}}}}}}`

// A checker that lets things pass is worth nothing: each row is something it
// has to find, but for those without a complaint.
func TestWhatTheDocumentDoesNotKnowIsFound(t *testing.T) {
	t.Parallel()
	c, err := New([]byte(document))
	must.NoError(t, err)
	for name, row := range map[string]struct {
		call, body string
		status     int
		headers    []string
		complaint  string
	}{
		"as documented":         {"GET /things/1", `{"id":"1","at":"2026-01-02T03:04:05.678Z"}`, 200, []string{"X-Left", "1"}, ""},
		"null where it may be":  {"GET /things/1", `{"id":"1","at":null}`, 200, []string{"X-Left", "0"}, ""},
		"another media type":    {"GET /things/1", `# 1`, 200, []string{"X-Left", "0", "Content-Type", "text/markdown; charset=utf-8"}, ""},
		"a literal goes first":  {"GET /things/all", `{"anything":1}`, 200, nil, ""},
		"an encoded slash":      {"GET /things/a%2Fb", `{"id":"1"}`, 200, []string{"X-Left", "0"}, ""},
		"no body":               {"GET /things/1", ``, 204, nil, ""},
		"nowhere":               {"GET /nowhere", `{"code":"X"}`, 404, []string{"X-Request-Id", "1"}, ""},
		"an unknown field":      {"GET /things/1", `{"id":"1","secret":1}`, 200, []string{"X-Left", "1"}, "secret"},
		"a missing field":       {"GET /things/1", `{}`, 200, []string{"X-Left", "1"}, "id"},
		"a wrong type":          {"GET /things/1", `{"id":1}`, 200, []string{"X-Left", "1"}, "id"},
		"a wrong format":        {"GET /things/1", `{"id":"1","at":"today"}`, 200, []string{"X-Left", "1"}, "at"},
		"no JSON":               {"GET /things/1", `{`, 200, []string{"X-Left", "1"}, "unexpected end"},
		"a missing header":      {"GET /things/1", `{"id":"1"}`, 200, nil, "the header X-Left is missing"},
		"a wrong header":        {"GET /things/1", `{"id":"1"}`, 200, []string{"X-Left", "-1"}, "X-Left"},
		"an unknown header":     {"GET /things/1", `{"id":"1"}`, 200, []string{"X-Left", "1", "X-Secret", "1"}, "X-Secret"},
		"an unknown status":     {"GET /things/1", `{}`, 418, nil, "418"},
		"an unknown media type": {"GET /things/1", `<a/>`, 200, []string{"X-Left", "1", "Content-Type", "text/xml"}, "text/xml"},
		"a body without schema": {"GET /things/1", `{}`, 204, nil, "no body"},
		"a known code":          {"GET /things/1", `{"code":"CONFLICT","requestId":"1"}`, 409, nil, ""},
		"an unknown code":       {"GET /things/1", `{"code":"OTHER","requestId":"1"}`, 409, nil, "no example with the code OTHER"},
		"an unknown operation":  {"PUT /things/1", `{}`, 200, nil, "no such operation"},
		"no envelope":           {"PUT /things/1", `{}`, 405, []string{"X-Request-Id", "1"}, "code"},
	} {
		header := http.Header{"Content-Type": {"application/json"}}
		for i := 0; i < len(row.headers); i += 2 {
			header.Set(row.headers[i], row.headers[i+1])
		}
		method, path, _ := strings.Cut(row.call, " ")
		err := c.Response(method, path, row.status, header, []byte(row.body))
		if (err == nil) != (row.complaint == "") || err != nil && !strings.Contains(err.Error(), row.complaint) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
