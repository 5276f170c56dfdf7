package humanqa_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"humanqa/internal/testing/must"
)

// A package and a file beyond these lines hold two subjects: split them.
const (
	packageLines = 4000
	fileLines    = 500
)

func TestNoPackageAndNoFileOutgrowsItsSubject(t *testing.T) {
	t.Parallel()
	packages := map[string]int{}
	for file, text := range files(t, ".go") {
		if strings.HasSuffix(file, "_test.go") || strings.HasPrefix(file, "bench/") || strings.HasPrefix(file, "tools/") ||
			strings.HasPrefix(file, "internal/testing/") || strings.HasSuffix(file, ".gen.go") {
			continue
		}
		lines := strings.Count(text, "\n")
		packages[path.Dir(file)] += lines
		if lines > fileLines {
			t.Errorf("%s has %d lines, more than %d: split it by topic", file, lines, fileLines)
		}
	}
	for folder, lines := range packages {
		if lines > packageLines {
			t.Errorf("the package %s has %d lines, more than %d: split a subject off", folder, lines, packageLines)
		}
	}
	if len(packages) < 50 {
		t.Errorf("only %d packages found", len(packages))
	}
}

var (
	silenced = regexp.MustCompile(`//nolint:([a-z,]+)`)
	enabled  = regexp.MustCompile(`(?m)^    - ([a-z]+)$`)
)

// nolintlint finds the comments that silence an enabled linter without need. It passes over
// those that name a linter that never runs.
func TestNoCommentSilencesALinterThatDoesNotRun(t *testing.T) {
	t.Parallel()
	linters := []string{"errcheck", "govet", "ineffassign", "staticcheck", "unused"} // the standard ones
	config, err := os.ReadFile(".golangci.yml")
	must.NoError(t, err)
	for _, m := range enabled.FindAllStringSubmatch(string(config), -1) {
		linters = append(linters, m[1])
	}
	for file, text := range files(t, ".go") {
		for _, m := range silenced.FindAllStringSubmatch(text, -1) {
			for name := range strings.SplitSeq(m[1], ",") {
				if !slices.Contains(linters, name) {
					t.Errorf("%s silences %s, which .golangci.yml does not enable", file, name)
				}
			}
		}
	}
}

// A function beyond these lines, or with more branches than these, is hard to follow. Some
// state machines read best in one place.
const (
	functionLines = 100
	branches      = 20
	branching     = 12 // functions with more branches
)

func TestNoFunctionOutgrowsItsReader(t *testing.T) {
	t.Parallel()
	set := token.NewFileSet()
	var over []string
	for file, text := range files(t, ".go") {
		if strings.HasSuffix(file, "_test.go") || strings.HasPrefix(file, "tools/") || strings.HasPrefix(file, "internal/testing/") {
			continue
		}
		parsed, err := parser.ParseFile(set, file, text, parser.SkipObjectResolution)
		must.NoError(t, err)
		for _, d := range parsed.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			if lines := set.Position(f.End()).Line - set.Position(f.Pos()).Line + 1; lines > functionLines {
				t.Errorf("%s: %s has %d lines, more than %d", file, f.Name, lines, functionLines)
			}
			if branchesOf(f) > branches {
				over = append(over, file+": "+f.Name.Name)
			}
		}
	}
	if slices.Sort(over); len(over) > branching {
		t.Errorf("%d functions have more than %d branches, more than %d:\n%s", len(over), branches, branching, strings.Join(over, "\n"))
	}
}

// branchesOf is the cyclomatic complexity of a function, as gocyclo counts it.
func branchesOf(f *ast.FuncDecl) int {
	n := 1
	ast.Inspect(f, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.IfStmt, *ast.ForStmt, *ast.RangeStmt:
			n++
		case *ast.CaseClause:
			n += min(1, len(node.List)) // default is no branch
		case *ast.CommClause:
			if node.Comm != nil {
				n++
			}
		case *ast.BinaryExpr:
			if node.Op == token.LAND || node.Op == token.LOR {
				n++
			}
		}
		return true
	})
	return n
}
