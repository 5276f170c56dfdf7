package humanqa_test

import (
	"path"
	"strings"
	"testing"
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
			strings.HasPrefix(file, "internal/testing/") {
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
