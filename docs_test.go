// Package humanqa_test holds the documents to the tree they describe.
package humanqa_test

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"humanqa/internal/testing/must"
)

// files reads what we wrote, by its path from the root: no tool's folder, no
// built file, nothing vendored.
func files(t *testing.T, suffixes ...string) map[string]string {
	t.Helper()
	texts := map[string]string{}
	err := filepath.WalkDir(".", func(file string, d fs.DirEntry, err error) error {
		switch name := d.Name(); {
		case err != nil:
			return err
		case d.IsDir() && file != "." && (strings.HasPrefix(name, ".") || name == "bin" || name == "node_modules"):
			return fs.SkipDir
		case d.IsDir() || !slices.ContainsFunc(suffixes, func(s string) bool { return strings.HasSuffix(name, s) }):
			return nil
		}
		b, err := os.ReadFile(file)
		texts[filepath.ToSlash(file)] = string(b)
		return err
	})
	must.NoError(t, err)
	return texts
}

var (
	// A comment that goes on in the next line.
	wrapped = regexp.MustCompile(`\n[ \t]*(?://|--|#)?[ \t]*`)
	// decisions, "Lots", "Cancel" and "SLA"
	citation = regexp.MustCompile(`\b[Dd]ecisions,((?:(?:,| and)? "[^"]+")+)`)
	quoted   = regexp.MustCompile(`"([^"]+)"`)
	rule     = regexp.MustCompile(`(?m)^### (.+)$`)
	// What nobody finds: a place in a file instead of a name.
	numbered = regexp.MustCompile(`\b(?:[Dd]ecisions|[Aa]rchitecture|[Ss]pecification), sections? [0-9]`)
)

func TestEveryRuleThatACommentCitesIsInTheDecisions(t *testing.T) {
	t.Parallel()
	texts := files(t, ".go", ".sql", ".yaml", ".yml", ".md", ".sh", "Makefile")

	rules := map[string]bool{}
	for _, m := range rule.FindAllStringSubmatch(texts["docs/decisions.md"], -1) {
		if rules[m[1]] {
			t.Errorf("docs/decisions.md has two rules named %q", m[1])
		}
		rules[m[1]] = true
	}
	cited := 0
	for file, text := range texts {
		text = wrapped.ReplaceAllString(text, " ")
		for _, m := range citation.FindAllStringSubmatch(text, -1) {
			for _, name := range quoted.FindAllStringSubmatch(m[1], -1) {
				cited++
				if !rules[name[1]] {
					t.Errorf("%s cites decisions, %q: docs/decisions.md has no such rule", file, name[1])
				}
			}
		}
		if m := numbered.FindString(text); m != "" {
			t.Errorf("%s cites %q: cite the rule by its name", file, m)
		}
	}
	if cited < 50 {
		t.Errorf("only %d citations found: does the test still know what one looks like?", cited)
	}
}

var (
	test = regexp.MustCompile(`\bTest[A-Z]\w+`)
	// `httpapi` TestOne, `cmd/humanqa` TestAnother
	placed = regexp.MustCompile("`([\\w/]+)` (Test[A-Z]\\w+)")
	code   = regexp.MustCompile("`([^`\n]+)`")
	link   = regexp.MustCompile(`\]\(([\w./-]+)\)`)
	// A path in this repository, or a pattern of some.
	tree = regexp.MustCompile(`^[a-z][\w.-]*(/[\w.*-]+)*$`)
)

func TestEveryTestThatADocumentNamesExists(t *testing.T) {
	t.Parallel()
	folders := map[string][]string{} // by the test's name
	for file, text := range files(t, ".go") {
		for _, m := range regexp.MustCompile(`(?m)^func (Test\w+)\(`).FindAllStringSubmatch(text, -1) {
			folders[m[1]] = append(folders[m[1]], path.Dir(file))
		}
	}
	documents := files(t, ".md")
	for document, text := range documents {
		for _, name := range test.FindAllString(text, -1) {
			if folders[name] == nil {
				t.Errorf("%s names %s, which is nowhere", document, name)
			}
		}
		for _, m := range placed.FindAllStringSubmatch(text, -1) {
			if !slices.Contains(folders[m[2]], m[1]) {
				t.Errorf("%s finds %s in %s; it is in %v", document, m[2], m[1], folders[m[2]])
			}
		}
	}
	if n := len(test.FindAllString(documents["ARCHITECTURE.md"], -1)); n < 30 {
		t.Errorf("ARCHITECTURE.md names only %d tests: what holds its invariants?", n)
	}
}

// there reports whether a file or folder matches the pattern.
func there(pattern string) bool {
	found, err := filepath.Glob(filepath.FromSlash(pattern))
	return err == nil && len(found) > 0
}

func TestEveryPlaceThatADocumentNamesExists(t *testing.T) {
	t.Parallel()
	base := map[string]bool{}
	for file := range files(t, ".go", ".yml", ".yaml") {
		base[path.Base(file)] = true
	}
	for _, document := range []string{"ARCHITECTURE.md", "README.md", "CONTRIBUTING.md", "GOALS.md"} {
		b, err := os.ReadFile(document)
		must.NoError(t, err)
		for _, m := range link.FindAllStringSubmatch(string(b), -1) {
			if !there(m[1]) {
				t.Errorf("%s links to %s, which is not there", document, m[1])
			}
		}
		for _, m := range code.FindAllStringSubmatch(string(b), -1) {
			switch name := m[1]; {
			case !tree.MatchString(name):
			case strings.Contains(name, "/") && !there(name),
				!strings.Contains(name, "/") && path.Ext(name) == ".go" && !base[name]:
				t.Errorf("%s names %s, which is not there", document, name)
			}
		}
	}
}

var (
	// figureRow is a figure of GOALS.md with its target, and the part of the bench that measures it.
	figureRow = regexp.MustCompile(`(?m)^\| .+ \| [≤≥] [^|]+ \| ([^|]+) \|`)
	benchPart = regexp.MustCompile(`(?m)^\t\{"([a-z])",`)
)

func TestTheBenchHasAPartForEachFigureOfTheGoalsAndNoOther(t *testing.T) {
	t.Parallel()
	texts := files(t, "GOALS.md", "main.go")
	parts := map[string]bool{}
	for _, m := range benchPart.FindAllStringSubmatch(texts["bench/main.go"], -1) {
		parts[m[1]] = false
	}
	rows := figureRow.FindAllStringSubmatch(texts["GOALS.md"], -1)
	for _, m := range rows {
		_, known := parts[m[1]]
		switch {
		case known:
			parts[m[1]] = true
		case m[1] != "`make test`" && m[1] != "`.ci/run`": // they tell their time themselves
			t.Errorf("GOALS.md names part %q, which bench/main.go does not have: %s", m[1], m[0])
		}
	}
	for part, named := range parts {
		if !named {
			t.Errorf("no figure of GOALS.md needs part %s of the bench", part)
		}
	}
	if len(rows) < 15 || len(parts) < 8 {
		t.Errorf("only %d figures and %d parts found", len(rows), len(parts))
	}
}
