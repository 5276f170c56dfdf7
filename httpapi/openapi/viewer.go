package openapi

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"path"
	"strings"
	"sync"
	"text/template"

	"humanqa/httpapi/wire"
)

// viewer is the page and what it loads: the quickstart's programs, which tests run,
// and RapiDoc 9.3.8 as published on npm
// (rapidoc, dist/rapidoc-min.js), unchanged but for gzip, with its licences beside it.
//
//go:embed viewer
var viewer embed.FS

// File is something to serve. Hash names its content; Packed is the content
// compressed by gzip.
type File struct {
	Type   string
	Body   []byte
	Hash   string
	Packed func() []byte
}

// NewFile gives a content its name.
func NewFile(contentType string, body []byte) File {
	sum := sha256.Sum256(body)
	return File{
		Type: contentType, Body: body, Hash: hex.EncodeToString(sum[:16]),
		Packed: sync.OnceValue(func() []byte { return wire.Gzip(body) }),
	}
}

const plain = "text/plain; charset=utf-8"

var types = map[string]string{
	".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8", ".txt": plain,
	".sh": plain, ".mjs": plain, ".py": plain, // the quickstart, to be read
}

// ViewerFiles are what the page loads, and their licences, by name.
var ViewerFiles = sync.OnceValue(func() map[string]File {
	entries, err := viewer.ReadDir("viewer")
	if err != nil {
		panic(fmt.Errorf("openapi: %w", err)) // embedded
	}
	files := make(map[string]File)
	for _, e := range entries {
		name, packed := strings.CutSuffix(e.Name(), ".gz")
		contentType, ok := types[path.Ext(name)]
		if !ok {
			continue // the page is a template
		}
		if packed {
			files[name] = NewFile(contentType, unpacked(viewer, "viewer/"+e.Name()))
			continue
		}
		body, err := viewer.ReadFile("viewer/" + name)
		if err != nil {
			panic(fmt.Errorf("openapi: %w", err))
		}
		files[name] = NewFile(contentType, body)
	}
	return files
})

// Page is the reference for people. It names its files by their content, so
// that they can be kept for ever.
var Page = sync.OnceValue(func() File {
	raw, err := viewer.ReadFile("viewer/page.html")
	if err != nil {
		panic(fmt.Errorf("openapi: %w", err))
	}
	hash := func(name string) (string, error) {
		f, ok := ViewerFiles()[name]
		if !ok {
			return "", fmt.Errorf("no file %s", name)
		}
		return f.Hash, nil
	}
	page := template.Must(template.New("page").Funcs(template.FuncMap{"hash": hash}).Parse(string(raw)))
	var out bytes.Buffer
	if err := page.Execute(&out, nil); err != nil {
		panic(fmt.Errorf("openapi: %w", err))
	}
	return NewFile("text/html; charset=utf-8", out.Bytes())
})
