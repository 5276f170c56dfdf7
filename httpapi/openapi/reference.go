package openapi

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"html/template"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	text "text/template"
)

// The document as pages: an introduction, a page for each tag, and one with the schemas
// that several operations share. They need no script. Each page is Markdown, too, for readers
// without a browser: an agent, a terminal. Both templates get the same data, with texts as the
// document has them.

// reference is the data of a page's templates.
type reference struct {
	Title   string
	Root    string // before the names of the pages and files; the pages lie in it
	Home    string
	Current string // the page's tag; empty: the introduction
	Twin    string // the page as Markdown
	Tags    []section
	// One of these is shown.
	Intro     string // the text of the introduction
	Section   *section
	Schemas   []schemaView
	Quickness []listing
}

type section struct {
	Name, Slug string
	Text       string
	Operations []operationView
	// Events are shown instead of the operations that send them.
	Events  []eventView
	Headers []fieldView // of every delivery
}

type operationView struct {
	ID, Call, Method, Path string
	Summary                string
	Text                   string
	Additive               bool
	Parameters             []fieldView
	Body                   *bodyView
	Responses              []responseView
}

type bodyView struct {
	Media   string
	Name    string // of the shared schema; empty: it has none
	Whole   bool   // its fields are shown even if it has a name
	Fields  []fieldView
	Example string
}

type responseView struct {
	Status string
	Text   string
	Body   *bodyView
}

type fieldView struct {
	Name, In string
	Type     template.HTML
	Required bool
	Additive bool
	Text     string
}

type schemaView struct {
	Name   string
	Type   template.HTML
	Text   string
	Fields []fieldView
	JSON   string // as JSON Schema
}

type listing struct {
	ID, Language string
	Fence        string // the language's name in Markdown
	Text         string
}

type schema struct {
	Ref         string `json:"$ref"`
	Type        string
	Format      string
	Description string
	Required    []string
	Properties  json.RawMessage
	Items       *schema
	AllOf       []schema
	OneOf       []schema
	AnyOf       []schema
	Enum        []any
	Nullable    bool
	Additive    bool `json:"x-additive"`
	Minimum     *float64
	Maximum     *float64
	MinLength   *int
	MaxLength   *int
}

// book is the document as the pages and texts are made from it.
type book struct {
	Info       struct{ Title, Description string }
	Tags       []struct{ Name, Description string }
	Paths      json.RawMessage
	Webhooks   json.RawMessage `json:"x-webhooks"`
	Components struct {
		Parameters map[string]parameter
		Schemas    json.RawMessage
		Examples   map[string]struct{ Value json.RawMessage }
	}
	shared map[string]*schema
}

const (
	schemasSlug = "schemas"
	webhooksTag = "Webhooks"
)

var bookOf = sync.OnceValue(func() *book {
	b := &book{shared: map[string]*schema{}}
	check(json.Unmarshal(Document(), b))
	for _, m := range members(b.Components.Schemas) {
		b.shared[m.name] = decoded[schema](m.raw)
	}
	return b
})

// introductionSlug names the text of the introduction, whose page has no name of its own.
const introductionSlug = "introduction"

const markdownType = "text/markdown; charset=utf-8"

// ReferencePages are the pages of the reference by their names; the introduction's is empty.
func ReferencePages() map[string]File { return rendered().pages }

// ReferenceTexts are the pages as Markdown, by the names of the pages.
func ReferenceTexts() map[string]File { return rendered().texts }

// Markdown is the whole reference as one text: the introduction, the quickstart's
// programs, and every operation and event in the order of its tags.
func Markdown() File { return rendered().whole }

type rendering struct {
	pages, texts map[string]File
	whole        File
}

