package eventstore

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"humanqa"
	"humanqa/domain"
	"humanqa/internal/testing/must"
)

const catalogueFile = "../docs/event-zero.md"

// The catalogue is made of the code: names, versions, fields and what their
// comments say, with the golden files as examples. It is rewritten by -update.
func TestTheCatalogueTellsEveryEventAsItIs(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(catalogueFile)
	must.NoError(t, err)
	head, _, found := strings.Cut(string(text), "## The events\n")
	if !found {
		t.Fatal("docs/event-zero.md has no place for the events")
	}
	for name, fence := range map[string]string{"verdicts.mjs": "js", "verdicts.go": "go", "verdicts.py": "python"} {
		script, err := os.ReadFile("../tools/clients/" + name)
		must.NoError(t, err)
		shown := strings.TrimPrefix(string(script), "//go:build ignore\n\n")
		if !strings.Contains(head, "```"+fence+"\n"+shown+"```\n") {
			t.Errorf("docs/event-zero.md does not show tools/clients/%s as it is", name)
		}
	}
	c := catalogue{t: t, packages: map[string]map[string]*ast.TypeSpec{}, about: map[*ast.TypeSpec]string{}}
	want := head + "## The events\n" + c.events()
	if *update {
		must.NoError(t, os.WriteFile(catalogueFile, []byte(want), 0o644))
		return
	}
	for _, name := range Types() {
		about := strings.ReplaceAll(c.comment(reflect.TypeOf(registry[name].New()).Elem()), "`", "")
		if told := humanqa.EventMeanings()[name]; told != about {
			t.Errorf("the console tells of %s: %q, want %q", name, told, about)
		}
	}
	if string(text) != want {
		t.Error("docs/event-zero.md does not tell the events as they are: run go test ./eventstore -run Catalogue -update")
	}
}

type catalogue struct {
	t        *testing.T
	packages map[string]map[string]*ast.TypeSpec // by path, then name
	about    map[*ast.TypeSpec]string
}

func (c catalogue) events() string {
	var b strings.Builder
	category := ""
	for _, name := range Types() {
		if of, _, _ := strings.Cut(name, "."); of != category {
			category = of
			fmt.Fprintf(&b, "\n### Of %s streams\n", category)
		}
		e := reflect.TypeOf(registry[name].New()).Elem()
		about := c.comment(e)
		if about == "" {
			c.t.Errorf("%s has no comment that says what it means", name)
		}
		fmt.Fprintf(&b, "\n#### %s\nVersion %d. %s\n", name, Version(name), about)
		if rows := c.fields(e, ""); rows != "" {
			b.WriteString("\n| Field | | |\n|---|---|---|\n" + rows)
		}
		fmt.Fprintf(&b, "\n```json\n%s\n```\n", c.example(name))
	}
	return b.String()
}

// example is the data of the newest golden file.
func (c catalogue) example(name string) string {
	raw, err := os.ReadFile(goldenFile(name, Version(name)))
	var g golden
	if err == nil {
		err = json.Unmarshal(raw, &g)
	}
	var data bytes.Buffer
	if err == nil {
		err = json.Compact(&data, g.Data)
	}
	must.NoError(c.t, err)
	return data.String()
}

// comment is what stands over a type, without its name.
func (c catalogue) comment(of reflect.Type) string {
	text := strings.Join(strings.Fields(c.about[c.spec(of)]), " ")
	text = strings.TrimPrefix(strings.TrimPrefix(text, of.Name()+" "), "is ")
	if text == "" {
		return ""
	}
	return strings.ToUpper(text[:1]) + text[1:]
}

// fields is a row for each key of the JSON, those of embedded structs too.
func (c catalogue) fields(of reflect.Type, prefix string) string {
	var b strings.Builder
	for field := range of.Fields() {
		key, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case field.Anonymous && key == "":
			b.WriteString(c.fields(field.Type, prefix))
			continue
		case key == "-":
			continue
		case key == "":
			key = field.Name
		}
		kind := kindOf(field.Type)
		if strings.Contains(options, "omit") || field.Type.Kind() == reflect.Pointer {
			kind += ", may be absent"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", prefix+key, kind, strings.ReplaceAll(c.remark(of, field.Name), "|", "\\|"))
	}
	return b.String()
}

func kindOf(t reflect.Type) string {
	switch {
	case t == reflect.TypeFor[time.Time]():
		return "time"
	case t == reflect.TypeFor[time.Duration]():
		return "nanoseconds"
	case t == reflect.TypeFor[domain.Credits]():
		return "credits"
	case t == reflect.TypeFor[json.RawMessage]():
		return "JSON"
	}
	switch t.Kind() {
	case reflect.Pointer:
		return kindOf(t.Elem())
	case reflect.Slice:
		return "list of " + kindOf(t.Elem())
	case reflect.Map:
		return "object"
	case reflect.Struct:
		return "object (" + t.Name() + ")"
	case reflect.String:
		return "text"
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int64, reflect.Uint64:
		return "number"
	default:
		return t.Kind().String()
	}
}

// remark is what stands beside or over a field.
func (c catalogue) remark(of reflect.Type, name string) string {
	spec := c.spec(of)
	if spec == nil {
		return ""
	}
	structure, ok := spec.Type.(*ast.StructType)
	if !ok {
		return ""
	}
	for _, field := range structure.Fields.List {
		for _, n := range field.Names {
			if n.Name == name {
				return strings.Join(strings.Fields(field.Doc.Text()+" "+field.Comment.Text()), " ")
			}
		}
	}
	return ""
}

// spec finds a type in the sources of its package.
func (c catalogue) spec(of reflect.Type) *ast.TypeSpec {
	dir := filepath.Join("..", strings.TrimPrefix(of.PkgPath(), "humanqa/"))
	if c.packages[dir] == nil {
		c.packages[dir] = map[string]*ast.TypeSpec{}
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		must.NoError(c.t, err)
		for _, file := range files {
			c.parse(dir, file)
		}
	}
	return c.packages[dir][of.Name()]
}

func (c catalogue) parse(dir, file string) {
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments|parser.SkipObjectResolution)
	must.NoError(c.t, err)
	for _, decl := range parsed.Decls {
		group, ok := decl.(*ast.GenDecl)
		if !ok {
			continue
		}
		for _, s := range group.Specs {
			spec, ok := s.(*ast.TypeSpec)
			if !ok {
				continue
			}
			c.packages[dir][spec.Name.Name] = spec
			c.about[spec] = spec.Doc.Text()
			if spec.Doc == nil {
				c.about[spec] = group.Doc.Text()
			}
		}
	}
}
