package humanqa_test

import (
	"fmt"
	"go/parser"
	"go/token"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"humanqa/internal/testing/must"
)

// folders is the table "Folders" of ARCHITECTURE.md, from which the directions of imports
// are taken.
type folders []folder

type folder struct {
	names   []string // x, or x/… for x and all below it without a row of its own
	meaning string
	may     string // as it stands there
}

const (
	below = "/…"
	only  = "only"      // in the last column: nothing besides
	all   = "all below" // the whole last column: every row below
)

// common are what every row may import that does not say "only".
var common = []string{"internal" + below, "domain" + below}

var rowOfFolders = regexp.MustCompile("(?m)^\\| (`[^|]+`) \\|([^|]*)\\|([^|]*)\\|$")

func readFolders(text string) (all folders) {
	_, text, _ = strings.Cut(text, "\n## Folders\n")
	text, _, _ = strings.Cut(text, "\n## ")
	for _, m := range rowOfFolders.FindAllStringSubmatch(text, -1) {
		all = append(all, folder{names: quotedNames(m[1]), meaning: strings.TrimSpace(m[2]), may: strings.TrimSpace(m[3])})
	}
	return all
}

func quotedNames(cell string) (names []string) {
	for _, m := range code.FindAllStringSubmatch(cell, -1) {
		names = append(names, m[1])
	}
	return names
}

// covers says whether a name of the table means a package.
func covers(name, pkg string) bool {
	base, family := strings.CutSuffix(name, below)
	return pkg == base || family && strings.HasPrefix(pkg, base+"/")
}

// rowOf finds the row of a package, by the longest of the names that mean it; -1 for none.
func (f folders) rowOf(pkg string) (at int, name string) {
	at = -1
	for i, one := range f {
		for _, n := range one.names {
			if covers(n, pkg) && len(n) > len(name) {
				at, name = i, n
			}
		}
	}
	return at, name
}

// may says whether the row lets its packages import the other one.
func (f folders) may(at int, pkg string) bool {
	row := f[at]
	to, name := f.rowOf(pkg)
	named := quotedNames(row.may)
	strict := strings.HasPrefix(row.may, only)
	if !strict {
		named = append(named, common...)
	}
	switch {
	case to == at, row.may == all && to > at:
		return true
	case to < 0 && !strict:
		return true // a library without a row
	}
	return (to < 0 || to > at) && slices.ContainsFunc(named, func(n string) bool { return covers(n, pkg) && len(n) >= len(name) })
}

// wrongImports tells the imports that the table does not allow, of files by their names.
func (f folders) wrongImports(imports map[string][]string) (wrong []string) {
	for file, list := range imports {
		at, _ := f.rowOf(packageOf(file))
		if at < 0 {
			wrong = append(wrong, file+" is in a package without a row")
			continue
		}
		for _, pkg := range list {
			if !f.may(at, pkg) {
				wrong = append(wrong, fmt.Sprintf("%s imports %s against the row | %s | %s |",
					file, pkg, strings.Join(f[at].names, ", "), f[at].may))
			}
		}
	}
	return wrong
}

// packageOf is the package of a file, as the table has it.
func packageOf(file string) string {
	if dir := path.Dir(file); dir != "." {
		return dir
	}
	return "humanqa"
}

// imported reads what a file imports besides Go's own packages.
func imported(t *testing.T, file, text string) (list []string) {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, text, parser.ImportsOnly)
	must.NoError(t, err)
	for _, one := range parsed.Imports {
		pkg, err := strconv.Unquote(one.Path.Value)
		must.NoError(t, err)
		own := strings.HasPrefix(pkg, "humanqa/")
		if first, _, _ := strings.Cut(pkg, "/"); own || pkg == "humanqa" || strings.Contains(first, ".") {
			list = append(list, strings.TrimPrefix(pkg, "humanqa/"))
		}
	}
	return list
}