var rendered = sync.OnceValue(func() rendering {
	b := bookOf()
	page := template.Must(template.New("page").Funcs(template.FuncMap{
		"hash": hashOf, "prose": htmlOf, "inline": inlineOf, "first": firstSentence,
	}).ParseFS(viewer, "viewer/page.html"))
	twin := text.Must(text.New("page").Funcs(text.FuncMap{"trim": strings.TrimSpace, "first": firstSentence}).
		ParseFS(viewer, "viewer/page.md"))
	markdown := func(name string, r reference) File {
		var out bytes.Buffer
		check(twin.ExecuteTemplate(&out, name, r))
		return NewFile(markdownType, out.Bytes())
	}
	tags := b.sections()
	all := rendering{pages: map[string]File{}, texts: map[string]File{}}
	add := func(name string, r reference) {
		r.Title, r.Tags, r.Current = b.Info.Title, tags, name
		r.Root, r.Home, r.Twin = "", "../docs", name+".md"
		if name == "" {
			r.Root, r.Home, r.Twin = "docs/", "docs", "docs/"+introductionSlug+".md"
			all.whole = markdown("whole", r)
		}
		var out bytes.Buffer
		check(page.ExecuteTemplate(&out, "page.html", r))
		all.pages[name] = NewFile("text/html; charset=utf-8", out.Bytes())
		all.texts[cmp.Or(name, introductionSlug)] = markdown("page.md", r)
	}
	add("", reference{Intro: b.Info.Description, Quickness: quickness()})
	for i := range tags {
		add(tags[i].Slug, reference{Section: &tags[i]})
	}
	add(schemasSlug, reference{Schemas: b.schemas()})
	return all
})

func hashOf(name string) (string, error) {
	f, ok := ViewerFiles()[name]
	if !ok {
		return "", fmt.Errorf("no file %s", name)
	}
	return f.Hash, nil
}

func quickness() (all []listing) {
	for _, l := range []struct{ id, language, fence, file string }{
		{"curl", "curl", "sh", "quickstart.sh"}, {"node", "Node", "js", "quickstart.mjs"},
		{"python", "Python", "python", "quickstart.py"}, {"go", "Go", "go", "quickstart.go.txt"},
		{"csharp", "C#", "csharp", "quickstart.cs"},
	} {
		all = append(all, listing{l.id, l.language, l.fence, string(ViewerFiles()[l.file].Body)})
	}
	return all
}

// decoded reads a part of the document; a field that does not fit stays empty.
func decoded[T any](raw json.RawMessage) *T {
	v := new(T)
	_ = json.Unmarshal(raw, v) // embedded; TestTheDocument… finds what is broken
	return v
}

// sections are the tags with their operations, each in the document's order.
func (b *book) sections() (all []section) {
	of := map[string][]operationView{}
	add := func(paths json.RawMessage, call func(method, path string) string) {
		for _, path := range members(paths) {
			item := members(path.raw)
			var common []parameter
			for _, m := range item {
				if m.name == "parameters" {
					common = *decoded[[]parameter](m.raw)
				}
			}
			for _, method := range item {
				op := decoded[operation](method.raw)
				if len(op.Tags) == 0 {
					continue
				}
				op.Parameters = append(slices.Clone(common), op.Parameters...)
				view := b.operation(op, call(strings.ToUpper(method.name), path.name))
				view.Method, view.Path = strings.ToUpper(method.name), path.name
				of[op.Tags[0]] = append(of[op.Tags[0]], view)
			}
		}
	}
	add(b.Paths, func(method, path string) string { return method + " " + path })
	add(b.Webhooks, func(_, path string) string { return path })
	for _, tag := range b.Tags {
		one := section{Name: tag.Name, Slug: slug(tag.Name), Text: tag.Description, Operations: of[tag.Name]}
		if tag.Name == webhooksTag {
			one.Events, one.Headers = b.eventsOf(one.Operations), one.Operations[0].Parameters
		}
		all = append(all, one)
	}
	return all
}

