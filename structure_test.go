package humanqa_test

import (
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
