package humanqa_test

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"humanqa/httpapi/openapi"
	"humanqa/internal/testing/must"
)

// The generated types have the fields of the document's schemas, and its values. make contract
// compares the whole file with the output of the generator.
func TestTheClientsTypesAreThoseOfTheDocument(t *testing.T) {
	t.Parallel()
	type schema struct {
		Properties map[string]struct{ Enum []any }
	}
	var document struct {
		Components struct{ Schemas map[string]schema }
	}
	must.NoError(t, json.Unmarshal(openapi.Document(), &document))
	file, err := parser.ParseFile(token.NewFileSet(), "types.gen.go", nil, parser.SkipObjectResolution)
	must.NoError(t, err)
	fields, values := map[string][]string{}, map[string]bool{}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.TypeSpec:
			structure, ok := n.Type.(*ast.StructType)
			if !ok {
				return true
			}
			for _, f := range structure.Fields.List {
				name, _, _ := strings.Cut(reflect.StructTag(strings.Trim(f.Tag.Value, "`")).Get("json"), ",")
				fields[strings.ToLower(n.Name.Name)] = append(fields[strings.ToLower(n.Name.Name)], name)
			}
		case *ast.BasicLit:
			values[strings.Trim(n.Value, `"`)] = true
		}
		return true
	})
	compared := 0
	for name, s := range document.Components.Schemas {
		if name == "Ctrf" || name == "Error" || len(s.Properties) == 0 { // tools/clients/types.yaml says why
			continue
		}
		compared++
		got := fields[strings.ToLower(name)]
		if want := slices.Sorted(maps.Keys(s.Properties)); !slices.Equal(slices.Sorted(slices.Values(got)), want) {
			t.Errorf("%s has %v, not %v: run make openapi", name, got, want)
		}
		for field, property := range s.Properties {
			for _, value := range property.Enum {
				if text, ok := value.(string); ok && !values[text] {
					t.Errorf("%s.%s lacks the value %q: run make openapi", name, field, text)
				}
			}
		}
	}
	if compared < 100 {
		t.Errorf("only %d types compared", compared)
	}
}
