package openapi

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"maps"
	"path"
	"sync"

	"humanqa/httpapi/wire"
	"humanqa/internal/inter"
)

// viewer is the templates of the pages, their style, and the quickstart's programs, which
// tests run.
//
//go:embed viewer
var viewer embed.FS

// File is a file to serve. Hash names its content; Packed is the content compressed by
// gzip.
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
	".css": "text/css; charset=utf-8", ".txt": plain,
	".sh": plain, ".mjs": plain, ".py": plain, ".cs": plain, // the quickstart, to be read
}

// ViewerFiles are the files that the pages load, and the quickstart's programs, by name.
var ViewerFiles = sync.OnceValue(func() map[string]File {
	files := make(map[string]File)
	for _, e := range made(viewer.ReadDir("viewer")) {
		name := e.Name()
		contentType, ok := types[path.Ext(name)]
		if !ok {
			continue // a page's template
		}
		files[name] = NewFile(contentType, made(viewer.ReadFile("viewer/"+name)))
	}
	files[inter.Name] = NewFile(inter.Type, inter.File)
	return files
})

// ReferenceFiles are all files of the reference by name: the files that the pages load,
// their Markdown (name.md), and the catalogue of events.
var ReferenceFiles = sync.OnceValue(func() map[string]File {
	files := maps.Clone(ViewerFiles())
	for name, text := range ReferenceTexts() {
		files[name+".md"] = text
	}
	files[eventsFile] = eventCatalogue()
	addAgentTexts(files)
	return files
})
