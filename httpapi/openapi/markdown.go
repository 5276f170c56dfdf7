package openapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
)

// This file writes the document as Markdown, for readers without a browser: an agent, a
// terminal.

type operation struct {
	OperationID string
	Tags        []string
	Additive    bool `json:"x-additive"`
	Summary     string
	Description string
	Parameters  []parameter
	RequestBody *content
	Responses   json.RawMessage
}

type parameter struct {
	Ref         string `json:"$ref"`
	Name        string
	In          string
	Required    bool
	Description string
	Additive    bool `json:"x-additive"`
	Schema      *schema
}

type content struct {
	Description string
	Content     map[string]struct {
		Schema   *schema
		Example  json.RawMessage
		Examples json.RawMessage
	}
}

type member struct {
	name string
	raw  json.RawMessage
}

const markdownType = "text/markdown; charset=utf-8"

// Markdown is the whole reference as one text: the introduction, the quickstart's
// programs, and every operation and event in the order of its tags.
var Markdown = sync.OnceValue(func() File {
	b := bookOf()
	var out bytes.Buffer
	b.writeIntroduction(&out)
	for _, tag := range b.Tags {
		fmt.Fprintf(&out, "\n## %s\n", tag.Name)
		b.writeTag(&out, tag.Name)
	}
	return NewFile(markdownType, out.Bytes())
})

// introductionSlug names the text of the introduction, whose page has no name of its own.
const introductionSlug = "introduction"

// ReferenceTexts are the pages of the reference as Markdown, by the names of the pages.
var ReferenceTexts = sync.OnceValue(func() map[string]File {
	b := bookOf()
	files := map[string]File{}
	add := func(name, title string, write func(*bytes.Buffer)) {
		var out bytes.Buffer
		if title != "" {
			fmt.Fprintf(&out, "# %s: %s\n", b.Info.Title, title)
		}
		write(&out)
		files[name] = NewFile(markdownType, out.Bytes())
	}
	add(introductionSlug, "", b.writeIntroduction)
	for _, tag := range b.Tags {
		add(slug(tag.Name), tag.Name, func(out *bytes.Buffer) { b.writeTag(out, tag.Name) })
	}
	add(schemasSlug, "Schemas", func(out *bytes.Buffer) {
		var doc struct {
			Components struct{ Schemas json.RawMessage }
		}
		check(json.Unmarshal(Document31(), &doc))
		for _, m := range members(doc.Components.Schemas) {
			fmt.Fprintf(out, "\n## %s\n\n```json\n%s\n```\n", m.name, indented(m.raw))
		}
	})
	return files
})

func (b *book) writeIntroduction(out *bytes.Buffer) {
	fmt.Fprintf(out, "# %s\n\n%s\n", b.Info.Title, b.Info.Description)
	out.WriteString("The same as OpenAPI: `GET /v1/openapi.json` (3.0), `GET /v1/openapi-3.1.json`.\n\n## Quickstart\n")
	for _, program := range quickness() {
		fmt.Fprintf(out, "\n```%s\n%s```\n", program.Fence, program.Text)
	}
}

// writeTag adds the description of a tag, and its events and operations.
func (b *book) writeTag(out *bytes.Buffer, name string) {
	for _, tag := range b.Tags {
		if tag.Name == name {
			fmt.Fprintf(out, "\n%s\n", strings.TrimSpace(tag.Description))
		}
	}
	if name == webhooksTag {
		out.WriteString("\n")
		writeEvents(out)
	}
	for _, path := range members(b.Paths) {
		for _, method := range members(path.raw) {
			var op operation
			if json.Unmarshal(method.raw, &op) == nil && len(op.Tags) > 0 && op.Tags[0] == name {
				op.write(out, strings.ToUpper(method.name)+" "+path.name, b.Components.Parameters)
			}
		}
	}
}

func (op operation) write(out *bytes.Buffer, call string, shared map[string]parameter) {
	fmt.Fprintf(out, "\n### %s\n\n%s.\n", call, strings.TrimSuffix(op.Summary, "."))
	if op.Description != "" {
		fmt.Fprintf(out, "\n%s\n", strings.TrimSpace(op.Description))
	}
	for i, p := range op.Parameters {
		if name, found := strings.CutPrefix(p.Ref, "#/components/parameters/"); found {
			p = shared[name]
		}
		if i == 0 {
			out.WriteString("\n")
		}
		required := ""
		if p.Required {
			required = ", required"
		}
		fmt.Fprintf(out, "- `%s` (%s%s): %s\n", p.Name, p.In, required, strings.TrimSpace(p.Description))
	}
	if op.RequestBody != nil {
		op.RequestBody.write(out, "Body")
	}
	for _, response := range members(op.Responses) {
		var c content
		if err := json.Unmarshal(response.raw, &c); err != nil {
			continue // a $ref; TestTheDocument… finds what is broken
		}
		if strings.HasPrefix(response.name, "2") {
			c.write(out, response.name+" "+c.Description)
		} else {
			fmt.Fprintf(out, "\n%s %s\n", response.name, c.Description)
		}
	}
}

// write shows the JSON example, or the first of several.
func (c content) write(out *bytes.Buffer, title string) {
	fmt.Fprintf(out, "\n%s\n", strings.TrimSpace(title))
	example := c.Content["application/json"].Example
	for _, first := range members(c.Content["application/json"].Examples) {
		var e struct{ Value json.RawMessage }
		if json.Unmarshal(first.raw, &e) == nil && e.Value != nil {
			example = e.Value
			break
		}
	}
	if example != nil {
		fmt.Fprintf(out, "\n```json\n%s\n```\n", indented(example))
	}
}

// members are the members of an object, in their order; none of any other value.
func members(raw json.RawMessage) (all []member) {
	d := json.NewDecoder(bytes.NewReader(raw))
	if begin, err := d.Token(); err != nil || begin != json.Delim('{') {
		return nil
	}
	for d.More() {
		name, err := d.Token()
		text, isText := name.(string)
		m := member{name: text}
		if err != nil || !isText || d.Decode(&m.raw) != nil {
			return all
		}
		all = append(all, m)
	}
	return all
}
