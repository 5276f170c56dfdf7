package node_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"humanqa/internal/testing/must"
)

// The differences stand where a reader of the code looks, and where an operator looks.
func TestBothPagesListTheSameDifferencesFromTheOriginal(t *testing.T) {
	t.Parallel()
	item := regexp.MustCompile(`(?m)^ *- `)
	listed := func(file, from, to string) (list []string) {
		t.Helper()
		text, err := os.ReadFile(file)
		must.NoError(t, err)
		_, rest, _ := strings.Cut(string(text), from)
		rest, _, _ = strings.Cut(rest, to)
		rest = strings.NewReplacer("//", "", "`", "").Replace(rest)
		for _, one := range item.Split(rest, -1)[1:] {
			list = append(list, strings.Join(strings.Fields(one), " "))
		}
		return list
	}
	code := listed("doc.go", "# Differences from the original", "package node")
	page := listed("../../docs/eventstore.md", "## The embedded node beside EventStoreDB", "\n## ")
	if len(code) == 0 || !slices.Equal(code, page) {
		t.Errorf("doc.go lists\n%s\n\nthe page lists\n%s", strings.Join(code, "\n"), strings.Join(page, "\n"))
	}
}