func TestImportsGoDownTheTableOfFolders(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile(architecture)
	must.NoError(t, err)
	table, imports := readFolders(string(b)), map[string][]string{}
	for file, text := range files(t, ".go") {
		if !strings.HasSuffix(file, "_test.go") && !strings.HasPrefix(file, "bench/") && !strings.HasPrefix(file, "tools/") {
			imports[file] = imported(t, file, text)
		}
	}
	for _, wrong := range table.wrongImports(imports) {
		t.Errorf(`%s, "Folders": %s`, architecture, wrong)
	}
	if len(table) < 20 || len(imports) < 500 {
		t.Errorf("only %d rows and %d files found", len(table), len(imports))
	}
	for at, row := range table {
		for _, name := range quotedNames(row.may) {
			used := false
			for file, list := range imports {
				from, _ := table.rowOf(packageOf(file))
				used = used || from == at && slices.ContainsFunc(list, func(pkg string) bool { return covers(name, pkg) })
			}
			if !used {
				t.Errorf(`%s, "Folders": the row of %s names %s, which none of its packages imports`, architecture, strings.Join(row.names, ", "), name)
			}
		}
	}
}

func TestAnImportAgainstTheTableIsFound(t *testing.T) {
	t.Parallel()
	table := readFolders("\n## Folders\n\n| Package | Meaning | May import |\n|---|---|---|\n" +
		"| `tests/…` | | all below |\n| `pages`, `room/…` | pages | `log/…` |\n| `log/…` | the log | `example.com/client/…` |\n" +
		"| `internal/hidden` | | only `example.com/small` |\n| `internal/…` | adapters | |\n| `domain/…` | | only |\n| `example.com/client/…` | | |\n\n## Next\n")
	for edge, allowed := range map[string]bool{
		"pages room/inner": true, "pages log/deep": true, "pages internal/any": true, "pages domain": true, "pages example.com/large": true,
		"pages internal/hidden": false, "pages example.com/client/v4": false, "pages tests": false,
		"log pages": false, "log example.com/client/v4": true, "tests example.com/client": true, "tests/deep room": true,
		"internal/hidden example.com/small": true, "internal/hidden example.com/large": false, "internal/hidden domain": false,
		"domain internal/any": false, "domain domain/deep": true, "domain example.com/large": false,
	} {
		from, pkg, _ := strings.Cut(edge, " ")
		if wrong := table.wrongImports(map[string][]string{from + "/file.go": {pkg}}); (len(wrong) == 0) != allowed {
			t.Errorf("%s may import %s: %v, want %v", from, pkg, wrong, allowed)
		}
	}
	want := "log/file.go imports pages against the row | log/… | `example.com/client/…` |"
	if wrong := table.wrongImports(map[string][]string{"log/file.go": {"pages"}, "new/file.go": nil}); len(wrong) != 2 || !slices.Contains(wrong, want) ||
		!slices.Contains(wrong, "new/file.go is in a package without a row") {
		t.Errorf("it says %q", wrong)
	}
}

// The table names every package of the layers that it does not list one by one, and so
// does the package that introduces the aggregates.
func TestTheTableOfFoldersIsWhole(t *testing.T) {
	t.Parallel()
	texts := files(t, "ARCHITECTURE.md", "doc.go")
	table := readFolders(texts[architecture])
	for _, row := range table {
		for _, name := range row.names {
			if base := strings.TrimSuffix(name, below); !strings.Contains(base, ".") && base != "humanqa" && !there(base) {
				t.Errorf("%s lists %s, which is no folder", architecture, name)
			}
		}
	}
	for _, layer := range []string{"domain", "internal"} {
		entries, err := os.ReadDir(layer)
		must.NoError(t, err)
		at, _ := table.rowOf(layer)
		for _, e := range entries {
			if !e.IsDir() {
				continue
			}
			own, _ := table.rowOf(layer + "/" + e.Name())
			if own == at && !strings.Contains(table[at].meaning, "`"+e.Name()+"`") {
				t.Errorf("%s says nothing of %s/%s", architecture, layer, e.Name())
			}
			if doc := texts["domain/doc.go"]; layer == "domain" && !regexp.MustCompile(`\b`+e.Name()+`\b`).MatchString(doc) {
				t.Errorf("the package domain says nothing of %s", e.Name())
			}
		}
		for _, name := range quotedNames(table[at].meaning) {
			if !there(layer+"/"+name) && !there(layer+"/*/"+name) {
				t.Errorf("%s finds %s in %s, where it is not", architecture, name, layer)
			}
		}
	}
}
