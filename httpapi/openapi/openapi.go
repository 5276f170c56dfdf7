// Package openapi is the API's reference: one OpenAPI document, and the viewer that shows
// it to people. The document is written by hand in the YAML files of this folder.
// The document exists in OpenAPI 3.0 and 3.1. x-additive marks every part that the
// specification does not show.
//
// make openapi puts the files together (package assemble), and a test fails when that
// was forgotten. Tests walk the routes and the document both ways. They check every
// answer that any test receives against it (package apicheck).
package openapi

import (
	"bytes"
	"compress/gzip"
	"embed"
	"fmt"
	"io"
	"sync"
)

//go:embed dist
var documents embed.FS

// Document is the whole document as JSON, in OpenAPI 3.0, which most generators
// read. The keys stay in the order they were written in, which is the order people
// read them in.
var Document = sync.OnceValue(func() []byte { return unpacked(documents, "dist/openapi.json.gz") })

// Document31 is the same in OpenAPI 3.1, which has a place for webhooks.
var Document31 = sync.OnceValue(func() []byte { return unpacked(documents, "dist/openapi-3.1.json.gz") })

// Served is a version of the document as a file. Its server is the service at base.
func Served(document func() []byte) func(base string) File {
	return func(base string) File {
		here := fmt.Appendf(nil, `"servers":[{"url":%q`, base)
		return NewFile("application/json", bytes.Replace(document(), []byte(`"servers":[{"url":"/"`), here, 1))
	}
}

// unpacked is the content of an embedded file that is compressed.
func unpacked(files embed.FS, name string) []byte {
	raw := made(files.ReadFile(name))
	r := made(gzip.NewReader(bytes.NewReader(raw)))
	return made(io.ReadAll(r))
}

// made gives a value that is made of the binary's own files, and panics on an error. A
// test makes each value, too.
func made[T any](one T, err error) T {
	check(err)
	return one
}

// check ends a process whose own files are broken.
func check(err error) {
	if err != nil {
		panic(fmt.Errorf("openapi: %w", err))
	}
}
