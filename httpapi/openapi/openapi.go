// Package openapi is the API's reference: one OpenAPI document, written by hand
// in the YAML files of this folder, a file a subject, and the viewer that shows
// it to people.
//
// The files are put together at the first request. What the API does in one
// place for every request (the request id, the credential, the rate limit, the
// faults), the document says in one place, too: complete adds it to every
// operation. Tests walk the routes and the document both ways and hold every
// answer that any test gets against it (package apicheck).
package openapi

import (
	"embed"
	"fmt"
	"io/fs"
	"sync"

	"github.com/getkin/kin-openapi/openapi3"
)

//go:embed *.yaml
var sources embed.FS

// Document is the whole document as JSON, in OpenAPI 3.0, which most generators
// read. The keys stay in the order they were written in, which is the order people
// read them in.
var Document = sync.OnceValue(func() []byte { return embedded(webhooksAside) })

// Document31 is the same in OpenAPI 3.1, which has a place for webhooks.
var Document31 = sync.OnceValue(func() []byte { return embedded(modernise) })

func embedded(as func(*openapi3.T) error) []byte {
	doc, err := assemble(sources, as)
	if err != nil {
		panic(fmt.Errorf("openapi: %w", err)) // the files are part of the binary; a test reads them
	}
	return doc
}

func assemble(files fs.FS, as func(*openapi3.T) error) ([]byte, error) {
	from, err := read(files)
	if err != nil {
		return nil, err
	}
	if err := complete(from.doc); err != nil {
		return nil, err
	}
	if err := as(from.doc); err != nil {
		return nil, err
	}
	return from.order.marshal(from.doc)
}