func (b *book) operation(op *operation, call string) operationView {
	view := operationView{ID: op.OperationID, Call: call, Summary: op.Summary, Text: op.Description, Additive: op.Additive}
	for _, p := range op.Parameters {
		if name, found := strings.CutPrefix(p.Ref, "#/components/parameters/"); found {
			p = b.Components.Parameters[name]
		}
		view.Parameters = append(view.Parameters, fieldView{
			Name: p.Name, In: p.In, Type: b.typeOf(p.Schema), Required: p.Required, Additive: p.Additive, Text: p.Description,
		})
	}
	if op.RequestBody != nil {
		if view.Body = b.body(*op.RequestBody); view.Body != nil {
			view.Body.Whole = true
		}
	}
	for _, response := range members(op.Responses) {
		c := decoded[content](response.raw)
		r := responseView{Status: response.name, Text: c.Description}
		if strings.HasPrefix(response.name, "2") {
			r.Body = b.body(*c)
		}
		view.Responses = append(view.Responses, r)
	}
	return view
}

// body shows the fields and an example of a body or an answer. Of a media type that is
// not listed here it shows only the type.
func (b *book) body(c content) *bodyView {
	for _, media := range []string{"application/json", "application/x-ndjson", "text/csv", "multipart/form-data", "text/event-stream"} {
		in, found := c.Content[media]
		if !found {
			continue
		}
		view := &bodyView{Media: media, Example: b.example(in.Example, in.Examples)}
		if in.Schema != nil {
			view.Name = b.nameOf(*in.Schema)
			view.Fields = b.fields(*in.Schema, "")
		}
		return view
	}
	if len(c.Content) == 0 {
		return nil
	}
	return &bodyView{Media: slices.Sorted(maps.Keys(c.Content))[0]}
}

// example is the only example, or the first of several, as text.
func (b *book) example(one, several json.RawMessage) string {
	if all := members(several); len(all) > 0 {
		e := decoded[struct {
			Ref   string `json:"$ref"`
			Value json.RawMessage
		}](all[0].raw)
		if one = e.Value; e.Ref != "" {
			one = b.Components.Examples[e.Ref[strings.LastIndex(e.Ref, "/")+1:]].Value
		}
	}
	if one == nil {
		return ""
	}
	return string(indented(one))
}

// nameOf is the name of the shared schema that s refers to; empty: it refers to none.
func (b *book) nameOf(s schema) string {
	if len(s.AllOf) == 1 {
		return b.nameOf(s.AllOf[0])
	}
	name, _ := strings.CutPrefix(s.Ref, "#/components/schemas/")
	return name
}

// whole is a schema with the schemas that it is made of.
func (b *book) whole(s schema) schema {
	if shared := b.shared[b.nameOf(s)]; shared != nil {
		merged := b.whole(*shared)
		if s.Description != "" {
			merged.Description = s.Description
		}
		return merged
	}
	parts := s.AllOf
	s.AllOf = nil
	for _, part := range parts {
		of := b.whole(part)
		s.Type = cmp.Or(s.Type, of.Type)
		s.Required = append(slices.Clone(of.Required), s.Required...)
		s.Properties = joined(of.Properties, s.Properties)
	}
	return s
}

// joined are the members of both objects.
func joined(a, b json.RawMessage) json.RawMessage {
	if len(members(a)) == 0 || len(members(b)) == 0 {
		return append(slices.Clone(a), b...)
	}
	return slices.Concat(bytes.TrimRight(a, "} \n"), []byte(","), bytes.TrimLeft(b, "{ \n"))
}

// fields are the fields of an object, each name with the prefix before it.
func (b *book) fields(s schema, prefix string) (all []fieldView) {
	s = b.whole(s)
	for _, m := range members(s.Properties) {
		p := *decoded[schema](m.raw)
		all = append(all, fieldView{
			Name: prefix + m.name, Type: b.typeOf(&p), Required: slices.Contains(s.Required, m.name), Additive: p.Additive,
			Text: p.Description,
		})
	}
	return all
}

