package assemble

import (
	"testing"
	"testing/fstest"
)

func TestNoKeyStandsTwice(t *testing.T) {
	t.Parallel()
	for name, files := range map[string]fstest.MapFS{
		"in two files": {"a.yaml": {Data: []byte("paths: {/a: {get: {}}}")}, "b.yaml": {Data: []byte("paths: {/a: {get: 1}}")}},
		"in one file":  {"a.yaml": {Data: []byte("a: 1\na: 2")}},
	} {
		if doc, err := document(files, nil, webhooksAside); err == nil {
			t.Errorf("%s: no error, but %s", name, doc)
		}
	}
}

func TestKeysKeepTheirOrder(t *testing.T) {
	t.Parallel()
	doc, err := document(fstest.MapFS{
		"openapi.yaml": {Data: []byte("x-z: 1\ninfo: {version: '1', title: t}\npaths: {/b: {summary: b}, /a: {summary: a}}\ncomponents: {}")},
		"a.yaml":       {Data: []byte(`{paths: {/0: {summary: "2026-01-02"}}, webhooks: {b: {description: d}, a: {description: d, summary: s}}, openapi: 3.0.3}`)},
	}, nil, webhooksAside)
	if want := `{"x-z":1,"info":{"version":"1","title":"t"},"paths":{"/b":{"summary":"b"},"/a":{"summary":"a"},"/0":{"summary":"2026-01-02"}},` +
		`"components":{},"openapi":"3.0.3","x-webhooks":{"b":{"description":"d"},"a":{"description":"d","summary":"s"}}}`; err != nil || string(doc) != want {
		t.Errorf("%s %v, want %s", doc, err, want)
	}
}

func TestAPayloadIsTakenFromItsFile(t *testing.T) {
	t.Parallel()
	files := fstest.MapFS{"openapi.yaml": {Data: []byte(
		"openapi: 3.0.3\ninfo: {version: '1', title: t}\npaths: {}\nx-sent: {a: {value: !payload a.json}}")}}
	doc, err := document(files, fstest.MapFS{"a.json": {Data: []byte(`{"z": null, "b": [1, "2026-01-02"]}`)}}, webhooksAside)
	if want := `{"openapi":"3.0.3","info":{"version":"1","title":"t"},"paths":{},"x-sent":{"a":{"value":{"z":null,"b":[1,"2026-01-02"]}}},"x-webhooks":null}`; err != nil || string(doc) != want {
		t.Errorf("%s %v, want %s", doc, err, want)
	}
	if doc, err := document(files, fstest.MapFS{}, webhooksAside); err == nil {
		t.Errorf("without the file: no error, but %s", doc)
	}
}
