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
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"

	"go.yaml.in/yaml/v3"
)

//go:embed *.yaml
var sources embed.FS

// Document is the whole document as JSON. The keys stay in the order they were
// written in, which is the order people read them in.
var Document = sync.OnceValue(func() []byte {
	doc, err := assemble(sources)
	if err != nil {
		panic(fmt.Errorf("openapi: %w", err)) // the files are part of the binary; a test reads them
	}
	return doc
})

func assemble(files fs.FS) ([]byte, error) {
	names, err := fs.Glob(files, "*.yaml")
	if err != nil {
		return nil, err
	}
	// The one that holds the document's head comes first.
	slices.SortFunc(names, func(a, b string) int {
		if (a == "openapi.yaml") != (b == "openapi.yaml") {
			if a == "openapi.yaml" {
				return -1
			}
			return 1
		}
		return strings.Compare(a, b)
	})
	doc := &yaml.Node{Kind: yaml.MappingNode}
	for _, name := range names {
		raw, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, err
		}
		var file yaml.Node
		if err := yaml.Unmarshal(raw, &file); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if err := merge(doc, resolve(file.Content[0])); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	if err := complete(doc); err != nil {
		return nil, err
	}
	var out bytes.Buffer
	if err := writeJSON(&out, doc); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// resolve puts what an alias stands for in its place, and the keys of a merge
// ("<<") among the others.
func resolve(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return resolve(n.Alias)
	}
	out := *n
	out.Content = nil
	for i := 0; i < len(n.Content); i++ {
		if n.Kind == yaml.MappingNode && i%2 == 0 && n.Content[i].Tag == "!!merge" {
			out.Content = append(out.Content, resolve(n.Content[i+1]).Content...)
			i++
			continue
		}
		out.Content = append(out.Content, resolve(n.Content[i]))
	}
	return &out
}

// merge adds a file's keys. Two files may both have paths and components, but
// not the same path or component.
func merge(into, from *yaml.Node) error {
	for i := 0; i < len(from.Content); i += 2 {
		key, value := from.Content[i].Value, from.Content[i+1]
		old := get(into, key)
		switch {
		case old == nil:
			put(into, key, value)
		case old.Kind == yaml.MappingNode && value.Kind == yaml.MappingNode:
			if err := merge(old, value); err != nil {
				return fmt.Errorf("%s: %w", key, err)
			}
		default:
			return fmt.Errorf("%s stands twice", key)
		}
	}
	return nil
}

func get(n *yaml.Node, key string) *yaml.Node {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return n.Content[i+1]
		}
	}
	return nil
}

// take removes a key and gives what it held.
func take(n *yaml.Node, key string) *yaml.Node {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			value := n.Content[i+1]
			n.Content = slices.Delete(n.Content, i, i+2)
			return value
		}
	}
	return nil
}

func put(n *yaml.Node, key string, value *yaml.Node) {
	n.Content = append(n.Content, text(key), value)
}

func writeJSON(out *bytes.Buffer, n *yaml.Node) error {
	switch n.Kind {
	case yaml.MappingNode, yaml.SequenceNode:
		return writeList(out, n)
	}
	var value any
	if err := n.Decode(&value); err != nil {
		return err
	}
	if n.Tag == "!!timestamp" { // YAML would make a time of it
		value = n.Value
	}
	raw, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("line %d: %w", n.Line, err)
	}
	out.Write(raw)
	return nil
}

func writeList(out *bytes.Buffer, n *yaml.Node) error {
	open, end := byte('['), byte(']')
	mapping := n.Kind == yaml.MappingNode
	if mapping {
		open, end = '{', '}'
	}
	out.WriteByte(open)
	for i, c := range n.Content {
		switch {
		case mapping && i%2 == 1:
			out.WriteByte(':')
		case i > 0:
			out.WriteByte(',')
		}
		if mapping && i%2 == 0 { // a key is a string, whatever YAML takes it for
			c = text(c.Value)
		}
		if err := writeJSON(out, c); err != nil {
			return err
		}
	}
	out.WriteByte(end)
	return nil
}