// typeOf is the type of a value in words, or a link to its shared schema.
func (b *book) typeOf(s *schema) template.HTML {
	if s == nil {
		return ""
	}
	if name := b.nameOf(*s); name != "" {
		return withNull(template.HTML(fmt.Sprintf(`<a href="schemas#%[1]s">%[1]s</a>`, template.HTMLEscapeString(name))), s.Nullable) // escaped
	}
	if s.Items != nil {
		return withNull("list of "+b.typeOf(s.Items), s.Nullable)
	}
	words := s.Type
	if several := slices.Concat(s.OneOf, s.AnyOf); len(several) > 0 {
		var types []string
		for i := range several {
			types = append(types, string(b.typeOf(&several[i])))
		}
		return withNull(template.HTML(strings.Join(types, " or ")), s.Nullable) // of typeOf
	}
	if len(s.Enum) > 0 {
		var values []string
		for _, v := range s.Enum {
			if v != nil {
				values = append(values, "<code>"+template.HTMLEscapeString(fmt.Sprint(v))+"</code>")
			}
		}
		return withNull(template.HTML(strings.Join(values, ", ")), s.Nullable) // escaped
	}
	if s.Format != "" {
		words += " (" + s.Format + ")"
	}
	switch {
	case s.Minimum != nil && s.Maximum != nil:
		words += fmt.Sprintf(", %g to %g", *s.Minimum, *s.Maximum)
	case s.Minimum != nil:
		words += fmt.Sprintf(", from %g", *s.Minimum)
	case s.MinLength != nil && s.MaxLength != nil:
		words += fmt.Sprintf(", %d to %d characters", *s.MinLength, *s.MaxLength)
	case s.MaxLength != nil:
		words += fmt.Sprintf(", at most %d characters", *s.MaxLength)
	}
	return withNull(template.HTML(template.HTMLEscapeString(words)), s.Nullable) // escaped
}

func withNull(words template.HTML, nullable bool) template.HTML {
	if nullable {
		return words + " or null"
	}
	return words
}

// schemas are the schemas that have a name.
func (b *book) schemas() (all []schemaView) {
	asJSON := document31().Components.Schemas
	for _, m := range members(b.Components.Schemas) {
		s := b.shared[m.name]
		view := schemaView{Name: m.name, Text: s.Description, Fields: b.fields(*s, ""), JSON: string(indented(asJSON[m.name]))}
		if len(view.Fields) == 0 {
			view.Type = b.typeOf(s)
		}
		all = append(all, view)
	}
	return all
}

var marks = regexp.MustCompile("`([^`]+)`|\\*\\*([^*]+)\\*\\*")

// inlineOf is a line of the document's Markdown: code and bold words.
func inlineOf(markdown string) template.HTML {
	markdown = template.HTMLEscapeString(strings.Join(strings.Fields(markdown), " "))
	markdown = marks.ReplaceAllStringFunc(markdown, func(found string) string {
		if inner, code := strings.CutPrefix(found, "`"); code {
			return "<code>" + strings.TrimSuffix(inner, "`") + "</code>"
		}
		return "<strong>" + strings.Trim(found, "*") + "</strong>"
	})
	return template.HTML(markdown) // escaped above
}

// htmlOf is a text of the document's Markdown: headings, lists and paragraphs.
func htmlOf(markdown string) template.HTML {
	var out strings.Builder
	for block := range strings.SplitSeq(strings.TrimSpace(markdown), "\n\n") {
		block = strings.TrimSpace(block)
		switch heading, isHeading := strings.CutPrefix(block, "## "); {
		case block == "":
		case isHeading:
			name, rest, _ := strings.Cut(heading, "\n")
			fmt.Fprintf(&out, "<h3 id=%q>%s</h3>\n", slug(name), inlineOf(name))
			out.WriteString(string(htmlOf(rest)))
		case strings.HasPrefix(block, "- "):
			out.WriteString("<ul>\n")
			for item := range strings.SplitSeq(strings.TrimPrefix(block, "- "), "\n- ") {
				fmt.Fprintf(&out, "<li>%s</li>\n", inlineOf(item))
			}
			out.WriteString("</ul>\n")
		default:
			fmt.Fprintf(&out, "<p>%s</p>\n", inlineOf(block))
		}
	}
	return template.HTML(out.String()) // of inlineOf
}

func slug(name string) string { return strings.ReplaceAll(strings.ToLower(name), " ", "-") }
